//! Lists that only grow, written and read by transactions and single-item operations. The history of all of them is
//! checked for serializability.

use std::collections::BTreeMap;
use std::sync::Mutex;

use async_trait::async_trait;
use serde_json::{Value, json};

use super::{OperationResult, Problem, Scope, Workload, create_table, lock, violation};
use crate::clients::{Clients, Reply};
use crate::history::{Action, Key, Outcome, Recorder};
use homeport_simulate::SeededRandom;

const TABLE: &str = "torture-registers";
const LANES: usize = 4;
/// Lists in use at one time.
const KEYS: usize = 4;
/// Appends before switching to new lists, so that reads stay small.
const APPENDS_PER_GENERATION: u32 = 400;

pub(super) struct Registers {
    recorder: Recorder,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    appends: u32,
    /// The lists as the last verification of the live server saw them.
    last_seen: BTreeMap<Key, Vec<u32>>,
}

impl Registers {
    pub(super) fn new(recorder: Recorder) -> Self {
        Self {
            recorder,
            state: Mutex::default(),
        }
    }

    /// Distinct lists among those in use.
    fn draw_keys(&self, random: &mut SeededRandom, count: usize) -> Vec<Key> {
        let mut keys = self.keys();
        while keys.len() > count {
            keys.swap_remove(random.below(keys.len()));
        }
        keys
    }

    fn keys(&self) -> Vec<Key> {
        let generation = lock(&self.state).appends / APPENDS_PER_GENERATION;
        let first = generation * u32::try_from(KEYS).unwrap_or_default();
        (first..).take(KEYS).collect()
    }

    fn next_value(&self) -> u32 {
        let mut state = lock(&self.state);
        state.appends += 1;
        state.appends
    }

    async fn append_to_several(
        &self,
        clients: &mut Clients,
        random: &mut SeededRandom,
    ) -> OperationResult {
        let count = 1 + random.below(3);
        let keys = self.draw_keys(random, count);
        let appends: Vec<(Key, u32)> = keys
            .into_iter()
            .map(|key| (key, self.next_value()))
            .collect();
        let items: Vec<Value> = appends
            .iter()
            .map(|(key, value)| json!({"Update": append(*key, *value)}))
            .collect();
        let actions = appends.iter().map(|(key, value)| Action::Append {
            key: *key,
            value: *value,
        });
        let actions: Vec<Action> = actions.collect();
        self.transact(clients, &items, actions).await
    }

    /// Appends to one list on the condition that another is unchanged since it was read.
    async fn append_after_reading(
        &self,
        clients: &mut Clients,
        random: &mut SeededRandom,
    ) -> OperationResult {
        let keys = self.draw_keys(random, 2);
        let [read, written] = keys[..] else {
            return OperationResult::Refused;
        };
        let Some(values) = self.get(clients, read).await else {
            return OperationResult::Unknown;
        };
        let value = self.next_value();
        let mut check = json!({"TableName": TABLE, "Key": key_of(read)});
        if values.is_empty() {
            check["ConditionExpression"] = json!("attribute_not_exists(l)");
        } else {
            check["ConditionExpression"] = json!("size(l) = :n");
            check["ExpressionAttributeValues"] = json!({":n": {"N": values.len().to_string()}});
        }
        let items = [
            json!({"ConditionCheck": check}),
            json!({"Update": append(written, value)}),
        ];
        let actions = vec![
            Action::Read { key: read, values },
            Action::Append {
                key: written,
                value,
            },
        ];
        self.transact(clients, &items, actions).await
    }

    async fn transact(
        &self,
        clients: &mut Clients,
        items: &[Value],
        actions: Vec<Action>,
    ) -> OperationResult {
        let invoked = self.recorder.now_ns();
        let request = json!({ "TransactItems": items });
        let reply = clients.dynamodb("TransactWriteItems", &request).await;
        let (outcome, ended) = outcome_of(&reply);
        self.recorder.add(actions, outcome, invoked);
        ended
    }

    async fn append_and_read(
        &self,
        clients: &mut Clients,
        random: &mut SeededRandom,
    ) -> OperationResult {
        let key = self.draw_keys(random, 1)[0];
        let value = self.next_value();
        let mut request = append(key, value);
        request["ReturnValues"] = json!("ALL_NEW");
        let invoked = self.recorder.now_ns();
        let reply = clients.dynamodb("UpdateItem", &request).await;
        let (outcome, ended) = outcome_of(&reply);
        let mut actions = vec![Action::Append { key, value }];
        if let Reply::Done(answer) = &reply {
            let values = values_of(&answer["Attributes"]);
            actions.push(Action::Read { key, values });
        }
        self.recorder.add(actions, outcome, invoked);
        ended
    }

    async fn get(&self, clients: &mut Clients, key: Key) -> Option<Vec<u32>> {
        let invoked = self.recorder.now_ns();
        let request = json!({"TableName": TABLE, "Key": key_of(key), "ConsistentRead": true});
        let answer = clients.dynamodb("GetItem", &request).await.done().ok()?;
        let values = values_of(&answer["Item"]);
        let action = Action::Read {
            key,
            values: values.clone(),
        };
        self.recorder.add(vec![action], Outcome::Committed, invoked);
        Some(values)
    }

    /// Reads several lists in one transaction.
    async fn read_several(
        &self,
        clients: &mut Clients,
        keys: &[Key],
    ) -> Result<BTreeMap<Key, Vec<u32>>, String> {
        let get = |key: &Key| json!({"Get": {"TableName": TABLE, "Key": key_of(*key)}});
        let gets: Vec<Value> = keys.iter().map(get).collect();
        let request = json!({ "TransactItems": gets });
        let answer = clients
            .dynamodb("TransactGetItems", &request)
            .await
            .done()?;
        let lists = keys.iter().enumerate();
        Ok(lists
            .map(|(at, key)| (*key, values_of(&answer["Responses"][at]["Item"])))
            .collect())
    }

    async fn read_and_record(&self, clients: &mut Clients, keys: &[Key]) -> Result<(), String> {
        let invoked = self.recorder.now_ns();
        let lists = self.read_several(clients, keys).await?;
        let mut state = lock(&self.state);
        let mut actions = Vec::new();
        for (key, values) in lists {
            state.last_seen.insert(key, values.clone());
            actions.push(Action::Read { key, values });
        }
        self.recorder.add(actions, Outcome::Committed, invoked);
        Ok(())
    }
}

fn key_of(key: Key) -> Value {
    json!({"pk": {"S": format!("r{key}")}})
}

/// An update that appends a value.
fn append(key: Key, value: u32) -> Value {
    json!({
        "TableName": TABLE, "Key": key_of(key),
        "UpdateExpression": "SET l = list_append(if_not_exists(l, :e), :v)",
        "ExpressionAttributeValues": {":e": {"L": []}, ":v": {"L": [{"N": value.to_string()}]}},
    })
}

fn values_of(item: &Value) -> Vec<u32> {
    let values = item["l"]["L"].as_array().cloned().unwrap_or_default();
    let number = |value: &Value| value["N"].as_str()?.parse().ok();
    values.iter().filter_map(number).collect()
}

fn outcome_of(reply: &Reply) -> (Outcome, OperationResult) {
    match reply {
        Reply::Done(_) => (Outcome::Committed, OperationResult::Acknowledged),
        Reply::Refused(..) => (Outcome::Aborted, OperationResult::Refused),
        Reply::Unknown(_) => (Outcome::Unknown, OperationResult::Unknown),
    }
}

#[async_trait]
impl Workload for Registers {
    fn name(&self) -> &'static str {
        "registers"
    }

    fn lanes(&self) -> usize {
        LANES
    }

    async fn prepare(&self, clients: &mut Clients) -> Result<(), String> {
        create_table(clients, json!({"TableName": TABLE})).await
    }

    async fn write(
        &self,
        _: usize,
        clients: &mut Clients,
        random: &mut SeededRandom,
    ) -> Result<OperationResult, String> {
        Ok(match random.below(6) {
            0 | 1 => self.append_to_several(clients, random).await,
            2 => self.append_after_reading(clients, random).await,
            3 => self.append_and_read(clients, random).await,
            4 => {
                let key = self.draw_keys(random, 1)[0];
                match self.get(clients, key).await {
                    Some(_) => OperationResult::Read,
                    None => OperationResult::Unknown,
                }
            }
            _ => {
                let keys = self.draw_keys(random, 3);
                match self.read_and_record(clients, &keys).await {
                    Ok(()) => OperationResult::Read,
                    Err(_) => OperationResult::Unknown,
                }
            }
        })
    }

    /// On the live server, the reads join the history, whose check detects losses. In a copy, every list must contain at least
    /// what the live server showed last.
    async fn verify(&self, clients: &mut Clients, scope: Scope) -> Result<(), Problem> {
        let newest = self.keys().last().copied().unwrap_or_default();
        let keys: Vec<Key> = (0..=newest).collect();
        for keys in keys.chunks(50) {
            if scope == Scope::Live {
                self.read_and_record(clients, keys).await?;
                continue;
            }
            let lists = self.read_several(clients, keys).await?;
            let state = lock(&self.state);
            for (key, values) in lists {
                let seen = state.last_seen.get(&key).map_or(&[][..], Vec::as_slice);
                if !values.starts_with(seen) {
                    return violation(format!("registers: {key} is {values:?} after {seen:?}"));
                }
            }
        }
        Ok(())
    }
}
