//! Requests to services on the internet: bounded in time and in what is read of an answer, and, where
//! others choose the address, kept away from the server's own network. Redirects are not followed.

use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::http::{HeaderMap, Request, StatusCode};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::{GaiResolver, Name};
use hyper_util::rt::TokioExecutor;
use tower::Service;

use crate::public_address::{self, NotPublic};

/// A client that keeps connections for the next request. It speaks https, and http to whoever was
/// configured that way.
#[derive(Clone)]
pub(crate) struct Outbound {
    /// Why there is none, on a machine that trusts nobody: it may never be needed.
    client: Result<Client<HttpsConnector<HttpConnector<Resolver>>, Full<Bytes>>, String>,
    reach: Reach,
}

/// Where requests may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Anywhere: an operator of this server has set the address.
    Anywhere,
    /// To public addresses only.
    Public,
}

/// Looks names up, and leaves out addresses that requests may not go to. The connection is made to
/// one of those that it answers with, so that a name cannot change its mind in between.
#[derive(Clone)]
struct Resolver {
    system: GaiResolver,
    reach: Reach,
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
    /// The address is not one that requests may go to.
    #[error(transparent)]
    Forbidden(#[from] NotPublic),
    /// The request did not leave.
    #[error("no connection: {0}")]
    NotConnected(String),
    /// It left, and what became of it is not known.
    #[error("{0}")]
    Broken(String),
}

impl Outbound {
    pub(crate) fn new(reach: Reach) -> Self {
        let resolver = Resolver {
            system: GaiResolver::new(),
            reach,
        };
        let mut connector = HttpConnector::new_with_resolver(resolver);
        connector.enforce_http(false);
        let client = HttpsConnectorBuilder::new()
            .with_native_roots()
            .map(|builder| {
                let builder = builder.https_or_http().enable_http1();
                Client::builder(TokioExecutor::new()).build(builder.wrap_connector(connector))
            })
            .map_err(|error| format!("this machine has no root certificates: {error}"));
        Self { client, reach }
    }

    pub(crate) async fn send(
        &self,
        request: Request<Full<Bytes>>,
        timeout: Duration,
        body_bytes_max: usize,
    ) -> Result<Answer, OutboundError> {
        if self.reach == Reach::Public {
            // An address in digits is connected to without being looked up.
            public_address::check_host(request.uri().host().unwrap_or_default())?;
        }
        let client = self.client.as_ref();
        let client = client.map_err(|reason| OutboundError::NotConnected(reason.clone()))?;
        let exchange = async {
            let response = client.request(request).await.map_err(|error| {
                if let Some(forbidden) = forbidden(&error) {
                    OutboundError::Forbidden(forbidden)
                } else if error.is_connect() {
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

impl Service<Name> for Resolver {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = Box<dyn std::error::Error + Send + Sync>;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.system.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let (looking_up, reach) = (self.system.call(name.clone()), self.reach);
        Box::pin(async move {
            let mut addresses: Vec<_> = looking_up.await?.collect();
            if reach == Reach::Public {
                addresses.retain(|address| public_address::is_public(address.ip()));
                if addresses.is_empty() {
                    return Err(NotPublic(name.to_string()).into());
                }
            }
            Ok(addresses.into_iter())
        })
    }
}

/// The refusal of an address behind an error, if that is what it is about.
fn forbidden(error: &(dyn std::error::Error + 'static)) -> Option<NotPublic> {
    let mut source = Some(error);
    while let Some(error) = source {
        if let Some(forbidden) = error.downcast_ref::<NotPublic>() {
            return Some(forbidden.clone());
        }
        source = error.source();
    }
    None
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
