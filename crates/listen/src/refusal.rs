//! Responses to connections that are refused, such as 503 to those beyond the limits.

use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;

use crate::connections::ConnectionRefused;

/// Concurrent refusals of a port, each with a file descriptor. Further connections are closed without waiting for their request.
pub const REFUSALS_MAX: usize = 32;
/// Timeout for a refused client to send its request, and again to read the response.
pub const REFUSAL_TIMEOUT: Duration = Duration::from_secs(1);
/// The value of `Retry-After`.
const RETRY_AFTER_SECS: u32 = 5;
/// The size of a read of a refused request.
const READ_BYTES: usize = 4096;

/// Refuses connections over HTTP.
#[derive(Debug, Clone)]
pub(crate) struct Refusals(Arc<Semaphore>);

impl Refusals {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Semaphore::new(REFUSALS_MAX)))
    }

    /// Sends a 503 response and closes the connection, in a task of its own.
    pub(crate) fn refuse(&self, stream: TcpStream, reason: ConnectionRefused) {
        let Ok(permit) = Arc::clone(&self.0).try_acquire_owned() else {
            // Best effort: a client that is still sending may lose the response.
            if let Ok(mut stream) = stream.into_std() {
                let _ = stream.write(response(reason).as_bytes());
            }
            return;
        };
        tokio::spawn(async move {
            answer_and_close(stream, &response(reason)).await;
            drop(permit);
        });
    }
}

/// Sends a response to the first request of a connection, and closes it.
pub(crate) async fn answer_and_close(mut stream: TcpStream, response: &str) {
    let mut unread = [0; READ_BYTES];
    // Clients expect a response only after they have sent a request.
    let first = tokio::time::timeout(REFUSAL_TIMEOUT, stream.read(&mut unread)).await;
    if !matches!(first, Ok(Ok(1..))) {
        return;
    }
    let closing = async {
        stream.write_all(response.as_bytes()).await?;
        stream.shutdown().await?;
        // Closing with unread bytes would reset the connection, and the client could lose the response.
        while stream.read(&mut unread).await? > 0 {}
        Ok::<_, std::io::Error>(())
    };
    // A client that disconnects needs no response.
    let _ = tokio::time::timeout(REFUSAL_TIMEOUT, closing).await;
}

fn response(reason: ConnectionRefused) -> String {
    let body = format!(
        r#"{{"type":"about:blank","title":"Service Unavailable","status":503,"code":"TOO_MANY_CONNECTIONS","detail":"{reason}; try again later"}}"#
    );
    format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/problem+json\r\n\
         retry-after: {RETRY_AFTER_SECS}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}
