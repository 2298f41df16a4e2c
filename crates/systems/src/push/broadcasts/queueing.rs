//! Puts the devices of a broadcast into the outbox: step by step, each in one transaction with the position after it.
//!
//! Each user gets one notification with the broadcast's id, which has all of the user's devices. A user who is met
//! again, after a restart or on another platform, has it already.

use std::collections::{BTreeMap, BTreeSet};

use homeport_item::expression::{Condition, Path, Projection, Update};
use homeport_store::{Action, ConditionCheck, Put, StoreError, TRANSACTION_ACTIONS_MAX};
use tokio::task::JoinSet;

use super::broadcast::{Broadcast, BroadcastId, BroadcastState};
use super::finish::change;
use super::tally::Tally;
use super::walk::{Users, Walk, is_wanted};
use crate::fetch::fetch;
use crate::outbox::commit;
use crate::push::measured::store_error;
use crate::push::notifications::notification::Part;
use crate::push::notifications::{DeviceDelivery, Notification, NotificationId, stored};
use crate::push::types::{DeviceId, UserId};
use crate::push::{DEVICES_PER_NOTIFICATION_MAX, DEVICES_PER_PART_MAX, Push, PushError, schema};
use crate::time::{EpochMillis, UtcMillis};

/// Writes of a step beside those of its users: the broadcast and the count of open notifications.
const OTHER_WRITES: usize = 2;
/// Broadcasts fill the outbox up to half. The rest is for other notifications.
const OUTBOX_SHARE: usize = 2;

/// The result of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::push) enum Queued {
    /// So many devices are in the outbox now, and there may be more.
    Devices(usize),
    /// There are no more.
    Last(usize),
    /// Nothing, until other notifications finish.
    OutboxFull,
    /// Nothing, because something changed meanwhile. The next attempt reads it again.
    Conflict,
}

/// What one step writes.
#[derive(Default)]
struct Step {
    /// The notifications and their checks.
    writes: Vec<Action>,
    /// Stored parts of notifications.
    parts: usize,
    devices: usize,
}

impl Push {
    /// Puts the next devices of a broadcast into the outbox.
    pub(in crate::push) async fn queue_next_devices(
        &self,
        id: &BroadcastId,
    ) -> Result<Queued, PushError> {
        let mut broadcast = self.broadcast_with_id(id).await?;
        let Some(walk) = broadcast.walk.take() else {
            return Ok(Queued::Conflict);
        };
        let max = i64::try_from(self.settings.outbox_max / OUTBOX_SHARE).unwrap_or(i64::MAX);
        let open_max = max.max(1);
        let room = open_max - self.outbox.open_count().await.map_err(store_error)?;
        if room <= 0 {
            return Ok(Queued::OutboxFull);
        }
        // After a change of the setting it starts again: users who were met before have their notification.
        let has_index = self.settings.broadcast_index;
        let walk = Some(walk).filter(|walk| walk.is_in_index() == has_index);
        let walk = walk.unwrap_or_else(|| Walk::start(broadcast.platform, has_index));
        let (users, end) = self.next_users(&walk, broadcast.platform).await?;
        let devices = self.unserved_devices(&mut broadcast, &users).await?;
        let mut step = Step::default();
        broadcast.walk = end;
        let mut position = Some(walk);
        for (user, after) in users {
            if let Some(devices) = devices.get(&user)
                && !self.add_user(&mut step, &broadcast, &user, devices, room)
            {
                broadcast.walk = position;
                break;
            }
            position = Some(after);
        }
        let queued = match broadcast.walk {
            Some(_) => Queued::Devices(step.devices),
            None => Queued::Last(step.devices),
        };
        let is_committed = self.commit_step(broadcast, step, open_max).await?;
        Ok(if is_committed {
            queued
        } else {
            Queued::Conflict
        })
    }

    /// Adds a user's notification to a step; false if it does not fit. The first one always fits.
    fn add_user(
        &self,
        step: &mut Step,
        broadcast: &Broadcast,
        user: &UserId,
        devices: &[DeviceId],
        room: i64,
    ) -> bool {
        let parts = devices.len().div_ceil(DEVICES_PER_PART_MAX);
        let writes = step.writes.len() + parts + 1 + OTHER_WRITES;
        let fits = writes <= TRANSACTION_ACTIONS_MAX && whole_number(step.parts + parts) <= room;
        if step.parts > 0 && !fits {
            return false;
        }
        // IMPORTANT: erasing a user deletes devices before notifications. As a device is still there when the
        // notification is written, erasing finds the notification.
        let checked = devices.first().map(|device| {
            let key = schema::device_key(user, device);
            ConditionCheck::new(self.table(), key, Condition::exists(schema::USER_ID)).into()
        });
        let notification = notification(broadcast, user, devices, self.now());
        let puts = notification.into_parts().into_iter().map(|part| {
            let put = Put::new(schema::NOTIFICATIONS, stored::to_item(&part));
            put.when(Condition::not_exists(schema::PK)).into()
        });
        step.writes.extend(puts.chain(checked));
        step.parts += parts;
        step.devices += devices.len();
        true
    }

    /// Commits a step with the position after it; false if the outbox is full, or someone else was faster.
    async fn commit_step(
        &self,
        mut broadcast: Broadcast,
        step: Step,
        open_max: i64,
    ) -> Result<bool, PushError> {
        let now = self.now();
        broadcast.state = BroadcastState::Running;
        if broadcast.started_at.is_none() {
            broadcast.started_at = Some(now);
            broadcast.note(now, "started");
        }
        let (devices, parts) = (whole_number(step.devices), whole_number(step.parts));
        if broadcast.walk.is_none() {
            let found = broadcast.devices.found + devices;
            broadcast.note(now, format!("found all devices: {found}"));
        }
        let (mut writes, mut counts) = (step.writes, Update::new());
        if parts > 0 {
            counts = counts
                .add(schema::FOUND, devices)
                .add(schema::QUEUED, devices)
                .add(schema::OPEN_NOTIFICATIONS, parts);
            // A notification with more parts than may be open waits until nothing else is open.
            let limit = Some(open_max.max(parts));
            let more = schema::open_counter().add(schema::NOTIFICATIONS, parts, limit);
            writes.push(more.into());
        }
        writes.push(change(&broadcast, counts));
        commit(&*self.store, writes).await.map_err(store_error)
    }

    /// The wanted devices of those users who have some, and do not have the notification yet.
    async fn unserved_devices(
        &self,
        broadcast: &mut Broadcast,
        users: &Users,
    ) -> Result<BTreeMap<UserId, Vec<DeviceId>>, PushError> {
        let id = NotificationId::of_broadcast(&broadcast.id);
        let keys = users
            .iter()
            .map(|(user, _)| stored::notification_key(user, &id));
        let projection = Some(Projection::new([schema::NOTIFIED_USER_ID]));
        let served = fetch(&*self.store, schema::NOTIFICATIONS, keys, projection).await;
        let served = served.map_err(store_error)?;
        let served: BTreeSet<&str> = served
            .iter()
            .filter_map(|item| item.get(schema::NOTIFIED_USER_ID)?.as_str())
            .collect();
        let created_at = UtcMillis::new(broadcast.created_at).to_string();
        // A phone that changes its user during the broadcast registers again: it gets one message at most.
        let is_late = Path::from(schema::REGISTERED_AT).greater_than(created_at);
        let filter = is_wanted(broadcast.platform).and(!is_late);
        let mut reading = JoinSet::new();
        for (user, _) in users
            .iter()
            .filter(|(user, _)| !served.contains(user.as_str()))
        {
            let (push, user, filter) = (self.clone(), user.clone(), filter.clone());
            reading.spawn(async move {
                let devices = push.devices_to_notify(&user, filter).await;
                (user, devices)
            });
        }
        let mut found = BTreeMap::new();
        let mut skipped = 0;
        while let Some(read) = reading.join_next().await {
            let (user, devices) = read.map_err(|error| {
                let reason = format!("a reader of devices ended: {error}");
                store_error(StoreError::Unavailable(reason))
            })?;
            match devices {
                Ok(devices) if devices.is_empty() => {}
                Ok(devices) => drop(found.insert(user, devices)),
                Err(PushError::TooManyDevices) => skipped += 1,
                Err(error) => return Err(error),
            }
        }
        if skipped > 0 {
            let what = format!(
                "skipped {skipped} users with more than {DEVICES_PER_NOTIFICATION_MAX} active devices"
            );
            broadcast.note(self.now(), what);
        }
        Ok(found)
    }
}

fn notification(
    broadcast: &Broadcast,
    user: &UserId,
    devices: &[DeviceId],
    now: EpochMillis,
) -> Notification {
    let devices = devices.iter().cloned();
    Notification {
        id: NotificationId::of_broadcast(&broadcast.id),
        user_id: user.clone(),
        message: broadcast.message.clone(),
        created_at: broadcast.created_at,
        finished_at: None,
        devices: devices
            .map(|device| DeviceDelivery::queued(device, now))
            .collect(),
        tally: Some(Tally::default()),
        part: Part::ONLY,
        version: 1,
    }
}

fn whole_number(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
