//! One keep-alive connection, with the minimum of HTTP/1.1 that a load generator needs.

use std::net::SocketAddr;

use anyhow::{Context as _, bail};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Limit for responses, none of which is longer.
const ANSWER_MAX_BYTES: usize = 4 * 1024 * 1024;
const READ_BYTES: usize = 64 * 1024;

pub(crate) struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

/// A response, borrowed from its connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Answer<'a> {
    pub(crate) status: u16,
    pub(crate) body: &'a [u8],
}

impl Connection {
    pub(crate) async fn open(address: SocketAddr) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            buffer: Vec::with_capacity(2 * READ_BYTES),
        })
    }

    /// Sends a complete request and reads the complete response.
    pub(crate) async fn exchange(&mut self, request: &[u8]) -> anyhow::Result<Answer<'_>> {
        self.stream.write_all(request).await?;
        self.buffer.clear();
        let head = loop {
            if let Some(head) = parse_head(&self.buffer)? {
                break head;
            }
            self.read_more().await?;
        };
        let end = head.len + head.body_len;
        if end > ANSWER_MAX_BYTES {
            bail!("a response of {end} bytes exceeds the limit");
        }
        while self.buffer.len() < end {
            self.read_more().await?;
        }
        Ok(Answer {
            status: head.status,
            body: &self.buffer[head.len..end],
        })
    }

    async fn read_more(&mut self) -> anyhow::Result<()> {
        self.buffer.reserve(READ_BYTES);
        if self.stream.read_buf(&mut self.buffer).await? == 0 {
            bail!("the server closed the connection");
        }
        Ok(())
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Head {
    status: u16,
    len: usize,
    body_len: usize,
}

/// The head of a response, once it is complete.
fn parse_head(bytes: &[u8]) -> anyhow::Result<Option<Head>> {
    let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else {
        return Ok(None);
    };
    let text = std::str::from_utf8(&bytes[..end]).context("the head of a response is not text")?;
    let mut lines = text.split("\r\n");
    let status = lines
        .next()
        .and_then(|line| line.split(' ').nth(1))
        .and_then(|status| status.parse().ok())
        .context("a response without a status")?;
    let body_len = lines
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        .and_then(|(_, value)| value.trim().parse().ok())
        .context("a response without a length")?;
    Ok(Some(Head {
        status,
        len: end + 4,
        body_len,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read_when_it_is_whole() {
        let answer = b"HTTP/1.1 200 OK\r\ncontent-type: x\r\nCONTENT-Length: 2\r\n\r\n{}";
        assert_eq!(parse_head(&answer[..40]).expect("no error"), None);
        let head = parse_head(answer).expect("no error").expect("a head");
        assert_eq!((head.status, head.body_len), (200, 2));
        assert_eq!(&answer[head.len..], b"{}");
        assert!(parse_head(b"HTTP/1.1 200 OK\r\n\r\n").is_err());
    }
}
