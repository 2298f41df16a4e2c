//! The tables of chargers. Names, keys, indexes and attributes are frozen: they come from the design document
//! and are written nowhere else. Attributes that the document does not have are optional and marked so.

use homeport_item::KeyKind;
use homeport_item::schema::{IndexSchema, KeyAttribute, StreamView, TableSchema};

use crate::documents;

pub const EVENTS: &str = "evse-events";
pub const DEVICE_STATE: &str = "evse-device-state";
pub const DEVICES: &str = "evse-devices";
pub const DAILY_STATS: &str = "evse-daily-stats";
/// Homeport's own: payload decoders with their versions.
pub const DECODERS: &str = "homeport-charger-decoders";

/// Finds events of one type across the fleet.
pub const EVENT_TYPE_INDEX: &str = "event-type-index";

/// The SC-ID: the partition key of all four tables.
pub const DEVICE_ID: &str = "device_id";
/// The UUID from which the SC-ID is computed.
pub const WIRELESS_DEVICE_ID: &str = "wireless_device_id";
pub const TIMESTAMP_MT: &str = "timestamp_mt";
pub const EVENT_TYPE: &str = "event_type";
pub const DATE: &str = "date";

/// The prefixes of the attributes that operators set; uplinks never change them.
pub const SCHEDULER: &str = "scheduler_";
pub const OTA: &str = "ota_";
pub const TIME_SYNC: &str = "time_sync_";
pub const DIVERGENCE: &str = "divergence_";
pub const STATE_PREFIXES: [&str; 4] = [SCHEDULER, OTA, TIME_SYNC, DIVERGENCE];

/// Optional in events: the instant. The wall clock is ambiguous in the repeated hour.
pub const TIMESTAMP_UTC_MS: &str = "timestamp_utc_ms";
/// Optional in events: the data that the device sent.
pub const DATA: &str = "data";
/// Optional in events: distinguishes a repeated uplink from another event.
pub const UPLINK_ID: &str = "uplink_id";
/// Optional in events: the time of arrival at the server.
pub const RECEIVED_AT: &str = "received_at";

/// Optional in events: the uplink that the event was decoded from.
pub const UPLINK: &str = "uplink";
/// Members of an uplink: the message as AWS delivered it, and the decoder that read it.
pub const UPLINK_MESSAGE: &str = "message";
pub const UPLINK_DECODER: &str = "decoder";
pub const UPLINK_DECODER_VERSION: &str = "decoder_version";

/// The partition of the current decoders.
pub const DECODER: &str = "decoder";

/// Optional in devices: when the device was registered here.
pub const PROVISIONED_AT: &str = "provisioned_at";

/// Optional in devices: the name that an operator gave.
pub const FRIENDLY_NAME: &str = "friendly_name";

/// Optional in states: the newest event.
pub const LAST_SEEN_MT: &str = "last_seen_mt";
pub const LAST_SEEN_UTC_MS: &str = "last_seen_utc_ms";
pub const LAST_EVENT_TYPE: &str = "last_event_type";
/// Optional in states: the time of the event that reported each attribute.
pub const REPORTED_UTC_MS: &str = "reported_utc_ms";
/// Optional in states: uplinks with a sequence number but no time, to recognize repeats.
pub const RECENT_UPLINKS: &str = "recent_uplinks";
/// Optional in states: a version that every uplink with changes increments.
pub const REVISION: &str = "revision";

pub const EVENT_COUNT: &str = "event_count";
pub const AVAILABILITY_PCT: &str = "availability_pct";
pub const LONGEST_GAP_MINUTES: &str = "longest_gap_minutes";
pub const TOTAL_KWH: &str = "total_kwh";
pub const CHARGE_SESSION_COUNT: &str = "charge_session_count";
pub const CHARGE_DURATION_MIN: &str = "charge_duration_min";
pub const PEAK_CURRENT_MA: &str = "peak_current_ma";
/// Optional in daily statistics: the number of occurrences of each kind of fault.
pub const FAULT_COUNTS: &str = "fault_counts";

/// Optional in daily statistics: the old table that they were migrated from.
pub const MIGRATED_FROM: &str = "migrated_from";

/// Members of an event's data that the statistics use.
pub const J1772_STATE: &str = "j1772_state";
pub const CURRENT_MA: &str = "current_ma";
pub const VOLTAGE_MV: &str = "voltage_mv";
pub const FAULT: &str = "fault_";

#[must_use]
pub fn events() -> TableSchema {
    let by_type = IndexSchema::global(
        EVENT_TYPE_INDEX,
        KeyAttribute::new(EVENT_TYPE, KeyKind::S),
        Some(KeyAttribute::new(TIMESTAMP_MT, KeyKind::S)),
    );
    TableSchema::new(EVENTS, DEVICE_ID, KeyKind::S)
        .with_sort(TIMESTAMP_MT, KeyKind::S)
        .with_index(by_type)
        // Daily statistics follow this stream.
        .with_stream(StreamView::NewImage)
}

#[must_use]
pub fn device_state() -> TableSchema {
    TableSchema::new(DEVICE_STATE, DEVICE_ID, KeyKind::S)
}

#[must_use]
pub fn devices() -> TableSchema {
    TableSchema::new(DEVICES, DEVICE_ID, KeyKind::S)
}

#[must_use]
pub fn daily_stats() -> TableSchema {
    TableSchema::new(DAILY_STATS, DEVICE_ID, KeyKind::S).with_sort(DATE, KeyKind::S)
}

#[must_use]
pub fn decoders() -> TableSchema {
    documents::schema::table(DECODERS)
}

/// All tables of the system.
#[must_use]
pub fn tables() -> Vec<TableSchema> {
    vec![
        events(),
        device_state(),
        devices(),
        daily_stats(),
        decoders(),
    ]
}
