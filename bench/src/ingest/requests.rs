//! Readings as devices send them, and as the sensor system stores them.

use homeport_item::expression::Condition;
use homeport_item::{Item, Map, Number, Value};
use homeport_store::{Put, Transaction};
use homeport_systems::sensors::{MARKER_RETENTION_SECS, Settings, schema};

use crate::load::template::{Body, Digits, Template};
use crate::workload::{hardware_id, rfc3339};

/// Devices that one connection sends for, in turn.
pub(crate) const DEVICES_PER_CONNECTION: u32 = 16;
const BOOT_ID: &str = "7c9e6679-7425-40de-944b-e07fc1f90ae7";
const FIRMWARE_VERSION: &str = "1.0.16";
const TIME_WIDTH: usize = 13;
/// The window that a reading averages.
const WINDOW_MS: u64 = 300_000;
/// Values with hundredths, sorted by name.
const SENSORS: [(&str, u64); 5] = [
    ("bme280_temp_c", 2250),
    ("ds18b20_temp_c", 2175),
    ("humidity_pct", 4520),
    ("pressure_hpa", 101_325),
    ("soil_moisture_pct", 4130),
];
const STATES: [&str; 3] = ["bme280", "ds18b20", "soil_moisture"];

/// A reading, whose number is added to the common start time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sent {
    pub(crate) device: u32,
    pub(crate) number: u64,
    pub(crate) start_ms: u64,
}

/// A request with `count` readings of one device, from the request's number on.
pub(crate) fn template(key: &str, device: u32, start_ms: u64, count: u64) -> Template {
    let mut body = Body::default().text("{\"readings\":[");
    for at in 0..count {
        let comma = if at == 0 { "" } else { "," };
        body = body.text(comma).then(reading(device, start_ms + at));
    }
    let headers = format!("Content-Type: application/json\r\nX-API-Key: {key}\r\n");
    Template::post("/v1/sensors/data", &headers, &body.text("]}"))
}

/// A reading as JSON; its time is `start_ms` plus its number.
pub(crate) fn reading(device: u32, start_ms: u64) -> Body {
    let hardware_id = hardware_id(device);
    let values: Vec<String> = SENSORS
        .iter()
        .map(|(name, hundredths)| format!("\"{name}\":{}", decimal(*hundredths)))
        .collect();
    let states: Vec<String> = STATES
        .iter()
        .map(|name| format!("\"{name}\":\"ok\""))
        .collect();
    Body::default()
        .text(&format!("{{\"batch_id\":\"{hardware_id}_{BOOT_ID}_"))
        .digits(TIME_WIDTH, Digits::Plus(start_ms - WINDOW_MS))
        .text("_")
        .digits(TIME_WIDTH, Digits::Plus(start_ms))
        .text(&format!(
            "\",\"hardware_id\":\"{hardware_id}\",\"boot_id\":\"{BOOT_ID}\",\"firmware_version\":\"{FIRMWARE_VERSION}\",\"timestamp_ms\":"
        ))
        .digits(TIME_WIDTH, Digits::Plus(start_ms))
        .text(&format!(
            ",\"sensors\":{{{}}},\"sensor_status\":{{{}}}}}",
            values.join(","),
            states.join(",")
        ))
}

impl Sent {
    pub(crate) fn timestamp_ms(self) -> u64 {
        self.start_ms + self.number
    }

    pub(crate) fn batch_id(self) -> String {
        let (end, hardware_id) = (self.timestamp_ms(), hardware_id(self.device));
        format!("{hardware_id}_{BOOT_ID}_{:013}_{end:013}", end - WINDOW_MS)
    }

    pub(crate) fn ts_batch(self) -> String {
        format!("{:013}#{}", self.timestamp_ms(), self.batch_id())
    }

    /// The item that the sensor system stores for it.
    pub(crate) fn item(self) -> Item {
        let numbers = SENSORS.map(|(name, hundredths)| {
            let number = Number::new(false, u128::from(hundredths), -2);
            let number = number.expect("a small number is in range");
            (name.to_owned(), Value::N(number))
        });
        let states = STATES.map(|name| (name.to_owned(), Value::from("ok")));
        let retention_secs = Settings::default().retention_secs.unwrap_or_default();
        let timestamp = i64::try_from(self.timestamp_ms()).expect("a time fits");
        Item::new()
            .with(schema::HARDWARE_ID, hardware_id(self.device))
            .with(schema::TS_BATCH, self.ts_batch())
            .with(schema::TIMESTAMP_MS, timestamp)
            .with(schema::BATCH_ID, self.batch_id())
            .with(schema::BOOT_ID, BOOT_ID)
            .with(schema::FIRMWARE_VERSION, FIRMWARE_VERSION)
            .with(schema::SENSORS, Value::M(Map::from(numbers)))
            .with(schema::SENSOR_STATUS, Value::M(Map::from(states)))
            .with(schema::EXPIRATION_TIME, timestamp / 1000 + retention_secs)
    }

    /// The transaction that the sensor system uses for it.
    pub(crate) fn transaction(self) -> Transaction {
        let timestamp = i64::try_from(self.timestamp_ms()).expect("a time fits");
        let marker = Item::new()
            .with(schema::BATCH_ID, self.batch_id())
            .with(schema::HARDWARE_ID, hardware_id(self.device))
            .with(schema::RECEIVED_AT, rfc3339(timestamp))
            .with(
                schema::EXPIRATION_TIME,
                timestamp / 1000 + MARKER_RETENTION_SECS,
            );
        let marker = Put::new(schema::PROCESSED_BATCHES, marker)
            .when(Condition::not_exists(schema::BATCH_ID));
        let reading = Put::new(schema::DEVICE_READINGS, self.item());
        Transaction::new(vec![marker.into(), reading.into()])
    }
}

fn decimal(hundredths: u64) -> String {
    format!("{}.{:02}", hundredths / 100, hundredths % 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_is_what_is_stored() {
        let sent = Sent {
            device: 3,
            number: 77,
            start_ms: 1_767_225_600_000,
        };
        let json = reading(3, 1_767_225_600_000).filled(77);
        let body: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        assert_eq!(body["batch_id"], sent.batch_id());
        assert_eq!(body["hardware_id"], hardware_id(3));
        assert_eq!(body["timestamp_ms"], sent.timestamp_ms());
        let item = sent.item();
        let values = item.get(schema::SENSORS).and_then(Value::as_map);
        for (name, value) in values.expect("a map") {
            let number = value.as_number().expect("a number").to_string();
            let shown: f64 = number.parse().expect("a number");
            assert_eq!(body["sensors"][name.as_str()].as_f64(), Some(shown));
        }
    }
}
