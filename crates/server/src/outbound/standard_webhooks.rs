//! Requests signed by the Standard Webhooks specification: HMAC-SHA256 over id, time and body. Receivers
//! can check who sent a request, and that it is neither changed nor old.

use std::time::Duration;

use axum::http::{HeaderMap, Request, StatusCode, header};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hmac::{Hmac, Mac as _};
use homeport_systems::outbox::SendError;
use http_body_util::Full;
use sha2::Sha256;

use super::client::{HttpClient, HttpClientError, retry_after};

const TIMEOUT: Duration = Duration::from_secs(15);
/// The body of a response is ignored. This bounds how much of it is read.
const RESPONSE_BYTES_MAX: usize = 64 * 1024;
const USER_AGENT: &str = "homeport";

/// A request to sign and send.
pub(super) struct SignedRequest<'a> {
    pub(super) url: &'a str,
    /// The same in every attempt, so that the receiver recognizes repeats.
    pub(super) id: &'a str,
    pub(super) timestamp_secs: i64,
    /// Headers beside those of the signature. Content type and user agent have defaults.
    pub(super) headers: &'a [(String, String)],
    pub(super) body: Bytes,
}

/// Signs and sends a request. `allow_private_setting` names the setting that permits private addresses.
pub(super) async fn send(
    client: &HttpClient,
    secret: &[u8],
    request: SignedRequest<'_>,
    allow_private_setting: &str,
) -> Result<(), SendError> {
    let invalid = |error: axum::http::Error| SendError::Refused(error.to_string());
    let mut builder = Request::post(request.url);
    for (name, value) in request.headers {
        builder = builder.header(name, value);
    }
    for (name, default) in [
        (header::CONTENT_TYPE, "application/json"),
        (header::USER_AGENT, USER_AGENT),
    ] {
        let is_set = |headers: &HeaderMap| headers.contains_key(&name);
        if !builder.headers_ref().is_some_and(is_set) {
            builder = builder.header(name, default);
        }
    }
    let signature = signature(secret, request.id, request.timestamp_secs, &request.body);
    let signed = builder
        .header("webhook-id", request.id)
        .header("webhook-timestamp", request.timestamp_secs)
        .header("webhook-signature", signature)
        .body(Full::new(request.body))
        .map_err(invalid)?;
    let response = client.send(signed, TIMEOUT, RESPONSE_BYTES_MAX).await;
    let response = response.map_err(|error| match error {
        HttpClientError::PrivateAddress(address) => SendError::Refused(format!(
            "{address} is not a public address; {allow_private_setting} would allow it"
        )),
        HttpClientError::NotConnected(reason) => SendError::Busy {
            reason,
            retry_after: None,
        },
        HttpClientError::NoResponse(reason) => SendError::Unanswered(reason),
    })?;
    check_status(response.status, &response.headers)
}

/// Only redirects and 410 are permanent: an endpoint that returns 404 today may exist tomorrow.
fn check_status(status: StatusCode, headers: &HeaderMap) -> Result<(), SendError> {
    let reason = format!("status {}", status.as_u16());
    if status.is_success() {
        Ok(())
    } else if status.is_redirection() {
        Err(SendError::Refused(format!(
            "{reason}: redirects are not followed"
        )))
    } else if status == StatusCode::GONE {
        Err(SendError::Refused(reason))
    } else {
        Err(SendError::Busy {
            reason,
            retry_after: retry_after(headers),
        })
    }
}

fn signature(secret: &[u8], id: &str, timestamp_secs: i64, body: &[u8]) -> String {
    let mut mac =
        Hmac::<Sha256>::new_from_slice(secret).expect("HMAC accepts keys of every length");
    mac.update(format!("{id}.{timestamp_secs}.").as_bytes());
    mac.update(body);
    format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signature_matches_the_example_of_the_specification() {
        let secret = STANDARD
            .decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
            .expect("Base64");
        let body = br#"{"test": 2432232314}"#;
        assert_eq!(
            signature(&secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, body),
            "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
        );
    }

    #[test]
    fn only_redirects_and_410_are_permanent() {
        let check = |status: u16| {
            let status = StatusCode::from_u16(status).expect("a status");
            match check_status(status, &HeaderMap::new()) {
                Ok(()) => "done",
                Err(SendError::Busy { .. } | SendError::Unanswered(_)) => "later",
                Err(SendError::Refused(_)) => "never",
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
            assert_eq!(check(status), expected, "{status}");
        }
    }
}
