//! The interface to webhooks and e-mail. The server implements it over the network.

use async_trait::async_trait;

use crate::alerts::types::{EmailAddress, WebhookSecret, WebhookUrl};
use crate::outbox::SendError;
use crate::time::EpochSeconds;

/// A request to a webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookCall {
    pub url: WebhookUrl,
    pub secret: WebhookSecret,
    /// The same for every attempt.
    pub id: String,
    pub at: EpochSeconds,
    pub body: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Email {
    pub to: EmailAddress,
    /// The same for every attempt.
    pub id: String,
    pub subject: String,
    pub text: String,
}

/// Sends notifications to targets outside of Homeport.
#[async_trait]
pub trait Deliver: Send + Sync + 'static {
    async fn webhook(&self, call: &WebhookCall) -> Result<(), SendError>;

    async fn email(&self, email: &Email) -> Result<(), SendError>;
}
