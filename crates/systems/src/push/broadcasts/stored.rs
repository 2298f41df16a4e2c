//! Broadcasts as items.

use std::collections::BTreeMap;

use homeport_item::{Item, Value};

use super::broadcast::{Broadcast, BroadcastState, DeviceCounts};
use super::tally::FAILURES;
use super::walk::Walk;
use crate::outbox::{parse_steps, stored_steps};
use crate::push::notifications::Message;
use crate::push::{NOTIFICATION_RETENTION_SECS, PushError, schema};
use crate::time::EpochMillis;

/// The item of a new broadcast. Its counts are absent until something is counted.
pub(super) fn to_item(broadcast: &Broadcast) -> Item {
    let created_at = broadcast.created_at;
    let forget_at = created_at.seconds().plus_secs(NOTIFICATION_RETENTION_SECS);
    let mut item = schema::broadcast_key(&broadcast.id)
        .with(schema::BROADCAST_ID, &broadcast.id)
        .with(schema::MESSAGE, broadcast.message.to_json())
        .with(schema::STATE, broadcast.state.as_str())
        .with(schema::CREATED_AT, created_at.0)
        .with(schema::STEPS, stored_steps(&broadcast.steps))
        .with(schema::VERSION, broadcast.version)
        .with(schema::FORGET_AT, forget_at.0)
        .with(schema::WORK, schema::OPEN_BROADCAST)
        .with(schema::DUE_AT_MS, created_at.0);
    if let Some(platform) = broadcast.platform {
        item.insert(schema::PLATFORM, platform.as_str());
    }
    if let Some(walk) = &broadcast.walk {
        item.insert(schema::WALK, walk.to_value());
    }
    item
}

pub(super) fn from_item(item: &Item) -> Result<Broadcast, PushError> {
    let malformed = || PushError::Malformed("a broadcast has an unknown form".to_owned());
    parse(item).ok_or_else(malformed)
}

fn parse(item: &Item) -> Option<Broadcast> {
    let text = |name| item.get(name).and_then(Value::as_str);
    let whole = |name| item.get(name)?.as_number()?.to_i64();
    let count = |name| whole(name).unwrap_or_default();
    let state = text(schema::STATE)?;
    let mut states = BroadcastState::ALL.into_iter();
    let platform = match text(schema::PLATFORM) {
        Some(platform) => Some(platform.parse().ok()?),
        None => None,
    };
    let walk = match item.get(schema::WALK) {
        Some(walk) => Some(Walk::parse(walk.as_map()?)?),
        None => None,
    };
    let failures = FAILURES
        .into_iter()
        .map(|(code, attribute)| (code, count(attribute)));
    let failures: BTreeMap<_, _> = failures.filter(|(_, count)| *count > 0).collect();
    Some(Broadcast {
        id: text(schema::BROADCAST_ID)?.parse().ok()?,
        platform,
        message: Message::from_json(text(schema::MESSAGE)?)?,
        state: states.find(|one| one.as_str() == state)?,
        created_at: EpochMillis(whole(schema::CREATED_AT)?),
        started_at: whole(schema::STARTED_AT).map(EpochMillis),
        finished_at: whole(schema::FINISHED_AT).map(EpochMillis),
        devices: DeviceCounts {
            found: count(schema::FOUND),
            queued: count(schema::QUEUED),
            sent: count(schema::SENT),
            delivered: count(schema::DELIVERED),
            failed: count(schema::FAILED),
            dropped: count(schema::DROPPED),
        },
        failures,
        steps: parse_steps(item.get(schema::STEPS)?)?,
        walk,
        open_notifications: count(schema::OPEN_NOTIFICATIONS),
        version: whole(schema::VERSION)?,
    })
}
