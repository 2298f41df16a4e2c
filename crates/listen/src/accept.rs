//! Accepts connections on a port, and continues after failures.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;

/// The pause after a failure to accept; the usual cause is a lack of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// The shortest interval between two log lines about failures, and between two about refusals.
const LOG_EVERY: Duration = Duration::from_secs(10);

/// Accepts the connections of a port.
#[derive(Debug)]
pub struct Acceptor {
    listener: TcpListener,
    failures: LogPause,
    refusals: LogPause,
}

/// Limits how often an event is logged.
#[derive(Debug, Default)]
struct LogPause {
    logged_at: Option<Instant>,
    /// Events since the last log line.
    count: u64,
}

impl LogPause {
    /// Counts an event. If it is time for a log line, returns the number of events since the last one.
    fn count(&mut self) -> Option<u64> {
        self.count += 1;
        let now = Instant::now();
        if self.logged_at.is_some_and(|at| now - at < LOG_EVERY) {
            return None;
        }
        self.logged_at = Some(now);
        Some(std::mem::take(&mut self.count))
    }
}

impl Acceptor {
    #[must_use]
    pub fn new(listener: TcpListener) -> Self {
        Self {
            listener,
            failures: LogPause::default(),
            refusals: LogPause::default(),
        }
    }

    /// The next connection. After a failure, which is logged, it pauses, so that the port stays open without a busy loop.
    pub async fn accept(&mut self) -> (TcpStream, SocketAddr) {
        loop {
            match self.listener.accept().await {
                Ok((stream, peer)) => {
                    // Responses are written at once; waiting to fill a packet would only delay them.
                    let _ = stream.set_nodelay(true);
                    return (stream, peer);
                }
                Err(error) => {
                    if let Some(count) = self.failures.count() {
                        tracing::warn!(%error, count, "cannot accept connections");
                    }
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    /// Logs a refused connection.
    pub fn log_refusal(&mut self, peer: SocketAddr, reason: &dyn std::error::Error) {
        if let Some(count) = self.refusals.count() {
            tracing::warn!(client = %peer.ip(), %reason, count, "refused connections");
        }
    }
}
