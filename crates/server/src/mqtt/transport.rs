//! The bytes of a connection. Empty buffers are freed, so that an idle connection needs almost no
//! memory.

use std::io;
use std::mem::MaybeUninit;
use std::net::IpAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, BytesMut};
use homeport_listen::ByteStream;
use tokio::io::{AsyncRead as _, AsyncWrite as _, ReadBuf};

/// Bytes of one read.
const READ_BYTES: usize = 16 * 1024;

/// The client at the other end of a connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer {
    pub(crate) address: IpAddr,
    pub(crate) transport: TransportKind,
}

/// How a client is connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TransportKind {
    Tcp,
    Tls,
    WebSocket,
}

pub(super) struct Transport {
    io: Box<dyn ByteStream>,
    /// Read and not decoded yet.
    pub(super) read: BytesMut,
    /// Not written yet.
    pub(super) write: BytesMut,
    needs_flush: bool,
}

impl Transport {
    pub(super) fn new(io: Box<dyn ByteStream>) -> Self {
        Self {
            io,
            read: BytesMut::new(),
            write: BytesMut::new(),
            needs_flush: false,
        }
    }

    /// Reads available bytes; returns their number, 0 at the end of the stream.
    pub(super) fn poll_fill(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        // On the stack: a buffer that waits for bytes would be most of the memory of an idle connection.
        let mut space = [MaybeUninit::<u8>::uninit(); READ_BYTES];
        let mut buffer = ReadBuf::uninit(&mut space);
        ready!(Pin::new(&mut self.io).poll_read(context, &mut buffer))?;
        self.read.extend_from_slice(buffer.filled());
        Poll::Ready(Ok(buffer.filled().len()))
    }

    /// Frees the read buffer if it is empty.
    pub(super) fn release_read(&mut self) {
        if self.read.is_empty() && self.read.capacity() > 0 {
            self.read = BytesMut::new();
        }
    }

    /// Writes or flushes some waiting bytes; pending if there are none or the peer reads none.
    pub(super) fn poll_write(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.write.is_empty() {
            let written = ready!(Pin::new(&mut self.io).poll_write(context, &self.write))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.write.advance(written);
            if self.write.is_empty() {
                self.write = BytesMut::new();
            }
            self.needs_flush = true;
            return Poll::Ready(Ok(()));
        }
        if self.needs_flush {
            ready!(Pin::new(&mut self.io).poll_flush(context))?;
            self.needs_flush = false;
            return Poll::Ready(Ok(()));
        }
        Poll::Pending
    }

    /// Writes everything.
    pub(super) async fn drain(&mut self) -> io::Result<()> {
        while !self.write.is_empty() || self.needs_flush {
            std::future::poll_fn(|context| self.poll_write(context)).await?;
        }
        Ok(())
    }

    /// Closes the writing side.
    pub(super) async fn shut_down(&mut self) -> io::Result<()> {
        std::future::poll_fn(|context| Pin::new(&mut self.io).poll_shutdown(context)).await
    }
}
