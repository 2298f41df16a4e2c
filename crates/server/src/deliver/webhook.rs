//! Webhooks, signed as the Standard Webhooks specification asks: with HMAC-SHA256 over id, time and
//! body, so that who gets one knows where it is from, and that it is neither changed nor old.

use std::time::Duration;

use axum::http::{HeaderMap, Request, StatusCode, header};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hmac::{Hmac, Mac as _};
use homeport_systems::alerts::{DeliveryError, WebhookCall};
use http_body_util::Full;
use sha2::Sha256;

use crate::outbound::{Outbound, OutboundError};

/// How long an answer may take.
const TIMEOUT: Duration = Duration::from_secs(15);
/// Of an answer's body nothing is used; more than this is not even read.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

pub(super) async fn call(outbound: &Outbound, call: &WebhookCall) -> Result<(), DeliveryError> {
    let request = Request::post(call.url.as_str())
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::USER_AGENT, "homeport")
        .header("webhook-id", &call.id)
        .header("webhook-timestamp", call.at.0)
        .header("webhook-signature", signature(call))
        .body(Full::new(Bytes::from(call.body.clone())))
        .map_err(|error| DeliveryError::Refused(error.to_string()))?;
    let answer = outbound.send(request, TIMEOUT, ANSWER_BYTES_MAX).await;
    let answer = answer.map_err(|error| match error {
        OutboundError::Forbidden(error) => DeliveryError::Refused(error.to_string()),
        OutboundError::NotConnected(reason) => DeliveryError::Busy {
            retry_after: None,
            reason,
        },
        OutboundError::Broken(reason) => DeliveryError::Unanswered(reason),
    })?;
    judged(answer.status, &answer.headers)
}

/// What a status means. Only what cannot change by itself is final: an endpoint that answers 404
/// today may be set up tomorrow.
fn judged(status: StatusCode, headers: &HeaderMap) -> Result<(), DeliveryError> {
    let reason = status.as_u16().to_string();
    match status {
        _ if status.is_success() => Ok(()),
        StatusCode::GONE => Err(DeliveryError::Refused(reason)),
        _ if status.is_redirection() => Err(DeliveryError::Refused(format!(
            "{reason}: redirects are not followed"
        ))),
        _ => {
            let after = headers.get(header::RETRY_AFTER);
            let secs = after.and_then(|after| after.to_str().ok()?.trim().parse().ok());
            Err(DeliveryError::Busy {
                retry_after: secs.map(Duration::from_secs),
                reason,
            })
        }
    }
}

fn signature(call: &WebhookCall) -> String {
    // A key of HMAC may have any length.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(call.secret.bytes()) else {
        return String::new();
    };
    for part in [
        call.id.as_bytes(),
        b".",
        call.at.0.to_string().as_bytes(),
        b".",
        call.body.as_bytes(),
    ] {
        mac.update(part);
    }
    format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use homeport_systems::alerts::WebhookSecret;
    use homeport_systems::time::EpochSeconds;

    #[test]
    fn a_signature_is_that_of_the_specifications_own_example() {
        let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".to_owned();
        let call = WebhookCall {
            url: "https://example.com".parse().expect("a URL"),
            secret: WebhookSecret::try_from(secret).expect("a secret"),
            id: "msg_p5jXN8AQM9LWM0D4loKWxJek".to_owned(),
            at: EpochSeconds(1_614_265_330),
            body: r#"{"test": 2432232314}"#.to_owned(),
        };
        assert_eq!(
            signature(&call),
            "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
        );
    }
}
