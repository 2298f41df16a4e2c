//! Single items over DynamoDB's protocol: counters that conditional updates increment, and one counter that all lanes
//! share. The stream of their table shows every change.

use std::sync::Mutex;

use async_trait::async_trait;
use serde_json::{Value, json};

use super::{
    OperationResult, Problem, Scope, Workload, create_table, lock, number, stream, violation,
};
use crate::clients::{Clients, Reply};
use homeport_simulate::SeededRandom;

const TABLE: &str = "torture-counters";
const LANES: usize = 2;

pub(super) struct Counters {
    /// The value of each lane's counter, and whether one more increment may be stored.
    own: [Mutex<(i64, bool)>; LANES],
    shared: Mutex<Shared>,
}

#[derive(Default)]
struct Shared {
    acknowledged: i64,
    unknown: i64,
    /// The greatest value seen.
    seen: i64,
}

impl Counters {
    pub(super) fn new() -> Self {
        Self {
            own: Default::default(),
            shared: Mutex::default(),
        }
    }

    /// Increments the lane's counter, on the condition that it has the known value.
    async fn raise_own(
        &self,
        lane: usize,
        clients: &mut Clients,
    ) -> Result<OperationResult, String> {
        let (known, is_open) = *lock(&self.own[lane]);
        if is_open {
            return self.resolve(lane, clients, known).await;
        }
        let mut request = json!({
            "TableName": TABLE, "Key": key(&format!("own-{lane}")),
            "UpdateExpression": "SET n = :new",
            "ConditionExpression": "attribute_not_exists(n)",
            "ExpressionAttributeValues": {":new": n(known + 1)},
        });
        if known > 0 {
            request["ConditionExpression"] = json!("n = :old");
            request["ExpressionAttributeValues"][":old"] = n(known);
        }
        let reply = clients.dynamodb("UpdateItem", &request).await;
        if reply.is_refused_with("ConditionalCheckFailedException") {
            return Err(format!("counters: own-{lane} is not {known} any more"));
        }
        let mut state = lock(&self.own[lane]);
        Ok(match reply {
            Reply::Done(_) => {
                *state = (known + 1, false);
                OperationResult::Acknowledged
            }
            Reply::Refused(..) => OperationResult::Refused,
            Reply::Unknown(_) => {
                *state = (known, true);
                OperationResult::Unknown
            }
        })
    }

    /// Determines whether an update without a response was carried out.
    async fn resolve(
        &self,
        lane: usize,
        clients: &mut Clients,
        known: i64,
    ) -> Result<OperationResult, String> {
        let Ok(now) = read(clients, &format!("own-{lane}")).await else {
            return Ok(OperationResult::Unknown);
        };
        if now != known && now != known + 1 {
            return Err(format!("counters: own-{lane} is {now} after {known}"));
        }
        *lock(&self.own[lane]) = (now, false);
        Ok(OperationResult::Read)
    }

    async fn raise_shared(&self, clients: &mut Clients) -> Result<OperationResult, String> {
        let floor = lock(&self.shared).seen;
        let request = json!({
            "TableName": TABLE, "Key": key("shared"),
            "UpdateExpression": "ADD n :one", "ReturnValues": "UPDATED_NEW",
            "ExpressionAttributeValues": {":one": n(1)},
        });
        let reply = clients.dynamodb("UpdateItem", &request).await;
        let mut shared = lock(&self.shared);
        match reply {
            Reply::Done(answer) => {
                let new = number(&answer["Attributes"], "n").unwrap_or_default();
                if new <= floor {
                    return Err(format!("counters: shared became {new} after {floor}"));
                }
                shared.acknowledged += 1;
                shared.seen = shared.seen.max(new);
                Ok(OperationResult::Acknowledged)
            }
            Reply::Refused(..) => Ok(OperationResult::Refused),
            Reply::Unknown(_) => {
                shared.unknown += 1;
                Ok(OperationResult::Unknown)
            }
        }
    }

    async fn read_shared(&self, clients: &mut Clients) -> Result<OperationResult, String> {
        let floor = lock(&self.shared).seen;
        let Ok(now) = read(clients, "shared").await else {
            return Ok(OperationResult::Unknown);
        };
        if now < floor {
            return Err(format!("counters: shared is {now}, and {floor} was seen"));
        }
        let mut shared = lock(&self.shared);
        shared.seen = shared.seen.max(now);
        Ok(OperationResult::Read)
    }
}

fn key(name: &str) -> Value {
    json!({"pk": {"S": name}})
}

fn n(value: i64) -> Value {
    json!({"N": value.to_string()})
}

async fn read(clients: &mut Clients, name: &str) -> Result<i64, String> {
    let request = json!({"TableName": TABLE, "Key": key(name), "ConsistentRead": true});
    let answer = clients.dynamodb("GetItem", &request).await.done()?;
    Ok(number(&answer["Item"], "n").unwrap_or_default())
}

#[async_trait]
impl Workload for Counters {
    fn name(&self) -> &'static str {
        "counters"
    }

    fn lanes(&self) -> usize {
        LANES
    }

    async fn prepare(&self, clients: &mut Clients) -> Result<(), String> {
        let definition = json!({
            "TableName": TABLE,
            "StreamSpecification": {"StreamEnabled": true, "StreamViewType": "NEW_AND_OLD_IMAGES"},
        });
        create_table(clients, definition).await
    }

    async fn write(
        &self,
        lane: usize,
        clients: &mut Clients,
        random: &mut SeededRandom,
    ) -> Result<OperationResult, String> {
        match random.below(3) {
            0 => self.raise_own(lane, clients).await,
            1 => self.raise_shared(clients).await,
            _ => self.read_shared(clients).await,
        }
    }

    async fn verify(&self, clients: &mut Clients, _: Scope) -> Result<(), Problem> {
        let streamed = stream::counters(clients, TABLE).await?;
        let check_stream = |name: &str, now: i64| {
            let last = streamed.get(name).copied().unwrap_or_default();
            if last == now {
                return Ok(());
            }
            violation(format!(
                "counters: {name} is {now}, and {last} by the stream"
            ))
        };
        for lane in 0..LANES {
            let (known, is_open) = *lock(&self.own[lane]);
            let name = format!("own-{lane}");
            let now = read(clients, &name).await?;
            check_stream(&name, now)?;
            if now != known && !(is_open && now == known + 1) {
                return violation(format!("counters: own-{lane} is {now} instead of {known}"));
            }
        }
        let now = read(clients, "shared").await?;
        check_stream("shared", now)?;
        let shared = lock(&self.shared);
        let most = shared.acknowledged + shared.unknown;
        if now < shared.acknowledged.max(shared.seen) || now > most {
            return violation(format!(
                "counters: shared is {now}; {} raises were acknowledged, {} are unknown, {} was seen",
                shared.acknowledged, shared.unknown, shared.seen
            ));
        }
        Ok(())
    }
}
