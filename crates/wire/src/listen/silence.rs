//! A stream that fails once nothing has gone through it for too long. Hyper bounds the time that
//! headers take, but neither the wait for a connection's first bytes nor an answer that its client
//! does not take; each would hold a place among the connections for ever.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

/// Requests of a connection that are being answered. While there is one, silence is no fault of the
/// client: how long an answer may take is the service's own decision.
#[derive(Debug, Default)]
pub(super) struct Activity(AtomicUsize);

/// Lasts as long as a request is being answered, or something else makes silence no fault.
#[derive(Debug)]
pub struct Busy(Arc<Activity>);

impl Activity {
    pub(super) fn begin(self: &Arc<Self>) -> Busy {
        self.0.fetch_add(1, Ordering::Relaxed);
        Busy(Arc::clone(self))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A stream with a limit on silence.
pub(super) struct Watched<S> {
    stream: S,
    idle_timeout: Duration,
    activity: Arc<Activity>,
    /// When bytes went through last.
    moved_at: Instant,
    timer: Pin<Box<Sleep>>,
}

impl<S> Watched<S> {
    pub(super) fn new(stream: S, idle_timeout: Duration, activity: Arc<Activity>) -> Self {
        Self {
            stream,
            idle_timeout,
            activity,
            moved_at: Instant::now(),
            timer: Box::pin(tokio::time::sleep(idle_timeout)),
        }
    }

    /// Passes on an outcome of the stream, unless it has been waited for too long.
    fn watch<T>(
        &mut self,
        context: &mut Context<'_>,
        outcome: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if outcome.is_ready() {
            self.moved_at = Instant::now();
            return outcome;
        }
        loop {
            ready!(self.timer.as_mut().poll(context));
            // The timer is not moved with every byte, which would cost more: it looks when it ends.
            let now = Instant::now();
            if self.activity.0.load(Ordering::Relaxed) > 0 {
                self.moved_at = now;
            }
            let until = self.moved_at + self.idle_timeout;
            if until <= now {
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
            self.timer.as_mut().reset(until);
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.watch(context, outcome)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.watch(context, outcome)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.watch(context, outcome)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    const IDLE: Duration = Duration::from_secs(10);

    fn pair() -> (Watched<tokio::io::DuplexStream>, tokio::io::DuplexStream) {
        let (near, far) = tokio::io::duplex(4);
        (Watched::new(near, IDLE, Arc::default()), far)
    }

    #[tokio::test(start_paused = true)]
    async fn silence_ends_a_stream_when_nothing_moved_for_the_whole_time() {
        let (mut watched, mut far) = pair();
        tokio::time::advance(IDLE / 2).await;
        far.write_all(b"x").await.expect("written");
        assert_eq!(watched.read_u8().await.expect("a byte"), b'x');
        let moved_at = Instant::now();
        let error = watched.read_u8().await.expect_err("silence");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert_eq!(moved_at.elapsed().as_secs(), IDLE.as_secs());
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_nobody_takes_ends_the_stream() {
        let (mut watched, _far) = pair();
        let error = watched.write_all(b"too long for it").await;
        assert_eq!(
            error.expect_err("nobody reads").kind(),
            io::ErrorKind::TimedOut
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_being_answered_is_not_silence() {
        let (mut watched, _far) = pair();
        let answering = watched.activity.begin();
        let started = Instant::now();
        tokio::spawn(async move {
            tokio::time::sleep(IDLE * 5).await;
            drop(answering);
        });
        watched.read_u8().await.expect_err("silence");
        assert!(started.elapsed() >= IDLE * 5);
    }
}
