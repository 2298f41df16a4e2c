//! Records over HTTP: one request each, never repeated, so each is stored at most once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use async_trait::async_trait;
use serde_json::json;

use super::{OperationResult, Problem, Scope, Workload, lock, pages, violation};
use crate::clients::{Caller, Clients, Reply};
use homeport_simulate::SeededRandom;

const DAY_MS: i64 = 86_400_000;
const PAGE_LIMIT: usize = 1000;

pub(super) struct Records {
    start_ms: i64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Path of the journal.
    journal: String,
    sent: u32,
    /// Acknowledged records, and unacknowledged ones that were seen: a seen record must stay.
    acknowledged: BTreeSet<u32>,
    refused: BTreeSet<u32>,
}

impl Records {
    pub(super) fn new(now_ms: i64) -> Self {
        Self {
            start_ms: now_ms - 60 * DAY_MS,
            state: Mutex::default(),
        }
    }
}

async fn create(
    clients: &mut Clients,
    path: &str,
    body: &serde_json::Value,
    id: &str,
) -> Result<String, String> {
    let reply = clients
        .http(Caller::Operator, "POST", path, Some(body))
        .await;
    let answer = reply.done()?;
    let id = answer["response"][id].as_str();
    id.map(str::to_owned)
        .ok_or_else(|| format!("POST {path}: {answer}"))
}

#[async_trait]
impl Workload for Records {
    fn name(&self) -> &'static str {
        "records"
    }

    async fn prepare(&self, clients: &mut Clients) -> Result<(), String> {
        let group = create(clients, "/v1/groups", &json!({"name": "torture"}), "gid").await?;
        let path = format!("/v1/groups/{group}/devices");
        let device = create(clients, &path, &json!({"name": "meter"}), "did").await?;
        let path = format!("{path}/{device}/journals");
        let body = json!({"name": "energy", "data_type": "number"});
        let journal = create(clients, &path, &body, "jid").await?;
        lock(&self.state).journal = format!("{path}/{journal}/records");
        Ok(())
    }

    async fn write(
        &self,
        _: usize,
        clients: &mut Clients,
        _: &mut SeededRandom,
    ) -> Result<OperationResult, String> {
        let (path, number) = {
            let mut state = lock(&self.state);
            let number = state.sent;
            state.sent += 1;
            (state.journal.clone(), number)
        };
        let timestamp = self.start_ms + i64::from(number) * 2000;
        let body =
            json!({"value": number, "unit": "kWh", "type": "energy", "timestamp": timestamp});
        let reply = clients
            .http(Caller::Operator, "POST", &path, Some(&body))
            .await;
        let mut state = lock(&self.state);
        Ok(match reply {
            Reply::Done(_) => {
                state.acknowledged.insert(number);
                OperationResult::Acknowledged
            }
            Reply::Refused(..) => {
                state.refused.insert(number);
                OperationResult::Refused
            }
            Reply::Unknown(_) => OperationResult::Unknown,
        })
    }

    async fn verify(&self, clients: &mut Clients, scope: Scope) -> Result<(), Problem> {
        let (journal, sent, acknowledged, refused) = {
            let state = lock(&self.state);
            let sets = (state.acknowledged.clone(), state.refused.clone());
            (state.journal.clone(), state.sent, sets.0, sets.1)
        };
        let (from, to) = (self.start_ms, self.start_ms + 60 * DAY_MS);
        let path = format!("{journal}?from={from}&to={to}&order=asc&limit={PAGE_LIMIT}");
        let stored = pages(clients, &path, "records").await?;
        let mut found: BTreeMap<u32, u32> = BTreeMap::new();
        for record in &stored {
            let number = record["value"].as_u64();
            let number = number.and_then(|number| u32::try_from(number).ok());
            let number = number.filter(|number| *number < sent && !refused.contains(number));
            let Some(number) = number else {
                return violation(format!("records: {record} was never accepted"));
            };
            *found.entry(number).or_default() += 1;
        }
        if let Some((number, count)) = found.iter().find(|(_, count)| **count > 1) {
            return violation(format!("records: record {number} is stored {count} times"));
        }
        let missing = acknowledged
            .iter()
            .find(|number| !found.contains_key(number));
        if let Some(number) = missing {
            return violation(format!(
                "records: record {number} was acknowledged or seen, and is missing"
            ));
        }
        if scope == Scope::Live {
            lock(&self.state).acknowledged.extend(found.into_keys());
        }
        Ok(())
    }
}
