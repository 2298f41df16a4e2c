//! The HTTP client for other services. Time and response size are bounded, and redirects are not followed.
//! If someone other than the operator chooses the URL, requests cannot reach the server's own network.

use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::http::{HeaderMap, Request, StatusCode, header};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::{GaiResolver, Name};
use hyper_util::rt::TokioExecutor;
use tower::Service;

use super::public_address::{self, NotPublic};

/// Shorter than the timeouts of requests, so that a host that is off counts as not connected, and not as one that
/// may have processed the request.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A client for HTTPS and HTTP that reuses connections.
#[derive(Clone)]
pub(crate) struct HttpClient {
    /// An error if the machine has no root certificates. It is reported with the first request, because
    /// many servers never send one.
    client: Result<Client<HttpsConnector<HttpConnector<Resolver>>, Full<Bytes>>, String>,
    allowed: AllowedAddresses,
}

/// The addresses that requests may reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AllowedAddresses {
    /// All: an operator of this server chose the URL.
    Any,
    /// Public addresses only.
    Public,
}

impl AllowedAddresses {
    /// All addresses if private ones are allowed.
    pub(crate) fn private(is_allowed: bool) -> Self {
        if is_allowed { Self::Any } else { Self::Public }
    }
}

/// Resolves names and drops forbidden addresses. The client connects to one of the returned addresses, so
/// that a name cannot resolve to another address between check and connection.
#[derive(Clone)]
struct Resolver {
    system: GaiResolver,
    allowed: AllowedAddresses,
}

#[derive(Debug)]
pub(crate) struct HttpResponse {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum HttpClientError {
    /// The host has no public address.
    #[error("{0} is not a public address")]
    PrivateAddress(String),
    /// The request was not sent.
    #[error("no connection: {0}")]
    NotConnected(String),
    /// The request was sent; whether the server processed it is unknown.
    #[error("{0}")]
    NoResponse(String),
}

impl HttpClient {
    pub(crate) fn new(allowed: AllowedAddresses) -> Self {
        let resolver = Resolver {
            system: GaiResolver::new(),
            allowed,
        };
        let mut connector = HttpConnector::new_with_resolver(resolver);
        connector.enforce_http(false);
        connector.set_connect_timeout(Some(CONNECT_TIMEOUT));
        let client = HttpsConnectorBuilder::new()
            .with_native_roots()
            .map(|builder| {
                let builder = builder.https_or_http().enable_http1();
                Client::builder(TokioExecutor::new()).build(builder.wrap_connector(connector))
            })
            .map_err(|error| format!("no root certificates: {error}"));
        Self { client, allowed }
    }

    pub(crate) async fn send(
        &self,
        request: Request<Full<Bytes>>,
        timeout: Duration,
        body_bytes_max: usize,
    ) -> Result<HttpResponse, HttpClientError> {
        if self.allowed == AllowedAddresses::Public {
            // The resolver never sees a host that is an IP address.
            public_address::check_host(request.uri().host().unwrap_or_default())
                .map_err(|NotPublic(host)| HttpClientError::PrivateAddress(host))?;
        }
        let client = self.client.as_ref();
        let client = client.map_err(|reason| HttpClientError::NotConnected(reason.clone()))?;
        let exchange = async {
            let response = client.request(request).await.map_err(|error| {
                if let Some(host) = private_host(&error) {
                    HttpClientError::PrivateAddress(host)
                } else if error.is_connect() {
                    HttpClientError::NotConnected(with_sources(&error))
                } else {
                    HttpClientError::NoResponse(with_sources(&error))
                }
            })?;
            let (parts, body) = response.into_parts();
            let body = Limited::new(body, body_bytes_max).collect().await;
            let body = body.map_err(|error| HttpClientError::NoResponse(error.to_string()))?;
            Ok(HttpResponse {
                status: parts.status,
                headers: parts.headers,
                body: body.to_bytes(),
            })
        };
        let timed_out = |_| HttpClientError::NoResponse(format!("no response within {timeout:?}"));
        tokio::time::timeout(timeout, exchange)
            .await
            .map_err(timed_out)?
    }
}

impl Service<Name> for Resolver {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = Box<dyn std::error::Error + Send + Sync>;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.system.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let (lookup, allowed) = (self.system.call(name.clone()), self.allowed);
        Box::pin(async move {
            let mut addresses: Vec<_> = lookup.await?.collect();
            if allowed == AllowedAddresses::Public {
                addresses.retain(|address| public_address::is_public(address.ip()));
                if addresses.is_empty() {
                    return Err(NotPublic(name.to_string()).into());
                }
            }
            Ok(addresses.into_iter())
        })
    }
}

/// The time that a response asks to wait before a retry.
pub(super) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(header::RETRY_AFTER)?.to_str().ok()?;
    text.trim().parse().ok().map(Duration::from_secs)
}

/// The host without a public address, if that is the cause of an error.
fn private_host(error: &(dyn std::error::Error + 'static)) -> Option<String> {
    let mut source = Some(error);
    while let Some(error) = source {
        if let Some(NotPublic(host)) = error.downcast_ref() {
            return Some(host.clone());
        }
        source = error.source();
    }
    None
}

/// An error followed by its sources.
fn with_sources(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text.push_str(": ");
        text.push_str(&error.to_string());
        source = error.source();
    }
    text
}
