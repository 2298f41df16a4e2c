//! The tables of alerts. They are Homeport's own: no design document freezes them.

use homeport_item::schema::{IndexSchema, KeyAttribute, TableSchema};
use homeport_item::{Item, KeyKind};

use super::types::{AlertId, DefinitionId, DeviceName};
use crate::outbox::{OpenCounter, work_index};

pub(crate) use crate::outbox::{
    DUE_AT_MS, STATE, STEP, STEP_AT, STEPS, VERSION, WORK, WORK_PARTITION,
};

/// The definitions of operators.
pub const DEFINITIONS: &str = "homeport-alert-definitions";
/// The state of each device that a definition watches.
pub const WATCHES: &str = "homeport-alert-watches";
/// Alerts, open and cleared.
pub const ALERTS: &str = "homeport-alerts";
/// Notifications with their deliveries, and the count of open ones.
pub const OUTBOX: &str = "homeport-alert-outbox";

/// Of definitions: all are in one partition, in the order of their creation.
pub const SHELF: &str = "shelf";
pub const DEFINITION_ID: &str = "definition_id";
pub const REVISION: &str = "revision";
pub const EPOCH: &str = "epoch";
pub const SETTLED_EPOCH: &str = "settled_epoch";
pub const SINCE: &str = "since";
pub const CREATED_AT: &str = "created_at";
pub const UPDATED_AT: &str = "updated_at";
/// Marks a definition that is being deleted. It is hidden from users.
pub const DELETED: &str = "deleted";
pub const DEFINITION: &str = "definition";
/// The value of `shelf`.
pub const DEFINITIONS_SHELF: &str = "definitions";

/// Of watches.
pub const DEVICE: &str = "device";
pub const JUDGED_AT_MS: &str = "judged_at_ms";
pub const JUDGED_TIE: &str = "judged_tie";
pub const SEEN_AT_MS: &str = "seen_at_ms";
pub const STREAK_SINCE_MS: &str = "streak_since_ms";
pub const STREAK_COUNT: &str = "streak_count";
pub const SAMPLES: &str = "samples";
/// The last value of an attribute whose changes are watched, and since when it has that value.
pub const LAST_VALUE: &str = "last_value";
pub const LAST_SINCE_MS: &str = "last_since_ms";
/// The attributes that report a fault.
pub const FAULTS: &str = "faults";
pub const OPEN_ALERT: &str = "open_alert";
pub const NOTIFIED_AT_MS: &str = "notified_at_ms";
/// Present while a device may fall silent, so that its index holds nothing else.
pub const WAITS: &str = "waits";
/// Finds silences in the order in which they become alerts.
pub const SILENCE_INDEX: &str = "silence";
/// The value of `waits`.
pub const SILENCE: &str = "silence";

/// Of alerts.
pub const ALERT_ID: &str = "alert_id";
/// The same in every alert, for the index of all.
pub const ALL: &str = "all";
/// Present while an alert is open, so that its index holds nothing else.
pub const OPEN: &str = "open";
/// Both indexes list alerts by id, which is by time.
pub const ALL_INDEX: &str = "all";
pub const OPEN_INDEX: &str = "open";
/// The value of `all` and `open`.
pub const ALERTS_SHELF: &str = "alerts";
pub const DEFINITION_NAME: &str = "definition_name";
pub const SOURCE: &str = "source";
pub const SEVERITY: &str = "severity";
pub const REASON: &str = "reason";
pub const VALUE: &str = "value";
pub const OBSERVED_AT: &str = "observed_at";
pub const RAISED_AT: &str = "raised_at";
pub const CLEARED_AT: &str = "cleared_at";
pub const CLEAR_REASON: &str = "clear_reason";
pub const CLEAR_VALUE: &str = "clear_value";
pub const ACKNOWLEDGED_AT: &str = "acknowledged_at";
pub const ACKNOWLEDGED_BY: &str = "acknowledged_by";
pub const ACKNOWLEDGED_NOTE: &str = "acknowledged_note";
/// The last snooze, and how many there were.
pub const SNOOZED_AT: &str = "snoozed_at";
pub const SNOOZED_BY: &str = "snoozed_by";
pub const SNOOZED_UNTIL: &str = "snoozed_until";
pub const SNOOZES: &str = "snoozes";
/// The last assignment. Nobody is assigned if only its time and author are there.
pub const ASSIGNED_AT: &str = "assigned_at";
pub const ASSIGNED_BY: &str = "assigned_by";
pub const ASSIGNED_TO: &str = "assigned_to";
/// A list of maps with the three fields below.
pub const COMMENTS: &str = "comments";
pub const COMMENT_AT: &str = "at";
pub const COMMENT_BY: &str = "by";
pub const COMMENT_TEXT: &str = "text";
/// When a notification last failed for good.
pub const DELIVERY_FAILED_AT: &str = "delivery_failed_at";
/// When the item expires; open alerts never do.
pub const FORGET_AT: &str = "forget_at";

/// Of the outbox: the event, the position of the target, and the number of the snooze that ended.
pub const NOTIFICATION: &str = "notification";
pub const TARGET: &str = "target";
/// Both keys of the item that counts open notifications, and its attribute.
pub const COUNTER: &str = "counter";
pub const COUNT: &str = "count";

fn by(name: &str, partition: &str, sort: &str, kind: KeyKind) -> IndexSchema {
    IndexSchema::global(
        name,
        KeyAttribute::new(partition, KeyKind::S),
        Some(KeyAttribute::new(sort, kind)),
    )
}

#[must_use]
pub fn definitions() -> TableSchema {
    TableSchema::new(DEFINITIONS, SHELF, KeyKind::S).with_sort(DEFINITION_ID, KeyKind::S)
}

#[must_use]
pub fn watches() -> TableSchema {
    TableSchema::new(WATCHES, DEFINITION_ID, KeyKind::S)
        .with_sort(DEVICE, KeyKind::S)
        .with_index(by(SILENCE_INDEX, WAITS, DUE_AT_MS, KeyKind::N))
}

#[must_use]
pub fn alerts() -> TableSchema {
    TableSchema::new(ALERTS, ALERT_ID, KeyKind::S)
        .with_index(by(ALL_INDEX, ALL, ALERT_ID, KeyKind::S))
        .with_index(by(OPEN_INDEX, OPEN, ALERT_ID, KeyKind::S))
        .with_ttl(FORGET_AT)
}

#[must_use]
pub fn outbox() -> TableSchema {
    TableSchema::new(OUTBOX, ALERT_ID, KeyKind::S)
        .with_sort(NOTIFICATION, KeyKind::S)
        .with_index(work_index())
        .with_ttl(FORGET_AT)
}

/// All tables of the system.
#[must_use]
pub fn tables() -> Vec<TableSchema> {
    vec![definitions(), watches(), alerts(), outbox()]
}

pub(super) fn definition_key(id: &DefinitionId) -> Item {
    Item::new()
        .with(SHELF, DEFINITIONS_SHELF)
        .with(DEFINITION_ID, id)
}

pub(super) fn watch_key(id: &DefinitionId, device: &DeviceName) -> Item {
    Item::new().with(DEFINITION_ID, id).with(DEVICE, device)
}

pub(super) fn alert_key(id: &AlertId) -> Item {
    Item::new().with(ALERT_ID, id)
}

pub(super) fn notification_key(alert: &AlertId, notification: &str) -> Item {
    alert_key(alert).with(NOTIFICATION, notification)
}

pub(super) fn open_counter() -> OpenCounter {
    OpenCounter {
        key: Item::new()
            .with(ALERT_ID, COUNTER)
            .with(NOTIFICATION, COUNTER),
        attribute: COUNT,
    }
}
