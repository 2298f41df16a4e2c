//! A notification and what became of it, device by device, with a trace of every step.

use std::fmt;
use std::str::FromStr;

use super::message::Message;
use super::types::{DeviceId, UserId};
use crate::cursor::Cursor;
use crate::ids::UuidV4;
use crate::sensors::InvalidField;
use crate::time::EpochMillis;

/// Digits of the time that an id begins with.
const TIME_DIGITS: usize = 13;

/// Names a notification: when it was accepted, and a UUID. Ids sort by time.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NotificationId(String);

impl NotificationId {
    pub(super) fn new(now: EpochMillis) -> Self {
        Self(format!("{:013}-{}", now.0.max(0), UuidV4::random()))
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for NotificationId {
    type Err = InvalidField;

    fn from_str(text: &str) -> Result<Self, InvalidField> {
        let is_id = text.split_once('-').is_some_and(|(time, uuid)| {
            time.len() == TIME_DIGITS
                && time.bytes().all(|byte| byte.is_ascii_digit())
                && uuid.parse::<UuidV4>().is_ok()
        });
        if is_id {
            Ok(Self(text.to_owned()))
        } else {
            Err(InvalidField {
                field: "notification id",
                expected: "one that accepting a notification answered with",
            })
        }
    }
}

impl fmt::Display for NotificationId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// How far a notification has come on its way to a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceState {
    /// Waits to be sent, for the first time or again.
    Queued,
    /// Is in a request to Expo that is not answered yet, or never will be.
    Sending,
    /// Expo took it and gave a ticket.
    Sent,
    /// Its receipt says that Apple or Google took it.
    Delivered,
    /// It will not arrive.
    Failed,
}

impl DeviceState {
    pub(super) const ALL: [Self; 5] = [
        Self::Queued,
        Self::Sending,
        Self::Sent,
        Self::Delivered,
        Self::Failed,
    ];

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Sending => "sending",
            Self::Sent => "sent",
            Self::Delivered => "delivered",
            Self::Failed => "failed",
        }
    }
}

/// Something that happened, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    pub at: EpochMillis,
    pub what: String,
}

/// What became of a notification at one device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceFate {
    pub device_id: DeviceId,
    pub state: DeviceState,
    /// Expo's, once it was sent.
    pub ticket_id: Option<String>,
    /// Why it failed, or why nothing more will be known.
    pub reason: Option<String>,
    /// Requests that it was in.
    pub attempts: u32,
    /// How many of these were never answered: each of them may have been carried out.
    pub unanswered: u32,
    pub steps: Vec<Step>,
    /// When something is to be done; nothing more is when this is absent.
    pub(super) next_at: Option<EpochMillis>,
    pub(super) sent_at: Option<EpochMillis>,
    /// Of the token that it was sent to. The token itself is not kept: it is read where it belongs,
    /// so that deleting a device leaves none behind.
    pub(super) token_digest: Option<String>,
    /// Is to be in a request of its own, after one with others was refused as a whole.
    pub(super) is_alone: bool,
    /// Expo does not know the token any more: it is to be deactivated.
    pub(super) deactivate: bool,
}

/// A notification.
#[derive(Debug, Clone, PartialEq)]
pub struct Notification {
    pub id: NotificationId,
    pub user_id: UserId,
    pub message: Message,
    pub created_at: EpochMillis,
    /// When the last device's fate was settled.
    pub finished_at: Option<EpochMillis>,
    pub devices: Vec<DeviceFate>,
    /// Counts the writes, so that no two workers move it on at once.
    pub(super) version: i64,
}

#[derive(Debug, Clone, PartialEq)]
pub struct NotificationPage {
    pub notifications: Vec<Notification>,
    /// Absent on the last page.
    pub next: Option<Cursor>,
}

impl DeviceFate {
    pub(super) fn queued(device_id: DeviceId, now: EpochMillis) -> Self {
        let mut fate = Self {
            device_id,
            state: DeviceState::Queued,
            ticket_id: None,
            reason: None,
            attempts: 0,
            unanswered: 0,
            steps: Vec::new(),
            next_at: Some(now),
            sent_at: None,
            token_digest: None,
            is_alone: false,
            deactivate: false,
        };
        fate.note(now, "accepted");
        fate
    }

    pub(super) fn note(&mut self, at: EpochMillis, what: impl Into<String>) {
        self.steps.push(Step {
            at,
            what: what.into(),
        });
    }

    pub(super) fn is_due(&self, now: EpochMillis) -> bool {
        self.next_at.is_some_and(|next| next <= now)
    }

    pub(super) fn fail(&mut self, now: EpochMillis, reason: impl Into<String>) {
        let reason = reason.into();
        self.note(now, format!("failed: {reason}"));
        self.state = DeviceState::Failed;
        self.reason = Some(reason);
        self.next_at = None;
        metrics::counter!("homeport_push_messages_total", "outcome" => "failed").increment(1);
    }

    /// Expo does not know the token any more.
    pub(super) fn fail_unregistered(&mut self, now: EpochMillis, reason: impl Into<String>) {
        self.fail(now, reason);
        self.deactivate = true;
        self.next_at = Some(now);
    }
}

impl Notification {
    /// When something is to be done about it.
    pub(super) fn due_at(&self) -> Option<EpochMillis> {
        self.devices.iter().filter_map(|fate| fate.next_at).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_sort_by_time_and_come_back() {
        let early = NotificationId::new(EpochMillis(999));
        let late = NotificationId::new(EpochMillis(1_800_000_000_000));
        assert!(early < late);
        assert_eq!(late.as_str().parse(), Ok(late.clone()));
        for wrong in [
            "",
            "1-2",
            "180000000000x-550e8400-e29b-41d4-a716-446655440000",
        ] {
            assert!(wrong.parse::<NotificationId>().is_err(), "{wrong}");
        }
    }
}
