//! Sensors: they send the averages of windows, each with an id of its own.

mod curves;

use std::collections::HashMap;
use std::fmt::Write as _;

use hyper::Method;
use serde::Deserialize;

use self::curves::{Place, VALUES, decimal};
use super::dice::Dice;
use super::fleet::{AnswerError, Call, Fate, Fleet, Found, OverHttp, Page, Speech};

const FIRMWARE_VERSION: &str = "1.0.16";
/// The largest page that the server gives.
const PAGE_LIMIT: u32 = 1000;
/// Of a sensor's windows, about this share has one with a fault.
const FAULT_SHARE: f64 = 0.02;

/// A fleet of sensors whose windows end at `end_ms` in simulated time.
pub(super) struct Sensors {
    seed: u64,
    windows: u32,
    interval_ms: i64,
    start_ms: i64,
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

/// One window of one device.
struct Window {
    batch_id: String,
    end_ms: i64,
    values: [i64; VALUES.len()],
    /// The sensor that failed in this window, which then has no values.
    faulty: Option<&'static str>,
}

impl Sensors {
    pub(super) fn new(seed: u64, windows: u32, interval_ms: i64, end_ms: i64) -> Self {
        Self {
            seed,
            windows,
            interval_ms,
            start_ms: end_ms - i64::from(windows) * interval_ms,
        }
    }

    /// A MAC address from the range that anybody may use.
    fn hardware_id(&self, device: u32) -> String {
        let [high, low] = (Dice::new([self.seed, 5]).next() as u16).to_be_bytes();
        let [_, a, b, c] = device.to_be_bytes();
        format!("02:{high:02X}:{low:02X}:{a:02X}:{b:02X}:{c:02X}")
    }

    fn boot_id(&self, device: u32) -> String {
        let mut dice = Dice::new([self.seed, u64::from(device), 6]);
        let bits = (u128::from(dice.next()) << 64) | u128::from(dice.next());
        uuid::Builder::from_random_bytes(bits.to_be_bytes())
            .into_uuid()
            .to_string()
    }

    fn end_ms(&self, window: u32) -> i64 {
        self.start_ms + (i64::from(window) + 1) * self.interval_ms
    }

    fn batch_id(&self, device: u32, boot_id: &str, window: u32) -> String {
        let end_ms = self.end_ms(window);
        let hardware_id = self.hardware_id(device);
        format!(
            "{hardware_id}_{boot_id}_{}_{end_ms}",
            end_ms - self.interval_ms
        )
    }

    fn window(&self, device: u32, boot_id: &str, window: u32) -> Window {
        let end_ms = self.end_ms(window);
        let mut dice = Dice::new([self.seed, u64::from(device), u64::from(window), 7]);
        let faulty = (dice.unit() < FAULT_SHARE).then(|| {
            let (_, sensor) = VALUES[dice.next() as usize % VALUES.len()];
            sensor
        });
        Window {
            batch_id: self.batch_id(device, boot_id, window),
            end_ms,
            values: Place::new(self.seed, u64::from(device)).hundredths(window, end_ms),
            faulty,
        }
    }

    /// The window that ends at this time, if one does.
    fn window_ending(&self, end_ms: i64) -> Option<u32> {
        let since = end_ms.checked_sub(self.start_ms)?;
        if since % self.interval_ms != 0 {
            return None;
        }
        let window = u32::try_from(since / self.interval_ms - 1).ok()?;
        (window < self.windows).then_some(window)
    }

    fn judge(&self, device: u32, boot_id: &str, stored: &StoredReading) -> Found {
        let Some(number) = self.window_ending(stored.timestamp_ms) else {
            return Found::Foreign;
        };
        let window = self.window(device, boot_id, number);
        if stored.batch_id != window.batch_id {
            return Found::Foreign;
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
            Found::Intact(number)
        } else {
            Found::Altered(number)
        }
    }
}

impl Window {
    /// The values of the sensors that work.
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

    fn speech(&self) -> Speech<'_> {
        Speech::Http(self)
    }

    fn page(&self, device: u32, cursor: Option<&str>) -> Call {
        let hardware_id = self.hardware_id(device);
        let (from, to) = (self.start_ms, self.end_ms(self.windows - 1));
        // Cursors are made of characters that an address may have.
        let cursor = cursor.map_or_else(String::new, |cursor| format!("&cursor={cursor}"));
        Call::new(
            Method::GET,
            format!(
                "/v1/sensors/devices/{hardware_id}/readings?from={from}&to={to}&order=asc&limit={PAGE_LIMIT}{cursor}"
            ),
            None,
        )
    }

    fn read_page(&self, device: u32, answer: &[u8]) -> Result<Page, AnswerError> {
        let list: ReadingList = serde_json::from_slice(answer)?;
        let boot_id = self.boot_id(device);
        Ok(Page {
            found: list
                .readings
                .iter()
                .map(|stored| self.judge(device, &boot_id, stored))
                .collect(),
            next_cursor: list.next_cursor,
        })
    }
}

impl OverHttp for Sensors {
    fn delivery(&self, device: u32, windows: &[u32]) -> Call {
        let hardware_id = self.hardware_id(device);
        let boot_id = self.boot_id(device);
        let mut body = String::with_capacity(windows.len() * 600 + 32);
        body.push_str("{\"readings\":[");
        for (at, number) in windows.iter().enumerate() {
            let window = self.window(device, &boot_id, *number);
            let separator = if at == 0 { "" } else { "," };
            // None of these texts has a character that JSON would want escaped.
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

    fn fates(&self, device: u32, windows: &[u32], answer: &[u8]) -> Result<Vec<Fate>, AnswerError> {
        let answer: IngestAnswer = serde_json::from_slice(answer)?;
        let boot_id = self.boot_id(device);
        let fate_of = |id: &String| {
            let status = answer
                .results
                .iter()
                .find(|result| result.batch_id.as_ref() == Some(id))
                .map(|result| result.status.as_str());
            // As a device does it: what is in either list can go, whatever the results say.
            if answer.acknowledged_batch_ids.contains(id) {
                return match status {
                    Some("expired") => Fate::Expired,
                    _ => Fate::Stored,
                };
            }
            if answer.duplicate_batch_ids.contains(id) {
                return Fate::Duplicate;
            }
            match status {
                Some("rejected") => Fate::Rejected,
                _ => Fate::Unanswered,
            }
        };
        Ok(windows
            .iter()
            .map(|window| fate_of(&self.batch_id(device, &boot_id, *window)))
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
    fn what_is_sent_is_known_again_when_it_is_read() {
        let fleet = fleet();
        let windows: Vec<u32> = (0..500).collect();
        let sent = readings(&fleet, 3, &windows);
        let read = fleet.read_page(3, &page(&sent)).expect("a page");
        let expected: Vec<Found> = windows.into_iter().map(Found::Intact).collect();
        assert_eq!(read.found, expected);
        let faults = sent.iter().filter(|reading| {
            let states = reading["sensor_status"].as_object().expect("states");
            states.values().any(|state| state == "error")
        });
        assert!(faults.count() > 0, "some windows have a fault");
    }

    #[test]
    fn what_was_changed_or_is_of_another_run_is_told_apart() {
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
                Found::Altered(7),
                Found::Altered(8),
                Found::Foreign,
                Found::Foreign
            ]
        );
    }

    #[test]
    fn either_list_of_ids_settles_a_reading_and_silence_does_not() {
        let fleet = fleet();
        let sent = readings(&fleet, 0, &[0, 1, 2, 3, 4]);
        let id = |at: usize| sent[at]["batch_id"].clone();
        let answer = json!({
            "acknowledged_batch_ids": [id(0), id(4)], "duplicate_batch_ids": [id(1)],
            "results": [{"batch_id": id(2), "status": "rejected", "code": "X"},
                        {"batch_id": id(4), "status": "expired"}],
        });
        let fates = fleet
            .fates(0, &[0, 1, 2, 3, 4], answer.to_string().as_bytes())
            .expect("fates");
        use Fate::{Duplicate, Expired, Rejected, Stored, Unanswered};
        assert_eq!(fates, [Stored, Duplicate, Rejected, Unanswered, Expired]);
        assert!(fleet.fates(0, &[0], b"{}").is_err());
    }
}
