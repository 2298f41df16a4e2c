//! The HTTP requests of rules. They reach public addresses only, unless the settings allow others.

use async_trait::async_trait;
use homeport_systems::alerts::WebhookSecret;
use homeport_systems::outbox::SendError;
use homeport_systems::rules::{OutgoingRequest, RequestService};

use super::client::{AllowedAddresses, HttpClient};
use super::standard_webhooks::{SignedRequest, send};

/// The setting that permits private addresses.
const ALLOW_PRIVATE: &str = "rules.http_private";

/// A secret that starts with `whsec_` and is invalid. Signatures with it would not verify.
#[derive(Debug, thiserror::Error)]
#[error("invalid secret of rule requests; expected whsec_ and 24 to 64 bytes in base64")]
pub struct InvalidRequestSecret;

/// Sends the requests of rules.
pub struct SignedRequests {
    client: HttpClient,
    secret: Vec<u8>,
}

impl SignedRequests {
    /// Signs with `secret`: `whsec_` and base64, or any other text as its bytes, as before the prefix was known.
    /// Libraries take such a text as `whsec_` and the base64 of the text.
    ///
    /// # Errors
    /// If the text after `whsec_` is not a key in base64.
    pub fn new(secret: &str, allow_private_addresses: bool) -> Result<Self, InvalidRequestSecret> {
        let key = if secret.starts_with(WebhookSecret::PREFIX) {
            let secret = WebhookSecret::try_from(secret.to_owned());
            secret.map_err(|_| InvalidRequestSecret)?.bytes().to_vec()
        } else {
            secret.as_bytes().to_vec()
        };
        Ok(Self {
            client: HttpClient::new(AllowedAddresses::private(allow_private_addresses)),
            secret: key,
        })
    }
}

#[async_trait]
impl RequestService for SignedRequests {
    async fn post(&self, request: &OutgoingRequest) -> Result<(), SendError> {
        let signed = SignedRequest {
            url: &request.url,
            id: &request.id,
            timestamp_secs: request.timestamp_secs,
            headers: &request.headers,
            body: request.body.clone(),
        };
        let sent = send(&self.client, &self.secret, signed, ALLOW_PRIVATE).await;
        // A receiver recognizes a repeat by its id, so a request without a response is simply retried.
        sent.map_err(|error| match error {
            SendError::Unanswered(reason) => SendError::Busy {
                retry_after: None,
                reason,
            },
            error => error,
        })
    }
}

impl std::fmt::Debug for SignedRequests {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("SignedRequests")
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT_SECRET: &str = "a secret of the tests";

    fn request(url: &str) -> OutgoingRequest {
        OutgoingRequest {
            id: "msg_p5jXN8AQM9LWM0D4loKWxJek".to_owned(),
            timestamp_secs: 1_614_265_330,
            url: url.to_owned(),
            headers: Vec::new(),
            body: r#"{"test": 2432232314}"#.into(),
        }
    }

    #[test]
    fn secret_without_prefix_is_its_bytes() {
        let requests = SignedRequests::new(TEXT_SECRET, false).expect("a secret");
        assert_eq!(requests.secret, TEXT_SECRET.as_bytes());
    }

    #[test]
    fn malformed_standard_secret_is_rejected() {
        for wrong in [
            "whsec_",
            "whsec_not base64, but long enough",
            "whsec_c2hvcnQ=",
        ] {
            let made = SignedRequests::new(wrong, false);
            assert!(made.is_err(), "{wrong}");
        }
    }

    #[tokio::test]
    async fn private_addresses_fail_permanently_unless_allowed() {
        let closed = "http://127.0.0.1:1/";
        let guarded = SignedRequests::new(TEXT_SECRET, false).expect("a secret");
        for url in [closed, "http://localhost:1/", "http://[::1]:1/"] {
            let failed = guarded.post(&request(url)).await;
            assert!(
                matches!(&failed, Err(SendError::Refused(_))),
                "{url}: {failed:?}"
            );
        }
        let open = SignedRequests::new(TEXT_SECRET, true).expect("a secret");
        let failed = open.post(&request(closed)).await;
        assert!(matches!(failed, Err(SendError::Busy { .. })), "{failed:?}");
    }
}
