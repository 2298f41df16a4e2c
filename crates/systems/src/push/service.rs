//! Expo's push service as this system knows it. Whoever implements it does the HTTP.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;

use super::message::Message;
use super::types::ExpoPushToken;

/// What Expo calls a device that has uninstalled the app or forbids notifications.
pub(super) const DEVICE_NOT_REGISTERED: &str = "DeviceNotRegistered";
/// What Expo calls too many messages to one device.
pub(super) const MESSAGE_RATE_EXCEEDED: &str = "MessageRateExceeded";

/// A message with the token that it goes to.
#[derive(Debug, Clone, PartialEq)]
pub struct Envelope {
    pub to: ExpoPushToken,
    pub message: Message,
}

/// What Expo says at once about a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ticket {
    Ok { id: String },
    Error { code: String, message: String },
}

/// What Expo says later about a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Receipt {
    Ok,
    Error { code: String, message: String },
}

/// Why a request to Expo brought nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ServiceError {
    /// Expo took nothing of it now and may later: 429, 5xx, or a connection that was not made.
    #[error("not taken: {reason}")]
    Busy {
        retry_after: Option<Duration>,
        reason: String,
    },
    /// It is not known whether Expo took it.
    #[error("not answered: {0}")]
    Unanswered(String),
    /// Expo will never take it as it is.
    #[error("refused: {0}")]
    Refused(String),
}

/// The service.
#[async_trait]
pub trait PushService: Send + Sync + 'static {
    /// Sends at most 100 messages; one ticket for each, in order.
    async fn send(&self, messages: &[Envelope]) -> Result<Vec<Ticket>, ServiceError>;

    /// The receipts there are for at most 1000 tickets.
    async fn receipts(&self, tickets: &[String])
    -> Result<BTreeMap<String, Receipt>, ServiceError>;
}
