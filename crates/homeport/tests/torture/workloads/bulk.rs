//! Large items that are overwritten repeatedly, so that journals rotate and table files are written and merged. Each item
//! contains its version, which determines its content.

use std::collections::BTreeMap;
use std::sync::Mutex;

use async_trait::async_trait;
use serde_json::json;

use super::{OperationResult, Problem, Scope, Workload, create_table, lock, number, violation};
use crate::clients::{Clients, Reply};
use homeport_simulate::SeededRandom;

const TABLE: &str = "torture-bulk";
const ITEMS: usize = 24;
const WORDS: usize = 10_000;

pub(super) struct Bulk {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    next: i64,
    /// By item: the newest acknowledged version, and later ones without a response.
    items: BTreeMap<usize, (i64, Vec<i64>)>,
}

impl Bulk {
    pub(super) fn new() -> Self {
        Self {
            state: Mutex::default(),
        }
    }

    async fn put(&self, clients: &mut Clients, item: usize) -> Result<OperationResult, String> {
        let version = {
            let mut state = lock(&self.state);
            state.next += 1;
            let version = state.next;
            state.items.entry(item).or_default().1.push(version);
            version
        };
        // With the condition, an older version never replaces a newer one.
        let request = json!({
            "TableName": TABLE,
            "Item": {
                "pk": {"S": item.to_string()}, "version": {"N": version.to_string()},
                "content": {"S": content(version)},
            },
            "ConditionExpression": "attribute_not_exists(pk) OR version < :v",
            "ExpressionAttributeValues": {":v": {"N": version.to_string()}},
        });
        let reply = clients.dynamodb("PutItem", &request).await;
        if reply.is_refused_with("ConditionalCheckFailedException") {
            return Err(format!("bulk: item {item} is newer than version {version}"));
        }
        let mut state = lock(&self.state);
        let known = state.items.entry(item).or_default();
        Ok(match reply {
            Reply::Done(_) => {
                *known = (version, Vec::new());
                OperationResult::Acknowledged
            }
            Reply::Refused(..) => {
                known.1.retain(|open| *open != version);
                OperationResult::Refused
            }
            Reply::Unknown(_) => OperationResult::Unknown,
        })
    }

    async fn check(&self, clients: &mut Clients, item: usize) -> Result<(), Problem> {
        let (acknowledged, open) = lock(&self.state)
            .items
            .get(&item)
            .cloned()
            .unwrap_or_default();
        let key = json!({"pk": {"S": item.to_string()}});
        let request = json!({"TableName": TABLE, "Key": key, "ConsistentRead": true});
        let answer = clients.dynamodb("GetItem", &request).await.done()?;
        let version = number(&answer["Item"], "version").unwrap_or_default();
        if version != acknowledged && !open.contains(&version) {
            return violation(format!(
                "bulk: item {item} has version {version}; {acknowledged} was acknowledged"
            ));
        }
        let stored = answer["Item"]["content"]["S"].as_str();
        if version > 0 && stored != Some(content(version).as_str()) {
            return violation(format!(
                "bulk: the content of item {item} is not that of {version}"
            ));
        }
        Ok(())
    }
}

/// The content of a version, which does not compress well.
fn content(version: i64) -> String {
    let mut random = SeededRandom::new([version.unsigned_abs()]);
    (0..WORDS)
        .map(|_| format!("{:016x}", random.next_u64()))
        .collect()
}

#[async_trait]
impl Workload for Bulk {
    fn name(&self) -> &'static str {
        "bulk"
    }

    /// One writer, which knows the newest version.
    fn lanes(&self) -> usize {
        1
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
        let item = random.below(ITEMS);
        if random.once_in(2) {
            return self.put(clients, item).await;
        }
        match self.check(clients, item).await {
            Ok(()) => Ok(OperationResult::Read),
            Err(Problem::Violation(why)) => Err(why),
            Err(Problem::Unreadable(_)) => Ok(OperationResult::Unknown),
        }
    }

    async fn verify(&self, clients: &mut Clients, _: Scope) -> Result<(), Problem> {
        for item in 0..ITEMS {
            self.check(clients, item).await?;
        }
        Ok(())
    }
}
