//! One event: as it is sent, as it is stored, and how a repeated uplink is recognized.

use homeport_item::{Item, Map, Number, Value};
use sha2::{Digest as _, Sha256};

use super::mountain::MountainTime;
use super::types::{EventData, EventType, ScId, WirelessDeviceId};
use super::{ChargersError, schema};
use crate::text::InvalidField;
use crate::time::{EpochMillis, UtcSecond};

/// The first and the last time of an event: the years 2000 to 2099.
const OCCURRED_MS_MIN: i64 = 946_684_800_000;
const OCCURRED_MS_MAX: i64 = 4_102_444_800_000;
/// Bytes of an uplink's hash that are stored.
const UPLINK_ID_BYTES: usize = 16;
/// How far an event may move forward from an occupied key, in milliseconds.
pub const MOVES_MAX: i64 = 1000;

/// The device of an event, as the request names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EventDevice {
    /// Registers the device if necessary.
    Wireless(WirelessDeviceId),
    /// Only for registered devices.
    ScId(ScId),
}

/// An event as it is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewEvent {
    pub device: EventDevice,
    pub event_type: EventType,
    /// The time by the device's clock; the time of arrival unless given.
    pub occurred_at: Option<EpochMillis>,
    /// The sequence number of the uplink, for devices that count.
    pub sequence: Option<u64>,
    pub data: EventData,
    /// The uplink that it was decoded from.
    pub uplink: Option<EventUplink>,
}

/// The uplink of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventUplink {
    pub payload: Vec<u8>,
    /// The message and the decoder, as they are stored with the event.
    pub stored: Map,
}

/// A stored event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    pub device_id: ScId,
    pub wireless_device_id: Option<String>,
    /// The sort key in the table.
    pub timestamp_mt: MountainTime,
    /// The true time of the event.
    pub timestamp_utc: EpochMillis,
    pub event_type: EventType,
    pub data: EventData,
    /// The message of the uplink and its decoder.
    pub uplink: Option<Map>,
}

/// The identity of an uplink: device, type, data, and the device's time or sequence number. The payload replaces type
/// and data, so that an uplink is the same after a change of its decoder. Without a time and a number, a repeat cannot
/// be recognized, and there is no id.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct UplinkId(String);

impl NewEvent {
    /// Checks the values that depend on each other.
    ///
    /// # Errors
    /// When the time is out of range.
    pub fn check(self) -> Result<Self, InvalidField> {
        let Some(occurred_at) = self.occurred_at else {
            return Ok(self);
        };
        if !(OCCURRED_MS_MIN..OCCURRED_MS_MAX).contains(&occurred_at.0) {
            return Err(InvalidField {
                field: "occurred_at",
                expected: "a time in the years 2000 to 2099",
            });
        }
        Ok(self)
    }

    pub(super) fn uplink_id(&self, wireless: WirelessDeviceId) -> Option<UplinkId> {
        if self.occurred_at.is_none() && self.sequence.is_none() {
            return None;
        }
        let (event_type, data) = match &self.uplink {
            // No event has an empty type.
            Some(uplink) => ("", hex::encode(&uplink.payload)),
            None => (self.event_type.as_str(), self.data.canonical()),
        };
        // IMPORTANT: ids are stored, so this text must never change.
        let known = |text: String| format!("Some({text})");
        let unknown = || "None".to_owned();
        let occurred_at = self
            .occurred_at
            .map_or_else(unknown, |at| known(format!("EpochMillis({})", at.0)));
        let sequence = self
            .sequence
            .map_or_else(unknown, |sequence| known(sequence.to_string()));
        let text = format!("{wireless}\n{event_type}\n{occurred_at}\n{sequence}\n{data}",);
        Some(UplinkId::of(&text))
    }
}

impl UplinkId {
    pub(super) fn of(text: &str) -> Self {
        Self(hex::encode(&Sha256::digest(text)[..UPLINK_ID_BYTES]))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    pub(super) fn stored_in(item: &Item) -> Option<Self> {
        let text = item.get(schema::UPLINK_ID)?.as_str()?;
        Some(Self(text.to_owned()))
    }
}

impl Event {
    pub(super) fn to_item(&self, uplink_id: Option<&UplinkId>, received_at: UtcSecond) -> Item {
        let mut item = event_key(&self.device_id, self.timestamp_mt)
            .with(schema::EVENT_TYPE, &self.event_type)
            .with(schema::TIMESTAMP_UTC_MS, self.timestamp_utc.0)
            .with(schema::DATA, Value::M(self.data.members().clone()))
            .with(schema::RECEIVED_AT, received_at.to_string());
        if let Some(wireless) = &self.wireless_device_id {
            item.insert(schema::WIRELESS_DEVICE_ID, wireless.as_str());
        }
        if let Some(uplink_id) = uplink_id {
            item.insert(schema::UPLINK_ID, uplink_id.as_str());
        }
        if let Some(uplink) = &self.uplink {
            item.insert(schema::UPLINK, Value::M(uplink.clone()));
        }
        item
    }

    /// The event without attributes that only the server needs.
    pub(crate) fn shown(&self) -> Item {
        let mut item = event_key(&self.device_id, self.timestamp_mt)
            .with(schema::EVENT_TYPE, &self.event_type)
            .with(schema::TIMESTAMP_UTC_MS, self.timestamp_utc.0)
            .with(schema::DATA, Value::M(self.data.members().clone()));
        if let Some(wireless) = &self.wireless_device_id {
            item.insert(schema::WIRELESS_DEVICE_ID, wireless.as_str());
        }
        item
    }

    /// Reads an event. Another program may have written it: only its key must be valid.
    ///
    /// # Errors
    /// When the key does not belong to this table.
    pub fn from_item(item: &Item) -> Result<Self, ChargersError> {
        let malformed = |name: &str| ChargersError::Malformed {
            table: schema::EVENTS,
            reason: format!("{name} is missing or wrong"),
        };
        let text = |name: &str| item.get(name).and_then(Value::as_str);
        let timestamp_mt: MountainTime = text(schema::TIMESTAMP_MT)
            .and_then(|text| text.parse().ok())
            .ok_or_else(|| malformed(schema::TIMESTAMP_MT))?;
        let timestamp_utc = item
            .get(schema::TIMESTAMP_UTC_MS)
            .and_then(Value::as_number)
            .and_then(Number::to_i64)
            .map_or_else(|| timestamp_mt.assumed(), EpochMillis);
        Ok(Self {
            device_id: text(schema::DEVICE_ID)
                .and_then(|text| text.parse().ok())
                .ok_or_else(|| malformed(schema::DEVICE_ID))?,
            wireless_device_id: text(schema::WIRELESS_DEVICE_ID).map(str::to_owned),
            timestamp_mt,
            timestamp_utc,
            event_type: EventType::stored(text(schema::EVENT_TYPE)),
            data: EventData::stored(data(item)),
            uplink: item.get(schema::UPLINK).and_then(Value::as_map).cloned(),
        })
    }
}

/// The data of an event: the member of that name or, for events from the old table, all attributes that are not
/// Homeport's.
fn data(item: &Item) -> Map {
    const OURS: [&str; 8] = [
        schema::DEVICE_ID,
        schema::TIMESTAMP_MT,
        schema::EVENT_TYPE,
        schema::TIMESTAMP_UTC_MS,
        schema::WIRELESS_DEVICE_ID,
        schema::UPLINK_ID,
        schema::RECEIVED_AT,
        schema::UPLINK,
    ];
    if let Some(Value::M(data)) = item.get(schema::DATA) {
        return data.clone();
    }
    let others = item.iter().filter(|(name, _)| !OURS.contains(name));
    others
        .map(|(name, value)| (name.to_owned(), value.clone()))
        .collect()
}

/// The key of an event.
pub(super) fn event_key(device_id: &ScId, timestamp_mt: MountainTime) -> Item {
    Item::new()
        .with(schema::DEVICE_ID, device_id)
        .with(schema::TIMESTAMP_MT, timestamp_mt)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event() -> NewEvent {
        let members = Map::from([("current_ma".to_owned(), Value::from(16_000))]);
        NewEvent {
            device: EventDevice::Wireless(wireless()),
            event_type: "telemetry".parse().unwrap(),
            occurred_at: Some(EpochMillis(1_771_709_400_000)),
            sequence: Some(7),
            data: EventData::new(members).unwrap(),
            uplink: None,
        }
    }

    fn wireless() -> WirelessDeviceId {
        "b319d001-6b08-4d88-b4ca-4d2d98a6d43c".parse().unwrap()
    }

    #[test]
    fn uplink_identity_covers_every_part() {
        let id = event().uplink_id(wireless());
        assert!(id.is_some());
        assert_eq!(event().uplink_id(wireless()), id);
        let others = [
            NewEvent {
                sequence: Some(8),
                ..event()
            },
            NewEvent {
                sequence: None,
                ..event()
            },
            NewEvent {
                occurred_at: None,
                ..event()
            },
            NewEvent {
                event_type: "ota_start".parse().unwrap(),
                ..event()
            },
            NewEvent {
                data: EventData::default(),
                ..event()
            },
        ];
        for other in others {
            assert_ne!(other.uplink_id(wireless()), id);
        }
        let nameless = NewEvent {
            occurred_at: None,
            sequence: None,
            ..event()
        };
        assert_eq!(nameless.uplink_id(wireless()), None);
    }

    #[test]
    fn uplink_ids_never_change() {
        for (occurred_at, sequence, expected) in [
            (
                Some(EpochMillis(1_771_709_400_000)),
                Some(7),
                "7e085d4d519dca136937aa4078628cb4",
            ),
            (None, Some(7), "0c3430d383a63970184a74eec8d20f2d"),
            (
                Some(EpochMillis(-1)),
                None,
                "7b7cab23cc92743b1cb4c24a2640c3ad",
            ),
        ] {
            let event = NewEvent {
                occurred_at,
                sequence,
                ..event()
            };
            let id = event.uplink_id(wireless()).unwrap();
            assert_eq!(id.as_str(), expected);
        }
    }

    #[test]
    fn times_out_of_range_are_rejected() {
        for (ms, fits) in [
            (OCCURRED_MS_MIN - 1, false),
            (OCCURRED_MS_MIN, true),
            (OCCURRED_MS_MAX - 1, true),
            (OCCURRED_MS_MAX, false),
        ] {
            let event = NewEvent {
                occurred_at: Some(EpochMillis(ms)),
                ..event()
            };
            assert_eq!(event.check().is_ok(), fits, "{ms}");
        }
    }

    #[test]
    fn event_of_another_program_is_read_by_key() {
        let item = Item::new()
            .with("device_id", "SC-A1B2C3D4")
            .with("timestamp_mt", "2026-02-21 14:30:00.000")
            .with("current_ma", 5);
        let read = Event::from_item(&item).unwrap();
        assert_eq!(read.timestamp_utc, EpochMillis(1_771_709_400_000));
        assert_eq!(read.event_type.as_str(), "unknown");
        assert_eq!(read.data.members().get("current_ma"), Some(&5.into()));
        assert!(Event::from_item(&item.with("timestamp_mt", "today")).is_err());
    }
}
