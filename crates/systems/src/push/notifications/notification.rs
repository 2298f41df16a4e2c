//! A notification of a user: an outbox entry with one delivery for each device.

use super::message::Message;
use crate::ids::{TIMED_ID, timed_id};
use crate::outbox::{Delivery, Entry};
use crate::push::DEVICES_PER_PART_MAX;
use crate::push::broadcasts::{BroadcastId, Tally};
use crate::push::sending::RETRIES;
use crate::push::types::{DeviceId, UserId};
use crate::text::text_type;
use crate::time::EpochMillis;

text_type! {
    /// The time at which a notification was accepted, and a UUID. Ids sort by time.
    NotificationId(String) {
        field: "notification id",
        chars: 50..=50,
        form: TIMED_ID,
        expected: "the id of an accepted notification",
    }
}

impl NotificationId {
    pub(super) fn new(now: EpochMillis) -> Self {
        Self(timed_id(now))
    }

    /// The notification by which a user gets a broadcast. It has the broadcast's id, so that there is only one.
    pub(in crate::push) fn of_broadcast(id: &BroadcastId) -> Self {
        Self(id.as_str().to_owned())
    }
}

/// The delivery of a notification to one device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceDelivery {
    pub device_id: DeviceId,
    pub delivery: Delivery,
    /// Expo's ticket, once the message was sent.
    pub ticket_id: Option<String>,
    pub(in crate::push) sent_at: Option<EpochMillis>,
    /// A digest of the token that the message was sent to. The token itself stays with the device, so
    /// that deleting the device leaves no copy of it.
    pub(in crate::push) token_digest: Option<String>,
    /// Expo does not know the token any more: it will be deactivated.
    pub(in crate::push) deactivate: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Notification {
    pub id: NotificationId,
    pub user_id: UserId,
    pub message: Message,
    pub created_at: EpochMillis,
    /// When the delivery to the last device was finished.
    pub finished_at: Option<EpochMillis>,
    pub devices: Vec<DeviceDelivery>,
    /// Set if it is part of the broadcast with the same id: what the broadcast has counted of it.
    pub(in crate::push) tally: Option<Tally>,
    /// The stored part that this is, and how many there are.
    pub(in crate::push) part: Part,
    pub(in crate::push) version: i64,
}

/// A notification to many devices is stored in parts, because the deliveries of all devices do not fit into one
/// item. The outbox sends each part as an entry of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::push) struct Part {
    pub(super) number: usize,
    /// Known to the first part only.
    pub(super) count: usize,
}

impl Part {
    pub(in crate::push) const ONLY: Self = Self {
        number: 0,
        count: 1,
    };
}

impl Notification {
    /// The broadcast that it is part of.
    #[must_use]
    pub fn broadcast_id(&self) -> Option<BroadcastId> {
        (self.tally.as_ref()).map(|_| BroadcastId::of_notification(&self.id))
    }

    /// Splits a new notification into the parts that are stored.
    pub(in crate::push) fn into_parts(self) -> Vec<Self> {
        let count = self.devices.len().div_ceil(DEVICES_PER_PART_MAX).max(1);
        if count == 1 {
            return vec![self];
        }
        let chunks = self.devices.chunks(DEVICES_PER_PART_MAX);
        let parts = chunks.enumerate().map(|(number, devices)| Self {
            devices: devices.to_vec(),
            part: Part { number, count },
            id: self.id.clone(),
            user_id: self.user_id.clone(),
            message: self.message.clone(),
            tally: self.tally.clone(),
            ..self
        });
        parts.collect()
    }

    /// Adds the devices of another part.
    pub(super) fn add_part(&mut self, part: Self) {
        self.devices.extend(part.devices);
        self.finished_at = self
            .finished_at
            .zip(part.finished_at)
            .map(|(a, b)| a.max(b));
    }
}

impl DeviceDelivery {
    pub(in crate::push) fn queued(device_id: DeviceId, now: EpochMillis) -> Self {
        let mut delivery = Delivery::queued(now);
        delivery.note(now, "accepted");
        Self {
            device_id,
            delivery,
            ticket_id: None,
            sent_at: None,
            token_digest: None,
            deactivate: false,
        }
    }

    /// Fails because Expo does not know the token any more.
    pub(in crate::push) fn fail_unregistered(
        &mut self,
        now: EpochMillis,
        reason: impl Into<String>,
    ) {
        self.delivery.fail(&RETRIES, now, reason);
        self.deactivate = true;
        self.delivery.next_at = Some(now);
    }
}

impl Entry for Notification {
    fn delivery_count(&self) -> usize {
        self.devices.len()
    }

    fn delivery(&self, index: usize) -> &Delivery {
        &self.devices[index].delivery
    }

    fn delivery_mut(&mut self, index: usize) -> &mut Delivery {
        &mut self.devices[index].delivery
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_sort_by_time_and_round_trip() {
        let early = NotificationId::new(EpochMillis(999));
        let late = NotificationId::new(EpochMillis(1_800_000_000_000));
        assert!(early < late);
        assert_eq!(late.as_str().parse(), Ok(late.clone()));
        for invalid in [
            "",
            "1-2",
            "180000000000x-550e8400-e29b-41d4-a716-446655440000",
        ] {
            assert!(invalid.parse::<NotificationId>().is_err(), "{invalid}");
        }
    }
}
