//! Sends bytes, and reads whatever comes back.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

const ANSWER_MAX: Duration = Duration::from_secs(20);
/// Pages have at most a megabyte, which JSON enlarges.
const ANSWER_MAX_BYTES: usize = 64 * 1024 * 1024;

pub(crate) struct Exchange {
    address: SocketAddr,
    stream: Option<TcpStream>,
    buffer: Vec<u8>,
    /// Number of responses on this connection.
    answers: usize,
}

pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
    is_last: bool,
}

/// The result of a request.
pub(crate) enum Outcome {
    Answer(Answer),
    /// The connection ended, for this reason.
    Closed(String),
    Silence,
}

impl Exchange {
    pub(crate) fn new(address: SocketAddr) -> Self {
        Self {
            address,
            stream: None,
            buffer: Vec::new(),
            answers: 0,
        }
    }

    /// Sends bytes on a connection that is kept while it works, and reads one response.
    pub(crate) async fn send(&mut self, bytes: &[u8]) -> Outcome {
        let written = self.write(bytes).await;
        // A server may respond before it has read everything, so its response may still arrive.
        match (self.read_answer().await, written) {
            (Outcome::Closed(how), Err(error)) => {
                Outcome::Closed(format!("sending failed: {error}; {how}"))
            }
            (outcome, _) => outcome,
        }
    }

    pub(crate) async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.stream.is_none() {
            self.buffer.clear();
            self.answers = 0;
            let stream = TcpStream::connect(self.address).await?;
            stream.set_nodelay(true)?;
            self.stream = Some(stream);
        }
        let stream = self.stream.as_mut().ok_or(io::ErrorKind::NotConnected)?;
        match timeout(ANSWER_MAX, stream.write_all(bytes)).await {
            Ok(written) => written,
            Err(_) => Err(io::ErrorKind::TimedOut.into()),
        }
    }

    /// Closes the sending side.
    pub(crate) async fn end_sending(&mut self) {
        if let Some(stream) = &mut self.stream {
            let _ = stream.shutdown().await;
        }
    }

    pub(crate) fn drop_connection(&mut self) {
        self.stream = None;
        self.buffer.clear();
    }

    pub(crate) async fn read_answer(&mut self) -> Outcome {
        let outcome = match timeout(ANSWER_MAX, self.read_one()).await {
            Ok(Ok(answer)) => Outcome::Answer(answer),
            Ok(Err(error)) => Outcome::Closed(format!(
                "{error} after {} answers, {} bytes of the next",
                self.answers,
                self.buffer.len()
            )),
            Err(_) => Outcome::Silence,
        };
        let keeps = matches!(&outcome, Outcome::Answer(answer) if !answer.is_last);
        self.answers += 1;
        if !keeps {
            self.drop_connection();
        }
        outcome
    }

    async fn read_one(&mut self) -> io::Result<Answer> {
        let invalid = || io::Error::from(io::ErrorKind::InvalidData);
        let head_len = loop {
            let end = self.buffer.windows(4).position(|four| four == b"\r\n\r\n");
            if let Some(end) = end {
                break end + 4;
            }
            self.read_more().await?;
        };
        let head = String::from_utf8_lossy(&self.buffer[..head_len]).to_ascii_lowercase();
        let status = head
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok());
        let status = status.ok_or_else(invalid)?;
        let field = |name: &str| {
            let mut lines = head.split("\r\n");
            lines
                .find_map(|line| line.strip_prefix(name))
                .map(str::trim)
        };
        let len: Option<usize> = field("content-length:").and_then(|len| len.parse().ok());
        let len = len.ok_or_else(invalid)?;
        let is_last = field("connection:") == Some("close");
        while self.buffer.len() < head_len + len {
            self.read_more().await?;
        }
        let body = self.buffer[head_len..head_len + len].to_vec();
        self.buffer.drain(..head_len + len);
        Ok(Answer {
            status,
            body,
            is_last,
        })
    }

    async fn read_more(&mut self) -> io::Result<()> {
        self.buffer.reserve(64 * 1024);
        let stream = self.stream.as_mut().ok_or(io::ErrorKind::NotConnected)?;
        match stream.read_buf(&mut self.buffer).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ if self.buffer.len() > ANSWER_MAX_BYTES => Err(io::ErrorKind::FileTooLarge.into()),
            _ => Ok(()),
        }
    }
}
