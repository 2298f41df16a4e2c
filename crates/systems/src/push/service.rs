//! The interface to Expo's push service. The server implements it over HTTP.

use std::collections::BTreeMap;

use async_trait::async_trait;

use super::message::Message;
use super::types::ExpoPushToken;
use crate::outbox::SendError;

/// Expo's code for a device that uninstalled the app or forbids notifications.
pub(super) const DEVICE_NOT_REGISTERED: &str = "DeviceNotRegistered";
/// Expo's code for too many messages to one device.
pub(super) const MESSAGE_RATE_EXCEEDED: &str = "MessageRateExceeded";

/// A message and the token of its receiver.
#[derive(Debug, Clone, PartialEq)]
pub struct Envelope {
    pub to: ExpoPushToken,
    pub message: Message,
}

/// Expo's immediate answer about a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ticket {
    Ok { id: String },
    Error { code: String, message: String },
}

/// Expo's later report about a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Receipt {
    Ok,
    Error { code: String, message: String },
}

#[async_trait]
pub trait PushService: Send + Sync + 'static {
    /// Sends at most 100 messages and returns one ticket for each, in order.
    async fn send(&self, messages: &[Envelope]) -> Result<Vec<Ticket>, SendError>;

    /// Returns the available receipts for at most 1000 tickets.
    async fn receipts(&self, tickets: &[String]) -> Result<BTreeMap<String, Receipt>, SendError>;
}
