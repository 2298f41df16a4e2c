//! Sensor readings over HTTP in idempotent batches: each must be stored exactly once.

use std::collections::BTreeSet;
use std::sync::Mutex;

use async_trait::async_trait;
use serde_json::{Value, json};

use super::{
    OperationResult, Problem, Scope, Workload, create_key, lock, pages, value_of, violation,
};
use crate::clients::{Caller, Clients, Reply};
use homeport_simulate::SeededRandom;

const LANES: usize = 2;
const BATCH_MAX: usize = 20;
const DAY_MS: i64 = 86_400_000;
const PAGE_LIMIT: usize = 1000;
const BOOT_ID: &str = "7d9f2c34-5b61-4e0a-9c3d-2f1e0a9b8c7d";

/// One device for each lane.
pub(super) struct Sensors {
    start_ms: i64,
    key: Mutex<String>,
    lanes: [Mutex<Lane>; LANES],
}

#[derive(Default)]
struct Lane {
    /// Readings that were sent at least once.
    sent: u32,
    acknowledged: BTreeSet<u32>,
    /// A batch that is repeated until it is acknowledged.
    open: Vec<u32>,
}

impl Sensors {
    pub(super) fn new(now_ms: i64) -> Self {
        Self {
            start_ms: now_ms - 60 * DAY_MS,
            key: Mutex::default(),
            lanes: Default::default(),
        }
    }

    fn reading(&self, lane: usize, number: u32) -> Value {
        let end_ms = self.start_ms + i64::from(number + 1) * 1000;
        let hardware_id = hardware_id(lane);
        json!({
            "batch_id": format!("{hardware_id}_{BOOT_ID}_{}_{end_ms}", end_ms - 1000),
            "hardware_id": hardware_id,
            "boot_id": BOOT_ID,
            "firmware_version": "1.0.16",
            "timestamp_ms": end_ms,
            "sensors": {"light_lux": value_of(lane, number)},
            "sensor_status": {"light": "ok"},
        })
    }

    async fn verify_lane(&self, clients: &mut Clients, lane: usize) -> Result<(), Problem> {
        let (sent, acknowledged) = {
            let lane = lock(&self.lanes[lane]);
            (lane.sent, lane.acknowledged.clone())
        };
        let (from, to) = (self.start_ms, self.start_ms + 60 * DAY_MS);
        let path = format!(
            "/v1/sensors/devices/{}/readings?from={from}&to={to}&order=asc&limit={PAGE_LIMIT}",
            hardware_id(lane)
        );
        let stored = pages(clients, &path, "readings").await?;
        let mut found = BTreeSet::new();
        for reading in &stored {
            let at_ms = reading["timestamp_ms"].as_i64().unwrap_or_default();
            let number = u32::try_from((at_ms - self.start_ms) / 1000 - 1).unwrap_or(u32::MAX);
            let expected = self.reading(lane, number.min(sent));
            let is_sent = number < sent && reading["batch_id"] == expected["batch_id"];
            let value = reading["sensors"]["light_lux"].as_f64();
            if !is_sent || value != expected["sensors"]["light_lux"].as_f64() {
                return violation(format!("sensors: {reading} was never sent"));
            }
            if !found.insert(number) {
                return violation(format!(
                    "sensors: reading {number} of {lane} is stored twice"
                ));
            }
        }
        let missing: Vec<&u32> = acknowledged.difference(&found).collect();
        if !missing.is_empty() {
            return violation(format!(
                "sensors: {} of {} acknowledged readings of device {lane} are missing, {} first",
                missing.len(),
                acknowledged.len(),
                missing[0]
            ));
        }
        Ok(())
    }
}

fn hardware_id(lane: usize) -> String {
    format!("02:00:00:00:00:{lane:02X}")
}

#[async_trait]
impl Workload for Sensors {
    fn name(&self) -> &'static str {
        "sensors"
    }

    fn lanes(&self) -> usize {
        LANES
    }

    async fn prepare(&self, clients: &mut Clients) -> Result<(), String> {
        let key = create_key(clients, "sensors").await?;
        for lane in 0..LANES {
            let body = json!({
                "hardware_id": hardware_id(lane), "boot_id": BOOT_ID, "firmware_version": "1.0.16",
                "capabilities": {"sensors": ["light"], "features": {}},
            });
            let caller = Caller::Device(&key);
            let path = "/v1/sensors/register";
            clients
                .http(caller, "POST", path, Some(&body))
                .await
                .done()?;
        }
        *lock(&self.key) = key;
        Ok(())
    }

    async fn write(
        &self,
        lane: usize,
        clients: &mut Clients,
        random: &mut SeededRandom,
    ) -> Result<OperationResult, String> {
        let key = lock(&self.key).clone();
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
        let readings: Vec<Value> = batch.iter().map(|n| self.reading(lane, *n)).collect();
        let body = json!({ "readings": readings });
        let caller = Caller::Device(&key);
        let path = "/v1/sensors/data";
        match clients.http(caller, "POST", path, Some(&body)).await {
            Reply::Done(answer) => {
                let mut state = lock(&self.lanes[lane]);
                let (mut open, mut has_stored) = (Vec::new(), false);
                for (at, number) in batch.into_iter().enumerate() {
                    match answer["results"][at]["status"].as_str() {
                        Some(status @ ("stored" | "duplicate")) => {
                            state.acknowledged.insert(number);
                            has_stored |= status == "stored";
                        }
                        // While the clock is far ahead, old readings count as expired.
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
