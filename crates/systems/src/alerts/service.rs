//! Webhooks and e-mail as this system knows them. Whoever implements them does the network.

use std::time::Duration;

use async_trait::async_trait;

use super::types::{EmailAddress, WebhookSecret, WebhookUrl};
use crate::time::EpochSeconds;

/// A request to a webhook. Its id is the same however often it is tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookCall {
    pub url: WebhookUrl,
    pub secret: WebhookSecret,
    pub id: String,
    pub at: EpochSeconds,
    pub body: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Email {
    pub to: EmailAddress,
    /// Names it; the same however often it is tried.
    pub id: String,
    pub subject: String,
    pub text: String,
}

/// Why a target did not take something.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DeliveryError {
    /// It did not take it now and may later.
    #[error("not taken: {reason}")]
    Busy {
        retry_after: Option<Duration>,
        reason: String,
    },
    /// It is not known whether it took it.
    #[error("not answered: {0}")]
    Unanswered(String),
    /// It will never take it as it is.
    #[error("refused: {0}")]
    Refused(String),
}

/// What carries notifications to targets outside.
#[async_trait]
pub trait Deliver: Send + Sync + 'static {
    async fn webhook(&self, call: &WebhookCall) -> Result<(), DeliveryError>;

    async fn email(&self, email: &Email) -> Result<(), DeliveryError>;
}
