//! Delivers notifications of alerts: webhooks over HTTP, and e-mail through a relay.

use async_trait::async_trait;
use homeport_systems::alerts::{Deliver, Email, WebhookCall};
use homeport_systems::outbox::SendError;

use super::client::{AllowedAddresses, HttpClient};
use super::smtp::SmtpRelay;
use super::standard_webhooks::{SignedRequest, send};

/// The setting that permits private addresses.
const ALLOW_PRIVATE: &str = "alerts.private_addresses";

/// Delivers webhooks and e-mail.
#[derive(Clone)]
pub struct Delivery {
    client: HttpClient,
    relay: Option<SmtpRelay>,
}

impl Delivery {
    /// Webhooks reach public addresses only, unless private ones are allowed. E-mail needs a relay.
    #[must_use]
    pub fn new(allow_private_addresses: bool, relay: Option<SmtpRelay>) -> Self {
        Self {
            client: HttpClient::new(AllowedAddresses::private(allow_private_addresses)),
            relay,
        }
    }
}

#[async_trait]
impl Deliver for Delivery {
    async fn webhook(&self, call: &WebhookCall) -> Result<(), SendError> {
        let signed = SignedRequest {
            url: call.url.as_str(),
            id: &call.id,
            timestamp_secs: call.at.0,
            headers: &[],
            body: call.body.clone().into(),
        };
        send(&self.client, call.secret.bytes(), signed, ALLOW_PRIVATE).await
    }

    async fn email(&self, email: &Email) -> Result<(), SendError> {
        match &self.relay {
            Some(relay) => relay.send(email).await,
            None => Err(SendError::Refused(
                "no e-mail relay is configured".to_owned(),
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
