//! The tables of push. The design document freezes the name, keys and attributes of the table of device
//! tokens; nothing else writes them down. The table of notifications is Homeport's own.

use homeport_item::schema::{IndexProjection, IndexSchema, KeyAttribute, TableSchema};
use homeport_item::{Item, KeyKind};

use super::broadcasts::BroadcastId;
use super::types::{DeviceId, UserId};
use crate::outbox::{OpenCounter, work_index};

pub(crate) use crate::outbox::{DUE_AT_MS, STATE, STEPS, VERSION, WORK, WORK_PARTITION};

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
/// The platform of an active device, while the table has the index for broadcasts. The document's own idea for that
/// index has a Boolean key, which DynamoDB does not allow.
pub const ACTIVE_PLATFORM: &str = "activePlatform";
/// The optional index for broadcasts: active devices by platform.
pub const ACTIVE_PLATFORM_INDEX: &str = "ActivePlatformIndex";

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
/// On notifications by which users get a broadcast.
pub const IS_BROADCAST: &str = "broadcast";
/// The value of `work` while only receipts are missing.
pub const AWAITING_RECEIPT: &str = "receipt";
/// Fields of the delivery to a device.
pub const NOTIFIED_DEVICE_ID: &str = "device_id";
pub const TICKET_ID: &str = "ticket_id";
pub const TOKEN_DIGEST: &str = "token_digest";
pub const NEXT_AT_MS: &str = "next_at_ms";
pub const SENT_AT_MS: &str = "sent_at_ms";
pub const DEACTIVATE: &str = "deactivate";
/// The partition of broadcasts, the prefix of their sort keys, and the value of `work` while one is open.
pub const BROADCASTS: &str = "broadcasts";
pub const BROADCAST: &str = "broadcast#";
pub const OPEN_BROADCAST: &str = "broadcast";
/// Attributes of broadcasts.
pub const BROADCAST_ID: &str = "broadcast_id";
pub const STARTED_AT: &str = "started_at";
/// Where to continue looking for devices. Absent once all were found.
pub const WALK: &str = "walk";
/// Fields of that position: the partition of the index, and the key of the last device.
pub const WALK_PLATFORM: &str = "platform";
pub const WALK_AFTER: &str = "after";
/// Counts of devices, and of unfinished notifications.
pub const FOUND: &str = "found";
pub const QUEUED: &str = "queued";
pub const SENT: &str = "sent";
pub const DELIVERED: &str = "delivered";
pub const FAILED: &str = "failed";
pub const DROPPED: &str = "dropped";
pub const OPEN_NOTIFICATIONS: &str = "open_notifications";
/// Of idempotency keys: a digest of the message.
pub const ASKED: &str = "asked";
/// Of the item that counts open notifications and broadcasts.
pub const OPEN: &str = "open";
pub const OPEN_BROADCASTS: &str = "open_broadcasts";

/// The table of device tokens in an environment, as the document names it.
#[must_use]
pub fn table_of(environment: &str) -> String {
    format!("{TABLE_PREFIX}{environment}{TABLE_SUFFIX}")
}

/// The table of device tokens, as the document describes it or with the index for broadcasts.
#[must_use]
pub fn device_tokens(name: &str, has_broadcast_index: bool) -> TableSchema {
    let table = TableSchema::new(name, USER_ID, KeyKind::S)
        .with_sort(DEVICE_ID, KeyKind::S)
        .with_ttl(EXPIRES_AT);
    if !has_broadcast_index {
        return table;
    }
    // Keys are enough: broadcasts read the devices of each user from the table.
    let index = IndexSchema::global(
        ACTIVE_PLATFORM_INDEX,
        KeyAttribute::new(ACTIVE_PLATFORM, KeyKind::S),
        Some(KeyAttribute::new(USER_ID, KeyKind::S)),
    );
    table.with_index(index.projecting(IndexProjection::KeysOnly))
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
pub fn tables(device_tokens_name: &str, has_broadcast_index: bool) -> Vec<TableSchema> {
    vec![
        device_tokens(device_tokens_name, has_broadcast_index),
        notifications(),
    ]
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

pub(super) fn open_broadcasts_counter() -> OpenCounter {
    OpenCounter {
        key: key(OUTBOX, OUTBOX),
        attribute: OPEN_BROADCASTS,
    }
}

pub(super) fn broadcast_key(id: &BroadcastId) -> Item {
    key(BROADCASTS, format!("{BROADCAST}{id}"))
}

pub(super) fn user_partition(user: &UserId) -> String {
    format!("{USER}{user}")
}
