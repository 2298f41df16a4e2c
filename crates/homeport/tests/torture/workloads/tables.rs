//! Tables that are created, changed and deleted. A change adds an index to a table or removes it.

use std::collections::BTreeMap;
use std::sync::Mutex;

use async_trait::async_trait;
use serde_json::{Value, json};

use super::{OperationResult, Problem, Scope, Workload, lock, number, scan, violation};
use crate::clients::{Clients, Reply};
use crate::target::Addresses;
use homeport_simulate::SeededRandom;

const LANES: usize = 1;
const ITEMS: i64 = 5;
const KEPT_MAX: usize = 4;
const INDEX: &str = "by-n";

pub(super) struct Tables {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    next: u32,
    tables: BTreeMap<String, Table>,
}

/// The certain knowledge about a table.
#[derive(Debug, Clone, Copy)]
struct Table {
    table: Known,
    index: Known,
    /// The server that received the last operation. Operations of earlier servers have ended.
    sent_to: Option<Addresses>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Known {
    Present,
    /// Exists without items: it was created, and the transaction was not carried out.
    Empty,
    Absent,
    Unknown,
}

impl Tables {
    pub(super) fn new() -> Self {
        Self {
            state: Mutex::default(),
        }
    }

    fn set(&self, clients: &Clients, name: &str, table: Known, index: Known) {
        let sent_to = clients.target().now();
        let table = Table {
            table,
            index,
            sent_to,
        };
        lock(&self.state).tables.insert(name.to_owned(), table);
    }

    async fn create(&self, clients: &mut Clients) -> OperationResult {
        let name = {
            let mut state = lock(&self.state);
            state.next += 1;
            format!("torture-table-{}", state.next)
        };
        self.set(clients, &name, Known::Unknown, Known::Absent);
        if super::create_table(clients, json!({"TableName": name}))
            .await
            .is_err()
        {
            return OperationResult::Unknown;
        }
        let puts: Vec<Value> = (0..ITEMS)
            .map(|n| json!({"Put": {"TableName": name, "Item": {"pk": {"S": n.to_string()}, "n": {"N": n.to_string()}}}}))
            .collect();
        let request = json!({ "TransactItems": puts });
        self.set(clients, &name, Known::Unknown, Known::Absent);
        match clients.dynamodb("TransactWriteItems", &request).await {
            Reply::Done(_) => {
                self.set(clients, &name, Known::Present, Known::Absent);
                OperationResult::Acknowledged
            }
            Reply::Refused(..) => OperationResult::Refused,
            Reply::Unknown(_) => OperationResult::Unknown,
        }
    }

    async fn delete(&self, clients: &mut Clients, name: &str) -> Result<OperationResult, String> {
        self.set(clients, name, Known::Unknown, Known::Unknown);
        let request = json!({"TableName": name});
        let reply = clients.dynamodb("DeleteTable", &request).await;
        match reply {
            Reply::Done(_) => {
                self.set(clients, name, Known::Absent, Known::Absent);
                Ok(OperationResult::Acknowledged)
            }
            Reply::Refused(0, _) | Reply::Unknown(_) => Ok(OperationResult::Unknown),
            Reply::Refused(..) if reply.is_refused_with("ResourceNotFoundException") => {
                Err(format!("tables: {name} was acknowledged and is gone"))
            }
            Reply::Refused(..) => Ok(OperationResult::Refused),
        }
    }

    /// Adds the index, or removes it, and waits until that is done.
    async fn change(&self, clients: &mut Clients, name: &str, index: Known) -> OperationResult {
        let (change, wanted, later) = if index == Known::Absent {
            let create = json!({"Create": {
                "IndexName": INDEX,
                "KeySchema": [{"AttributeName": "n", "KeyType": "HASH"}],
                "Projection": {"ProjectionType": "ALL"},
            }});
            (create, Some("ACTIVE"), Known::Present)
        } else {
            let delete = json!({"Delete": {"IndexName": INDEX}});
            (delete, None, Known::Absent)
        };
        let attribute =
            |name: &str, kind: &str| json!({"AttributeName": name, "AttributeType": kind});
        let request = json!({
            "TableName": name,
            "AttributeDefinitions": [attribute("pk", "S"), attribute("n", "N")],
            "GlobalSecondaryIndexUpdates": [change],
        });
        self.set(clients, name, Known::Present, Known::Unknown);
        match clients.dynamodb("UpdateTable", &request).await {
            Reply::Done(_) => {}
            Reply::Refused(..) => return OperationResult::Refused,
            Reply::Unknown(_) => return OperationResult::Unknown,
        }
        match wait_for_index(clients, name, wanted).await {
            Ok(()) => {
                self.set(clients, name, Known::Present, later);
                OperationResult::Acknowledged
            }
            Err(_) => OperationResult::Unknown,
        }
    }
}

/// Waits until the index has a status, or is deleted.
async fn wait_for_index(
    clients: &mut Clients,
    name: &str,
    wanted: Option<&str>,
) -> Result<(), String> {
    for _ in 0..super::WAIT_POLLS_MAX {
        let request = json!({"TableName": name});
        let answer = clients.dynamodb("DescribeTable", &request).await.done()?;
        let index = &answer["Table"]["GlobalSecondaryIndexes"][0];
        if index["IndexStatus"].as_str() == wanted {
            return Ok(());
        }
        tokio::time::sleep(super::WAIT_POLL).await;
    }
    Err(format!("the index of {name} does not become {wanted:?}"))
}

#[async_trait]
impl Workload for Tables {
    fn name(&self) -> &'static str {
        "tables"
    }

    fn lanes(&self) -> usize {
        LANES
    }

    async fn prepare(&self, _: &mut Clients) -> Result<(), String> {
        Ok(())
    }

    async fn write(
        &self,
        _: usize,
        clients: &mut Clients,
        random: &mut SeededRandom,
    ) -> Result<OperationResult, String> {
        let present: Vec<(String, Known)> = {
            let state = lock(&self.state);
            let tables = state.tables.iter();
            tables
                .filter(|(_, known)| known.table == Known::Present)
                .map(|(name, known)| (name.clone(), known.index))
                .collect()
        };
        if present.is_empty() {
            return Ok(self.create(clients).await);
        }
        let (name, index) = random.pick(&present);
        if present.len() > KEPT_MAX {
            return self.delete(clients, name).await;
        }
        match random.below(4) {
            0 => self.delete(clients, name).await,
            1 | 2 if *index != Known::Unknown => Ok(self.change(clients, name, *index).await),
            _ => Ok(self.create(clients).await),
        }
    }

    async fn verify(&self, clients: &mut Clients, scope: Scope) -> Result<(), Problem> {
        let tables = lock(&self.state).tables.clone();
        for (name, known) in tables {
            let found = inspect(clients, &name).await?;
            match (known.table, found.table) {
                (Known::Absent, Known::Present | Known::Empty) => {
                    return violation(format!("tables: {name} was deleted and is there"));
                }
                (Known::Present | Known::Empty, Known::Absent) => {
                    return violation(format!("tables: {name} was created and is missing"));
                }
                (Known::Present | Known::Empty, Known::Unknown) => {
                    return violation(format!("tables: {name} is created or deleted once more"));
                }
                (Known::Present, Known::Empty) => {
                    return violation(format!("tables: {name} lost its items"));
                }
                (Known::Empty, Known::Present) => {
                    return violation(format!("tables: {name} was empty and has items"));
                }
                _ => {}
            }
            match (known.index, found.index) {
                (Known::Present, Known::Absent) if known.table == Known::Present => {
                    return violation(format!("tables: {name} lost its index"));
                }
                (Known::Absent, Known::Present) if known.table == Known::Present => {
                    return violation(format!(
                        "tables: the index of {name} was removed and is there"
                    ));
                }
                _ => {}
            }
            // The server that received a request without a response may still carry it out.
            let is_unknown = known.table == Known::Unknown || known.index == Known::Unknown;
            let is_over = known.sent_to != clients.target().now();
            if scope == Scope::Live && is_unknown && is_over {
                self.set(clients, &name, found.table, found.index);
            }
        }
        Ok(())
    }
}

/// A table's state: missing, empty, or with all items of its transaction in table and index.
async fn inspect(clients: &mut Clients, name: &str) -> Result<Inspected, Problem> {
    let request = json!({"TableName": name});
    let reply = clients.dynamodb("DescribeTable", &request).await;
    if reply.is_refused_with("ResourceNotFoundException") {
        return Ok(Inspected {
            table: Known::Absent,
            index: Known::Absent,
        });
    }
    let described = reply.done()?;
    let index = &described["Table"]["GlobalSecondaryIndexes"][0]["IndexStatus"];
    let index = match index.as_str() {
        None => Known::Absent,
        Some("ACTIVE") => Known::Present,
        Some(_) => Known::Unknown,
    };
    let status = &described["Table"]["TableStatus"];
    if status == "CREATING" || status == "DELETING" {
        return Ok(Inspected {
            table: Known::Unknown,
            index,
        });
    }
    let request = json!({"TableName": name, "ConsistentRead": true});
    let items = scan(clients, request).await?;
    if items.is_empty() {
        let table = Known::Empty;
        return Ok(Inspected { table, index });
    }
    check_items(name, &items)?;
    if index == Known::Present {
        let request = json!({"TableName": name, "IndexName": INDEX});
        check_items(name, &scan(clients, request).await?)?;
    }
    let table = Known::Present;
    Ok(Inspected { table, index })
}

struct Inspected {
    table: Known,
    index: Known,
}

/// Checks that a table and its index contain the items that were put in one transaction.
fn check_items(name: &str, items: &[Value]) -> Result<(), Problem> {
    let mut numbers: Vec<i64> = items.iter().filter_map(|item| number(item, "n")).collect();
    numbers.sort_unstable();
    if numbers.iter().copied().eq(0..ITEMS) {
        return Ok(());
    }
    violation(format!("tables: {name} or its index holds {numbers:?}"))
}
