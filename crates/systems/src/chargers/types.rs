//! Validated texts and values of chargers.

use std::fmt;
use std::str::FromStr;

use homeport_item::{Map, Value};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use crate::text::{Form, InvalidField, text_type};

/// Longest name of an attribute that a device sends or an operator sets.
pub(super) const NAME_LEN_MAX: usize = 64;
/// Members of the data of one event.
pub const DATA_MEMBERS_MAX: usize = 64;
/// Largest size of the data of one event.
pub const DATA_BYTES_MAX: usize = 16 * 1024;
/// Deepest nesting of the data of an event.
pub const DATA_DEPTH_MAX: usize = 8;
/// Bytes of the hash in an SC-ID.
const SC_ID_BYTES: usize = 4;

text_type! {
    /// The readable name of a charger: `SC-` and eight hexadecimal digits.
    ScId(String) {
        field: "device_id",
        chars: 11..=11,
        form: SC_ID,
        expected: "an SC-ID as SC-A1B2C3D4, in upper case",
        example: "SC-C014EA63",
    }
}

/// The UUID of a charger in the wireless network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WirelessDeviceId(Uuid);

/// An SC-ID or a UUID: addresses and bodies accept both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeviceName {
    ScId(ScId),
    Wireless(WirelessDeviceId),
}

text_type! {
    /// The type of an event.
    EventType(String) {
        field: "event_type",
        chars: 1..=64,
        form: ATTRIBUTE_NAME,
        expected: "1 to 64 characters of a-z, A-Z, 0-9, '_', '-' and '.'",
        example: "telemetry",
    }
}

/// The ids of a charger. Two UUIDs can have the same SC-ID, which then belongs to the first one that was registered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChargerIds {
    pub device_id: ScId,
    /// Absent for an SC-ID that no device uses.
    pub wireless: Option<WirelessDeviceId>,
}

/// The data of an event, within limits.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EventData(Map);

impl ScId {
    /// The SC-ID of a device: the first bytes of the SHA-256 of its UUID in lower case.
    #[must_use]
    pub fn of(wireless: WirelessDeviceId) -> Self {
        let hash = Sha256::digest(wireless.to_string());
        Self(format!("SC-{}", hex::encode_upper(&hash[..SC_ID_BYTES])))
    }
}

impl FromStr for WirelessDeviceId {
    type Err = InvalidField;

    fn from_str(text: &str) -> Result<Self, InvalidField> {
        let uuid = Uuid::try_parse(text).ok();
        uuid.filter(|_| text.len() == uuid::fmt::Hyphenated::LENGTH)
            .map(Self)
            .ok_or(InvalidField {
                field: "wireless_device_id",
                expected: "a UUID as b319d001-6b08-4d88-b4ca-4d2d98a6d43c",
            })
    }
}

impl FromStr for DeviceName {
    type Err = InvalidField;

    fn from_str(text: &str) -> Result<Self, InvalidField> {
        if let Ok(wireless) = text.parse() {
            return Ok(Self::Wireless(wireless));
        }
        text.parse().map(Self::ScId).map_err(|_| InvalidField {
            field: "device_id",
            expected: "an SC-ID as SC-A1B2C3D4, or the UUID of the device",
        })
    }
}

impl DeviceName {
    #[must_use]
    pub fn sc_id(&self) -> ScId {
        match self {
            Self::ScId(sc_id) => sc_id.clone(),
            Self::Wireless(wireless) => ScId::of(*wireless),
        }
    }
}

impl From<ScId> for DeviceName {
    fn from(sc_id: ScId) -> Self {
        Self::ScId(sc_id)
    }
}

impl fmt::Display for DeviceName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ScId(sc_id) => sc_id.fmt(formatter),
            Self::Wireless(wireless) => wireless.fmt(formatter),
        }
    }
}

impl From<WirelessDeviceId> for ChargerIds {
    fn from(wireless: WirelessDeviceId) -> Self {
        Self {
            device_id: ScId::of(wireless),
            wireless: Some(wireless),
        }
    }
}

impl ChargerIds {
    /// Whether a name, such as the scope of an API key, means this charger.
    #[must_use]
    pub fn include(&self, name: &DeviceName) -> bool {
        match (name, self.wireless) {
            (DeviceName::Wireless(wireless), Some(own)) => *wireless == own,
            _ => name.sc_id() == self.device_id,
        }
    }
}

impl EventType {
    /// A stored type may have any form; an event without one is `unknown`.
    pub(super) fn stored(text: Option<&str>) -> Self {
        Self(text.unwrap_or("unknown").to_owned())
    }
}

impl EventData {
    /// # Errors
    /// When it is too large or a name is invalid.
    pub fn new(members: Map) -> Result<Self, InvalidField> {
        let invalid = |expected| InvalidField {
            field: "data",
            expected,
        };
        if members.len() > DATA_MEMBERS_MAX {
            return Err(invalid("an object of at most 64 members"));
        }
        if !members.keys().all(|name| is_name(name, NAME_LEN_MAX)) {
            return Err(invalid(
                "an object whose names are 1 to 64 characters of a-z, A-Z, 0-9, '_', '-' and '.'",
            ));
        }
        if members.values().any(|value| value.depth() > DATA_DEPTH_MAX) {
            return Err(invalid("nested at most 8 levels deep"));
        }
        let size: usize = members
            .iter()
            .map(|(name, value)| name.len() + value.size())
            .sum();
        if size > DATA_BYTES_MAX {
            return Err(invalid("at most 16 KiB large"));
        }
        Ok(Self(members))
    }

    #[must_use]
    pub fn members(&self) -> &Map {
        &self.0
    }

    /// A text that is equal for equal data: members are sorted by name, and numbers have one spelling.
    pub(super) fn canonical(&self) -> String {
        serde_json::to_string(&Value::M(self.0.clone()))
            .expect("an attribute value has string keys only")
    }

    /// Stored data may be larger than the limits for new events.
    pub(super) fn stored(members: Map) -> Self {
        Self(members)
    }
}

/// Whether a text can be the name of an attribute.
pub(super) fn is_name(text: &str, len_max: usize) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    (1..=len_max).contains(&text.len()) && text.bytes().all(is_plain)
}

const SC_ID: Form = Form {
    pattern: "^SC-[0-9A-F]{8}$",
    accepts: |text| {
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'A'..=b'F');
        text.strip_prefix("SC-")
            .is_some_and(|digits| digits.len() == 2 * SC_ID_BYTES && digits.bytes().all(is_digit))
    },
};

/// The characters of attribute names and event types.
const ATTRIBUTE_NAME: Form = Form {
    pattern: "^[a-zA-Z0-9_.-]+$",
    accepts: |text| is_name(text, usize::MAX),
};

impl fmt::Display for WirelessDeviceId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

impl From<&WirelessDeviceId> for Value {
    fn from(id: &WirelessDeviceId) -> Self {
        Self::from(id.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sc_id_is_the_hash_of_the_lower_case_uuid() {
        // printf %s b319d001-6b08-4d88-b4ca-4d2d98a6d43c | sha256sum
        let lower: WirelessDeviceId = "b319d001-6b08-4d88-b4ca-4d2d98a6d43c".parse().unwrap();
        let upper: WirelessDeviceId = "B319D001-6B08-4D88-B4CA-4D2D98A6D43C".parse().unwrap();
        assert_eq!(ScId::of(lower).as_str(), "SC-C014EA63");
        assert_eq!(ScId::of(upper), ScId::of(lower));
    }

    #[test]
    fn sc_id_has_eight_upper_case_digits() {
        assert!("SC-A1B2C3D4".parse::<ScId>().is_ok());
        for text in [
            "SC-a1b2c3d4",
            "SC-A1B2C3D",
            "SC-A1B2C3D45",
            "A1B2C3D4",
            "",
            "SC-A1B2C3DG",
        ] {
            assert!(text.parse::<ScId>().is_err(), "{text}");
        }
    }

    #[test]
    fn either_id_names_a_device() {
        let uuid = "b319d001-6b08-4d88-b4ca-4d2d98a6d43c";
        let wireless: WirelessDeviceId = uuid.parse().unwrap();
        let by_uuid: DeviceName = uuid.parse().unwrap();
        assert_eq!(by_uuid.sc_id(), ScId::of(wireless));
        assert!("nonsense".parse::<DeviceName>().is_err());
        assert!(
            "{b319d001-6b08-4d88-b4ca-4d2d98a6d43c}"
                .parse::<DeviceName>()
                .is_err()
        );
    }

    #[test]
    fn data_has_limits() {
        let with = |name: &str, value: Value| EventData::new(Map::from([(name.to_owned(), value)]));
        assert!(with("current_ma", 1.into()).is_ok());
        assert!(with("", 1.into()).is_err());
        assert!(with("no space", 1.into()).is_err());
        assert!(with("a", "x".repeat(DATA_BYTES_MAX).into()).is_err());
        let nest = |levels| (0..levels).fold(Value::Null, |inner, _| Value::L(vec![inner]));
        assert!(with("a", nest(DATA_DEPTH_MAX)).is_ok());
        assert!(with("a", nest(DATA_DEPTH_MAX + 1)).is_err());
        let many = (0..=DATA_MEMBERS_MAX).map(|n| (format!("m{n}"), Value::Null));
        assert!(EventData::new(many.collect()).is_err());
    }
}
