//! What carries notifications about alerts outside: webhooks over HTTP, and e-mail through a relay.

mod smtp;
mod webhook;

use async_trait::async_trait;
use homeport_systems::alerts::{Deliver, DeliveryError, Email, WebhookCall};

use crate::outbound::{Outbound, Reach};

pub use smtp::{SmtpRelay, SmtpRelayError, SmtpTls};

/// The ways out.
#[derive(Clone)]
pub struct Delivery {
    outbound: Outbound,
    relay: Option<SmtpRelay>,
}

impl Delivery {
    /// Webhooks reach public addresses only, unless private ones are allowed. Without a relay there
    /// is no e-mail.
    #[must_use]
    pub fn new(allow_private_addresses: bool, relay: Option<SmtpRelay>) -> Self {
        let reach = if allow_private_addresses {
            Reach::Anywhere
        } else {
            Reach::Public
        };
        Self {
            outbound: Outbound::new(reach),
            relay,
        }
    }
}

#[async_trait]
impl Deliver for Delivery {
    async fn webhook(&self, call: &WebhookCall) -> Result<(), DeliveryError> {
        webhook::call(&self.outbound, call).await
    }

    async fn email(&self, email: &Email) -> Result<(), DeliveryError> {
        match &self.relay {
            Some(relay) => relay.send(email).await,
            None => Err(DeliveryError::Refused(
                "this server has no e-mail any more".to_owned(),
            )),
        }
    }
}

impl std::fmt::Debug for Delivery {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Delivery")
            .field("relay", &self.relay)
            .finish_non_exhaustive()
    }
}
