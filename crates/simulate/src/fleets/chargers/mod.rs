//! Chargers: they report every few minutes. The server recognizes a repeated event by its time and content.

mod days;

use hyper::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use self::days::{ChargerState, Days};
use super::schedule::Schedule;
use super::{
    Call, DeliveryResult, Fleet, HttpFleet, Page, Protocol, ReadBack, ResponseError,
    cursor_parameter,
};
use crate::random::SeededRandom;

/// The server's maximum page size.
const PAGE_LIMIT: u32 = 1000;

/// A fleet of chargers.
pub(crate) struct Chargers {
    seed: u64,
    schedule: Schedule,
}

#[derive(Deserialize)]
struct IngestAnswer {
    results: Vec<EventResult>,
}

#[derive(Deserialize)]
struct EventResult {
    status: String,
}

#[derive(Deserialize)]
struct EventList {
    events: Vec<StoredEvent>,
    next_cursor: Option<String>,
}

#[derive(Deserialize)]
struct StoredEvent {
    timestamp_utc_ms: i64,
    event_type: String,
    data: Value,
}

#[derive(Deserialize)]
struct DailyList {
    days: Vec<Day>,
}

#[derive(Deserialize)]
struct Day {
    event_count: u64,
}

impl Chargers {
    pub(crate) fn new(seed: u64, windows: u32, interval_ms: i64, end_ms: i64) -> Self {
        Self {
            seed,
            schedule: Schedule::new(windows, interval_ms, end_ms),
        }
    }

    /// A charger id that is unique to the run, so its statistics contain no other events.
    fn wireless_device_id(&self, device: u32) -> uuid::Uuid {
        let run = self.schedule.start_ms.unsigned_abs();
        let mut random = SeededRandom::new([self.seed, run, u64::from(device), 11]);
        let bits = (u128::from(random.next_u64()) << 64) | u128::from(random.next_u64());
        uuid::Builder::from_random_bytes(bits.to_be_bytes()).into_uuid()
    }

    /// The type and data of an event.
    fn event(&self, device: u32, window: u32) -> (&'static str, Value) {
        let days = Days::new(self.seed, u64::from(device));
        let at_ms = self.schedule.at_ms(window);
        let (before, now) = (days.at(at_ms - self.schedule.interval_ms), days.at(at_ms));
        (event_type(&before, &now), content(&now))
    }

    fn compare(&self, device: u32, stored: &StoredEvent) -> ReadBack {
        let Some(window) = self.schedule.window_at(stored.timestamp_utc_ms, 0) else {
            return ReadBack::Foreign;
        };
        let (event_type, data) = self.event(device, window);
        if stored.event_type == event_type && stored.data == data {
            ReadBack::Intact(window)
        } else {
            ReadBack::Altered(window)
        }
    }
}

/// The most important change since the previous report.
fn event_type(before: &ChargerState, now: &ChargerState) -> &'static str {
    if now.fault.is_some() && now.fault != before.fault {
        "fault"
    } else if now.is_charging != before.is_charging {
        "charge"
    } else if now.is_plugged != before.is_plugged {
        "plug"
    } else {
        "telemetry"
    }
}

fn content(now: &ChargerState) -> Value {
    let mut data = json!({
        "j1772_state": now.pilot(),
        "current_ma": now.current_ma,
        "voltage_mv": now.voltage_mv,
    });
    for kind in days::FAULTS {
        data[format!("fault_{kind}")] = json!(now.fault == Some(kind));
    }
    data
}

impl Fleet for Chargers {
    fn protocol(&self) -> Protocol<'_> {
        Protocol::Http(self)
    }

    fn page(&self, device: u32, cursor: Option<&str>) -> Call {
        let id = self.wireless_device_id(device);
        let (from, to) = (self.schedule.start_ms, self.schedule.last_ms());
        let cursor = cursor_parameter(cursor);
        Call::new(
            Method::GET,
            format!(
                "/v1/chargers/{id}/events?from={from}&to={to}&order=asc&limit={PAGE_LIMIT}{cursor}"
            ),
            None,
        )
    }

    fn read_page(&self, device: u32, answer: &[u8]) -> Result<Page, ResponseError> {
        let list: EventList = serde_json::from_slice(answer)?;
        let events = list.events.iter();
        Ok(Page {
            found: events.map(|stored| self.compare(device, stored)).collect(),
            next_cursor: list.next_cursor,
        })
    }

    fn totals(&self, device: u32) -> Option<Call> {
        let id = self.wireless_device_id(device);
        Some(Call::new(
            Method::GET,
            format!("/v1/chargers/{id}/daily?limit={PAGE_LIMIT}"),
            None,
        ))
    }

    fn totals_match(
        &self,
        _: u32,
        there: u64,
        _: u32,
        answer: &[u8],
    ) -> Result<bool, ResponseError> {
        let list: DailyList = serde_json::from_slice(answer)?;
        let counted: u64 = list.days.iter().map(|day| day.event_count).sum();
        Ok(counted == there)
    }
}

impl HttpFleet for Chargers {
    fn delivery(&self, device: u32, windows: &[u32]) -> Call {
        let id = self.wireless_device_id(device).to_string();
        let events: Vec<Value> = windows
            .iter()
            .map(|window| {
                let (event_type, data) = self.event(device, *window);
                json!({
                    "wireless_device_id": id, "event_type": event_type,
                    "occurred_at": self.schedule.at_ms(*window), "data": data,
                })
            })
            .collect();
        Call::new(
            Method::POST,
            "/v1/chargers/events",
            Some(json!({ "events": events }).to_string()),
        )
    }

    fn delivery_results(
        &self,
        _: u32,
        windows: &[u32],
        answer: &[u8],
    ) -> Result<Vec<DeliveryResult>, ResponseError> {
        let answer: IngestAnswer = serde_json::from_slice(answer)?;
        let result = |index: usize| match answer.results.get(index).map(|it| it.status.as_str()) {
            Some("stored") => DeliveryResult::Stored,
            Some("duplicate") => DeliveryResult::Duplicate,
            Some("rejected") => DeliveryResult::Rejected,
            _ => DeliveryResult::Unanswered,
        };
        Ok((0..windows.len()).map(result).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fleet() -> Chargers {
        Chargers::new(1, 1000, 300_000, 1_800_000_000_000)
    }

    fn stored(fleet: &Chargers, device: u32, windows: &[u32]) -> Vec<Value> {
        let body = fleet.delivery(device, windows).body.expect("a body");
        let body: Value = serde_json::from_str(&body).expect("JSON");
        let mut events = body["events"].as_array().expect("events").clone();
        for event in &mut events {
            event["timestamp_utc_ms"] = event["occurred_at"].clone();
        }
        events
    }

    fn found(fleet: &Chargers, device: u32, events: &[Value]) -> Vec<ReadBack> {
        let page = json!({ "events": events }).to_string();
        fleet
            .read_page(device, page.as_bytes())
            .expect("a page")
            .found
    }

    #[test]
    fn altered_event_is_detected() {
        let fleet = fleet();
        let windows: Vec<u32> = (0..1000).collect();
        let mut events = stored(&fleet, 3, &windows);
        let expected: Vec<ReadBack> = windows.into_iter().map(ReadBack::Intact).collect();
        assert_eq!(found(&fleet, 3, &events), expected);
        events[7]["data"]["current_ma"] = json!(-1);
        events[8]["event_type"] = json!("plug!");
        events[9]["timestamp_utc_ms"] = json!(1);
        assert_eq!(
            found(&fleet, 3, &events[7..10]),
            [
                ReadBack::Altered(7),
                ReadBack::Altered(8),
                ReadBack::Foreign
            ]
        );
    }

    #[test]
    fn fleet_has_all_event_types() {
        let fleet = fleet();
        let mut kinds: Vec<&str> = (0..20)
            .flat_map(|device| (0..1000).map(move |window| (device, window)))
            .map(|(device, window)| fleet.event(device, window).0)
            .collect();
        kinds.sort_unstable();
        kinds.dedup();
        assert_eq!(kinds, ["charge", "fault", "plug", "telemetry"]);
    }

    #[test]
    fn results_follow_the_order_of_events() {
        let answer = br#"{"results":[{"status":"stored"},{"status":"duplicate"},{"status":"rejected"},{"status":"new"}]}"#;
        let delivery_results = fleet()
            .delivery_results(0, &[0, 1, 2, 3, 4], answer)
            .expect("delivery_results");
        use DeliveryResult::{Duplicate, Rejected, Stored, Unanswered};
        assert_eq!(
            delivery_results,
            [Stored, Duplicate, Rejected, Unanswered, Unanswered]
        );
    }

    #[test]
    fn daily_totals_match_the_stored_events() {
        let answer = br#"{"days":[{"event_count":3,"date":"2027-01-14"},{"event_count":4}]}"#;
        let totals_match = |there| fleet().totals_match(0, there, 0, answer).expect("a count");
        assert!(totals_match(7));
        assert!(!totals_match(8));
    }
}
