//! Accepting connections, as many as are allowed, cutting off silent ones, and letting the others
//! end when the server stops. Every HTTP port is served from here, whatever answers on it.

mod silence;

use std::error::Error;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::{Body, Incoming};
use hyper::service::{HttpService, Service, service_fn};
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use silence::{Activity, Watched};

pub use silence::Busy;

/// Header fields of a request together may not be longer than this.
const HEADERS_MAX_BYTES: u32 = 16 * 1024;
/// Requests that one HTTP/2 connection may have open.
const STREAMS_MAX: u32 = 128;
/// How long connections may go on with what they are doing once the server stops.
const DRAIN_MAX: Duration = Duration::from_secs(10);
/// How long to wait after a failure to accept, which is mostly a lack of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// What a port may be asked for at one time, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Connections at one time; more wait to be accepted.
    pub connections_max: usize,
    /// How long a connection may be silent while no request is being answered, and how long the
    /// headers of a request may take.
    pub idle_timeout: Duration,
}

/// The connection that a request came on; among the request's extensions.
#[derive(Debug, Clone)]
pub struct Connection {
    activity: Arc<Activity>,
    peer: SocketAddr,
}

impl Connection {
    /// Who is at the other end: the client, or the proxy before it.
    #[must_use]
    pub fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// Lets the connection be silent for as long as the answer is kept: for one that goes on as
    /// something other than HTTP and has rules of its own.
    #[must_use]
    pub fn stay_busy(&self) -> Busy {
        self.activity.begin()
    }
}

/// Serves `listener` over HTTP/1.1 and HTTP/2 until `stop` is done; requests that are being
/// answered then are finished.
pub async fn serve<S, B>(
    listener: TcpListener,
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
    let room = Arc::new(Semaphore::new(limits.connections_max));
    let mut stop = std::pin::pin!(stop);
    loop {
        let accept = async {
            let permit = Arc::clone(&room).acquire_owned().await.ok();
            (permit, listener.accept().await)
        };
        let (permit, accepted) = tokio::select! {
            () = &mut stop => break,
            accepted = accept => accepted,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        // Answers are written at once: waiting to fill a packet only delays them.
        let _ = stream.set_nodelay(true);
        let activity = Arc::new(Activity::default());
        let stream = Watched::new(stream, limits.idle_timeout, Arc::clone(&activity));
        let service = service.clone();
        let handle = service_fn(move |mut request: Request<Incoming>| {
            let connection = Connection {
                activity: Arc::clone(&activity),
                peer,
            };
            request.extensions_mut().insert(connection);
            let answering = activity.begin();
            let answer = service.call(request);
            async move {
                let answer = answer.await;
                drop(answering);
                answer
            }
        });
        let connection = builder
            .serve_connection_with_upgrades(TokioIo::new(stream), handle)
            .into_owned();
        let connection = graceful.watch(connection);
        tokio::spawn(async move {
            let _permit = permit;
            // A client that breaks off is no concern of ours.
            if let Err(error) = connection.await {
                tracing::debug!(error, "a connection ended early");
            }
        });
    }
    drop(listener);
    if tokio::time::timeout(DRAIN_MAX, graceful.shutdown())
        .await
        .is_err()
    {
        tracing::warn!("some connections did not end in time");
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
