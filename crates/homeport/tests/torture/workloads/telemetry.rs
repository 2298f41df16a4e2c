//! Telemetry over MQTT with QoS 1: acknowledged messages are stored, and reach a subscriber with a durable session at
//! least once.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use serde_json::{Value, json};

use super::{
    OperationResult, Problem, Scope, Workload, create_key, lock, pages, value_of, violation,
};
use crate::clients::Clients;
use crate::mqtt::{Connection, Message};
use crate::server::ADMIN_TOKEN;
use crate::target::{Addresses, Target};
use homeport_simulate::SeededRandom;

const LANES: usize = 2;
const BATCH_MAX: usize = 10;
const PAGE_LIMIT: usize = 1000;
const SUBSCRIBER: &str = "torture-subscriber";
const FILTER: &str = "van/+/telemetry";
/// Limit for a message to reach the subscriber once the writers are paused.
const DELIVERY_MAX: Duration = Duration::from_secs(30);
const POLL_EVERY: Duration = Duration::from_millis(20);
const MESSAGES_PER_CONNECTION_MAX: usize = 300;
const AWAY_MS_MAX: usize = 400;

pub(crate) struct Telemetry {
    key: Mutex<String>,
    lanes: [Mutex<Lane>; LANES],
    received: Mutex<BTreeSet<(usize, u32)>>,
    has_subscribed: AtomicBool,
    violations: Mutex<Vec<String>>,
}

#[derive(Default)]
struct Lane {
    sent: u32,
    acknowledged: BTreeSet<u32>,
    /// Messages seen in the store, acknowledged or not: a seen message must stay.
    seen: BTreeSet<u32>,
}

impl Telemetry {
    pub(super) fn new() -> Self {
        Self {
            key: Mutex::default(),
            lanes: Default::default(),
            received: Mutex::default(),
            has_subscribed: AtomicBool::new(false),
            violations: Mutex::default(),
        }
    }

    /// Receives messages during the whole round over consecutive connections. Between connections messages queue in the
    /// session.
    pub(crate) async fn subscribe(
        &self,
        target: Target,
        stop: &AtomicBool,
        mut random: SeededRandom,
    ) {
        while !stop.load(Ordering::Relaxed) {
            if let Some(addresses) = target.now() {
                let count = 1 + random.below(MESSAGES_PER_CONNECTION_MAX);
                // A connection may end with an error when the server ends or during a fault.
                let _ = self.receive(addresses, &target, stop, count).await;
            }
            let away = u64::try_from(random.below(AWAY_MS_MAX)).unwrap_or_default();
            tokio::time::sleep(Duration::from_millis(away)).await;
        }
    }

    async fn receive(
        &self,
        addresses: Addresses,
        target: &Target,
        stop: &AtomicBool,
        count: usize,
    ) -> Result<(), String> {
        let opened = Connection::open(addresses.mqtt, SUBSCRIBER, ("admin", ADMIN_TOKEN), false);
        let (mut connection, is_resumed) = opened.await?;
        if self.has_subscribed.load(Ordering::Relaxed) && !is_resumed {
            let text = "telemetry: the server lost a durable session".to_owned();
            lock(&self.violations).push(text);
        }
        if !is_resumed {
            connection.subscribe(FILTER).await?;
            self.has_subscribed.store(true, Ordering::Relaxed);
        }
        let mut left = count;
        while left > 0 && !stop.load(Ordering::Relaxed) && target.now() == Some(addresses) {
            let Some(message) = connection.receive(POLL_EVERY).await? else {
                continue;
            };
            match parse(&message) {
                Some(known) => {
                    lock(&self.received).insert(known);
                }
                None => lock(&self.violations).push(format!(
                    "telemetry: {} carries {:?}, which nobody published",
                    message.topic, message.payload
                )),
            }
            left -= 1;
            // The last message of a connection stays unacknowledged, so that it is redelivered.
            if left > 0 {
                connection.acknowledge(&message).await?;
            }
        }
        Ok(())
    }

    /// Acknowledged messages that the subscriber has not received.
    fn undelivered(&self) -> Vec<(usize, u32)> {
        let received = lock(&self.received);
        let mut undelivered = Vec::new();
        for (lane, state) in self.lanes.iter().enumerate() {
            let state = lock(state);
            let numbers = state.acknowledged.iter().map(|number| (lane, *number));
            undelivered.extend(numbers.filter(|known| !received.contains(known)));
        }
        undelivered
    }

    async fn wait_for_delivery(&self) -> Result<(), Problem> {
        let deadline = Instant::now() + DELIVERY_MAX;
        loop {
            if let Some(text) = lock(&self.violations).pop() {
                return violation(text);
            }
            let undelivered = self.undelivered();
            if undelivered.is_empty() {
                return Ok(());
            }
            if Instant::now() > deadline {
                return violation(format!(
                    "telemetry: {} acknowledged messages did not reach the subscriber within {} s, {:?} first",
                    undelivered.len(),
                    DELIVERY_MAX.as_secs(),
                    undelivered[0]
                ));
            }
            tokio::time::sleep(POLL_EVERY).await;
        }
    }

    async fn verify_lane(
        &self,
        clients: &mut Clients,
        lane: usize,
        scope: Scope,
    ) -> Result<(), Problem> {
        let (sent, known) = {
            let lane = lock(&self.lanes[lane]);
            (lane.sent, &lane.acknowledged | &lane.seen)
        };
        let path = format!(
            "/v1/telemetry/{}?message_type=telemetry&order=asc&limit={PAGE_LIMIT}",
            thing(lane)
        );
        let stored = pages(clients, &path, "messages").await?;
        let mut found = BTreeSet::new();
        for message in &stored {
            let number = message["number"].as_u64();
            let number = number.and_then(|number| u32::try_from(number).ok());
            match number {
                Some(number)
                    if number < sent
                        && message["speed"].as_u64() == Some(value_of(lane, number)) =>
                {
                    found.insert(number);
                }
                _ => return violation(format!("telemetry: {message} was never published")),
            }
        }
        let missing: Vec<&u32> = known.difference(&found).collect();
        if let Some(first) = missing.first() {
            return violation(format!(
                "telemetry: {} of {} acknowledged or seen messages of {lane} are not stored, {first} first",
                missing.len(),
                known.len()
            ));
        }
        if scope == Scope::Live {
            lock(&self.lanes[lane]).seen = found;
        }
        Ok(())
    }
}

fn thing(lane: usize) -> String {
    format!("torture-{lane}")
}

fn payload(lane: usize, number: u32) -> String {
    json!({"number": number, "speed": value_of(lane, number)}).to_string()
}

fn parse(message: &Message) -> Option<(usize, u32)> {
    let lane = message.topic.strip_prefix("van/torture-")?;
    let lane = lane.strip_suffix("/telemetry")?.parse().ok()?;
    let body: Value = serde_json::from_slice(&message.payload).ok()?;
    let number = u32::try_from(body["number"].as_u64()?).ok()?;
    (body["speed"].as_u64() == Some(value_of(lane, number))).then_some((lane, number))
}

#[async_trait]
impl Workload for Telemetry {
    fn name(&self) -> &'static str {
        "telemetry"
    }

    fn lanes(&self) -> usize {
        LANES
    }

    async fn prepare(&self, clients: &mut Clients) -> Result<(), String> {
        *lock(&self.key) = create_key(clients, "telemetry").await?;
        let deadline = Instant::now() + DELIVERY_MAX;
        while !self.has_subscribed.load(Ordering::Relaxed) {
            if Instant::now() > deadline {
                return Err("the subscriber does not get a subscription".to_owned());
            }
            tokio::time::sleep(POLL_EVERY).await;
        }
        Ok(())
    }

    async fn write(
        &self,
        lane: usize,
        clients: &mut Clients,
        random: &mut SeededRandom,
    ) -> Result<OperationResult, String> {
        let Some(addresses) = clients.target().now() else {
            return Ok(OperationResult::Refused);
        };
        let key = lock(&self.key).clone();
        let thing = thing(lane);
        let opened = Connection::open(addresses.mqtt, &thing, (&thing, &key), true);
        let Ok((mut connection, _)) = opened.await else {
            return Ok(OperationResult::Refused);
        };
        let mut ended = OperationResult::Acknowledged;
        for _ in 0..=random.below(3) {
            let numbers: Vec<u32> = {
                let mut lane = lock(&self.lanes[lane]);
                let first = lane.sent;
                lane.sent += u32::try_from(1 + random.below(BATCH_MAX)).unwrap_or(1);
                (first..lane.sent).collect()
            };
            let payloads: Vec<String> = numbers.iter().map(|n| payload(lane, *n)).collect();
            let topic = format!("van/{thing}/telemetry");
            let acknowledged = connection.publish(&topic, &payloads).await;
            let mut state = lock(&self.lanes[lane]);
            for at in &acknowledged {
                state.acknowledged.insert(numbers[*at]);
            }
            if acknowledged.len() < numbers.len() {
                ended = OperationResult::Unknown;
                break;
            }
        }
        Ok(ended)
    }

    async fn verify(&self, clients: &mut Clients, scope: Scope) -> Result<(), Problem> {
        if scope == Scope::Live {
            self.wait_for_delivery().await?;
        }
        for lane in 0..LANES {
            self.verify_lane(clients, lane, scope).await?;
        }
        Ok(())
    }
}
