//! Audits a bank table, live or restored: balances must follow from the ledger, and the index must list exactly the
//! ledger.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;

use super::{Problem, number, scan, violation};
use crate::clients::Clients;

pub(super) const ACCOUNTS: usize = 6;
pub(super) const OPENING_BALANCE: i64 = 1000;
pub(super) const TOTAL: i64 = 6000;
pub(super) const INDEX: &str = "by-payer";

pub(super) fn account(number: usize) -> String {
    format!("account-{number}")
}

pub(super) fn entry(id: &str) -> String {
    format!("transfer-{id}")
}

/// The ids of all transfers, after an audit. Nothing may write to the table meanwhile.
pub(super) async fn audit(clients: &mut Clients, table: &str) -> Result<BTreeSet<String>, Problem> {
    let items = scan(clients, json!({"TableName": table, "ConsistentRead": true})).await?;
    let mut expected: BTreeMap<String, i64> = (0..ACCOUNTS)
        .map(|number| (account(number), OPENING_BALANCE))
        .collect();
    let (mut balances, mut ids) = (BTreeMap::new(), BTreeSet::new());
    for item in &items {
        let name = item["pk"]["S"].as_str().unwrap_or_default();
        let Some(id) = name.strip_prefix("transfer-") else {
            balances.insert(name.to_owned(), number(item, "balance").unwrap_or(i64::MIN));
            continue;
        };
        let amount = number(item, "amount").unwrap_or_default();
        for (side, sign) in [("payer", -1), ("payee", 1)] {
            let account = item[side]["S"].as_str().unwrap_or_default();
            *expected.entry(account.to_owned()).or_default() += sign * amount;
        }
        ids.insert(id.to_owned());
    }
    if balances != expected {
        return violation(format!(
            "bank: {table} has a torn transfer: balances {balances:?}, by the ledger {expected:?}"
        ));
    }
    let listed = scan(clients, json!({"TableName": table, "IndexName": INDEX})).await?;
    let listed: BTreeSet<String> = listed
        .iter()
        .filter_map(|item| item["pk"]["S"].as_str()?.strip_prefix("transfer-"))
        .map(str::to_owned)
        .collect();
    if listed != ids {
        let missing = ids.difference(&listed).count();
        let surplus = listed.difference(&ids).count();
        return violation(format!(
            "bank: the index of {table} lacks {missing} entries and has {surplus} too many"
        ));
    }
    Ok(ids)
}
