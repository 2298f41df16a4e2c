//! Charger events over HTTP. The server recognizes repeated events by time and content.

use std::collections::BTreeSet;
use std::sync::Mutex;

use async_trait::async_trait;
use serde_json::{Value, json};

use super::{OperationResult, Problem, Scope, Workload, lock, pages, value_of, violation};
use crate::clients::{Caller, Clients, Reply};
use homeport_simulate::SeededRandom;

const LANES: usize = 2;
const BATCH_MAX: usize = 8;
const DAY_MS: i64 = 86_400_000;
const PAGE_LIMIT: usize = 1000;

/// One charger for each lane.
pub(super) struct Chargers {
    start_ms: i64,
    lanes: [Mutex<Lane>; LANES],
}

#[derive(Default)]
struct Lane {
    sent: u32,
    acknowledged: BTreeSet<u32>,
    open: Vec<u32>,
}

impl Chargers {
    pub(super) fn new(now_ms: i64) -> Self {
        Self {
            start_ms: now_ms - 60 * DAY_MS,
            lanes: Default::default(),
        }
    }

    fn event(&self, lane: usize, number: u32) -> Value {
        json!({
            "wireless_device_id": charger(lane),
            "event_type": "telemetry",
            "occurred_at": self.start_ms + i64::from(number) * 1000,
            "data": {"current_ma": value_of(lane, number)},
        })
    }

    async fn verify_lane(&self, clients: &mut Clients, lane: usize) -> Result<(), Problem> {
        let (sent, acknowledged) = {
            let lane = lock(&self.lanes[lane]);
            (lane.sent, lane.acknowledged.clone())
        };
        if sent == 0 {
            return Ok(());
        }
        let (from, to) = (self.start_ms, self.start_ms + 60 * DAY_MS);
        let path = format!(
            "/v1/chargers/{}/events?from={from}&to={to}&order=asc&limit={PAGE_LIMIT}",
            charger(lane)
        );
        let stored = pages(clients, &path, "events").await?;
        let mut found = BTreeSet::new();
        for event in &stored {
            let at_ms = event["timestamp_utc_ms"].as_i64().unwrap_or_default();
            let number = u32::try_from((at_ms - self.start_ms) / 1000).unwrap_or(u32::MAX);
            if number >= sent || event["data"] != self.event(lane, number)["data"] {
                return violation(format!("chargers: {event} was never sent"));
            }
            if !found.insert(number) {
                return violation(format!(
                    "chargers: event {number} of {lane} is stored twice"
                ));
            }
        }
        let missing: Vec<&u32> = acknowledged.difference(&found).collect();
        if !missing.is_empty() {
            return violation(format!(
                "chargers: {} of {} acknowledged events of charger {lane} are missing, {} first",
                missing.len(),
                acknowledged.len(),
                missing[0]
            ));
        }
        Ok(())
    }
}

fn charger(lane: usize) -> String {
    format!("c014ea6{lane}-0000-4000-8000-0000000000{lane:02x}")
}

#[async_trait]
impl Workload for Chargers {
    fn name(&self) -> &'static str {
        "chargers"
    }

    fn lanes(&self) -> usize {
        LANES
    }

    async fn prepare(&self, _: &mut Clients) -> Result<(), String> {
        Ok(())
    }

    async fn write(
        &self,
        lane: usize,
        clients: &mut Clients,
        random: &mut SeededRandom,
    ) -> Result<OperationResult, String> {
        let batch = {
            let mut lane = lock(&self.lanes[lane]);
            if lane.open.is_empty() {
                let count = 1 + random.below(BATCH_MAX);
                let first = lane.sent;
                lane.sent += u32::try_from(count).unwrap_or(1);
                lane.open = (first..lane.sent).collect();
            }
            lane.open.clone()
        };
        let events: Vec<Value> = batch.iter().map(|n| self.event(lane, *n)).collect();
        let body = json!({ "events": events });
        let path = "/v1/chargers/events";
        match clients
            .http(Caller::Operator, "POST", path, Some(&body))
            .await
        {
            Reply::Done(answer) => {
                let mut state = lock(&self.lanes[lane]);
                let (mut open, mut has_stored) = (Vec::new(), false);
                for (at, number) in batch.into_iter().enumerate() {
                    match answer["results"][at]["status"].as_str() {
                        Some(status @ ("stored" | "duplicate")) => {
                            state.acknowledged.insert(number);
                            has_stored |= status == "stored";
                        }
                        _ => open.push(number),
                    }
                }
                let all = open.is_empty();
                state.open = open;
                Ok(match (all, has_stored) {
                    (true, true) => OperationResult::Acknowledged,
                    (true, false) => OperationResult::Read,
                    (false, _) => OperationResult::Refused,
                })
            }
            Reply::Refused(..) => Ok(OperationResult::Refused),
            Reply::Unknown(_) => Ok(OperationResult::Unknown),
        }
    }

    async fn verify(&self, clients: &mut Clients, _: Scope) -> Result<(), Problem> {
        for lane in 0..LANES {
            self.verify_lane(clients, lane).await?;
        }
        Ok(())
    }
}
