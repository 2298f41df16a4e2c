//! The tables of push. The design document freezes the name, keys and attributes of the table of device
//! tokens; nothing else writes them down. The table of notifications is Homeport's own.

use homeport_item::schema::TableSchema;
use homeport_item::{Item, KeyKind};

use super::types::{DeviceId, UserId};
use crate::outbox::{OpenCounter, work_index};

pub(crate) use crate::outbox::{DUE_AT_MS, STATE, VERSION, WORK, WORK_PARTITION};

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

/// Accepted notifications with their deliveries, idempotency keys, and the count of open ones.
pub const NOTIFICATIONS: &str = "homeport-notifications";

pub const PK: &str = "pk";
pub const SK: &str = "sk";
/// When the item expires.
pub const FORGET_AT: &str = "forget_at";

/// Prefix of the partition of a user's notifications.
pub const USER: &str = "user#";
/// Prefixes of sort keys.
pub const NOTIFICATION: &str = "notification#";
pub const IDEMPOTENCY_KEY: &str = "key#";
/// Prefix of both keys of the item that names the user with a token. A digest stands for the token.
pub const TOKEN: &str = "token#";
/// Both keys of the item that counts open notifications.
pub const OUTBOX: &str = "outbox";

/// Attributes of notifications.
pub const NOTIFICATION_ID: &str = "notification_id";
pub const NOTIFIED_USER_ID: &str = "user_id";
pub const CREATED_AT: &str = "created_at";
pub const FINISHED_AT: &str = "finished_at";
pub const MESSAGE: &str = "message";
pub const DEVICES: &str = "devices";
/// On the first part of a notification to many devices: the number of its parts.
pub const PARTS: &str = "parts";
/// On its other parts: their number, from 1.
pub const PART: &str = "part";
/// Fields of the delivery to a device.
pub const NOTIFIED_DEVICE_ID: &str = "device_id";
pub const TICKET_ID: &str = "ticket_id";
pub const TOKEN_DIGEST: &str = "token_digest";
pub const NEXT_AT_MS: &str = "next_at_ms";
pub const SENT_AT_MS: &str = "sent_at_ms";
pub const DEACTIVATE: &str = "deactivate";
/// Of idempotency keys: a digest of the message.
pub const ASKED: &str = "asked";
/// Of the item that counts open notifications.
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
    TableSchema::new(NOTIFICATIONS, PK, KeyKind::S)
        .with_sort(SK, KeyKind::S)
        .with_index(work_index())
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

pub(super) fn open_counter() -> OpenCounter {
    OpenCounter {
        key: key(OUTBOX, OUTBOX),
        attribute: OPEN,
    }
}

pub(super) fn user_partition(user: &UserId) -> String {
    format!("{USER}{user}")
}
