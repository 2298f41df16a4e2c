//! Notifications as items.

use homeport_item::{Item, Value};

use super::message::Message;
use super::notification::{DeviceDelivery, Notification, NotificationId, Part};
use crate::outbox::{Delivery, Entry as _};
use crate::push::broadcasts::Tally;
use crate::push::types::UserId;
use crate::push::{NOTIFICATION_RETENTION_SECS, PushError, schema};
use crate::time::EpochMillis;

pub(in crate::push) fn notification_key(user: &UserId, id: &NotificationId) -> Item {
    part_key(user, id, 0)
}

/// The key of a part. The parts of a notification sort after its first part, which has the notification's key.
pub(super) fn part_key(user: &UserId, id: &NotificationId, part: usize) -> Item {
    let sort = match part {
        0 => format!("{}{id}", schema::NOTIFICATION),
        part => format!("{}{id}#{part:04}", schema::NOTIFICATION),
    };
    schema::key(schema::user_partition(user), sort)
}

pub(in crate::push) fn to_item(notification: &Notification) -> Item {
    let created_at = notification.created_at;
    let forget_at = created_at.seconds().plus_secs(NOTIFICATION_RETENTION_SECS);
    let devices = notification.devices.iter().map(stored_device).collect();
    let Part { number, count } = notification.part;
    let mut item = part_key(&notification.user_id, &notification.id, number)
        .with(schema::NOTIFICATION_ID, notification.id.as_str())
        .with(schema::NOTIFIED_USER_ID, &notification.user_id)
        .with(schema::CREATED_AT, created_at.0)
        .with(schema::MESSAGE, notification.message.to_json())
        .with(schema::VERSION, notification.version)
        .with(schema::FORGET_AT, forget_at.0)
        .with(schema::DEVICES, Value::L(devices));
    if number > 0 {
        item.insert(schema::PART, whole_number(number));
    } else if count > 1 {
        item.insert(schema::PARTS, whole_number(count));
    }
    if notification.tally.is_some() {
        item.insert(schema::IS_BROADCAST, true);
    }
    if let Some(due) = notification.due_at() {
        item.insert(schema::WORK, lane(notification));
        item.insert(schema::DUE_AT_MS, due.0);
    }
    if let Some(at) = notification.finished_at {
        item.insert(schema::FINISHED_AT, at.0);
    }
    item
}

/// Receipts wait in a lane of their own, so that they never keep messages from being sent.
fn lane(notification: &Notification) -> &'static str {
    let mut devices = notification.devices.iter();
    if devices.any(|device| device.delivery.is_unsent() || device.deactivate) {
        schema::WORK_PARTITION
    } else {
        schema::AWAITING_RECEIPT
    }
}

fn whole_number(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn stored_device(device: &DeviceDelivery) -> Value {
    let delivery = &device.delivery;
    let fields: [(&str, Option<Value>); 6] = [
        (
            schema::NOTIFIED_DEVICE_ID,
            Some(Value::from(&device.device_id)),
        ),
        (
            schema::TICKET_ID,
            device.ticket_id.as_deref().map(Value::from),
        ),
        (
            schema::TOKEN_DIGEST,
            device.token_digest.as_deref().map(Value::from),
        ),
        (schema::NEXT_AT_MS, delivery.next_at.map(|at| at.0.into())),
        (schema::SENT_AT_MS, device.sent_at.map(|at| at.0.into())),
        (schema::DEACTIVATE, device.deactivate.then(|| true.into())),
    ];
    let fields = fields
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
        .chain(delivery.attributes());
    Value::M(
        fields
            .map(|(name, value)| (name.to_owned(), value))
            .collect(),
    )
}

pub(in crate::push) fn from_item(item: &Item) -> Result<Notification, PushError> {
    let malformed = || PushError::Malformed("a notification has an unknown form".to_owned());
    parse(item).ok_or_else(malformed)
}

fn parse(item: &Item) -> Option<Notification> {
    let text = |name| item.get(name).and_then(Value::as_str);
    let whole = |name| item.get(name)?.as_number()?.to_i64();
    let count = |name| whole(name).and_then(|count| usize::try_from(count).ok());
    let devices = item.get(schema::DEVICES)?.as_list()?.iter();
    let devices: Vec<DeviceDelivery> = devices.map(parse_device).collect::<Option<_>>()?;
    let is_broadcast = item.get(schema::IS_BROADCAST).and_then(Value::as_bool);
    Some(Notification {
        id: text(schema::NOTIFICATION_ID)?.parse().ok()?,
        user_id: text(schema::NOTIFIED_USER_ID)?.parse().ok()?,
        message: Message::from_json(text(schema::MESSAGE)?)?,
        created_at: EpochMillis(whole(schema::CREATED_AT)?),
        finished_at: whole(schema::FINISHED_AT).map(EpochMillis),
        tally: (is_broadcast == Some(true)).then(|| Tally::of(&devices)),
        devices,
        part: Part {
            number: count(schema::PART).unwrap_or(Part::ONLY.number),
            count: count(schema::PARTS).unwrap_or(Part::ONLY.count),
        },
        version: whole(schema::VERSION)?,
    })
}

fn parse_device(value: &Value) -> Option<DeviceDelivery> {
    let fields = value.as_map()?;
    let text = |name| fields.get(name).and_then(Value::as_str);
    let millis = |name| {
        let millis = fields.get(name)?.as_number()?.to_i64()?;
        Some(EpochMillis(millis))
    };
    let next_at = millis(schema::NEXT_AT_MS);
    Some(DeviceDelivery {
        device_id: text(schema::NOTIFIED_DEVICE_ID)?.parse().ok()?,
        delivery: Delivery::parse(|name| fields.get(name), next_at)?,
        ticket_id: text(schema::TICKET_ID).map(str::to_owned),
        sent_at: millis(schema::SENT_AT_MS),
        token_digest: text(schema::TOKEN_DIGEST).map(str::to_owned),
        deactivate: fields.get(schema::DEACTIVATE).and_then(Value::as_bool) == Some(true),
    })
}
