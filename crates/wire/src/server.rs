//! Accepting connections, as many as are allowed, and letting them end when the server stops.

use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use crate::service::Service;

/// Header fields of a request together may not be longer than this.
const HEADERS_MAX_BYTES: u32 = 16 * 1024;
/// Requests that one HTTP/2 connection may have open.
const STREAMS_MAX: u32 = 128;
/// How long connections may go on with what they are doing once the server stops.
const DRAIN_MAX: Duration = Duration::from_secs(10);
/// How long to wait after a failure to accept, which is mostly a lack of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

impl Service {
    /// Serves `listener` until `stop` is done; requests that are being answered then are finished.
    pub async fn serve(self, listener: TcpListener, stop: impl Future<Output = ()>) {
        let builder = Arc::new(builder(self.config().idle_timeout));
        let graceful = GracefulShutdown::new();
        let room = Arc::new(Semaphore::new(self.config().connections_max));
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
            let stream = match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            };
            // Answers are written at once: waiting to fill a packet only delays them.
            let _ = stream.set_nodelay(true);
            let service = self.clone();
            let handle = service_fn(move |request| {
                let service = service.clone();
                async move { Ok::<_, Infallible>(service.handle(request).await) }
            });
            let connection = builder
                .serve_connection(TokioIo::new(stream), handle)
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
        let _ = tokio::time::timeout(DRAIN_MAX, graceful.shutdown()).await;
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
        .keep_alive_interval(idle_timeout)
        .max_header_list_size(HEADERS_MAX_BYTES)
        .max_concurrent_streams(STREAMS_MAX);
    builder
}
