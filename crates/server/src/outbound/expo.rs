//! The client of Expo's push service.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::time::Duration;

use async_trait::async_trait;
use axum::http::{HeaderMap, Request, StatusCode, header};
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use homeport_systems::outbox::SendError;
use homeport_systems::push::{Envelope, PushService, Receipt, Ticket};
use http_body_util::Full;
use serde::Deserialize;
use serde_json::{Value, json};

use super::client::{AllowedAddresses, HttpClient, HttpClientError, retry_after};

const SEND: &str = "/--/api/v2/push/send";
const RECEIPTS: &str = "/--/api/v2/push/getReceipts";
/// Timeout of a request unless set.
const TIMEOUT_DEFAULT: Duration = Duration::from_secs(30);
/// A response with a thousand receipts is much smaller.
const RESPONSE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Length to which error texts of Expo are cut.
const REASON_CHARS_MAX: usize = 300;

/// A client for one Expo-compatible service.
#[derive(Clone)]
pub struct Expo {
    client: HttpClient,
    base_url: String,
    access_token: Option<String>,
    timeout: Duration,
}

#[derive(Deserialize)]
struct SendResponse {
    data: Vec<Status>,
}

#[derive(Deserialize)]
struct ReceiptsResponse {
    data: BTreeMap<String, Status>,
}

/// A ticket or a receipt.
#[derive(Deserialize)]
struct Status {
    status: String,
    id: Option<String>,
    #[serde(default)]
    message: String,
    #[serde(default)]
    details: Value,
}

impl Expo {
    /// A client for the service at `base_url`, which has no slash at its end.
    #[must_use]
    pub fn new(base_url: String, access_token: Option<String>) -> Self {
        Self {
            client: HttpClient::new(AllowedAddresses::Any),
            base_url,
            access_token,
            timeout: TIMEOUT_DEFAULT,
        }
    }

    /// Sets the timeout of requests.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    async fn post(&self, path: &str, body: &Value) -> Result<Bytes, SendError> {
        let invalid = |error: &dyn std::fmt::Display| SendError::Refused(error.to_string());
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        let written = encoder.write_all(body.to_string().as_bytes());
        let compressed = written.and_then(|()| encoder.finish());
        let mut request = Request::post(format!("{}{path}", self.base_url))
            .header(header::ACCEPT, "application/json")
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::CONTENT_ENCODING, "gzip");
        if let Some(token) = &self.access_token {
            request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
        }
        let compressed = compressed.map_err(|error| invalid(&error))?;
        let request = request
            .body(Full::new(Bytes::from(compressed)))
            .map_err(|error| invalid(&error))?;
        let sent = self
            .client
            .send(request, self.timeout, RESPONSE_BYTES_MAX)
            .await;
        let response = sent.map_err(|error| match error {
            HttpClientError::NotConnected(reason) => SendError::Busy {
                retry_after: None,
                reason,
            },
            HttpClientError::NoResponse(reason) => SendError::Unanswered(reason),
            error @ HttpClientError::PrivateAddress(_) => SendError::Refused(error.to_string()),
        })?;
        if response.status.is_success() {
            return Ok(response.body);
        }
        Err(failure(response.status, &response.headers, &response.body))
    }
}

/// The error for a status other than success.
fn failure(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> SendError {
    let reason = format!("{}{}", status.as_u16(), errors_of(body));
    match status {
        // The gateway does not know whether the service behind it processed the request.
        StatusCode::BAD_GATEWAY | StatusCode::GATEWAY_TIMEOUT => SendError::Unanswered(reason),
        // An operator can replace the access token; accepted messages wait for that.
        StatusCode::TOO_MANY_REQUESTS | StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            SendError::Busy {
                retry_after: retry_after(headers),
                reason,
            }
        }
        _ if status.is_server_error() => SendError::Busy {
            retry_after: retry_after(headers),
            reason,
        },
        _ => SendError::Refused(reason),
    }
}

/// The errors that a response lists, for the trace of a notification.
fn errors_of(body: &[u8]) -> String {
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
    shorten(&texts.join(";"))
}

fn shorten(text: &str) -> String {
    text.chars().take(REASON_CHARS_MAX).collect()
}

fn error_code(status: &Status) -> String {
    shorten(status.details["error"].as_str().unwrap_or("Error"))
}

#[async_trait]
impl PushService for Expo {
    async fn send(&self, messages: &[Envelope]) -> Result<Vec<Ticket>, SendError> {
        let messages = messages.iter().map(|envelope| {
            let mut members = envelope.message.members().clone();
            members.insert("to".to_owned(), json!(envelope.to.as_str()));
            Value::Object(members)
        });
        let body = self.post(SEND, &messages.collect()).await?;
        let unreadable = || SendError::Unanswered(format!("invalid response{}", errors_of(&body)));
        let sent: SendResponse = serde_json::from_slice(&body).map_err(|_| unreadable())?;
        let tickets = sent.data.into_iter().map(|ticket| match ticket.id.clone() {
            Some(id) if ticket.status == "ok" => Ticket::Ok { id },
            _ => Ticket::Error {
                code: error_code(&ticket),
                message: shorten(&ticket.message),
            },
        });
        Ok(tickets.collect())
    }

    async fn receipts(&self, tickets: &[String]) -> Result<BTreeMap<String, Receipt>, SendError> {
        let body = self.post(RECEIPTS, &json!({"ids": tickets})).await?;
        let received: ReceiptsResponse = serde_json::from_slice(&body)
            .map_err(|_| SendError::Unanswered("invalid response".to_owned()))?;
        let receipts = received.data.into_iter().map(|(id, status)| {
            let receipt = match status.status.as_str() {
                "ok" => Receipt::Ok,
                _ => Receipt::Error {
                    code: error_code(&status),
                    message: shorten(&status.message),
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
