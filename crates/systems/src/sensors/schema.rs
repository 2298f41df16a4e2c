//! The tables of sensors. Names, keys, indexes and attributes are frozen: they come from the design document
//! and are written nowhere else.

use homeport_item::KeyKind;
use homeport_item::schema::{IndexSchema, KeyAttribute, TableSchema};

pub const DEVICES: &str = "devices";
pub const DEVICE_READINGS: &str = "device_readings";
pub const PROCESSED_BATCHES: &str = "processed_batches";

/// Lists devices by activity.
pub const ACTIVITY_INDEX: &str = "gsi1";
/// The value of `gsi1pk` in every device.
pub const DEVICES_PARTITION: &str = "devices";

pub const HARDWARE_ID: &str = "hardware_id";
pub const CONFIRMATION_ID: &str = "confirmation_id";
pub const CAPABILITIES: &str = "capabilities";
pub const FIRST_REGISTERED_AT: &str = "first_registered_at";
pub const LAST_SEEN_AT: &str = "last_seen_at";
pub const LAST_BOOT_ID: &str = "last_boot_id";
pub const FIRMWARE_VERSION: &str = "firmware_version";
pub const FRIENDLY_NAME: &str = "friendly_name";
pub const GSI1PK: &str = "gsi1pk";
pub const GSI1SK: &str = "gsi1sk";

pub const TS_BATCH: &str = "ts_batch";
pub const TIMESTAMP_MS: &str = "timestamp_ms";
pub const BATCH_ID: &str = "batch_id";
pub const BOOT_ID: &str = "boot_id";
pub const SENSORS: &str = "sensors";
pub const SENSOR_STATUS: &str = "sensor_status";
pub const EXPIRATION_TIME: &str = "expiration_time";

pub const RECEIVED_AT: &str = "received_at";

/// Members of the capabilities attribute.
pub const CAPABLE_SENSORS: &str = "sensors";
pub const CAPABLE_FEATURES: &str = "features";

#[must_use]
pub fn devices() -> TableSchema {
    let activity = IndexSchema::global(
        ACTIVITY_INDEX,
        KeyAttribute::new(GSI1PK, KeyKind::S),
        Some(KeyAttribute::new(GSI1SK, KeyKind::S)),
    );
    TableSchema::new(DEVICES, HARDWARE_ID, KeyKind::S).with_index(activity)
}

#[must_use]
pub fn device_readings() -> TableSchema {
    TableSchema::new(DEVICE_READINGS, HARDWARE_ID, KeyKind::S)
        .with_sort(TS_BATCH, KeyKind::S)
        .with_ttl(EXPIRATION_TIME)
}

#[must_use]
pub fn processed_batches() -> TableSchema {
    TableSchema::new(PROCESSED_BATCHES, BATCH_ID, KeyKind::S).with_ttl(EXPIRATION_TIME)
}

/// All tables of the system.
#[must_use]
pub fn tables() -> Vec<TableSchema> {
    vec![devices(), device_readings(), processed_batches()]
}
