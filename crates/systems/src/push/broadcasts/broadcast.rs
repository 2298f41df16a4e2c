//! A broadcast: its message, its audience and its progress.

use std::collections::BTreeMap;

use super::walk::Walk;
use crate::ids::{TIMED_ID, timed_id};
use crate::outbox::Step;
use crate::push::notifications::{Message, NotificationId};
use crate::push::types::Platform;
use crate::text::text_type;
use crate::time::EpochMillis;

/// Steps of a trace, so that it fits into the item.
const STEPS_MAX: usize = 100;

text_type! {
    /// The time at which a broadcast was accepted, and a UUID. Ids sort by time.
    BroadcastId(String) {
        field: "broadcast id",
        chars: 50..=50,
        form: TIMED_ID,
        expected: "the id of an accepted broadcast",
    }
}

impl BroadcastId {
    pub(super) fn new(now: EpochMillis) -> Self {
        Self(timed_id(now))
    }

    pub(in crate::push) fn of_notification(id: &NotificationId) -> Self {
        Self(id.as_str().to_owned())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BroadcastState {
    /// Waits for earlier broadcasts.
    Queued,
    /// Finds devices, sends to them, or waits for receipts.
    Running,
    /// Every delivery is finished.
    Finished,
    /// Nothing is sent any more.
    Cancelled,
}

/// Devices by the state of their delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DeviceCounts {
    /// Devices that were found so far: the sum of the others.
    pub found: i64,
    /// Not sent yet, or being sent.
    pub queued: i64,
    /// Expo took the message.
    pub sent: i64,
    /// Apple or Google took the message.
    pub delivered: i64,
    pub failed: i64,
    /// Not sent, because the broadcast was cancelled or the user erased.
    pub dropped: i64,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Broadcast {
    pub id: BroadcastId,
    /// The platform of its devices; `None` for all.
    pub platform: Option<Platform>,
    pub message: Message,
    pub state: BroadcastState,
    pub created_at: EpochMillis,
    /// When the first devices were looked up.
    pub started_at: Option<EpochMillis>,
    /// When the last delivery was finished.
    pub finished_at: Option<EpochMillis>,
    pub devices: DeviceCounts,
    /// Failed devices by the code of the reason.
    pub failures: BTreeMap<&'static str, i64>,
    pub steps: Vec<Step>,
    /// Where to continue looking for devices; `None` once all were found.
    pub(super) walk: Option<Walk>,
    /// Notifications of users that are not finished.
    pub(super) open_notifications: i64,
    /// Counts the changes other than those of counts.
    pub(super) version: i64,
}

impl BroadcastState {
    pub(super) const ALL: [Self; 4] =
        [Self::Queued, Self::Running, Self::Finished, Self::Cancelled];

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Finished => "finished",
            Self::Cancelled => "cancelled",
        }
    }
}

impl Broadcast {
    /// Whether there are devices to look for.
    pub(in crate::push) fn is_walking(&self) -> bool {
        self.walk.is_some()
    }

    /// Whether nothing is left to do.
    pub(in crate::push) fn is_done(&self) -> bool {
        self.walk.is_none() && self.open_notifications <= 0
    }

    pub(super) fn note(&mut self, at: EpochMillis, what: impl Into<String>) {
        if self.steps.len() < STEPS_MAX {
            let what = what.into();
            self.steps.push(Step { at, what });
        }
    }
}
