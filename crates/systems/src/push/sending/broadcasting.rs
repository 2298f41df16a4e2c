//! The worker's part in broadcasts: it fills the index once a day, puts devices into the outbox while little waits
//! there, and finishes broadcasts.

use homeport_item::Item;

use crate::push::broadcasts::Queued;
use crate::push::{Push, PushError};
use crate::time::EpochMillis;

/// A broadcast adds devices to the outbox while fewer messages than this wait there: two requests to Expo. Other
/// notifications wait behind no more than these.
const WAITING_MAX: usize = 200;
/// Steps of one turn.
const STEPS_MAX: usize = 10;
/// How often devices that other programs wrote are added to the index.
const FILL_EVERY_MS: i64 = 24 * 60 * 60 * 1000;
/// When to try again after someone else changed a broadcast or its devices.
const CONFLICT_PAUSE_MS: i64 = 1000;

/// Where the worker is in filling the index. It starts again with the process, which repeats no write.
pub(super) struct Broadcasting {
    fill_at: EpochMillis,
    fill_after: Option<Item>,
    /// Broadcasts wait for this, so that they find all devices.
    is_filled: bool,
}

/// What a turn did for broadcasts.
#[derive(Default)]
pub(super) struct Progress {
    /// Devices that were put into the outbox.
    pub(super) devices: usize,
    /// When the next turn has something to do.
    pub(super) next_at: Option<EpochMillis>,
}

impl Broadcasting {
    pub(super) fn new(now: EpochMillis) -> Self {
        Self {
            fill_at: now,
            fill_after: None,
            is_filled: false,
        }
    }

    /// Advances broadcasts, while `waiting` messages are due that are not sent.
    pub(super) async fn advance(
        &mut self,
        push: &Push,
        mut waiting: usize,
    ) -> Result<Progress, PushError> {
        let mut progress = Progress::default();
        if push.settings.broadcast_index && self.fill(push).await? {
            progress.next_at = Some(push.now());
        }
        let (done, open): (Vec<_>, Vec<_>) = push
            .open_broadcasts()
            .await?
            .into_iter()
            .partition(|broadcast| broadcast.is_done());
        metrics::gauge!("homeport_push_broadcasts_open").set(open.len() as f64);
        for broadcast in done {
            push.finish_broadcast(broadcast).await?;
        }
        // One after another, oldest first.
        let mut walking = open.iter().filter(|broadcast| broadcast.is_walking());
        let Some(broadcast) = walking.next() else {
            return Ok(progress);
        };
        let is_ready = self.is_filled || !push.settings.broadcast_index;
        for _ in 0..STEPS_MAX {
            if waiting >= WAITING_MAX || !is_ready {
                break;
            }
            let queued = push.queue_next_devices(&broadcast.id).await?;
            let devices = match queued {
                Queued::Devices(devices) | Queued::Last(devices) => devices,
                Queued::OutboxFull => break,
                Queued::Conflict => {
                    progress.next_at = Some(EpochMillis(push.now().0 + CONFLICT_PAUSE_MS));
                    break;
                }
            };
            metrics::counter!("homeport_push_broadcast_devices_total")
                .increment(u64::try_from(devices).unwrap_or(u64::MAX));
            waiting += devices;
            progress.devices += devices;
            progress.next_at = Some(push.now());
            if matches!(queued, Queued::Last(_)) {
                break;
            }
        }
        Ok(progress)
    }

    /// Fills the next part of the index; false if it is filled.
    async fn fill(&mut self, push: &Push) -> Result<bool, PushError> {
        if push.now() < self.fill_at {
            return Ok(false);
        }
        self.fill_after = push.fill_index(self.fill_after.take()).await?;
        if self.fill_after.is_none() {
            self.is_filled = true;
            self.fill_at = EpochMillis(push.now().0 + FILL_EVERY_MS);
        }
        Ok(self.fill_after.is_some())
    }
}
