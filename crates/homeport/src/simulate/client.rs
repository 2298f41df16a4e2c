//! A small HTTP client over a bounded number of connections.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Bytes;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use hyper::{Request, StatusCode, Uri};
use tokio::sync::{Semaphore, SemaphorePermit};

use super::fleet::Call;
use crate::pool::{Pool, pool};

/// Longer than the server itself lets a request take.
const ANSWER_WITHIN: Duration = Duration::from_secs(35);
const ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;
/// How much of a refusal is shown.
const DETAIL_CHARS_MAX: usize = 300;

pub(super) struct Client {
    base: String,
    pool: Pool,
    permits: Semaphore,
}

/// How a request proves who sends it.
#[derive(Clone)]
pub(super) enum Credential {
    ApiKey(HeaderValue),
    Bearer(HeaderValue),
}

/// Why there is no answer of success.
#[derive(Debug)]
pub(super) enum CallFailure {
    /// Try again, not before the time that the server named.
    Again(Option<Duration>, String),
    /// The same request will be refused again.
    Refused(String),
}

impl Client {
    pub(super) fn new(url: &str, connections: u16) -> anyhow::Result<Self> {
        let uri: Uri = url
            .parse()
            .with_context(|| format!("{url} is no address"))?;
        ensure!(
            matches!(uri.scheme_str(), Some("http" | "https")) && uri.authority().is_some(),
            "the address must begin with http:// or https://"
        );
        ensure!(
            uri.path() == "/" && uri.query().is_none(),
            "the address must end after the port"
        );
        Ok(Self {
            base: url.trim_end_matches('/').to_owned(),
            pool: pool(&uri, usize::from(connections))?,
            permits: Semaphore::new(usize::from(connections)),
        })
    }

    /// Waits for one of the connections to be free.
    pub(super) async fn permit(&self) -> SemaphorePermit<'_> {
        self.permits
            .acquire()
            .await
            .expect("the semaphore is never closed")
    }

    /// Sends a request. Dropping the future closes its connection.
    pub(super) async fn send(
        &self,
        _permit: &SemaphorePermit<'_>,
        call: Call,
        credential: &Credential,
    ) -> Result<Bytes, CallFailure> {
        let request = self
            .request(call, credential)
            .map_err(|error| CallFailure::Refused(error.to_string()))?;
        match tokio::time::timeout(ANSWER_WITHIN, self.exchange(request)).await {
            Ok(answer) => answer,
            Err(_) => Err(again("no answer in time")),
        }
    }

    fn request(
        &self,
        call: Call,
        credential: &Credential,
    ) -> Result<Request<Full<Bytes>>, hyper::http::Error> {
        let builder = Request::builder()
            .method(call.method)
            .uri(format!("{}{}", self.base, call.path))
            .header(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let builder = match credential {
            Credential::ApiKey(key) => builder.header("x-api-key", key),
            Credential::Bearer(bearer) => builder.header(AUTHORIZATION, bearer),
        };
        let builder = match call.idempotency_key {
            Some(key) => builder.header("idempotency-key", key),
            None => builder,
        };
        builder.body(Full::new(Bytes::from(call.body.unwrap_or_default())))
    }

    async fn exchange(&self, request: Request<Full<Bytes>>) -> Result<Bytes, CallFailure> {
        let response = self.pool.request(request).await;
        // With all causes: the outermost one alone says little.
        let response =
            response.map_err(|error| again(&format!("{:#}", anyhow::Error::new(error))))?;
        let status = response.status();
        let retry_after = response
            .headers()
            .get(RETRY_AFTER)
            .and_then(|value| value.to_str().ok()?.parse().ok())
            .map(Duration::from_secs);
        let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX);
        let collected = body.collect().await;
        let bytes = collected
            .map_err(|error| again(&format!("the answer broke off: {error}")))?
            .to_bytes();
        if status.is_success() {
            return Ok(bytes);
        }
        let detail: String = String::from_utf8_lossy(&bytes)
            .chars()
            .take(DETAIL_CHARS_MAX)
            .collect();
        let said = format!("{status}: {detail}");
        let is_temporary = status.is_server_error()
            || status == StatusCode::TOO_MANY_REQUESTS
            || status == StatusCode::REQUEST_TIMEOUT;
        Err(if is_temporary {
            CallFailure::Again(retry_after, said)
        } else {
            CallFailure::Refused(said)
        })
    }
}

impl Credential {
    pub(super) fn api_key(key: &str) -> anyhow::Result<Self> {
        Ok(Self::ApiKey(secret(key)?))
    }

    /// The key or token as it was given, where it is no header's value.
    pub(super) fn secret(&self) -> &str {
        let (Self::ApiKey(value) | Self::Bearer(value)) = self;
        // It was made from a text that a header can have.
        let text = value.to_str().unwrap_or_default();
        text.strip_prefix("Bearer ").unwrap_or(text)
    }

    /// An admin token, or the token of an app's user.
    pub(super) fn bearer(token: &str) -> anyhow::Result<Self> {
        Ok(Self::Bearer(secret(&format!("Bearer {token}"))?))
    }
}

/// A header's value that no log shows.
fn secret(text: &str) -> anyhow::Result<HeaderValue> {
    let mut value = HeaderValue::from_str(text)
        .context("a key or token has a character that it cannot have")?;
    value.set_sensitive(true);
    Ok(value)
}

fn again(why: &str) -> CallFailure {
    CallFailure::Again(None, why.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_address_that_ends_after_the_port_is_taken() {
        assert!(Client::new("http://127.0.0.1:8080", 1).is_ok());
        assert!(Client::new("http://localhost:8080/", 1).is_ok());
        for url in ["ftp://a", "127.0.0.1:8080", "http://a/b", "http://a/?b", ""] {
            assert!(Client::new(url, 1).is_err(), "{url}");
        }
    }
}
