//! The bytes of a connection. Buffers are there only while there is something in them, so that an
//! idle connection costs next to nothing.

use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Bytes that are read at one time.
const READ_BYTES: usize = 16 * 1024;

/// What packets can be sent over: TCP, TLS, a WebSocket.
pub(super) trait Io: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Io for T {}

pub(super) struct Transport {
    io: Box<dyn Io>,
    /// Read and not yet understood.
    pub(super) read: BytesMut,
    /// To be written.
    pub(super) write: BytesMut,
    needs_flush: bool,
}

impl Transport {
    pub(super) fn new(io: Box<dyn Io>) -> Self {
        Self {
            io,
            read: BytesMut::new(),
            write: BytesMut::new(),
            needs_flush: false,
        }
    }

    /// Reads what there is; zero at the end.
    pub(super) fn poll_fill(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        // On the stack for as long as the call takes: a buffer that waits for bytes would be most of
        // what an idle connection holds.
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

    /// Writes something of what is to be written; whether anything moved.
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

    /// Ends the writing side.
    pub(super) async fn shut_down(&mut self) -> io::Result<()> {
        std::future::poll_fn(|context| Pin::new(&mut self.io).poll_shutdown(context)).await
    }
}
