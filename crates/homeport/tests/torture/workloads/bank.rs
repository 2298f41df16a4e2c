//! Bank transfers: each is one transaction that changes two accounts and adds an entry to the ledger, which an index lists
//! by account. The total of all accounts is constant.

use std::collections::BTreeSet;
use std::sync::Mutex;

use async_trait::async_trait;
use serde_json::{Value, json};

use super::bank_audit::{self, ACCOUNTS, TOTAL};
use super::{OperationResult, Problem, Scope, Workload, create_table, lock, number, violation};
use crate::clients::{Clients, Reply};
use homeport_simulate::SeededRandom;

pub(super) const TABLE: &str = "torture-bank";
const LANES: usize = 3;

pub(super) struct Bank {
    lanes: [Mutex<Lane>; LANES],
}

#[derive(Default)]
struct Lane {
    next: u32,
    acknowledged: BTreeSet<String>,
    refused: BTreeSet<String>,
    /// A transfer without a response, which is sent again with its token.
    open: Option<Transfer>,
}

#[derive(Debug, Clone)]
struct Transfer {
    id: String,
    from: usize,
    to: usize,
    amount: i64,
    is_repeat: bool,
}

impl Bank {
    pub(super) fn new() -> Self {
        Self {
            lanes: Default::default(),
        }
    }

    /// All transfers acknowledged so far.
    pub(super) fn acknowledged(&self) -> BTreeSet<String> {
        let acknowledged = |lane: &Mutex<Lane>| lock(lane).acknowledged.clone();
        self.lanes.iter().flat_map(acknowledged).collect()
    }

    async fn transfer(
        &self,
        lane: usize,
        clients: &mut Clients,
        random: &mut SeededRandom,
    ) -> Result<OperationResult, String> {
        let transfer = self.next_transfer(lane, random);
        let reply = clients
            .dynamodb("TransactWriteItems", &request(&transfer))
            .await;
        let is_in_ledger = is_in_ledger(&reply);
        let is_cancelled = reply.is_refused_with("TransactionCanceledException");
        let mut state = lock(&self.lanes[lane]);
        Ok(match reply {
            Reply::Done(_) => {
                state.acknowledged.insert(transfer.id);
                OperationResult::Acknowledged
            }
            // The first attempt was carried out, and its token has expired.
            Reply::Refused(..) if is_in_ledger && transfer.is_repeat => {
                state.acknowledged.insert(transfer.id);
                OperationResult::Read
            }
            Reply::Refused(..) if is_in_ledger => {
                return Err(format!(
                    "bank: {} is in the ledger before it was sent",
                    transfer.id
                ));
            }
            // Not sent, or rejected for another reason, so the first attempt may have been carried out.
            Reply::Refused(status, _) if status == 0 || transfer.is_repeat && !is_cancelled => {
                state.open = Some(transfer);
                OperationResult::Refused
            }
            Reply::Refused(..) => {
                state.refused.insert(transfer.id);
                OperationResult::Refused
            }
            Reply::Unknown(_) => {
                state.open = Some(Transfer {
                    is_repeat: true,
                    ..transfer
                });
                OperationResult::Unknown
            }
        })
    }

    fn next_transfer(&self, lane: usize, random: &mut SeededRandom) -> Transfer {
        let mut state = lock(&self.lanes[lane]);
        if let Some(open) = state.open.take() {
            return open;
        }
        let id = format!("{lane}-{}", state.next);
        state.next += 1;
        let from = random.below(ACCOUNTS);
        Transfer {
            id,
            from,
            to: (from + 1 + random.below(ACCOUNTS - 1)) % ACCOUNTS,
            amount: 1 + i64::try_from(random.below(300)).unwrap_or_default(),
            is_repeat: false,
        }
    }
}

fn request(transfer: &Transfer) -> Value {
    let update = |account: usize, expression: &str, condition: &str| {
        json!({"Update": {
            "TableName": TABLE, "Key": {"pk": {"S": bank_audit::account(account)}},
            "UpdateExpression": expression, "ConditionExpression": condition,
            "ExpressionAttributeValues": {":a": {"N": transfer.amount.to_string()}},
        }})
    };
    json!({
        "ClientRequestToken": format!("transfer-{}", transfer.id),
        "TransactItems": [
            update(transfer.from, "SET balance = balance - :a", "balance >= :a"),
            update(transfer.to, "SET balance = balance + :a", "balance >= :a OR balance < :a"),
            {"Put": {
                "TableName": TABLE,
                "Item": {
                    "pk": {"S": bank_audit::entry(&transfer.id)},
                    "payer": {"S": bank_audit::account(transfer.from)},
                    "payee": {"S": bank_audit::account(transfer.to)},
                    "amount": {"N": transfer.amount.to_string()},
                },
                "ConditionExpression": "attribute_not_exists(pk)",
            }},
        ],
    })
}

/// Whether a transaction was cancelled because its entry is in the ledger.
fn is_in_ledger(reply: &Reply) -> bool {
    let Reply::Refused(_, body) = reply else {
        return false;
    };
    body["CancellationReasons"][2]["Code"] == "ConditionalCheckFailed"
}

/// Reads all accounts in one transaction.
async fn read_total(clients: &mut Clients) -> Result<i64, String> {
    let get = |account: usize| json!({"Get": {"TableName": TABLE, "Key": {"pk": {"S": bank_audit::account(account)}}}});
    let gets: Vec<Value> = (0..ACCOUNTS).map(get).collect();
    let request = json!({ "TransactItems": gets });
    let answer = clients
        .dynamodb("TransactGetItems", &request)
        .await
        .done()?;
    let items = answer["Responses"].as_array().cloned().unwrap_or_default();
    let balances = items
        .iter()
        .filter_map(|response| number(&response["Item"], "balance"));
    Ok(balances.sum())
}

#[async_trait]
impl Workload for Bank {
    fn name(&self) -> &'static str {
        "bank"
    }

    fn lanes(&self) -> usize {
        LANES
    }

    async fn prepare(&self, clients: &mut Clients) -> Result<(), String> {
        let attribute = |name: &str| json!({"AttributeName": name, "AttributeType": "S"});
        let definition = json!({
            "TableName": TABLE,
            "AttributeDefinitions": [attribute("pk"), attribute("payer")],
            "GlobalSecondaryIndexes": [{
                "IndexName": bank_audit::INDEX,
                "KeySchema": [{"AttributeName": "payer", "KeyType": "HASH"}],
                "Projection": {"ProjectionType": "ALL"},
            }],
        });
        create_table(clients, definition).await?;
        for account in 0..ACCOUNTS {
            let item = json!({
                "pk": {"S": bank_audit::account(account)},
                "balance": {"N": bank_audit::OPENING_BALANCE.to_string()},
            });
            let request = json!({"TableName": TABLE, "Item": item});
            clients.dynamodb("PutItem", &request).await.done()?;
        }
        Ok(())
    }

    async fn write(
        &self,
        lane: usize,
        clients: &mut Clients,
        random: &mut SeededRandom,
    ) -> Result<OperationResult, String> {
        if !random.once_in(3) {
            return self.transfer(lane, clients, random).await;
        }
        match read_total(clients).await {
            Ok(total) if total != TOTAL => Err(format!("bank: the total is {total}, not {TOTAL}")),
            Ok(_) => Ok(OperationResult::Read),
            Err(_) => Ok(OperationResult::Unknown),
        }
    }

    async fn verify(&self, clients: &mut Clients, scope: Scope) -> Result<(), Problem> {
        let total = read_total(clients).await?;
        if total != TOTAL {
            return violation(format!("bank: the total is {total}, not {TOTAL}"));
        }
        let entries = bank_audit::audit(clients, TABLE).await?;
        for lane in &self.lanes {
            let lane = lock(lane);
            if let Some(id) = lane.acknowledged.iter().find(|id| !entries.contains(*id)) {
                return violation(format!("bank: acknowledged transfer {id} is missing"));
            }
            if let Some(id) = lane.refused.iter().find(|id| entries.contains(*id)) {
                return violation(format!("bank: refused transfer {id} is stored"));
            }
        }
        let known: usize = self
            .lanes
            .iter()
            .map(|lane| lock(lane).acknowledged.len())
            .sum();
        let open = self.lanes.iter().filter(|lane| lock(lane).open.is_some());
        if scope == Scope::Live && entries.len() > known + open.count() {
            return violation(format!("bank: {} entries, {known} known", entries.len()));
        }
        Ok(())
    }
}
