//! The work that nobody waits for: bringing removals to their end and deleting old history. It can
//! be dropped at any moment and goes on at the next start.

use std::future::Future;
use std::time::Duration;

use super::{Records, RecordsError};

/// Batches that are deleted before the other kind of work has its turn.
const BATCHES_PER_TURN: usize = 400;
/// How often removals are looked for that another process began.
const LOOK_EVERY: Duration = Duration::from_secs(60);
/// The pause after a failure; every further one is twice as long, up to the longest.
const PAUSE_FIRST: Duration = Duration::from_secs(1);
const PAUSE_LONGEST: Duration = Duration::from_secs(60);

impl Records {
    /// Works until told to stop.
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
                        () = tokio::time::sleep(LOOK_EVERY) => {}
                    }
                }
                Ok(false) => pause = PAUSE_FIRST,
                Err(error) => {
                    tracing::warn!(%error, "the record store's background work failed; it will be tried again");
                    metrics::counter!("homeport_records_background_failures_total").increment(1);
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(PAUSE_LONGEST);
                }
            }
        }
    }

    /// Does some of each kind of work; whether nothing is left to do.
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
