//! The 503 answer to connections beyond the limits.

use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;

use super::connections::ConnectionRefused;

/// Connections of one port that are being refused at the same time, each with a file descriptor. Further ones are closed
/// without waiting for their request.
pub const REFUSALS_MAX: usize = 32;
/// Time for a refused client to send its request, and again to read the answer.
pub const REFUSAL_TIMEOUT: Duration = Duration::from_secs(1);
/// When clients should try again.
const RETRY_AFTER_SECS: u32 = 5;
/// Bytes of a refused request that are read at once.
const READ_BYTES: usize = 4096;

/// Refuses connections over HTTP.
#[derive(Debug, Clone)]
pub(super) struct Refusals(Arc<Semaphore>);

impl Refusals {
    pub(super) fn new() -> Self {
        Self(Arc::new(Semaphore::new(REFUSALS_MAX)))
    }

    /// Answers with 503 and closes the connection, without waiting for it.
    pub(super) fn answer(&self, stream: TcpStream, reason: ConnectionRefused) {
        let Ok(permit) = Arc::clone(&self.0).try_acquire_owned() else {
            // Best effort: a client that is still sending may lose the answer.
            if let Ok(mut stream) = stream.into_std() {
                let _ = stream.write(answer(reason).as_bytes());
            }
            return;
        };
        tokio::spawn(async move {
            refuse(stream, reason).await;
            drop(permit);
        });
    }
}

async fn refuse(mut stream: TcpStream, reason: ConnectionRefused) {
    let mut unread = [0; READ_BYTES];
    // Clients do not expect an answer before they have sent a request.
    let first = tokio::time::timeout(REFUSAL_TIMEOUT, stream.read(&mut unread)).await;
    if !matches!(first, Ok(Ok(1..))) {
        return;
    }
    let closing = async {
        stream.write_all(answer(reason).as_bytes()).await?;
        stream.shutdown().await?;
        // Closing with unread bytes would reset the connection, and the client could lose the answer.
        while stream.read(&mut unread).await? > 0 {}
        Ok::<_, std::io::Error>(())
    };
    // A client that disconnects needs no answer.
    let _ = tokio::time::timeout(REFUSAL_TIMEOUT, closing).await;
}

fn answer(reason: ConnectionRefused) -> String {
    let body = format!(
        r#"{{"type":"about:blank","title":"Service Unavailable","status":503,"code":"TOO_MANY_CONNECTIONS","detail":"{reason}; try again later"}}"#
    );
    format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/problem+json\r\n\
         retry-after: {RETRY_AFTER_SECS}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}
