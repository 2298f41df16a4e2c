//! The predecessor's tables, as the design document describes them, and the conversion of their items.

use homeport_item::schema::{KeySchema, TableSchema};
use homeport_item::{Item, KeyKind, Number, Value};

use super::super::event::UplinkId;
use super::super::schema;
use super::super::types::{DeviceName, ScId, WirelessDeviceId};
use super::progress::Source;
use crate::time::EpochMillis;

pub const OLD_EVENTS: &str = "sidewalk-v1-device_events_v2";
pub const OLD_DEVICES: &str = "device-registry";
pub const OLD_DAILY: &str = "daily-aggregates";
/// Unused tables. They are deleted only when a command names them.
pub const ORPHANS: [&str; 2] = [
    "sidewalk-v1-device_events_dedupe_v2",
    "sidewalk-v1-device_config",
];

/// The old sort key: milliseconds since the epoch, or a number that marks a part of the state.
pub(super) const TIMESTAMP: &str = "timestamp";
const SENTINELS: [(i64, &str); 4] = [
    (0, schema::SCHEDULER),
    (-1, schema::OTA),
    (-2, schema::TIME_SYNC),
    (-3, schema::DIVERGENCE),
];

/// The new form of an old item.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Moved {
    Event(OldEvent),
    /// Attributes of a device's state.
    State {
        wireless: WirelessDeviceId,
        attributes: Item,
    },
    Device(Item),
    Daily(Item),
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct OldEvent {
    pub(super) wireless: WirelessDeviceId,
    pub(super) at: EpochMillis,
    pub(super) uplink_id: UplinkId,
    /// The new item without its key.
    pub(super) item: Item,
}

/// The old tables, for fixtures and for inspection.
#[must_use]
pub fn old_tables() -> Vec<TableSchema> {
    vec![
        TableSchema::new(OLD_EVENTS, schema::DEVICE_ID, KeyKind::S)
            .with_sort(TIMESTAMP, KeyKind::N),
        TableSchema::new(OLD_DEVICES, schema::DEVICE_ID, KeyKind::S),
        TableSchema::new(OLD_DAILY, schema::DEVICE_ID, KeyKind::S)
            .with_sort(schema::DATE, KeyKind::S),
    ]
}

/// An old item with its key under the names of the design document, whatever its table calls them. An attribute that
/// already has such a name and is not the key keeps its value under `old_` and the name.
pub(super) fn with_documented_key(source: Source, old: Item, key: &KeySchema) -> Item {
    let documented = match source {
        Source::Events => [Some(schema::DEVICE_ID), Some(TIMESTAMP)],
        Source::Devices => [Some(schema::DEVICE_ID), None],
        Source::Daily => [Some(schema::DEVICE_ID), Some(schema::DATE)],
    };
    let actual = [Some(&key.partition), key.sort.as_ref()];
    let names = actual.into_iter().zip(documented);
    let renamed: Vec<(&str, &str)> = names
        .filter_map(|(actual, documented)| Some((actual?.name.as_str(), documented?)))
        .filter(|(actual, documented)| actual != documented)
        .collect();
    if renamed.is_empty() {
        return old;
    }
    let name = |name: &str| match renamed.iter().find(|(actual, _)| *actual == name) {
        Some((_, documented)) => (*documented).to_owned(),
        None if renamed.iter().any(|(_, documented)| *documented == name) => format!("old_{name}"),
        None => name.to_owned(),
    };
    old.iter()
        .map(|(attribute, value)| (name(attribute), value.clone()))
        .collect()
}

/// Converts an item of `table`, or returns why this is impossible.
pub(super) fn moved(table: &str, old: &Item) -> Result<Moved, String> {
    let id = old.get(schema::DEVICE_ID).and_then(Value::as_str);
    let id = id.ok_or("the device id is missing or not a string")?;
    if table == OLD_EVENTS {
        let wireless = id.parse().map_err(|_| format!("{id} is not a UUID"))?;
        return from_events(wireless, old);
    }
    let name: DeviceName = id
        .parse()
        .map_err(|_| format!("{id} is neither an SC-ID nor a UUID"))?;
    let sc_id = name.sc_id();
    let mut item = old.clone();
    item.insert(schema::DEVICE_ID, &sc_id);
    if let DeviceName::Wireless(wireless) = name {
        item.insert(schema::WIRELESS_DEVICE_ID, &wireless);
    }
    if table == OLD_DEVICES {
        let wireless = item.get(schema::WIRELESS_DEVICE_ID).and_then(Value::as_str);
        let is_own = wireless.is_none_or(|text| {
            let wireless = text.parse::<WirelessDeviceId>();
            wireless.is_ok_and(|wireless| ScId::of(wireless) == sc_id)
        });
        if !is_own {
            let wireless = wireless.unwrap_or_default();
            return Err(format!("{wireless} is not a UUID with the SC-ID {sc_id}"));
        }
        return Ok(Moved::Device(item));
    }
    item.insert(schema::MIGRATED_FROM, OLD_DAILY);
    Ok(Moved::Daily(item))
}

fn from_events(wireless: WirelessDeviceId, old: &Item) -> Result<Moved, String> {
    let at = old
        .get(TIMESTAMP)
        .and_then(Value::as_number)
        .and_then(Number::to_i64)
        .ok_or("the timestamp is missing or not an integer")?;
    let mut item = old.clone();
    item.remove(TIMESTAMP);
    item.remove(schema::DEVICE_ID);
    if let Some((_, prefix)) = SENTINELS.iter().find(|(sentinel, _)| *sentinel == at) {
        let attributes = item.into_iter().map(|(name, value)| {
            let name = if name.starts_with(prefix) {
                name
            } else {
                format!("{prefix}{name}").into()
            };
            (name, value)
        });
        return Ok(Moved::State {
            wireless,
            attributes: attributes.collect(),
        });
    }
    if at < 0 {
        return Err(format!(
            "the timestamp {at} is neither a time nor one of the markers 0 to -3"
        ));
    }
    let uplink_id = UplinkId::of(&format!("{OLD_EVENTS}\n{wireless}\n{at}"));
    item.insert(schema::WIRELESS_DEVICE_ID, &wireless);
    item.insert(schema::TIMESTAMP_UTC_MS, at);
    item.insert(schema::UPLINK_ID, uplink_id.as_str());
    if item
        .get(schema::EVENT_TYPE)
        .and_then(Value::as_str)
        .is_none()
    {
        // Without this attribute, the index would not contain the item.
        item.insert(schema::EVENT_TYPE, "unknown");
    }
    Ok(Moved::Event(OldEvent {
        wireless,
        at: EpochMillis(at),
        uplink_id,
        item,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const UUID: &str = "b319d001-6b08-4d88-b4ca-4d2d98a6d43c";

    fn old(timestamp: i64) -> Item {
        Item::new()
            .with("device_id", UUID)
            .with("timestamp", timestamp)
    }

    #[test]
    fn sentinels_become_prefixed_attributes() {
        for (timestamp, prefix) in [
            (0, "scheduler_"),
            (-1, "ota_"),
            (-2, "time_sync_"),
            (-3, "divergence_"),
        ] {
            let item = old(timestamp)
                .with("paused", true)
                .with(format!("{prefix}at"), 7);
            let Ok(Moved::State { attributes, .. }) = moved(OLD_EVENTS, &item) else {
                panic!("{timestamp} is a mark");
            };
            let expected = Item::new()
                .with(format!("{prefix}paused"), true)
                .with(format!("{prefix}at"), 7);
            assert_eq!(attributes, expected);
        }
        assert!(moved(OLD_EVENTS, &old(-4)).is_err());
        assert!(matches!(moved(OLD_EVENTS, &old(1)), Ok(Moved::Event(_))));
    }

    #[test]
    fn item_without_device_is_rejected() {
        let item = |id: &str| Item::new().with("device_id", id).with("timestamp", 1);
        assert!(moved(OLD_EVENTS, &item("SC-A1B2C3D4")).is_err());
        assert!(moved(OLD_DEVICES, &item("thing")).is_err());
        let stranger = item("SC-00000000").with("wireless_device_id", UUID);
        assert!(moved(OLD_DEVICES, &stranger).is_err());
        assert!(moved(OLD_DAILY, &Item::new()).is_err());
    }
}
