//! Serves HTTP ports: accepts connections within limits, disconnects slow clients, and drains connections when the server stops.
//!
//! `crates/wire` and `crates/server` serve their HTTP ports with it. `crates/server` accepts MQTT connections within the same limits.

mod accept;
mod addresses;
mod connections;
mod origins;
mod redirect;
mod refusal;
mod timeouts;
mod tls;

use std::error::Error;
use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use hyper::body::{Body, Incoming};
use hyper::service::{HttpService, Service, service_fn};
use hyper::{Request, Response, Version};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::time::Instant;

use refusal::{Refusals, answer_and_close};
use timeouts::{Activity, Busy, Timeouts, Watched};

pub use accept::Acceptor;
pub use addresses::{
    AddressRange, AddressRanges, ForwardedHeader, InvalidRange, TrustedProxies, client_network,
};
pub use connections::{ConnectionLimits, ConnectionPermit, ConnectionRefused, Connections};
pub use origins::{AllowedOrigins, Hosts, InvalidOrigin, OriginRefused, is_same_origin};
pub use redirect::serve_redirects;
pub use refusal::{REFUSAL_TIMEOUT, REFUSALS_MAX};
pub use tls::{
    ByteStream, Certificate, CertificateError, CertificateFiles, PemFileError, Tls, TlsError,
    TlsProtocols, TlsVersion, certificates_of_file, provider,
};
use tls::{PLAIN_HTTP_RESPONSE, is_plain_http};

/// The longest headers of a request, in total.
const HEADERS_MAX_BYTES: u32 = 16 * 1024;
/// Concurrent requests of an HTTP/2 connection.
const STREAMS_MAX: u32 = 128;
/// The longest time to finish requests when the server stops.
const DRAIN_MAX: Duration = Duration::from_secs(10);

/// The limits of an HTTP port.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Concurrent connections of this port. Further connections get a 503 response.
    pub connections_max: usize,
    /// The connections of all ports together.
    pub connections: Connections,
    /// Timeout for the head of a request, from its first byte; for the first request, from the accept of the connection. A TLS
    /// handshake is part of the first head.
    pub header_timeout: Duration,
    /// Timeout between requests, and for progress while a response is sent.
    pub idle_timeout: Duration,
}

/// The connection of a request. It is an extension of every request.
#[derive(Debug, Clone)]
pub struct Connection {
    activity: Arc<Activity>,
    connections: Connections,
    permit: Arc<ConnectionPermit>,
    peer: SocketAddr,
    client: IpAddr,
    is_tls: bool,
}

/// A connection that was upgraded to another protocol. While this is held, the connection counts in the limits, and the idle
/// timeout does not apply, because the other protocol has its own.
#[derive(Debug)]
pub struct UpgradedConnection {
    _busy: Busy,
    _permit: Arc<ConnectionPermit>,
    _client_permit: ConnectionPermit,
}

impl Connection {
    /// The address of the client, which may be behind trusted proxies.
    #[must_use]
    pub fn client(&self) -> IpAddr {
        self.client
    }

    /// Whether the connection uses TLS up to this server.
    #[must_use]
    pub fn is_tls(&self) -> bool {
        self.is_tls
    }

    /// Prepares an upgrade to another protocol. A connection of a trusted proxy then serves one client, and counts
    /// against the limit of that client.
    ///
    /// # Errors
    /// If the client has too many connections.
    pub fn upgrade(&self) -> Result<UpgradedConnection, ConnectionRefused> {
        let client_permit = self
            .connections
            .admit_forwarded(self.peer.ip(), self.client)?;
        Ok(UpgradedConnection {
            _busy: self.activity.begin(),
            _permit: Arc::clone(&self.permit),
            _client_permit: client_permit,
        })
    }
}

/// Serves `listener` over HTTP/1.1 and HTTP/2, with or without TLS, until `stop` completes. Requests in progress are finished.
pub async fn serve<S, B>(
    listener: TcpListener,
    tls: Option<Tls>,
    limits: Limits,
    service: S,
    stop: impl Future<Output = ()>,
) where
    S: Service<Request<Incoming>, Response = Response<B>> + Clone + Send + 'static,
    S: HttpService<Incoming, ResBody = B>,
    <S as Service<Request<Incoming>>>::Future: Send,
    <S as Service<Request<Incoming>>>::Error: Into<Box<dyn Error + Send + Sync>>,
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let builder = Arc::new(builder(limits.idle_timeout));
    let graceful = GracefulShutdown::new();
    let port_room = Arc::new(Semaphore::new(limits.connections_max));
    let refusals = Refusals::new();
    let timeouts = Timeouts {
        header: limits.header_timeout,
        idle: limits.idle_timeout,
    };
    let (stopping, _) = watch::channel(());
    let mut acceptor = Acceptor::new(listener);
    let mut stop = std::pin::pin!(stop);
    loop {
        let (stream, peer) = tokio::select! {
            () = &mut stop => break,
            accepted = acceptor.accept() => accepted,
        };
        let admitted = match Arc::clone(&port_room).try_acquire_owned() {
            Ok(port_permit) => {
                let permit = limits.connections.admit(peer.ip());
                permit.map(|permit| (port_permit, Arc::new(permit)))
            }
            Err(_) => Err(ConnectionRefused::Full),
        };
        let (port_permit, permit) = match admitted {
            Ok(permits) => permits,
            Err(reason) => {
                acceptor.log_refusal(peer, &reason);
                // A TLS handshake would cost more than the refusal is worth.
                if tls.is_none() {
                    refusals.refuse(stream, reason);
                }
                continue;
            }
        };
        let accepted_at = Instant::now();
        let activity = Arc::new(Activity::default());
        let watched = Arc::clone(&activity);
        let service = service.clone();
        let connections = limits.connections.clone();
        let request_permit = Arc::clone(&permit);
        let is_tls = tls.is_some();
        let handle = service_fn(move |mut request: Request<Incoming>| {
            let connection = Connection {
                activity: Arc::clone(&activity),
                peer,
                client: connections.proxies().client(peer.ip(), request.headers()),
                connections: connections.clone(),
                permit: Arc::clone(&request_permit),
                is_tls,
            };
            let answering = activity.begin_request(request.version() == Version::HTTP_2);
            request.extensions_mut().insert(connection);
            let answer = service.call(request);
            async move {
                let answer = answer.await;
                drop(answering);
                answer
            }
        });
        let (tls, builder) = (tls.clone(), Arc::clone(&builder));
        let (watcher, mut stopped) = (graceful.watcher(), stopping.subscribe());
        tokio::spawn(async move {
            let _permits = (port_permit, permit);
            let watch = |stream| Watched::new(stream, timeouts, watched, accepted_at);
            let stream: Box<dyn ByteStream> = match tls {
                None => Box::new(watch(stream)),
                Some(tls) => tokio::select! {
                    opened = open_tls(stream, &tls, accepted_at + timeouts.header, watch) => match opened {
                        Some(stream) => stream,
                        None => return,
                    },
                    _ = stopped.changed() => return,
                },
            };
            let connection = builder
                .serve_connection_with_upgrades(TokioIo::new(stream), handle)
                .into_owned();
            // A client may disconnect at any time.
            if let Err(error) = watcher.watch(connection).await {
                tracing::debug!(error, "connection closed early");
            }
        });
    }
    drop(acceptor);
    // Ends unfinished handshakes.
    drop(stopping);
    if tokio::time::timeout(DRAIN_MAX, graceful.shutdown())
        .await
        .is_err()
    {
        tracing::warn!("some connections did not close in time");
    }
}

/// Completes the TLS handshake of an accepted connection. `None` if there is no TLS; a client that speaks plain HTTP gets a
/// response that says so.
async fn open_tls<S: ByteStream + 'static>(
    stream: TcpStream,
    tls: &Tls,
    until: Instant,
    watch: impl FnOnce(TcpStream) -> S,
) -> Option<Box<dyn ByteStream>> {
    let is_plain = tokio::time::timeout_at(until, is_plain_http(&stream)).await;
    match is_plain {
        Ok(Ok(false)) => {}
        Ok(Ok(true)) => {
            answer_and_close(stream, PLAIN_HTTP_RESPONSE).await;
            return None;
        }
        Ok(Err(_)) | Err(_) => return None,
    }
    match tls.accept(watch(stream)).await {
        Ok(stream) => Some(stream),
        Err(error) => {
            tracing::debug!(%error, "a TLS handshake failed");
            None
        }
    }
}

fn builder(idle_timeout: Duration) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(idle_timeout)
        .max_buf_size(HEADERS_MAX_BYTES as usize * 4)
        .pipeline_flush(true);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_header_list_size(HEADERS_MAX_BYTES)
        .max_concurrent_streams(STREAMS_MAX);
    builder
}
