//! Requests to services on the internet: bounded in time and in what is read of an answer.

use std::time::Duration;

use axum::http::{HeaderMap, Request, StatusCode};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;

/// A client that keeps connections for the next request. It speaks https, and http to whoever was
/// configured that way.
#[derive(Clone)]
pub(crate) struct Outbound {
    /// Why there is none, on a machine that trusts nobody: it may never be needed.
    client: Result<Client<HttpsConnector<HttpConnector>, Full<Bytes>>, String>,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum OutboundError {
    /// The request did not leave.
    #[error("no connection: {0}")]
    NotConnected(String),
    /// It left, and what became of it is not known.
    #[error("{0}")]
    Broken(String),
}

impl Outbound {
    pub(crate) fn new() -> Self {
        let client = HttpsConnectorBuilder::new()
            .with_native_roots()
            .map(|builder| {
                let connector = builder.https_or_http().enable_http1().build();
                Client::builder(TokioExecutor::new()).build(connector)
            })
            .map_err(|error| format!("this machine has no root certificates: {error}"));
        Self { client }
    }

    pub(crate) async fn send(
        &self,
        request: Request<Full<Bytes>>,
        timeout: Duration,
        body_bytes_max: usize,
    ) -> Result<Answer, OutboundError> {
        let client = self.client.as_ref();
        let client = client.map_err(|reason| OutboundError::NotConnected(reason.clone()))?;
        let exchange = async {
            let response = client.request(request).await.map_err(|error| {
                if error.is_connect() {
                    OutboundError::NotConnected(chain(&error))
                } else {
                    OutboundError::Broken(chain(&error))
                }
            })?;
            let (parts, body) = response.into_parts();
            let body = Limited::new(body, body_bytes_max).collect().await;
            let body = body.map_err(|error| OutboundError::Broken(error.to_string()))?;
            Ok(Answer {
                status: parts.status,
                headers: parts.headers,
                body: body.to_bytes(),
            })
        };
        let took_too_long = |_| OutboundError::Broken(format!("no answer within {timeout:?}"));
        tokio::time::timeout(timeout, exchange)
            .await
            .map_err(took_too_long)?
    }
}

/// An error with those behind it, which say what really happened.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text.push_str(": ");
        text.push_str(&error.to_string());
        source = error.source();
    }
    text
}
