//! Background work: finishes removals and deletes old history. It can stop at any moment and continues after
//! the next start.

use std::future::Future;
use std::time::Duration;

use crate::records::{Records, RecordsError};

/// Batches that are deleted before the other kind of work continues.
const BATCHES_PER_TURN: usize = 400;
/// The longest interval at which removals of other processes are looked up.
const LOOK_EVERY: Duration = Duration::from_secs(60);
/// The pause after a failure. It doubles with every further failure, up to the longest pause.
const PAUSE_FIRST: Duration = Duration::from_secs(1);
const PAUSE_LONGEST: Duration = Duration::from_secs(60);

impl Records {
    /// Works until `stop` completes.
    pub async fn run_until(&self, stop: impl Future<Output = ()>) {
        tokio::select! {
            () = stop => {}
            () = self.work_for_ever() => {}
        }
    }

    async fn work_for_ever(&self) {
        let mut housekeeping_due_ms = self.clock.now_ms();
        let mut pause = PAUSE_FIRST;
        loop {
            match self.take_turn(&mut housekeeping_due_ms).await {
                Ok(true) => {
                    pause = PAUSE_FIRST;
                    tokio::select! {
                        () = self.work.notified() => {}
                        () = tokio::time::sleep(self.look_every()) => {}
                    }
                }
                Ok(false) => pause = PAUSE_FIRST,
                Err(error) => {
                    tracing::warn!(%error, "background work of the record store failed and will be retried");
                    metrics::counter!("homeport_records_background_failures_total").increment(1);
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(PAUSE_LONGEST);
                }
            }
        }
    }

    fn look_every(&self) -> Duration {
        let secs = u64::try_from(self.settings.housekeeping_every_secs).unwrap_or(1);
        LOOK_EVERY.min(Duration::from_secs(secs.max(1)))
    }

    /// Does some work of each kind; returns true when nothing is left to do.
    async fn take_turn(&self, housekeeping_due_ms: &mut i64) -> Result<bool, RecordsError> {
        let pending = self.open_removals().await?.len();
        metrics::gauge!("homeport_records_removals_open").set(pending as f64);
        let swept = self.continue_removals(BATCHES_PER_TURN).await?;
        if swept.is_finished {
            metrics::gauge!("homeport_records_removals_open").set(0.0);
        }
        let now_ms = self.clock.now_ms();
        if now_ms < *housekeeping_due_ms {
            return Ok(swept.is_finished);
        }
        let housekept = self.housekeep(BATCHES_PER_TURN).await?;
        if housekept.is_finished {
            let every_ms = self.settings.housekeeping_every_secs.saturating_mul(1000);
            *housekeeping_due_ms = now_ms.saturating_add(every_ms);
        }
        Ok(swept.is_finished && housekept.is_finished)
    }
}
