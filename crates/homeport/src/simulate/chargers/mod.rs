//! Chargers: they report every few minutes, and at once when a car is plugged in, charges or a
//! fault appears. A server knows an event again by its time and content.

mod days;

use hyper::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use self::days::{Days, Moment};
use super::dice::Dice;
use super::fleet::{AnswerError, Call, Fate, Fleet, Found, OverHttp, Page, Speech};

/// The largest page that the server gives.
const PAGE_LIMIT: u32 = 1000;

/// A fleet of chargers whose last event is at `end_ms` in simulated time.
pub(super) struct Chargers {
    seed: u64,
    windows: u32,
    interval_ms: i64,
    start_ms: i64,
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
    pub(super) fn new(seed: u64, windows: u32, interval_ms: i64, end_ms: i64) -> Self {
        Self {
            seed,
            windows,
            interval_ms,
            start_ms: end_ms - i64::from(windows) * interval_ms,
        }
    }

    /// A charger of this run alone, so that its statistics have no other events in them.
    fn wireless_device_id(&self, device: u32) -> uuid::Uuid {
        let run = self.start_ms.unsigned_abs();
        let mut dice = Dice::new([self.seed, run, u64::from(device), 11]);
        let bits = (u128::from(dice.next()) << 64) | u128::from(dice.next());
        uuid::Builder::from_random_bytes(bits.to_be_bytes()).into_uuid()
    }

    fn at_ms(&self, window: u32) -> i64 {
        self.start_ms + (i64::from(window) + 1) * self.interval_ms
    }

    fn window_at(&self, at_ms: i64) -> Option<u32> {
        let since = at_ms.checked_sub(self.start_ms)?;
        if since % self.interval_ms != 0 {
            return None;
        }
        let window = u32::try_from(since / self.interval_ms - 1).ok()?;
        (window < self.windows).then_some(window)
    }

    /// The type and the content of an event.
    fn event(&self, device: u32, window: u32) -> (&'static str, Value) {
        let days = Days::new(self.seed, u64::from(device));
        let at_ms = self.at_ms(window);
        let (before, now) = (days.at(at_ms - self.interval_ms), days.at(at_ms));
        (event_type(&before, &now), content(&now))
    }

    fn judge(&self, device: u32, stored: &StoredEvent) -> Found {
        let Some(window) = self.window_at(stored.timestamp_utc_ms) else {
            return Found::Foreign;
        };
        let (event_type, data) = self.event(device, window);
        if stored.event_type == event_type && stored.data == data {
            Found::Intact(window)
        } else {
            Found::Altered(window)
        }
    }
}

/// What is worth most of what happened since the report before.
fn event_type(before: &Moment, now: &Moment) -> &'static str {
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

fn content(now: &Moment) -> Value {
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
    fn speech(&self) -> Speech<'_> {
        Speech::Http(self)
    }

    fn page(&self, device: u32, cursor: Option<&str>) -> Call {
        let id = self.wireless_device_id(device);
        let (from, to) = (self.start_ms, self.at_ms(self.windows - 1));
        // Cursors are made of characters that an address may have.
        let cursor = cursor.map_or_else(String::new, |cursor| format!("&cursor={cursor}"));
        Call::new(
            Method::GET,
            format!(
                "/v1/chargers/{id}/events?from={from}&to={to}&order=asc&limit={PAGE_LIMIT}{cursor}"
            ),
            None,
        )
    }

    fn read_page(&self, device: u32, answer: &[u8]) -> Result<Page, AnswerError> {
        let list: EventList = serde_json::from_slice(answer)?;
        let events = list.events.iter();
        Ok(Page {
            found: events.map(|stored| self.judge(device, stored)).collect(),
            next_cursor: list.next_cursor,
        })
    }

    fn account(&self, device: u32) -> Option<Call> {
        let id = self.wireless_device_id(device);
        Some(Call::new(
            Method::GET,
            format!("/v1/chargers/{id}/daily?limit={PAGE_LIMIT}"),
            None,
        ))
    }

    fn adds_up(&self, _: u32, there: u64, _: u32, answer: &[u8]) -> Result<bool, AnswerError> {
        let list: DailyList = serde_json::from_slice(answer)?;
        let counted: u64 = list.days.iter().map(|day| day.event_count).sum();
        Ok(counted == there)
    }
}

impl OverHttp for Chargers {
    fn delivery(&self, device: u32, windows: &[u32]) -> Call {
        let id = self.wireless_device_id(device).to_string();
        let events: Vec<Value> = windows
            .iter()
            .map(|window| {
                let (event_type, data) = self.event(device, *window);
                json!({
                    "wireless_device_id": id, "event_type": event_type,
                    "occurred_at": self.at_ms(*window), "data": data,
                })
            })
            .collect();
        Call::new(
            Method::POST,
            "/v1/chargers/events",
            Some(json!({ "events": events }).to_string()),
        )
    }

    fn fates(&self, _: u32, windows: &[u32], answer: &[u8]) -> Result<Vec<Fate>, AnswerError> {
        let answer: IngestAnswer = serde_json::from_slice(answer)?;
        let fate = |index: usize| match answer.results.get(index).map(|it| it.status.as_str()) {
            Some("stored") => Fate::Stored,
            Some("duplicate") => Fate::Duplicate,
            Some("rejected") => Fate::Rejected,
            _ => Fate::Unanswered,
        };
        Ok((0..windows.len()).map(fate).collect())
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

    fn found(fleet: &Chargers, device: u32, events: &[Value]) -> Vec<Found> {
        let page = json!({ "events": events }).to_string();
        fleet
            .read_page(device, page.as_bytes())
            .expect("a page")
            .found
    }

    #[test]
    fn what_is_sent_is_known_again_when_it_is_read() {
        let fleet = fleet();
        let windows: Vec<u32> = (0..1000).collect();
        let mut events = stored(&fleet, 3, &windows);
        let expected: Vec<Found> = windows.into_iter().map(Found::Intact).collect();
        assert_eq!(found(&fleet, 3, &events), expected);
        events[7]["data"]["current_ma"] = json!(-1);
        events[8]["event_type"] = json!("plug!");
        events[9]["timestamp_utc_ms"] = json!(1);
        assert_eq!(
            found(&fleet, 3, &events[7..10]),
            [Found::Altered(7), Found::Altered(8), Found::Foreign]
        );
    }

    #[test]
    fn a_fleet_has_all_kinds_of_events() {
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
    fn the_fate_of_each_event_stands_at_its_place() {
        let answer = br#"{"results":[{"status":"stored"},{"status":"duplicate"},{"status":"rejected"},{"status":"new"}]}"#;
        let fates = fleet().fates(0, &[0, 1, 2, 3, 4], answer).expect("fates");
        use Fate::{Duplicate, Rejected, Stored, Unanswered};
        assert_eq!(fates, [Stored, Duplicate, Rejected, Unanswered, Unanswered]);
    }

    #[test]
    fn the_days_are_added_up() {
        let answer = br#"{"days":[{"event_count":3,"date":"2027-01-14"},{"event_count":4}]}"#;
        let adds_up = |there| fleet().adds_up(0, there, 0, answer).expect("a count");
        assert!(adds_up(7));
        assert!(!adds_up(8));
    }
}
