//! The loop of a worker: turn by turn until it is stopped.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::Notify;

use crate::time::EpochMillis;

/// How often a worker looks at the store when nothing is known to be due: another process may have
/// added something.
const IDLE_PAUSE: Duration = Duration::from_secs(10);
/// The pause between two turns that have something to do.
const BUSY_PAUSE: Duration = Duration::from_millis(1);
/// The pause after a failure. Each further one is twice as long, up to the longest.
const FAILURE_PAUSE_FIRST: Duration = Duration::from_secs(1);
const FAILURE_PAUSE_MAX: Duration = Duration::from_secs(60);

#[async_trait]
pub(crate) trait OutboxWorker: Send {
    type Error: std::fmt::Display;

    /// Names the worker in logs.
    const NAME: &'static str;
    /// The counter of failed turns.
    const FAILURES: &'static str;

    /// Signals new work.
    fn work(&self) -> Arc<Notify>;

    fn now(&self) -> EpochMillis;

    /// Does what is due; returns when the next turn has something to do, if that is known.
    async fn next_turn(&mut self) -> Result<Option<EpochMillis>, Self::Error>;
}

/// Runs a worker until `stop` completes. A turn that has begun is finished first, so that an orderly
/// stop repeats nothing.
pub(crate) async fn run_until<W: OutboxWorker>(mut worker: W, stop: impl Future<Output = ()>) {
    let work = worker.work();
    let mut stop = pin!(stop);
    let mut failure_pause = FAILURE_PAUSE_FIRST;
    loop {
        let pause = match worker.next_turn().await {
            Ok(next_at) => {
                failure_pause = FAILURE_PAUSE_FIRST;
                pause_until(next_at, worker.now())
            }
            Err(error) => {
                tracing::warn!(%error, worker = W::NAME, "a worker failed; it will retry");
                metrics::counter!(W::FAILURES).increment(1);
                let pause = failure_pause;
                failure_pause = (pause * 2).min(FAILURE_PAUSE_MAX);
                pause
            }
        };
        tokio::select! {
            () = &mut stop => return,
            () = work.notified() => {}
            () = tokio::time::sleep(pause) => {}
        }
    }
}

fn pause_until(next_at: Option<EpochMillis>, now: EpochMillis) -> Duration {
    let Some(next_at) = next_at else {
        return IDLE_PAUSE;
    };
    let pause_ms = u64::try_from(next_at.0 - now.0).unwrap_or(0);
    Duration::from_millis(pause_ms).clamp(BUSY_PAUSE, IDLE_PAUSE)
}
