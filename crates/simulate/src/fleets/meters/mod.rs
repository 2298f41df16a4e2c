//! Meters: each writes its count into its own journal, one record per request. A record whose response was lost is sent
//! again with the same record id, and stored once.

use anyhow::{Context as _, ensure};
use hyper::Method;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::schedule::Schedule;
use super::{
    Call, DeliveryResult, Fleet, HttpFleet, Page, Protocol, ReadBack, ResponseError,
    cursor_parameter,
};
use crate::Plan;
use crate::connection::ask_until_answered;
use crate::connection::{Client, Credential};
use crate::random::SeededRandom;

/// The server's maximum page size.
const PAGE_LIMIT: u32 = 1000;
const UNIT: &str = "kWh";
const KIND: &str = "energy";
/// Limits of the shift of a record's time, within which its number can still be derived.
const INTERVAL_MS_MIN: i64 = 2000;
const MOVED_MS_MAX: i64 = 1000;

/// A fleet of meters.
#[derive(Debug)]
pub(crate) struct Meters {
    seed: u64,
    schedule: Schedule,
    /// The path of each meter's journal.
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
    /// Creates a group, with a device and a journal for each meter. Needs an admin token.
    pub(crate) async fn prepare(
        client: &Client,
        operator: &Credential,
        plan: &Plan,
        interval_ms: i64,
        end_ms: i64,
    ) -> anyhow::Result<Self> {
        ensure!(
            interval_ms >= INTERVAL_MS_MIN,
            "meters need an --interval of at least {INTERVAL_MS_MIN}ms"
        );
        let mut random = SeededRandom::new([plan.seed, 21]);
        let name = format!("simulated-{}", plan.seed);
        let group = json!({ "name": name });
        let made: Gid = make(client, operator, plan, &mut random, "/v1/groups", &group).await?;
        let group = format!("/v1/groups/{}", made.gid);
        let mut journals = Vec::new();
        for number in 0..plan.devices {
            let path = format!("{group}/devices");
            let device = json!({ "name": format!("meter-{number}") });
            let made: Did = make(client, operator, plan, &mut random, &path, &device).await?;
            let path = format!("{path}/{}/journals", made.did);
            let journal = json!({ "name": "energy", "data_type": "number" });
            let made: Jid = make(client, operator, plan, &mut random, &path, &journal).await?;
            journals.push(format!("{path}/{}", made.jid));
        }
        Ok(Self::new(plan, interval_ms, end_ms, journals))
    }

    fn new(plan: &Plan, interval_ms: i64, end_ms: i64, journals: Vec<String>) -> Self {
        Self {
            seed: plan.seed,
            schedule: Schedule::new(plan.windows, interval_ms, end_ms),
            journals,
        }
    }

    fn records(&self, device: u32) -> String {
        format!("{}/records", self.journals[device as usize])
    }

    /// The meter's reading in watt-hours, which never decreases.
    fn count_wh(&self, device: u32, window: u32) -> i64 {
        let mut meter = SeededRandom::new([self.seed, u64::from(device), 22]);
        let first = (5_000_000.0 * meter.unit()) as i64;
        let per_window = 100 + (400.0 * meter.unit()) as i64;
        let mut random = SeededRandom::new([self.seed, u64::from(device), u64::from(window), 23]);
        let ahead = (per_window as f64 * random.unit()) as i64;
        first + i64::from(window) * per_window + ahead
    }

    fn compare(&self, device: u32, stored: &StoredRecord) -> ReadBack {
        let Some(window) = self.schedule.window_at(stored.timestamp, MOVED_MS_MAX) else {
            return ReadBack::Foreign;
        };
        let is_intact = (stored.value * 1000.0).round() as i64 == self.count_wh(device, window)
            && stored.unit == UNIT
            && stored.kind == KIND;
        if is_intact {
            ReadBack::Intact(window)
        } else {
            ReadBack::Altered(window)
        }
    }
}

async fn make<T: DeserializeOwned>(
    client: &Client,
    operator: &Credential,
    plan: &Plan,
    random: &mut SeededRandom,
    path: &str,
    body: &serde_json::Value,
) -> anyhow::Result<T> {
    let call = || Call::new(Method::POST, path, Some(body.to_string()));
    let answer = ask_until_answered(client, operator, plan, random, call).await;
    let answer = answer.with_context(|| format!("preparing meters: POST {path}"))?;
    let envelope: Envelope<T> = serde_json::from_slice(&answer)?;
    Ok(envelope.response)
}

impl Fleet for Meters {
    fn protocol(&self) -> Protocol<'_> {
        Protocol::Http(self)
    }

    fn page(&self, device: u32, cursor: Option<&str>) -> Call {
        let (from, to) = (
            self.schedule.start_ms,
            self.schedule.last_ms() + MOVED_MS_MAX,
        );
        let cursor = cursor_parameter(cursor);
        let records = self.records(device);
        Call::new(
            Method::GET,
            format!("{records}?from={from}&to={to}&order=asc&limit={PAGE_LIMIT}{cursor}"),
            None,
        )
    }

    fn read_page(&self, device: u32, answer: &[u8]) -> Result<Page, ResponseError> {
        let list: Envelope<RecordList> = serde_json::from_slice(answer)?;
        let records = list.response.records.iter();
        Ok(Page {
            found: records.map(|stored| self.compare(device, stored)).collect(),
            next_cursor: list.response.next_cursor,
        })
    }
}

impl HttpFleet for Meters {
    fn batch_max(&self) -> usize {
        1
    }

    fn delivery(&self, device: u32, windows: &[u32]) -> Call {
        let window = windows[0];
        let wh = self.count_wh(device, window);
        // In decimal, as a meter shows it.
        let body = format!(
            "{{\"value\":{}.{:03},\"unit\":\"{UNIT}\",\"type\":\"{KIND}\",\"timestamp\":{},\"record_id\":\"{window}\"}}",
            wh / 1000,
            wh % 1000,
            self.schedule.at_ms(window)
        );
        Call::new(Method::POST, self.records(device), Some(body))
    }

    fn delivery_results(
        &self,
        device: u32,
        windows: &[u32],
        answer: &[u8],
    ) -> Result<Vec<DeliveryResult>, ResponseError> {
        let stored: Envelope<StoredRecord> = serde_json::from_slice(answer)?;
        let result = |window: &u32| match self.compare(device, &stored.response) {
            ReadBack::Intact(stored) if stored == *window => DeliveryResult::Stored,
            _ => DeliveryResult::Unanswered,
        };
        Ok(windows.iter().map(result).collect())
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
    fn moved_and_altered_records_are_recognized() {
        let fleet = fleet();
        let mut records: Vec<_> = (0..100).map(|window| sent(&fleet, window)).collect();
        let mut again = records[7].clone();
        again["timestamp"] = json!(again["timestamp"].as_i64().expect("a time") + 2);
        records.push(again);
        records[8]["value"] = json!(0);
        records[9]["timestamp"] = json!(0);
        let page = json!({"status": "OK", "response": {"records": records}}).to_string();
        let found = fleet.read_page(0, page.as_bytes()).expect("a page").found;
        let mut expected: Vec<ReadBack> = (0..100).map(ReadBack::Intact).collect();
        expected[8] = ReadBack::Altered(8);
        expected[9] = ReadBack::Foreign;
        expected.push(ReadBack::Intact(7));
        assert_eq!(found, expected);
    }

    #[test]
    fn meter_reading_never_decreases() {
        let fleet = fleet();
        let counts: Vec<i64> = (0..100).map(|window| fleet.count_wh(0, window)).collect();
        assert!(counts.is_sorted());
    }

    #[test]
    fn only_a_response_with_the_record_confirms_it() {
        let fleet = fleet();
        let answer = |window| json!({"status": "OK", "response": sent(&fleet, window)}).to_string();
        let delivery_results = |text: String| {
            fleet
                .delivery_results(0, &[3], text.as_bytes())
                .expect("delivery_results")
        };
        assert_eq!(delivery_results(answer(3)), [DeliveryResult::Stored]);
        assert_eq!(delivery_results(answer(4)), [DeliveryResult::Unanswered]);
    }
}
