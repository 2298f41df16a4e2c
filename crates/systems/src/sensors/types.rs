//! Validated texts of sensors.

use std::collections::BTreeMap;

use homeport_item::{Map, Name, Value};

use super::schema;
use crate::text::{Form, GRAPHIC_ASCII, InvalidField, PRINTABLE_ASCII, VISIBLE, WORD, text_type};

/// Sensors or features of a device.
pub const CAPABILITIES_MAX: usize = 64;

text_type! {
    /// A device's MAC address, in upper case with colons.
    HardwareId(String) {
        field: schema::HARDWARE_ID,
        chars: 17..=17,
        form: MAC_ADDRESS,
        expected: "a MAC address as AA:BB:CC:DD:EE:FF, in upper case",
        example: "AA:BB:CC:DD:EE:FF",
    }
}

text_type! {
    /// The id of one reading. Devices choose it, and the server does not interpret it.
    BatchId(String) {
        field: schema::BATCH_ID,
        chars: 1..=256,
        form: GRAPHIC_ASCII,
        expected: "1 to 256 graphic ASCII characters",
    }
}

text_type! {
    /// The name that a person gives a device.
    FriendlyName(String) {
        field: schema::FRIENDLY_NAME,
        chars: 1..=64,
        form: VISIBLE,
        expected: "1 to 64 printable characters",
        example: "greenhouse-sensor-01",
    }
}

text_type! {
    /// The firmware version of a device.
    FirmwareVersion(String) {
        field: schema::FIRMWARE_VERSION,
        chars: 1..=64,
        form: PRINTABLE_ASCII,
        expected: "1 to 64 printable ASCII characters",
        example: "1.0.16",
    }
}

text_type! {
    /// The name of a sensor, of one of its values or of a feature.
    SensorName(Name) {
        field: "a sensor's name",
        chars: 1..=64,
        form: WORD,
        expected: "1 to 64 characters of a-z, A-Z, 0-9 and _",
    }
}

const MAC_ADDRESS: Form = Form {
    pattern: "^[0-9A-F]{2}(:[0-9A-F]{2}){5}$",
    accepts: is_hardware_id,
};

fn is_hardware_id(text: &str) -> bool {
    text.len() == 17
        && text.bytes().enumerate().all(|(at, byte)| match at % 3 {
            2 => byte == b':',
            _ => matches!(byte, b'0'..=b'9' | b'A'..=b'F'),
        })
}

/// The change that a request makes to a friendly name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum NameChange {
    #[default]
    Keep,
    Set(FriendlyName),
    Remove,
}

/// The sensors and features of a device.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Capabilities {
    sensors: Vec<SensorName>,
    features: BTreeMap<SensorName, bool>,
}

impl Capabilities {
    /// # Errors
    /// When there are too many sensors or features.
    pub fn new(
        sensors: Vec<SensorName>,
        features: BTreeMap<SensorName, bool>,
    ) -> Result<Self, InvalidField> {
        if sensors.len() > CAPABILITIES_MAX || features.len() > CAPABILITIES_MAX {
            return Err(InvalidField {
                field: schema::CAPABILITIES,
                expected: "at most 64 sensors and 64 features",
            });
        }
        Ok(Self { sensors, features })
    }

    #[must_use]
    pub fn sensors(&self) -> &[SensorName] {
        &self.sensors
    }

    #[must_use]
    pub fn features(&self) -> &BTreeMap<SensorName, bool> {
        &self.features
    }

    pub(crate) fn to_value(&self) -> Value {
        let sensors = self.sensors.iter().map(Value::from).collect();
        let features = self.features.iter();
        let features: Map = features
            .map(|(name, on)| (name.to_string(), Value::Bool(*on)))
            .collect();
        Value::M(Map::from([
            (schema::CAPABLE_SENSORS.to_owned(), Value::L(sensors)),
            (schema::CAPABLE_FEATURES.to_owned(), Value::M(features)),
        ]))
    }

    /// Reads stored capabilities and leaves out invalid parts.
    pub(super) fn from_value(value: &Value) -> Self {
        let member = |name: &str| value.as_map().and_then(|map| map.get(name));
        let sensors = member(schema::CAPABLE_SENSORS)
            .and_then(Value::as_list)
            .unwrap_or_default();
        let features = member(schema::CAPABLE_FEATURES).and_then(Value::as_map);
        Self {
            sensors: sensors
                .iter()
                .filter_map(|name| name.as_str()?.parse().ok())
                .collect(),
            features: features
                .into_iter()
                .flatten()
                .filter_map(|(name, on)| Some((name.parse().ok()?, on.as_bool()?)))
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hardware_id_is_an_upper_case_mac_address() {
        assert!("AA:BB:CC:DD:EE:FF".parse::<HardwareId>().is_ok());
        for text in [
            "aa:bb:cc:dd:ee:ff",
            "AA-BB-CC-DD-EE-FF",
            "AA:BB:CC:DD:EE",
            "AA:BB:CC:DD:EE:FF:00",
            "AA:BB:CC:DD:EE:FG",
            "AA:BB:CC:DD:EE:F\u{e9}",
            "",
        ] {
            assert!(text.parse::<HardwareId>().is_err(), "{text}");
        }
    }

    #[test]
    fn batch_id_is_graphic_ascii() {
        let example =
            "AA:BB:CC:DD:EE:FF_7c9e6679-7425-40de-944b-e07fc1f90ae7_1704067200000_1704067800000";
        assert!(example.parse::<BatchId>().is_ok());
        assert!("x".repeat(256).parse::<BatchId>().is_ok());
        for text in [
            String::new(),
            "x".repeat(257),
            "a b".into(),
            "a\n".into(),
            "ä".into(),
        ] {
            assert!(text.parse::<BatchId>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn friendly_name_is_printable() {
        assert!("Gewächshaus 1".parse::<FriendlyName>().is_ok());
        assert!("é".repeat(64).parse::<FriendlyName>().is_ok());
        for text in [String::new(), "é".repeat(65), "a\tb".into(), "  ".into()] {
            assert!(text.parse::<FriendlyName>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn stored_capabilities_have_the_documented_form() {
        let sensors = ["bme280", "soil_moisture"].map(|name| name.parse().unwrap());
        let features = BTreeMap::from([("tft_display".parse().unwrap(), true)]);
        let capabilities = Capabilities::new(sensors.into(), features).unwrap();
        let value = capabilities.to_value();
        assert_eq!(
            serde_json::to_string(&value).unwrap(),
            r#"{"M":{"features":{"M":{"tft_display":{"BOOL":true}}},"sensors":{"L":[{"S":"bme280"},{"S":"soil_moisture"}]}}}"#
        );
        assert_eq!(Capabilities::from_value(&value), capabilities);
    }
}
