//! An HTTP client with a bounded number of connections.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Bytes;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use hyper::{Request, StatusCode, Uri};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::connect::HttpConnector;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::fleets::Call;

/// Longer than the server's own request timeout.
const ANSWER_WITHIN: Duration = Duration::from_secs(35);
const ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Length limit for an error body in messages.
const DETAIL_CHARS_MAX: usize = 300;

/// Connections to an HTTP server.
pub type HttpPool = hyper_util::client::legacy::Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

/// Creates a connection pool for a server, with a maximum number of idle connections.
pub type ConnectHttp = fn(&Uri, usize) -> anyhow::Result<HttpPool>;

pub(crate) struct Client {
    base: String,
    pool: HttpPool,
    permits: Semaphore,
}

/// Authentication of a request.
#[derive(Clone)]
pub(crate) enum Credential {
    ApiKey(HeaderValue),
    Bearer(HeaderValue),
}

/// Why a request failed.
#[derive(Debug)]
pub(crate) enum CallFailure {
    /// Temporary: retry, at the earliest after the time that the server asked for.
    Retry(Option<Duration>, String),
    /// Permanent: the server would reject the same request again.
    Rejected(String),
}

impl Client {
    pub(crate) fn new(url: &str, connections: u16, connect: ConnectHttp) -> anyhow::Result<Self> {
        let uri = server_uri(url)?;
        Ok(Self {
            base: url.trim_end_matches('/').to_owned(),
            pool: connect(&uri, usize::from(connections))?,
            permits: Semaphore::new(usize::from(connections)),
        })
    }

    /// Waits for a free connection.
    pub(crate) async fn permit(&self) -> SemaphorePermit<'_> {
        self.permits
            .acquire()
            .await
            .expect("the semaphore is never closed")
    }

    /// Sends a request. Dropping the future closes the connection.
    pub(crate) async fn send(
        &self,
        _permit: &SemaphorePermit<'_>,
        call: Call,
        credential: &Credential,
    ) -> Result<Bytes, CallFailure> {
        let request = self
            .request(call, credential)
            .map_err(|error| CallFailure::Rejected(error.to_string()))?;
        match tokio::time::timeout(ANSWER_WITHIN, self.exchange(request)).await {
            Ok(answer) => answer,
            Err(_) => Err(retry("no response before the timeout")),
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
        // The whole error chain: the outermost error alone says little.
        let response =
            response.map_err(|error| retry(&format!("{:#}", anyhow::Error::new(error))))?;
        let status = response.status();
        let retry_after = response
            .headers()
            .get(RETRY_AFTER)
            .and_then(|value| value.to_str().ok()?.parse().ok())
            .map(Duration::from_secs);
        let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX);
        let collected = body.collect().await;
        let bytes = collected
            .map_err(|error| retry(&format!("the response was cut off: {error}")))?
            .to_bytes();
        if status.is_success() {
            return Ok(bytes);
        }
        let detail: String = String::from_utf8_lossy(&bytes)
            .chars()
            .take(DETAIL_CHARS_MAX)
            .collect();
        let reason = format!("{status}: {detail}");
        let is_temporary = status.is_server_error()
            || status == StatusCode::TOO_MANY_REQUESTS
            || status == StatusCode::REQUEST_TIMEOUT;
        Err(if is_temporary {
            CallFailure::Retry(retry_after, reason)
        } else {
            CallFailure::Rejected(reason)
        })
    }
}

impl Credential {
    pub(crate) fn api_key(key: &str) -> anyhow::Result<Self> {
        Ok(Self::ApiKey(secret(key)?))
    }

    /// The key or token alone, for protocols other than HTTP.
    pub(crate) fn secret(&self) -> &str {
        let (Self::ApiKey(value) | Self::Bearer(value)) = self;
        // Constructed from text, so it converts back to text.
        let text = value.to_str().unwrap_or_default();
        text.strip_prefix("Bearer ").unwrap_or(text)
    }

    /// An admin token, or the token of an app user.
    pub(crate) fn bearer(token: &str) -> anyhow::Result<Self> {
        Ok(Self::Bearer(secret(&format!("Bearer {token}"))?))
    }
}

fn server_uri(url: &str) -> anyhow::Result<Uri> {
    let uri: Uri = url
        .parse()
        .with_context(|| format!("invalid server URL {url}"))?;
    ensure!(
        matches!(uri.scheme_str(), Some("http" | "https")) && uri.authority().is_some(),
        "the server URL must begin with http:// or https://"
    );
    ensure!(
        uri.path() == "/" && uri.query().is_none(),
        "the server URL must end after the port"
    );
    Ok(uri)
}

/// A header value that is kept out of logs.
fn secret(text: &str) -> anyhow::Result<HeaderValue> {
    let mut value = HeaderValue::from_str(text)
        .context("a key or token has a character that HTTP headers do not allow")?;
    value.set_sensitive(true);
    Ok(value)
}

fn retry(why: &str) -> CallFailure {
    CallFailure::Retry(None, why.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_url_must_end_after_the_port() {
        assert!(server_uri("http://127.0.0.1:8080").is_ok());
        assert!(server_uri("http://localhost:8080/").is_ok());
        for url in ["ftp://a", "127.0.0.1:8080", "http://a/b", "http://a/?b", ""] {
            assert!(server_uri(url).is_err(), "{url}");
        }
    }
}
