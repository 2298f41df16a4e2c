//! Sensors: they send averages of time windows, each with its own id.

mod curves;

use std::collections::HashMap;
use std::fmt::Write as _;

use hyper::Method;
use serde::Deserialize;

use self::curves::{Climate, VALUES, decimal};
use super::schedule::Schedule;
use super::{
    Call, DeliveryResult, Fleet, HttpFleet, Page, Protocol, ReadBack, ResponseError,
    cursor_parameter,
};
use crate::random::SeededRandom;

const FIRMWARE_VERSION: &str = "1.0.16";
/// The server's maximum page size.
const PAGE_LIMIT: u32 = 1000;
/// Share of windows in which one sensor fails.
const FAULT_SHARE: f64 = 0.02;

/// A fleet of sensors.
pub(crate) struct Sensors {
    seed: u64,
    schedule: Schedule,
}

#[derive(Deserialize)]
struct IngestAnswer {
    acknowledged_batch_ids: Vec<String>,
    duplicate_batch_ids: Vec<String>,
    results: Vec<ReadingResult>,
}

#[derive(Deserialize)]
struct ReadingResult {
    batch_id: Option<String>,
    status: String,
}

#[derive(Deserialize)]
struct ReadingList {
    readings: Vec<StoredReading>,
    next_cursor: Option<String>,
}

#[derive(Deserialize)]
struct StoredReading {
    batch_id: String,
    boot_id: String,
    firmware_version: String,
    timestamp_ms: i64,
    sensors: HashMap<String, f64>,
    sensor_status: HashMap<String, String>,
}

/// A time window of one device.
struct Window {
    batch_id: String,
    end_ms: i64,
    values: [i64; VALUES.len()],
    /// The sensor that failed in this window. It has no values.
    faulty: Option<&'static str>,
}

impl Sensors {
    pub(crate) fn new(seed: u64, windows: u32, interval_ms: i64, end_ms: i64) -> Self {
        Self {
            seed,
            schedule: Schedule::new(windows, interval_ms, end_ms),
        }
    }

    /// A MAC address from the locally administered range.
    fn hardware_id(&self, device: u32) -> String {
        let [high, low] = (SeededRandom::new([self.seed, 5]).next_u64() as u16).to_be_bytes();
        let [_, a, b, c] = device.to_be_bytes();
        format!("02:{high:02X}:{low:02X}:{a:02X}:{b:02X}:{c:02X}")
    }

    fn boot_id(&self, device: u32) -> String {
        let mut random = SeededRandom::new([self.seed, u64::from(device), 6]);
        let bits = (u128::from(random.next_u64()) << 64) | u128::from(random.next_u64());
        uuid::Builder::from_random_bytes(bits.to_be_bytes())
            .into_uuid()
            .to_string()
    }

    fn batch_id(&self, device: u32, boot_id: &str, window: u32) -> String {
        let end_ms = self.schedule.at_ms(window);
        let hardware_id = self.hardware_id(device);
        format!(
            "{hardware_id}_{boot_id}_{}_{end_ms}",
            end_ms - self.schedule.interval_ms
        )
    }

    fn window(&self, device: u32, boot_id: &str, window: u32) -> Window {
        let end_ms = self.schedule.at_ms(window);
        let mut random = SeededRandom::new([self.seed, u64::from(device), u64::from(window), 7]);
        let faulty = (random.unit() < FAULT_SHARE).then(|| {
            let (_, sensor) = VALUES[random.next_u64() as usize % VALUES.len()];
            sensor
        });
        Window {
            batch_id: self.batch_id(device, boot_id, window),
            end_ms,
            values: Climate::new(self.seed, u64::from(device)).hundredths(window, end_ms),
            faulty,
        }
    }

    fn compare(&self, device: u32, boot_id: &str, stored: &StoredReading) -> ReadBack {
        let Some(number) = self.schedule.window_at(stored.timestamp_ms, 0) else {
            return ReadBack::Foreign;
        };
        let window = self.window(device, boot_id, number);
        if stored.batch_id != window.batch_id {
            return ReadBack::Foreign;
        }
        let is_intact = stored.boot_id == boot_id
            && stored.firmware_version == FIRMWARE_VERSION
            && stored.sensors.len() == window.values().count()
            && window.values().all(|(name, hundredths)| {
                let value = stored.sensors.get(name);
                value.is_some_and(|value| (value * 100.0).round() as i64 == hundredths)
            })
            && VALUES.iter().all(|(_, sensor)| {
                let status = stored.sensor_status.get(*sensor);
                status.is_some_and(|status| status == window.status(sensor))
            });
        if is_intact {
            ReadBack::Intact(number)
        } else {
            ReadBack::Altered(number)
        }
    }
}

impl Window {
    /// The values of working sensors.
    fn values(&self) -> impl Iterator<Item = (&'static str, i64)> {
        let working = move |(name, sensor): &(&'static str, &'static str)| {
            (self.faulty != Some(*sensor)).then_some(*name)
        };
        VALUES
            .iter()
            .zip(self.values)
            .filter_map(move |(names, value)| Some((working(names)?, value)))
    }

    fn status(&self, sensor: &str) -> &'static str {
        if self.faulty == Some(sensor) {
            "error"
        } else {
            "ok"
        }
    }
}

impl Fleet for Sensors {
    fn registration(&self, device: u32, _: u32) -> Option<Call> {
        let mut sensors: Vec<&str> = VALUES.iter().map(|(_, sensor)| *sensor).collect();
        sensors.sort_unstable();
        sensors.dedup();
        let body = serde_json::json!({
            "hardware_id": self.hardware_id(device),
            "boot_id": self.boot_id(device),
            "firmware_version": FIRMWARE_VERSION,
            "friendly_name": format!("simulated-{device}"),
            "capabilities": {"sensors": sensors, "features": {"offline_buffering": true}},
        });
        Some(Call::new(
            Method::POST,
            "/v1/sensors/register",
            Some(body.to_string()),
        ))
    }

    fn protocol(&self) -> Protocol<'_> {
        Protocol::Http(self)
    }

    fn page(&self, device: u32, cursor: Option<&str>) -> Call {
        let hardware_id = self.hardware_id(device);
        let (from, to) = (self.schedule.start_ms, self.schedule.last_ms());
        let cursor = cursor_parameter(cursor);
        Call::new(
            Method::GET,
            format!(
                "/v1/sensors/devices/{hardware_id}/readings?from={from}&to={to}&order=asc&limit={PAGE_LIMIT}{cursor}"
            ),
            None,
        )
    }

    fn read_page(&self, device: u32, answer: &[u8]) -> Result<Page, ResponseError> {
        let list: ReadingList = serde_json::from_slice(answer)?;
        let boot_id = self.boot_id(device);
        Ok(Page {
            found: list
                .readings
                .iter()
                .map(|stored| self.compare(device, &boot_id, stored))
                .collect(),
            next_cursor: list.next_cursor,
        })
    }
}

impl HttpFleet for Sensors {
    fn delivery(&self, device: u32, windows: &[u32]) -> Call {
        let hardware_id = self.hardware_id(device);
        let boot_id = self.boot_id(device);
        let mut body = String::with_capacity(windows.len() * 600 + 32);
        body.push_str("{\"readings\":[");
        for (at, number) in windows.iter().enumerate() {
            let window = self.window(device, &boot_id, *number);
            let separator = if at == 0 { "" } else { "," };
            // These strings need no JSON escapes.
            let _ = write!(
                body,
                "{separator}{{\"batch_id\":\"{}\",\"hardware_id\":\"{hardware_id}\",\
                 \"boot_id\":\"{boot_id}\",\"firmware_version\":\"{FIRMWARE_VERSION}\",\
                 \"timestamp_ms\":{},\"sensors\":{{",
                window.batch_id, window.end_ms
            );
            let mut separator = "";
            for (name, hundredths) in window.values() {
                let _ = write!(body, "{separator}\"{name}\":{}", decimal(hundredths));
                separator = ",";
            }
            body.push_str("},\"sensor_status\":{");
            let mut written: Vec<&str> = Vec::with_capacity(VALUES.len());
            for (_, sensor) in VALUES {
                if written.contains(&sensor) {
                    continue;
                }
                let separator = if written.is_empty() { "" } else { "," };
                let _ = write!(
                    body,
                    "{separator}\"{sensor}\":\"{}\"",
                    window.status(sensor)
                );
                written.push(sensor);
            }
            body.push_str("}}");
        }
        body.push_str("]}");
        Call::new(Method::POST, "/v1/sensors/data", Some(body))
    }

    fn delivery_results(
        &self,
        device: u32,
        windows: &[u32],
        answer: &[u8],
    ) -> Result<Vec<DeliveryResult>, ResponseError> {
        let answer: IngestAnswer = serde_json::from_slice(answer)?;
        let boot_id = self.boot_id(device);
        let result_of = |id: &String| {
            let status = answer
                .results
                .iter()
                .find(|result| result.batch_id.as_ref() == Some(id))
                .map(|result| result.status.as_str());
            // As real devices do: an id in either list settles a reading, whatever `results` says.
            if answer.acknowledged_batch_ids.contains(id) {
                return match status {
                    Some("expired") => DeliveryResult::Expired,
                    _ => DeliveryResult::Stored,
                };
            }
            if answer.duplicate_batch_ids.contains(id) {
                return DeliveryResult::Duplicate;
            }
            match status {
                Some("rejected") => DeliveryResult::Rejected,
                _ => DeliveryResult::Unanswered,
            }
        };
        Ok(windows
            .iter()
            .map(|window| result_of(&self.batch_id(device, &boot_id, *window)))
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn fleet() -> Sensors {
        Sensors::new(1, 500, 300_000, 1_800_000_000_000)
    }

    fn readings(fleet: &Sensors, device: u32, windows: &[u32]) -> Vec<Value> {
        let body = fleet.delivery(device, windows).body.expect("a body");
        let body: Value = serde_json::from_str(&body).expect("JSON");
        body["readings"].as_array().expect("readings").clone()
    }

    fn page(readings: &[Value]) -> Vec<u8> {
        json!({"readings": readings}).to_string().into_bytes()
    }

    #[test]
    fn stored_readings_match_those_sent() {
        let fleet = fleet();
        let windows: Vec<u32> = (0..500).collect();
        let sent = readings(&fleet, 3, &windows);
        let read = fleet.read_page(3, &page(&sent)).expect("a page");
        let expected: Vec<ReadBack> = windows.into_iter().map(ReadBack::Intact).collect();
        assert_eq!(read.found, expected);
        let faults = sent.iter().filter(|reading| {
            let states = reading["sensor_status"].as_object().expect("states");
            states.values().any(|state| state == "error")
        });
        assert!(faults.count() > 0, "some windows have a fault");
    }

    #[test]
    fn altered_and_foreign_readings_are_recognized() {
        let fleet = fleet();
        let mut sent = readings(&fleet, 3, &[7, 8, 9, 10]);
        sent[0]["sensors"]["humidity_pct"] = json!(1.5);
        sent[1]["sensors"]
            .as_object_mut()
            .expect("values")
            .remove("pressure_hpa");
        sent[2]["batch_id"] = json!("other");
        sent[3]["timestamp_ms"] = json!(sent[3]["timestamp_ms"].as_i64().expect("a time") + 1);
        let read = fleet.read_page(3, &page(&sent)).expect("a page");
        assert_eq!(
            read.found,
            [
                ReadBack::Altered(7),
                ReadBack::Altered(8),
                ReadBack::Foreign,
                ReadBack::Foreign
            ]
        );
    }

    #[test]
    fn reading_in_neither_list_stays_unanswered() {
        let fleet = fleet();
        let sent = readings(&fleet, 0, &[0, 1, 2, 3, 4]);
        let id = |at: usize| sent[at]["batch_id"].clone();
        let answer = json!({
            "acknowledged_batch_ids": [id(0), id(4)], "duplicate_batch_ids": [id(1)],
            "results": [{"batch_id": id(2), "status": "rejected", "code": "X"},
                        {"batch_id": id(4), "status": "expired"}],
        });
        let delivery_results = fleet
            .delivery_results(0, &[0, 1, 2, 3, 4], answer.to_string().as_bytes())
            .expect("delivery_results");
        use DeliveryResult::{Duplicate, Expired, Rejected, Stored, Unanswered};
        assert_eq!(
            delivery_results,
            [Stored, Duplicate, Rejected, Unanswered, Expired]
        );
        assert!(fleet.delivery_results(0, &[0], b"{}").is_err());
    }
}
