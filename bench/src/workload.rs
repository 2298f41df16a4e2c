//! The stored data: readings of a thousand devices, one every five minutes each, as items.
//!
//! Everything is a function of a device's number and a step in time, so all contestants store the same data, and any of it
//! can be requested again.

use homeport_item::schema::{IndexSchema, KeyAttribute, TableSchema};
use homeport_item::{Item, KeyKind, Map, Number, Value};

/// Master key of sealed contestants, which protects only benchmark data.
pub(crate) const MASTER_KEY: &str =
    "5ea1ed015ea1ed025ea1ed035ea1ed045ea1ed055ea1ed065ea1ed075ea1ed08";

pub(crate) const DEVICES: &str = "devices";
pub(crate) const READINGS: &str = "device_readings";
pub(crate) const BATCHES: &str = "processed_batches";
pub(crate) const DEVICE_INDEX: &str = "gsi1";

pub(crate) const DEVICE_COUNT: u32 = 1000;
/// Start of the first window. The engine's clock stands still here, so nothing expires.
pub(crate) const START_MS: i64 = 1_767_225_600_000;
const STEP_MS: i64 = 5 * 60 * 1000;
const READING_RETENTION_SECS: i64 = 90 * 24 * 60 * 60;
const MARKER_RETENTION_SECS: i64 = 30 * 24 * 60 * 60;
/// Readings between two restarts of a device, each of which changes its boot id.
const STEPS_PER_BOOT: u32 = 1000;

/// One reading of one device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reading {
    pub(crate) device: u32,
    /// Counts from 1; the registration is step 0.
    pub(crate) step: u32,
}

/// The tables, as in the design document of the sensors.
pub(crate) fn tables() -> Vec<TableSchema> {
    let text = |name| KeyAttribute::new(name, KeyKind::S);
    vec![
        TableSchema::new(DEVICES, "hardware_id", KeyKind::S).with_index(IndexSchema::global(
            DEVICE_INDEX,
            text("gsi1pk"),
            Some(text("gsi1sk")),
        )),
        TableSchema::new(READINGS, "hardware_id", KeyKind::S)
            .with_sort("ts_batch", KeyKind::S)
            .with_ttl("expiration_time"),
        TableSchema::new(BATCHES, "batch_id", KeyKind::S).with_ttl("expiration_time"),
    ]
}

impl Reading {
    pub(crate) fn hardware_id(self) -> String {
        hardware_id(self.device)
    }

    pub(crate) fn timestamp_ms(self) -> i64 {
        START_MS + i64::from(self.step) * STEP_MS
    }

    pub(crate) fn boot_id(self) -> String {
        uuid(u64::from(self.device) << 32 | u64::from(self.step / STEPS_PER_BOOT))
    }

    pub(crate) fn batch_id(self) -> String {
        let end = self.timestamp_ms();
        let start = end - STEP_MS;
        format!("{}_{}_{start}_{end}", self.hardware_id(), self.boot_id())
    }

    pub(crate) fn ts_batch(self) -> String {
        format!("{:013}#{}", self.timestamp_ms(), self.batch_id())
    }

    pub(crate) fn last_seen_at(self) -> String {
        rfc3339(self.timestamp_ms())
    }

    pub(crate) fn expires_at_secs(self) -> i64 {
        self.timestamp_ms() / 1000 + READING_RETENTION_SECS
    }

    pub(crate) fn marker_expires_at_secs(self) -> i64 {
        self.timestamp_ms() / 1000 + MARKER_RETENTION_SECS
    }

    pub(crate) fn marker(self) -> Item {
        Item::new()
            .with("batch_id", self.batch_id())
            .with("hardware_id", self.hardware_id())
            .with("received_at", self.last_seen_at())
            .with("expiration_time", self.marker_expires_at_secs())
    }

    pub(crate) fn item(self) -> Item {
        let sensors = self
            .sensors()
            .map(|(name, hundredths)| (name.to_owned(), Value::N(decimal(hundredths))));
        let status =
            ["bme280", "ds18b20", "soil_moisture"].map(|name| (name.to_owned(), Value::from("ok")));
        Item::new()
            .with("hardware_id", self.hardware_id())
            .with("ts_batch", self.ts_batch())
            .with("timestamp_ms", self.timestamp_ms())
            .with("batch_id", self.batch_id())
            .with("boot_id", self.boot_id())
            .with("firmware_version", "1.0.16")
            .with("friendly_name", friendly_name(self.device))
            .with("sensors", Value::M(Map::from(sensors)))
            .with("sensor_status", Value::M(Map::from(status)))
            .with("expiration_time", self.expires_at_secs())
    }

    /// The device after this reading.
    pub(crate) fn device_item(self) -> Item {
        let registered = rfc3339(START_MS);
        let seen = self.last_seen_at();
        let features =
            ["offline_buffering", "tft_display"].map(|name| (name.to_owned(), Value::Bool(true)));
        let sensors = ["bme280", "ds18b20", "soil_moisture"].map(Value::from);
        let capabilities = Map::from([
            ("features".to_owned(), Value::M(Map::from(features))),
            ("sensors".to_owned(), Value::L(sensors.to_vec())),
        ]);
        Item::new()
            .with("hardware_id", self.hardware_id())
            .with("confirmation_id", uuid(u64::from(self.device)))
            .with("capabilities", Value::M(capabilities))
            .with("first_registered_at", registered)
            .with("last_seen_at", seen.clone())
            .with("last_boot_id", self.boot_id())
            .with("firmware_version", "1.0.16")
            .with("friendly_name", friendly_name(self.device))
            .with("gsi1pk", "devices")
            .with("gsi1sk", seen)
    }

    /// The state before this reading; for the first reading, the registration.
    pub(crate) fn before(self) -> Self {
        Self {
            step: self.step - 1,
            ..self
        }
    }

    /// The measured values in hundredths.
    pub(crate) fn sensors(self) -> [(&'static str, u64); 5] {
        let noise = mix(u64::from(self.device) << 32 | u64::from(self.step));
        let part = |shift: u32, range: u64| (noise >> shift & 0xFFF) % range;
        [
            ("bme280_temp_c", 1800 + 10 * part(0, 80)),
            ("ds18b20_temp_c", 1750 + 10 * part(12, 80)),
            ("humidity_pct", 3500 + 10 * part(24, 300)),
            ("pressure_hpa", 98_000 + part(36, 4000)),
            ("soil_moisture_pct", 4000 + 10 * part(48, 400)),
        ]
    }
}

fn decimal(hundredths: u64) -> Number {
    Number::new(false, u128::from(hundredths), -2).expect("a small number is in range")
}

pub(crate) fn hardware_id(device: u32) -> String {
    let bytes = mix(u64::from(device) + 1).to_be_bytes();
    let pairs: Vec<_> = bytes[..6]
        .iter()
        .map(|byte| format!("{byte:02X}"))
        .collect();
    pairs.join(":")
}

pub(crate) fn friendly_name(device: u32) -> String {
    format!("greenhouse-sensor-{device:02}")
}

fn uuid(seed: u64) -> String {
    let (high, low) = (mix(seed ^ 0x5EED), mix(seed ^ 0xB007));
    format!(
        "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
        high >> 32,
        high >> 16 & 0xFFFF,
        high & 0xFFF,
        0x8000 | (low >> 48 & 0x3FFF),
        low & 0xFFFF_FFFF_FFFF
    )
}

/// RFC 3339 in seconds, UTC, for the years of the workload.
pub(crate) fn rfc3339(epoch_ms: i64) -> String {
    let secs = epoch_ms.div_euclid(1000);
    let (days, second) = (secs.div_euclid(86_400), secs.rem_euclid(86_400));
    // Civil date from days since 1970, counting years from March.
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12 + 1;
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    let (hour, minute) = (second / 3600, second / 60 % 60);
    format!(
        "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{:02}Z",
        second % 60
    )
}

/// SplitMix64 of a number: the same in every run.
pub(crate) fn mix(seed: u64) -> u64 {
    let mut mixed = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ mixed >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_id_names_device_boot_and_window() {
        let reading = Reading { device: 0, step: 2 };
        let batch = reading.batch_id();
        assert_eq!(batch.len(), 82);
        assert!(batch.starts_with(&reading.hardware_id()));
        assert!(batch.ends_with("_1767225900000_1767226200000"));
    }

    #[test]
    fn times_are_written_in_utc() {
        assert_eq!(rfc3339(0), "1970-01-01T00:00:00Z");
        assert_eq!(rfc3339(START_MS), "2026-01-01T00:00:00Z");
        assert_eq!(rfc3339(1_709_210_096_000), "2024-02-29T12:34:56Z");
    }
}
