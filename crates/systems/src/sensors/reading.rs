//! One reading: the averages of one time window, as devices send it and as it is stored.

use std::fmt::Write as _;

use homeport_item::{Item, Map, Name, Number, Value};

use super::named::Named;
use super::schema;
use super::types::{BatchId, FirmwareVersion, FriendlyName, HardwareId};
use crate::ids::UuidV4;
use crate::text::InvalidField;
use crate::time::{EpochMillis, EpochSeconds};

/// The years 2000 to 2099: the first time of a reading, and the first one after the last.
const TIMESTAMP_MS_MIN: i64 = 946_684_800_000;
pub const TIMESTAMP_MS_MAX: i64 = 4_102_444_800_000;
/// Digits that a time in milliseconds is padded to.
const TIMESTAMP_WIDTH: usize = 13;
/// Attributes of a stored reading, at most.
const ATTRIBUTES: usize = 10;
/// Values or states of one reading.
const VALUES_MAX: usize = 64;

/// A validated reading.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    pub hardware_id: HardwareId,
    pub batch_id: BatchId,
    pub boot_id: UuidV4,
    pub firmware_version: FirmwareVersion,
    pub timestamp: EpochMillis,
    pub sensors: Named<Number>,
    pub sensor_status: Named<SensorStatus>,
    /// The name of the device when the reading arrived; set when the reading is stored.
    pub friendly_name: Option<FriendlyName>,
}

/// The state of a sensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SensorStatus {
    Ok,
    Error,
}

/// Why a stored item is not a reading.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ReadingError(String);

impl SensorStatus {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Error => "error",
        }
    }

    /// # Errors
    /// When the text is neither `ok` nor `error`.
    pub fn parse(text: &str) -> Result<Self, InvalidField> {
        match text {
            "ok" => Ok(Self::Ok),
            "error" => Ok(Self::Error),
            _ => Err(InvalidField {
                field: schema::SENSOR_STATUS,
                expected: "\"ok\" or \"error\" for every sensor",
            }),
        }
    }
}

impl Reading {
    /// Checks the values that depend on each other.
    ///
    /// # Errors
    /// When the time is out of range or there are too many values.
    pub fn check(self) -> Result<Self, InvalidField> {
        if !(TIMESTAMP_MS_MIN..TIMESTAMP_MS_MAX).contains(&self.timestamp.0) {
            return Err(InvalidField {
                field: schema::TIMESTAMP_MS,
                expected: "milliseconds since 1970 in the years 2000 to 2099",
            });
        }
        if self.sensors.len() > VALUES_MAX || self.sensor_status.len() > VALUES_MAX {
            return Err(InvalidField {
                field: schema::SENSORS,
                expected: "at most 64 values and 64 states",
            });
        }
        Ok(self)
    }

    /// When the reading expires if readings are kept for `retention_secs`.
    pub(super) fn expires_at(&self, retention_secs: Option<i64>) -> Option<EpochSeconds> {
        retention_secs.map(|retention| self.timestamp.seconds().plus_secs(retention))
    }

    pub(super) fn to_item(&self, retention_secs: Option<i64>) -> Item {
        let numbers: Map = self
            .sensors
            .iter()
            .map(|(name, number)| (Name::from(name.clone()), Value::N(*number)))
            .collect();
        let states: Map = self
            .sensor_status
            .iter()
            .map(|(name, status)| (Name::from(name.clone()), Value::from(status.as_str())))
            .collect();
        // Sorted by name, so that each attribute is appended.
        let mut item = Item::with_capacity(ATTRIBUTES)
            .with(schema::BATCH_ID, &self.batch_id)
            .with(schema::BOOT_ID, self.boot_id.to_string());
        if let Some(expires_at) = self.expires_at(retention_secs) {
            item.insert(schema::EXPIRATION_TIME, expires_at.0);
        }
        item.insert(schema::FIRMWARE_VERSION, &self.firmware_version);
        if let Some(name) = &self.friendly_name {
            item.insert(schema::FRIENDLY_NAME, name);
        }
        item.with(schema::HARDWARE_ID, &self.hardware_id)
            .with(schema::SENSOR_STATUS, Value::M(states))
            .with(schema::SENSORS, Value::M(numbers))
            .with(schema::TIMESTAMP_MS, self.timestamp.0)
            .with(
                schema::TS_BATCH,
                ts_batch(self.timestamp, self.batch_id.as_str()),
            )
    }

    pub(super) fn from_item(item: &Item) -> Result<Self, ReadingError> {
        let text = |name: &'static str| {
            item.get(name)
                .and_then(Value::as_str)
                .ok_or_else(|| ReadingError(format!("{name} is missing or no string")))
        };
        let invalid = |error: InvalidField| ReadingError(error.to_string());
        let timestamp = item
            .get(schema::TIMESTAMP_MS)
            .and_then(Value::as_number)
            .and_then(Number::to_i64)
            .ok_or_else(|| ReadingError("timestamp_ms is missing or not an integer".to_owned()))?;
        let members = |name: &str| item.get(name).and_then(Value::as_map).into_iter().flatten();
        Ok(Self {
            hardware_id: text(schema::HARDWARE_ID)?.parse().map_err(invalid)?,
            batch_id: text(schema::BATCH_ID)?.parse().map_err(invalid)?,
            boot_id: text(schema::BOOT_ID)?
                .parse()
                .map_err(|error| ReadingError(format!("boot_id: {error}")))?,
            firmware_version: text(schema::FIRMWARE_VERSION)?.parse().map_err(invalid)?,
            timestamp: EpochMillis(timestamp),
            sensors: members(schema::SENSORS)
                .filter_map(|(name, value)| Some((name.parse().ok()?, *value.as_number()?)))
                .collect(),
            sensor_status: members(schema::SENSOR_STATUS)
                .filter_map(|(name, value)| {
                    let status = SensorStatus::parse(value.as_str()?).ok()?;
                    Some((name.parse().ok()?, status))
                })
                .collect(),
            friendly_name: text(schema::FRIENDLY_NAME)
                .ok()
                .and_then(|name| name.parse().ok()),
        })
    }
}

/// The sort key of a reading: its time, padded so that texts sort by time, and its id.
pub(super) fn ts_batch(timestamp: EpochMillis, batch_id: &str) -> String {
    let mut key = String::with_capacity(TIMESTAMP_WIDTH + 1 + batch_id.len());
    // Writing to a `String` cannot fail.
    let _ = write!(key, "{:0TIMESTAMP_WIDTH$}#{batch_id}", timestamp.0);
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(crate) fn example() -> Reading {
        Reading {
            hardware_id: "AA:BB:CC:DD:EE:FF".parse().unwrap(),
            batch_id:
                "AA:BB:CC:DD:EE:FF_7c9e6679-7425-40de-944b-e07fc1f90ae7_1704067200000_1704067800000"
                    .parse()
                    .unwrap(),
            boot_id: "7c9e6679-7425-40de-944b-e07fc1f90ae7".parse().unwrap(),
            firmware_version: "1.0.16".parse().unwrap(),
            timestamp: EpochMillis(1_704_067_800_000),
            sensors: Named::from([
                ("bme280_temp_c".parse().unwrap(), "22.5".parse().unwrap()),
                ("pressure_hpa".parse().unwrap(), "1013.25".parse().unwrap()),
            ]),
            sensor_status: Named::from([("bme280".parse().unwrap(), SensorStatus::Ok)]),
            friendly_name: Some("greenhouse-sensor-01".parse().unwrap()),
        }
    }

    #[test]
    fn stored_reading_has_the_documented_form() {
        let item = example().to_item(Some(90 * 24 * 60 * 60));
        assert_eq!(
            serde_json::to_value(&item).unwrap(),
            serde_json::json!({
                "hardware_id": {"S": "AA:BB:CC:DD:EE:FF"},
                "ts_batch": {"S": "1704067800000#AA:BB:CC:DD:EE:FF_7c9e6679-7425-40de-944b-e07fc1f90ae7_1704067200000_1704067800000"},
                "timestamp_ms": {"N": "1704067800000"},
                "batch_id": {"S": "AA:BB:CC:DD:EE:FF_7c9e6679-7425-40de-944b-e07fc1f90ae7_1704067200000_1704067800000"},
                "boot_id": {"S": "7c9e6679-7425-40de-944b-e07fc1f90ae7"},
                "firmware_version": {"S": "1.0.16"},
                "friendly_name": {"S": "greenhouse-sensor-01"},
                "sensors": {"M": {"bme280_temp_c": {"N": "22.5"}, "pressure_hpa": {"N": "1013.25"}}},
                "sensor_status": {"M": {"bme280": {"S": "ok"}}},
                "expiration_time": {"N": "1711843800"},
            })
        );
        assert_eq!(Reading::from_item(&item), Ok(example()));
    }

    #[test]
    fn times_out_of_range_are_rejected() {
        for (timestamp, fits) in [
            (TIMESTAMP_MS_MIN - 1, false),
            (TIMESTAMP_MS_MIN, true),
            (TIMESTAMP_MS_MAX - 1, true),
            (TIMESTAMP_MS_MAX, false),
            (-1, false),
        ] {
            let reading = Reading {
                timestamp: EpochMillis(timestamp),
                ..example()
            };
            assert_eq!(reading.check().is_ok(), fits, "{timestamp}");
        }
    }

    #[test]
    fn reading_without_retention_has_no_expiry() {
        assert_eq!(example().to_item(None).get(schema::EXPIRATION_TIME), None);
    }
}
