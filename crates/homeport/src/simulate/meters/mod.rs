//! Meters: each writes its count into a journal of its own, one record a request. A record has no id
//! by which a server could know it again: one whose answer was lost is stored again when it is sent
//! again, at the next millisecond that is free.

use anyhow::{Context as _, ensure};
use hyper::Method;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::Plan;
use super::client::{Client, Credential};
use super::dice::Dice;
use super::fleet::{AnswerError, Call, Fate, Fleet, Found, OverHttp, Page, Speech};
use super::patient;

/// The largest page that the server gives.
const PAGE_LIMIT: u32 = 1000;
const UNIT: &str = "kWh";
const KIND: &str = "energy";
/// A record may be moved on by so much, and still has to be known by its time.
const INTERVAL_MS_MIN: i64 = 2000;
const MOVED_MS_MAX: i64 = 1000;

/// A fleet of meters whose last record is at `end_ms` in simulated time.
#[derive(Debug)]
pub(super) struct Meters {
    seed: u64,
    windows: u32,
    interval_ms: i64,
    start_ms: i64,
    /// The address of each meter's journal.
    journals: Vec<String>,
}

#[derive(Deserialize)]
struct Envelope<T> {
    response: T,
}

#[derive(Deserialize)]
struct Gid {
    gid: String,
}

#[derive(Deserialize)]
struct Did {
    did: String,
}

#[derive(Deserialize)]
struct Jid {
    jid: String,
}

#[derive(Deserialize)]
struct RecordList {
    records: Vec<StoredRecord>,
    next_cursor: Option<String>,
}

#[derive(Deserialize)]
struct StoredRecord {
    value: f64,
    unit: String,
    #[serde(rename = "type")]
    kind: String,
    timestamp: i64,
}

impl Meters {
    /// Makes a group with a device and a journal for each meter, which only an operator may.
    pub(super) async fn prepare(
        client: &Client,
        operator: &Credential,
        plan: &Plan,
        interval_ms: i64,
        end_ms: i64,
    ) -> anyhow::Result<Self> {
        ensure!(
            interval_ms >= INTERVAL_MS_MIN,
            "meters need an interval of {INTERVAL_MS_MIN} ms or more"
        );
        let mut dice = Dice::new([plan.seed, 21]);
        let name = format!("simulated-{}", plan.seed);
        let group = json!({ "name": name });
        let made: Gid = make(client, operator, plan, &mut dice, "/v1/groups", &group).await?;
        let group = format!("/v1/groups/{}", made.gid);
        let mut journals = Vec::new();
        for number in 0..plan.devices {
            let path = format!("{group}/devices");
            let device = json!({ "name": format!("meter-{number}") });
            let made: Did = make(client, operator, plan, &mut dice, &path, &device).await?;
            let path = format!("{path}/{}/journals", made.did);
            let journal = json!({ "name": "energy", "data_type": "number" });
            let made: Jid = make(client, operator, plan, &mut dice, &path, &journal).await?;
            journals.push(format!("{path}/{}", made.jid));
        }
        Ok(Self::new(plan, interval_ms, end_ms, journals))
    }

    fn new(plan: &Plan, interval_ms: i64, end_ms: i64, journals: Vec<String>) -> Self {
        Self {
            seed: plan.seed,
            windows: plan.windows,
            interval_ms,
            start_ms: end_ms - i64::from(plan.windows) * interval_ms,
            journals,
        }
    }

    fn records(&self, device: u32) -> String {
        format!("{}/records", self.journals[device as usize])
    }

    fn at_ms(&self, window: u32) -> i64 {
        self.start_ms + (i64::from(window) + 1) * self.interval_ms
    }

    /// The window of a record that stands at this time, or was moved on to it.
    fn window_at(&self, at_ms: i64) -> Option<u32> {
        let since = at_ms.checked_sub(self.start_ms)?;
        if since.rem_euclid(self.interval_ms) > MOVED_MS_MAX {
            return None;
        }
        let window = u32::try_from(since.div_euclid(self.interval_ms) - 1).ok()?;
        (window < self.windows).then_some(window)
    }

    /// Watt-hours since the meter was made: they never go down.
    fn count_wh(&self, device: u32, window: u32) -> i64 {
        let mut meter = Dice::new([self.seed, u64::from(device), 22]);
        let first = (5_000_000.0 * meter.unit()) as i64;
        let per_window = 100 + (400.0 * meter.unit()) as i64;
        let mut dice = Dice::new([self.seed, u64::from(device), u64::from(window), 23]);
        let ahead = (per_window as f64 * dice.unit()) as i64;
        first + i64::from(window) * per_window + ahead
    }

    fn judge(&self, device: u32, stored: &StoredRecord) -> Found {
        let Some(window) = self.window_at(stored.timestamp) else {
            return Found::Foreign;
        };
        let is_intact = (stored.value * 1000.0).round() as i64 == self.count_wh(device, window)
            && stored.unit == UNIT
            && stored.kind == KIND;
        if is_intact {
            Found::Intact(window)
        } else {
            Found::Altered(window)
        }
    }
}

async fn make<T: DeserializeOwned>(
    client: &Client,
    operator: &Credential,
    plan: &Plan,
    dice: &mut Dice,
    path: &str,
    body: &serde_json::Value,
) -> anyhow::Result<T> {
    let call = || Call::new(Method::POST, path, Some(body.to_string()));
    let answer = patient::ask(client, operator, plan, dice, call).await;
    let answer = answer.with_context(|| format!("making meters: POST {path}"))?;
    let envelope: Envelope<T> = serde_json::from_slice(&answer)?;
    Ok(envelope.response)
}

impl Fleet for Meters {
    fn keeps_repeats(&self) -> bool {
        true
    }

    fn speech(&self) -> Speech<'_> {
        Speech::Http(self)
    }

    fn page(&self, device: u32, cursor: Option<&str>) -> Call {
        let (from, to) = (self.start_ms, self.at_ms(self.windows - 1) + MOVED_MS_MAX);
        // Cursors are made of characters that an address may have.
        let cursor = cursor.map_or_else(String::new, |cursor| format!("&cursor={cursor}"));
        let records = self.records(device);
        Call::new(
            Method::GET,
            format!("{records}?from={from}&to={to}&order=asc&limit={PAGE_LIMIT}{cursor}"),
            None,
        )
    }

    fn read_page(&self, device: u32, answer: &[u8]) -> Result<Page, AnswerError> {
        let list: Envelope<RecordList> = serde_json::from_slice(answer)?;
        let records = list.response.records.iter();
        Ok(Page {
            found: records.map(|stored| self.judge(device, stored)).collect(),
            next_cursor: list.response.next_cursor,
        })
    }
}

impl OverHttp for Meters {
    fn batch_max(&self) -> usize {
        1
    }

    fn delivery(&self, device: u32, windows: &[u32]) -> Call {
        let window = windows[0];
        let wh = self.count_wh(device, window);
        // In decimal, as the meter shows it.
        let body = format!(
            "{{\"value\":{}.{:03},\"unit\":\"{UNIT}\",\"type\":\"{KIND}\",\"timestamp\":{}}}",
            wh / 1000,
            wh % 1000,
            self.at_ms(window)
        );
        Call::new(Method::POST, self.records(device), Some(body))
    }

    fn fates(&self, device: u32, windows: &[u32], answer: &[u8]) -> Result<Vec<Fate>, AnswerError> {
        let stored: Envelope<StoredRecord> = serde_json::from_slice(answer)?;
        let fate = |window: &u32| match self.judge(device, &stored.response) {
            Found::Intact(stored) if stored == *window => Fate::Stored,
            _ => Fate::Unanswered,
        };
        Ok(windows.iter().map(fate).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn fleet() -> Meters {
        let plan = Plan {
            devices: 1,
            windows: 100,
            tick: Duration::from_millis(1),
            batch: 1,
            disconnects: 0.0,
            seed: 1,
            patience: Duration::from_secs(1),
            interval: Duration::from_secs(1),
            kept_for: Duration::ZERO,
        };
        Meters::new(&plan, 300_000, 1_800_000_000_000, vec!["/j".to_owned()])
    }

    fn sent(fleet: &Meters, window: u32) -> serde_json::Value {
        let body = fleet.delivery(0, &[window]).body.expect("a body");
        serde_json::from_str(&body).expect("JSON")
    }

    #[test]
    fn what_is_sent_is_known_again_when_it_is_read_also_when_it_was_moved_on() {
        let fleet = fleet();
        let mut records: Vec<_> = (0..100).map(|window| sent(&fleet, window)).collect();
        let mut again = records[7].clone();
        again["timestamp"] = json!(again["timestamp"].as_i64().expect("a time") + 2);
        records.push(again);
        records[8]["value"] = json!(0);
        records[9]["timestamp"] = json!(0);
        let page = json!({"status": "OK", "response": {"records": records}}).to_string();
        let found = fleet.read_page(0, page.as_bytes()).expect("a page").found;
        let mut expected: Vec<Found> = (0..100).map(Found::Intact).collect();
        expected[8] = Found::Altered(8);
        expected[9] = Found::Foreign;
        expected.push(Found::Intact(7));
        assert_eq!(found, expected);
    }

    #[test]
    fn a_meter_never_goes_back() {
        let fleet = fleet();
        let counts: Vec<i64> = (0..100).map(|window| fleet.count_wh(0, window)).collect();
        assert!(counts.is_sorted());
    }

    #[test]
    fn only_an_answer_with_the_record_itself_confirms_it() {
        let fleet = fleet();
        let answer = |window| json!({"status": "OK", "response": sent(&fleet, window)}).to_string();
        let fates = |text: String| fleet.fates(0, &[3], text.as_bytes()).expect("fates");
        assert_eq!(fates(answer(3)), [Fate::Stored]);
        assert_eq!(fates(answer(4)), [Fate::Unanswered]);
    }
}
