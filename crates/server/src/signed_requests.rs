//! Requests that rules make, signed as the Standard Webhooks specification asks: with HMAC-SHA256 over
//! id, time and body. They go to public addresses only, unless the settings allow others.

use std::time::Duration;

use async_trait::async_trait;
use axum::http::{HeaderMap, Request, StatusCode, header};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac as _};
use homeport_systems::rules::{OutgoingRequest, RequestError, RequestService};
use http_body_util::Full;
use sha2::Sha256;

use crate::outbound::{Outbound, OutboundError, Reach};

/// How long an answer may take.
const TIMEOUT: Duration = Duration::from_secs(15);
/// Of an answer's body nothing is used; more than this is not even read.
const ANSWER_BYTES_MAX: usize = 64 * 1024;
/// What secrets of the specification begin with; Base64 follows.
const SECRET_PREFIX: &str = "whsec_";

/// The requests of rules.
pub struct SignedRequests {
    outbound: Outbound,
    secret: Vec<u8>,
}

impl SignedRequests {
    /// Signs with `secret`: the bytes behind `whsec_` and Base64, or the text itself.
    #[must_use]
    pub fn new(secret: &str, allows_private: bool) -> Self {
        let encoded = secret.strip_prefix(SECRET_PREFIX);
        let decoded = encoded.and_then(|encoded| STANDARD.decode(encoded).ok());
        Self {
            outbound: Outbound::new(if allows_private {
                Reach::Anywhere
            } else {
                Reach::Public
            }),
            secret: decoded.unwrap_or_else(|| secret.as_bytes().to_vec()),
        }
    }

    fn signature(&self, request: &OutgoingRequest) -> Result<String, RequestError> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.secret)
            .map_err(|error| RequestError::Never(error.to_string()))?;
        mac.update(format!("{}.{}.", request.id, request.timestamp_secs).as_bytes());
        mac.update(&request.body);
        Ok(format!(
            "v1,{}",
            STANDARD.encode(mac.finalize().into_bytes())
        ))
    }
}

#[async_trait]
impl RequestService for SignedRequests {
    async fn post(&self, request: &OutgoingRequest) -> Result<(), RequestError> {
        let mut builder = Request::post(&request.url);
        for (name, value) in &request.headers {
            builder = builder.header(name, value);
        }
        let has_type = |headers: &HeaderMap| headers.contains_key(header::CONTENT_TYPE);
        if !builder.headers_ref().is_some_and(has_type) {
            builder = builder.header(header::CONTENT_TYPE, "application/json");
        }
        let signed = builder
            .header("webhook-id", &request.id)
            .header("webhook-timestamp", request.timestamp_secs)
            .header("webhook-signature", self.signature(request)?)
            .body(Full::new(request.body.clone()))
            .map_err(|error| RequestError::Never(error.to_string()))?;
        let answer = self.outbound.send(signed, TIMEOUT, ANSWER_BYTES_MAX).await;
        let answer = answer.map_err(|error| match error {
            OutboundError::Forbidden(address) => RequestError::Never(format!(
                "{} is not a public address; rules.http_private would allow it",
                address.0
            )),
            OutboundError::NotConnected(reason) | OutboundError::Broken(reason) => {
                RequestError::Later {
                    reason,
                    retry_after: None,
                }
            }
        })?;
        judged(answer.status, &answer.headers)
    }
}

/// What a status means. Only what cannot change by itself is final.
fn judged(status: StatusCode, headers: &HeaderMap) -> Result<(), RequestError> {
    if status.is_success() {
        return Ok(());
    }
    if status.is_redirection() {
        return Err(RequestError::Never(format!(
            "status {}: redirects are not followed",
            status.as_u16()
        )));
    }
    if status == StatusCode::GONE {
        return Err(RequestError::Never("status 410".to_owned()));
    }
    let after = headers.get(header::RETRY_AFTER);
    let secs = after.and_then(|after| after.to_str().ok()?.trim().parse().ok());
    Err(RequestError::Later {
        reason: format!("status {}", status.as_u16()),
        retry_after: secs.map(Duration::from_secs),
    })
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
    fn the_signature_is_that_of_the_specifications_own_example() {
        let requests = SignedRequests::new("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", false);
        assert_eq!(
            requests.signature(&request("https://example.com")),
            Ok("v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=".to_owned())
        );
    }

    #[tokio::test]
    async fn addresses_of_this_machine_are_refused_for_good_unless_allowed() {
        let closed = "http://127.0.0.1:1/";
        let guarded = SignedRequests::new("a secret of the tests", false);
        for url in [closed, "http://localhost:1/", "http://[::1]:1/"] {
            let refused = guarded.post(&request(url)).await;
            assert!(
                matches!(&refused, Err(RequestError::Never(_))),
                "{url}: {refused:?}"
            );
        }
        let open = SignedRequests::new("a secret of the tests", true);
        let refused = open.post(&request(closed)).await;
        assert!(
            matches!(refused, Err(RequestError::Later { .. })),
            "{refused:?}"
        );
    }

    #[test]
    fn only_what_cannot_change_by_itself_is_final() {
        let judge = |status: u16| {
            let status = StatusCode::from_u16(status).expect("a status");
            match judged(status, &HeaderMap::new()) {
                Ok(()) => "done",
                Err(RequestError::Later { .. }) => "later",
                Err(RequestError::Never(_)) => "never",
            }
        };
        for (status, expected) in [
            (200, "done"),
            (204, "done"),
            (302, "never"),
            (410, "never"),
            (404, "later"),
            (429, "later"),
            (500, "later"),
        ] {
            assert_eq!(judge(status), expected, "{status}");
        }
    }
}
