//! The interface to Expo's push service. The server implements it over HTTP.

use std::collections::BTreeMap;

use async_trait::async_trait;

use crate::outbox::SendError;
use crate::push::notifications::Message;
use crate::push::types::{ExpoPushToken, TOKEN_PREFIXES};

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

/// What stands for a push token in a text.
const TOKEN_REMOVED: &str = "the push token";

/// Removes push tokens from a text of Expo. A token allows sending to a device and must not outlive it, so that
/// reasons, traces and logs never contain one.
pub(super) fn without_tokens(text: &str) -> String {
    let mut rest = text;
    let mut shown = String::with_capacity(text.len());
    while let Some((start, prefix)) = TOKEN_PREFIXES
        .iter()
        .filter_map(|prefix| Some((rest.find(prefix)?, prefix)))
        .min()
    {
        shown.push_str(&rest[..start]);
        shown.push_str(TOKEN_REMOVED);
        let token = &rest[start + prefix.len()..];
        // A text that was cut has only the beginning of its last token.
        rest = token.find(']').map_or("", |end| &token[end + 1..]);
    }
    shown + rest
}

impl Ticket {
    pub(super) fn without_tokens(self) -> Self {
        match self {
            Self::Ok { id } => Self::Ok { id },
            Self::Error { code, message } => Self::Error {
                code: without_tokens(&code),
                message: without_tokens(&message),
            },
        }
    }
}

impl Receipt {
    pub(super) fn without_tokens(self) -> Self {
        match self {
            Self::Ok => Self::Ok,
            Self::Error { code, message } => Self::Error {
                code: without_tokens(&code),
                message: without_tokens(&message),
            },
        }
    }
}

pub(super) fn error_without_tokens(error: SendError) -> SendError {
    match error {
        SendError::Busy {
            retry_after,
            reason,
        } => SendError::Busy {
            retry_after,
            reason: without_tokens(&reason),
        },
        SendError::Unanswered(reason) => SendError::Unanswered(without_tokens(&reason)),
        SendError::Refused(reason) => SendError::Refused(without_tokens(&reason)),
    }
}

#[async_trait]
pub trait PushService: Send + Sync + 'static {
    /// Sends at most 100 messages and returns one ticket for each, in order.
    async fn send(&self, messages: &[Envelope]) -> Result<Vec<Ticket>, SendError>;

    /// Returns the available receipts for at most 1000 tickets.
    async fn receipts(&self, tickets: &[String]) -> Result<BTreeMap<String, Receipt>, SendError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_lose_their_push_tokens() {
        for (text, expected) in [
            ("no token", "no token"),
            (
                "\"ExponentPushToken[a-1]\" is gone",
                "\"the push token\" is gone",
            ),
            (
                "ExpoPushToken[a], ExponentPushToken[b]: two projects",
                "the push token, the push token: two projects",
            ),
            ("cut: ExponentPushToken[abc", "cut: the push token"),
        ] {
            assert_eq!(without_tokens(text), expected);
        }
    }
}
