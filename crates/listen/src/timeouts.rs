//! A stream that fails if a client is too slow to send the head of a request, or to send or read anything.
//!
//! Hyper's header timeout is not enough: it also runs while a connection waits for its next request, and it covers neither the wait
//! for the first bytes of a connection nor a client that does not read its response.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

/// The requests of a connection.
#[derive(Debug, Default)]
pub(crate) struct Activity {
    /// Requests in progress. The timeouts do not run meanwhile: the client waits for the server, and the service has its own
    /// limits.
    answering: AtomicUsize,
    /// Requests whose head has been read.
    begun: AtomicUsize,
    /// With HTTP/2, bytes between requests may be a ping instead of the start of a head.
    is_http2: AtomicBool,
}

/// Suspends the timeouts while it is held.
#[derive(Debug)]
pub(crate) struct Busy(Arc<Activity>);

impl Activity {
    /// Records that the head of a request has been read.
    pub(crate) fn begin_request(self: &Arc<Self>, is_http2: bool) -> Busy {
        self.is_http2.store(is_http2, Ordering::Relaxed);
        self.begun.fetch_add(1, Ordering::Relaxed);
        self.begin()
    }

    pub(crate) fn begin(self: &Arc<Self>) -> Busy {
        self.answering.fetch_add(1, Ordering::Relaxed);
        Busy(Arc::clone(self))
    }

    fn is_answering(&self) -> bool {
        self.answering.load(Ordering::Relaxed) > 0
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.answering.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The timeouts for a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Timeouts {
    /// For the head of a request, from its first byte; for the first one, from the accept of the connection.
    pub(crate) header: Duration,
    /// Between requests, and between two reads of a response.
    pub(crate) idle: Duration,
}

/// A head that is being read.
#[derive(Debug, Clone, Copy)]
struct Head {
    since: Instant,
    /// Requests begun before this head. Once more have begun, the head has been read.
    begun_before: usize,
}

/// A stream that enforces the timeouts.
pub(crate) struct Watched<S> {
    stream: S,
    timeouts: Timeouts,
    activity: Arc<Activity>,
    head: Head,
    /// When the last bytes were sent or received.
    moved_at: Instant,
    timer: Pin<Box<Sleep>>,
}

impl<S> Watched<S> {
    /// Watches a stream that was accepted at `now`.
    pub(crate) fn new(
        stream: S,
        timeouts: Timeouts,
        activity: Arc<Activity>,
        now: Instant,
    ) -> Self {
        let first = timeouts.header.min(timeouts.idle);
        Self {
            stream,
            timeouts,
            activity,
            head: Head {
                since: now,
                begun_before: 0,
            },
            moved_at: now,
            timer: Box::pin(tokio::time::sleep_until(now + first)),
        }
    }

    fn is_reading_head(&self) -> bool {
        self.head.begun_before == self.activity.begun.load(Ordering::Relaxed)
    }

    /// Handles received bytes. They begin the head of a request, unless a head is being read or a request is in progress.
    fn note_read(&mut self) {
        let is_http2 = self.activity.is_http2.load(Ordering::Relaxed);
        if !is_http2 && !self.is_reading_head() && !self.activity.is_answering() {
            self.head = Head {
                since: self.moved_at,
                begun_before: self.activity.begun.load(Ordering::Relaxed),
            };
        }
    }

    /// The time at which the client times out.
    fn deadline(&mut self, now: Instant) -> Instant {
        if self.activity.is_answering() {
            self.moved_at = now;
            return now + self.timeouts.idle;
        }
        let silent_at = self.moved_at + self.timeouts.idle;
        match self.is_reading_head() {
            true => silent_at.min(self.head.since + self.timeouts.header),
            false => silent_at,
        }
    }

    /// Returns the result of the stream, or fails after the deadline.
    fn watch<T>(
        &mut self,
        context: &mut Context<'_>,
        outcome: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if outcome.is_ready() {
            self.moved_at = Instant::now();
            return outcome;
        }
        // Resetting the timer for every byte would be expensive. It is extended when it fires, and shortened only while a head
        // is being read.
        if self.is_reading_head() {
            let until = self.deadline(Instant::now());
            if until < self.timer.deadline() {
                self.timer.as_mut().reset(until);
            }
        }
        loop {
            ready!(self.timer.as_mut().poll(context));
            let now = Instant::now();
            let until = self.deadline(now);
            if until <= now {
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
            self.timer.as_mut().reset(until);
        }
    }

    /// Returns the result of a write. While the client reads a response, the timeout of the next head does not run.
    fn watch_write<T>(
        &mut self,
        context: &mut Context<'_>,
        outcome: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        let outcome = self.watch(context, outcome);
        if outcome.is_ready() && self.head.begun_before > 0 {
            self.head.since = self.moved_at;
        }
        outcome
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.stream).poll_read(context, buffer);
        let outcome = self.watch(context, outcome);
        if outcome.is_ready() {
            self.note_read();
        }
        outcome
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.watch_write(context, outcome)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.watch_write(context, outcome)
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

    const HEADER: Duration = Duration::from_secs(10);
    const IDLE: Duration = Duration::from_secs(100);
    const TIMEOUTS: Timeouts = Timeouts {
        header: HEADER,
        idle: IDLE,
    };

    fn pair() -> (Watched<tokio::io::DuplexStream>, tokio::io::DuplexStream) {
        let (near, far) = tokio::io::duplex(4);
        (
            Watched::new(near, TIMEOUTS, Arc::default(), Instant::now()),
            far,
        )
    }

    /// Waits for a byte that never comes. Returns the time until the stream failed.
    async fn fails_after(watched: &mut Watched<tokio::io::DuplexStream>) -> u64 {
        let started = Instant::now();
        let error = watched.read_u8().await.expect_err("timeout");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        started.elapsed().as_secs()
    }

    #[tokio::test(start_paused = true)]
    async fn first_head_is_timed_from_accept() {
        let (mut watched, mut far) = pair();
        tokio::time::advance(HEADER / 2).await;
        far.write_all(b"G").await.expect("written");
        assert_eq!(watched.read_u8().await.expect("a byte"), b'G');
        assert_eq!(fails_after(&mut watched).await, 5);
    }

    #[tokio::test(start_paused = true)]
    async fn idle_connections_outlive_the_header_timeout() {
        let (mut watched, mut far) = pair();
        drop(watched.activity.begin_request(false));
        tokio::time::advance(IDLE - HEADER).await;
        far.write_all(b"G").await.expect("written");
        assert_eq!(watched.read_u8().await.expect("a byte"), b'G');
        // The next head has begun.
        assert_eq!(fails_after(&mut watched).await, 10);
    }

    #[tokio::test(start_paused = true)]
    async fn every_head_gets_the_full_timeout() {
        let (mut watched, mut far) = pair();
        for _ in 0..5 {
            tokio::time::advance(HEADER * 2 / 3).await;
            far.write_all(b"G").await.expect("written");
            watched.read_u8().await.expect("a byte");
            // Answered before the stream is asked again.
            drop(watched.activity.begin_request(false));
        }
        assert_eq!(fails_after(&mut watched).await, IDLE.as_secs());
    }

    #[tokio::test(start_paused = true)]
    async fn pings_of_http2_are_not_heads() {
        let (mut watched, mut far) = pair();
        drop(watched.activity.begin_request(true));
        far.write_all(b"p").await.expect("written");
        watched.read_u8().await.expect("a byte");
        assert_eq!(fails_after(&mut watched).await, IDLE.as_secs());
    }

    #[tokio::test(start_paused = true)]
    async fn unread_response_ends_the_stream() {
        let (mut watched, _far) = pair();
        drop(watched.activity.begin_request(false));
        let started = Instant::now();
        let error = watched.write_all(b"too long for it").await;
        let error = error.expect_err("nobody reads");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert_eq!(started.elapsed().as_secs(), IDLE.as_secs());
    }

    #[tokio::test(start_paused = true)]
    async fn request_in_progress_does_not_time_out() {
        let (mut watched, _far) = pair();
        let answering = watched.activity.begin_request(false);
        let started = Instant::now();
        tokio::spawn(async move {
            tokio::time::sleep(IDLE * 5).await;
            drop(answering);
        });
        watched.read_u8().await.expect_err("timeout");
        assert!(started.elapsed() >= IDLE * 5);
    }
}
