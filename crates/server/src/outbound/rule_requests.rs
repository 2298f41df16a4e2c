//! The HTTP requests of rules. They reach public addresses only, unless the settings allow others.

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use homeport_systems::outbox::SendError;
use homeport_systems::rules::{OutgoingRequest, RequestService};

use super::client::{AllowedAddresses, HttpClient};
use super::standard_webhooks::{SignedRequest, send};

/// Prefix of a secret in the form of the Standard Webhooks specification. Base64 follows.
const SECRET_PREFIX: &str = "whsec_";
/// The setting that permits private addresses.
const ALLOW_PRIVATE: &str = "rules.http_private";

/// Sends the requests of rules.
pub struct SignedRequests {
    client: HttpClient,
    secret: Vec<u8>,
}

impl SignedRequests {
    /// Signs with `secret`: `whsec_` and Base64, or any other text as its bytes.
    #[must_use]
    pub fn new(secret: &str, allow_private_addresses: bool) -> Self {
        let encoded = secret.strip_prefix(SECRET_PREFIX);
        let decoded = encoded.and_then(|encoded| STANDARD.decode(encoded).ok());
        Self {
            client: HttpClient::new(AllowedAddresses::private(allow_private_addresses)),
            secret: decoded.unwrap_or_else(|| secret.as_bytes().to_vec()),
        }
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
    fn secrets_may_be_base64() {
        let requests = SignedRequests::new("whsec_AQID", false);
        assert_eq!(requests.secret, [1, 2, 3]);
        let requests = SignedRequests::new("a secret of the tests", false);
        assert_eq!(requests.secret, b"a secret of the tests");
    }

    #[tokio::test]
    async fn private_addresses_fail_permanently_unless_allowed() {
        let closed = "http://127.0.0.1:1/";
        let guarded = SignedRequests::new("a secret of the tests", false);
        for url in [closed, "http://localhost:1/", "http://[::1]:1/"] {
            let failed = guarded.post(&request(url)).await;
            assert!(
                matches!(&failed, Err(SendError::Refused(_))),
                "{url}: {failed:?}"
            );
        }
        let open = SignedRequests::new("a secret of the tests", true);
        let failed = open.post(&request(closed)).await;
        assert!(matches!(failed, Err(SendError::Busy { .. })), "{failed:?}");
    }
}
