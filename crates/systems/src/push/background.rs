//! The worker at work, until it is told to stop.

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use super::measured;
use super::worker::Worker;

/// How often the outbox is looked at when nothing is known to be due: another process may have
/// accepted something.
const LOOK_EVERY: Duration = Duration::from_secs(10);
/// The pause between two turns that have something to do.
const PAUSE_LEAST: Duration = Duration::from_millis(1);
/// The pause after a failure of the store; every further one is twice as long, up to the longest.
const PAUSE_FIRST: Duration = Duration::from_secs(1);
const PAUSE_LONGEST: Duration = Duration::from_secs(60);

impl Worker {
    /// Works until told to stop. A turn that has begun comes to its end first: what Expo answers is
    /// written down, so that stopping in order repeats nothing.
    pub async fn run_until(mut self, stop: impl Future<Output = ()>) {
        measured::announce();
        let mut stop = pin!(stop);
        let mut pause_after_failure = PAUSE_FIRST;
        loop {
            let pause = match self.turn().await {
                Ok(turn) => {
                    pause_after_failure = PAUSE_FIRST;
                    self.pause_until(turn.next_at.map(|at| at.0))
                }
                Err(error) => {
                    tracing::warn!(%error, "push's worker failed; it will be tried again");
                    metrics::counter!("homeport_push_worker_failures_total").increment(1);
                    let pause = pause_after_failure;
                    pause_after_failure = (pause * 2).min(PAUSE_LONGEST);
                    pause
                }
            };
            tokio::select! {
                () = &mut stop => return,
                () = self.push.work.notified() => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    fn pause_until(&self, at_ms: Option<i64>) -> Duration {
        let Some(at_ms) = at_ms else {
            return LOOK_EVERY;
        };
        let wait_ms = u64::try_from(at_ms - self.push.now().0).unwrap_or(0);
        Duration::from_millis(wait_ms).clamp(PAUSE_LEAST, LOOK_EVERY)
    }
}
