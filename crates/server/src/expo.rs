//! Expo's push service over HTTP.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::time::Duration;

use async_trait::async_trait;
use axum::http::{HeaderMap, Request, StatusCode, header};
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use homeport_systems::push::{Envelope, PushService, Receipt, ServiceError, Ticket};
use http_body_util::Full;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::outbound::{Outbound, OutboundError, Reach};

const SEND: &str = "/--/api/v2/push/send";
const RECEIPTS: &str = "/--/api/v2/push/getReceipts";
/// How long an answer may take unless said otherwise.
const TIMEOUT_DEFAULT: Duration = Duration::from_secs(30);
/// A thousand receipts with their details are far smaller.
const ANSWER_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Of what Expo says, as much is kept.
const REASON_CHARS_MAX: usize = 300;

/// The service at an address.
#[derive(Clone)]
pub struct Expo {
    outbound: Outbound,
    base_url: String,
    access_token: Option<String>,
    timeout: Duration,
}

#[derive(Deserialize)]
struct Sent {
    data: Vec<Said>,
}

#[derive(Deserialize)]
struct Received {
    data: BTreeMap<String, Said>,
}

/// A ticket or a receipt.
#[derive(Deserialize)]
struct Said {
    status: String,
    id: Option<String>,
    #[serde(default)]
    message: String,
    #[serde(default)]
    details: Value,
}

impl Expo {
    /// The service at `base_url`, which does not end with a slash.
    #[must_use]
    pub fn new(base_url: String, access_token: Option<String>) -> Self {
        Self {
            outbound: Outbound::new(Reach::Anywhere),
            base_url,
            access_token,
            timeout: TIMEOUT_DEFAULT,
        }
    }

    /// Waits this long for an answer.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    async fn post(&self, path: &str, body: &Value) -> Result<Bytes, ServiceError> {
        let wrong = |error: &dyn std::fmt::Display| ServiceError::Refused(error.to_string());
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        let written = encoder.write_all(body.to_string().as_bytes());
        let packed = written.and_then(|()| encoder.finish());
        let mut request = Request::post(format!("{}{path}", self.base_url))
            .header(header::ACCEPT, "application/json")
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::CONTENT_ENCODING, "gzip");
        if let Some(token) = &self.access_token {
            request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
        }
        let packed = packed.map_err(|error| wrong(&error))?;
        let request = request
            .body(Full::new(Bytes::from(packed)))
            .map_err(|error| wrong(&error))?;
        let sent = self
            .outbound
            .send(request, self.timeout, ANSWER_BYTES_MAX)
            .await;
        let answer = sent.map_err(|error| match error {
            OutboundError::NotConnected(reason) => ServiceError::Busy {
                retry_after: None,
                reason,
            },
            OutboundError::Broken(reason) => ServiceError::Unanswered(reason),
            OutboundError::Forbidden(error) => ServiceError::Refused(error.to_string()),
        })?;
        if answer.status.is_success() {
            return Ok(answer.body);
        }
        Err(failure(answer.status, &answer.headers, &answer.body))
    }
}

/// What a status other than success means.
fn failure(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> ServiceError {
    let reason = format!("{}{}", status.as_u16(), said(body));
    match status {
        // A gateway that gave up does not know what the service behind it did.
        StatusCode::BAD_GATEWAY | StatusCode::GATEWAY_TIMEOUT => ServiceError::Unanswered(reason),
        // Someone can set another access token meanwhile: what was accepted waits for that.
        StatusCode::TOO_MANY_REQUESTS | StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            ServiceError::Busy {
                retry_after: retry_after(headers),
                reason,
            }
        }
        _ if status.is_server_error() => ServiceError::Busy {
            retry_after: retry_after(headers),
            reason,
        },
        _ => ServiceError::Refused(reason),
    }
}

fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(header::RETRY_AFTER)?.to_str().ok()?;
    text.trim().parse().ok().map(Duration::from_secs)
}

/// The errors that a body lists, for the trace.
fn said(body: &[u8]) -> String {
    let Ok(body) = serde_json::from_slice::<Value>(body) else {
        return String::new();
    };
    let errors = body["errors"].as_array().into_iter().flatten();
    let texts: Vec<String> = errors
        .map(|error| {
            let text = |name| error[name].as_str().unwrap_or_default();
            format!(" {}: {}", text("code"), text("message"))
        })
        .collect();
    short(&texts.join(";"))
}

fn short(text: &str) -> String {
    text.chars().take(REASON_CHARS_MAX).collect()
}

fn code(said: &Said) -> String {
    short(said.details["error"].as_str().unwrap_or("Error"))
}

#[async_trait]
impl PushService for Expo {
    async fn send(&self, messages: &[Envelope]) -> Result<Vec<Ticket>, ServiceError> {
        let messages = messages.iter().map(|envelope| {
            let mut members = envelope.message.members().clone();
            members.insert("to".to_owned(), json!(envelope.to.as_str()));
            Value::Object(members)
        });
        let body = self.post(SEND, &messages.collect()).await?;
        let unreadable =
            || ServiceError::Unanswered(format!("the answer cannot be understood{}", said(&body)));
        let sent: Sent = serde_json::from_slice(&body).map_err(|_| unreadable())?;
        let tickets = sent.data.into_iter().map(|said| match said.id.clone() {
            Some(id) if said.status == "ok" => Ticket::Ok { id },
            _ => Ticket::Error {
                code: code(&said),
                message: short(&said.message),
            },
        });
        Ok(tickets.collect())
    }

    async fn receipts(
        &self,
        tickets: &[String],
    ) -> Result<BTreeMap<String, Receipt>, ServiceError> {
        let body = self.post(RECEIPTS, &json!({"ids": tickets})).await?;
        let received: Received = serde_json::from_slice(&body)
            .map_err(|_| ServiceError::Unanswered("the answer cannot be understood".to_owned()))?;
        let receipts = received.data.into_iter().map(|(id, said)| {
            let receipt = match said.status.as_str() {
                "ok" => Receipt::Ok,
                _ => Receipt::Error {
                    code: code(&said),
                    message: short(&said.message),
                },
            };
            (id, receipt)
        });
        Ok(receipts.collect())
    }
}

impl std::fmt::Debug for Expo {
    /// Leaves the access token out.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Expo")
            .field("base_url", &self.base_url)
            .finish_non_exhaustive()
    }
}
