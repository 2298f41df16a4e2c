//! The tables of push. That of device tokens is frozen: its name, keys and attributes are those of
//! the design document and are written nowhere else. That of notifications is Homeport's own.

use homeport_item::schema::{IndexSchema, KeyAttribute, TableSchema};
use homeport_item::{Item, KeyKind};

use super::types::{DeviceId, UserId};

/// The table's name is this, the environment, and the suffix.
pub const TABLE_PREFIX: &str = "photoeditor-";
pub const TABLE_SUFFIX: &str = "-device-tokens";
/// The environment unless another one is set.
pub const ENVIRONMENT_DEFAULT: &str = "dev";

pub const USER_ID: &str = "userId";
pub const DEVICE_ID: &str = "deviceId";
pub const EXPO_PUSH_TOKEN: &str = "expoPushToken";
pub const PLATFORM: &str = "platform";
pub const REGISTERED_AT: &str = "registeredAt";
pub const UPDATED_AT: &str = "updatedAt";
pub const IS_ACTIVE: &str = "isActive";
pub const EXPIRES_AT: &str = "expiresAt";

/// Accepted notifications, each with what became of it, and how many are not finished.
pub const NOTIFICATIONS: &str = "homeport-notifications";
/// Finds what is to be done, in the order in which it is due.
pub const WORK_INDEX: &str = "work";

pub const PK: &str = "pk";
pub const SK: &str = "sk";
/// Absent once there is nothing more to do, so that the index holds open notifications only.
pub const WORK: &str = "work";
pub const DUE_AT_MS: &str = "due_at_ms";
/// When the item may be forgotten.
pub const FORGET_AT: &str = "forget_at";

/// What `work` holds.
pub const WORK_PARTITION: &str = "due";
/// What a partition of one user's notifications begins with.
pub const USER: &str = "user#";
/// What sort keys begin with.
pub const NOTIFICATION: &str = "notification#";
pub const IDEMPOTENCY_KEY: &str = "key#";
/// Both keys of the item that counts what is open.
pub const OUTBOX: &str = "outbox";

/// Of notifications.
pub const NOTIFICATION_ID: &str = "notification_id";
pub const NOTIFIED_USER_ID: &str = "user_id";
pub const CREATED_AT: &str = "created_at";
pub const FINISHED_AT: &str = "finished_at";
pub const MESSAGE: &str = "message";
pub const VERSION: &str = "version";
pub const DEVICES: &str = "devices";
/// Of what they hold about a device.
pub const NOTIFIED_DEVICE_ID: &str = "device_id";
pub const STATE: &str = "state";
pub const TICKET_ID: &str = "ticket_id";
pub const REASON: &str = "reason";
pub const TOKEN_DIGEST: &str = "token_digest";
pub const ATTEMPTS: &str = "attempts";
pub const UNANSWERED: &str = "unanswered";
pub const NEXT_AT_MS: &str = "next_at_ms";
pub const SENT_AT_MS: &str = "sent_at_ms";
pub const ALONE: &str = "alone";
pub const DEACTIVATE: &str = "deactivate";
pub const STEPS: &str = "steps";
pub const STEP_AT: &str = "at";
pub const STEP: &str = "step";
/// Of idempotency keys: a digest of what was asked for with it.
pub const ASKED: &str = "asked";
/// Of the item that counts.
pub const OPEN: &str = "open";

/// The table of device tokens in an environment, as the document names it.
#[must_use]
pub fn table_of(environment: &str) -> String {
    format!("{TABLE_PREFIX}{environment}{TABLE_SUFFIX}")
}

#[must_use]
pub fn device_tokens(name: &str) -> TableSchema {
    TableSchema::new(name, USER_ID, KeyKind::S)
        .with_sort(DEVICE_ID, KeyKind::S)
        .with_ttl(EXPIRES_AT)
}

#[must_use]
pub fn notifications() -> TableSchema {
    let work = IndexSchema::global(
        WORK_INDEX,
        KeyAttribute::new(WORK, KeyKind::S),
        Some(KeyAttribute::new(DUE_AT_MS, KeyKind::N)),
    );
    TableSchema::new(NOTIFICATIONS, PK, KeyKind::S)
        .with_sort(SK, KeyKind::S)
        .with_index(work)
        .with_ttl(FORGET_AT)
}

/// All tables of the system.
#[must_use]
pub fn tables(device_tokens_name: &str) -> Vec<TableSchema> {
    vec![device_tokens(device_tokens_name), notifications()]
}

pub(super) fn device_key(user: &UserId, device: &DeviceId) -> Item {
    Item::new().with(USER_ID, user).with(DEVICE_ID, device)
}

pub(super) fn key(partition: impl Into<String>, sort: impl Into<String>) -> Item {
    Item::new().with(PK, partition.into()).with(SK, sort.into())
}

pub(super) fn outbox_key() -> Item {
    key(OUTBOX, OUTBOX)
}

pub(super) fn user_partition(user: &UserId) -> String {
    format!("{USER}{user}")
}
