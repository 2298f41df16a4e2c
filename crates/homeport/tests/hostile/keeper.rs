//! Work beside the attack: the canary, and removing data that the attack created.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use crate::attack::post;
use crate::corpus::{self, BASE_TABLES, CANARY_TABLE};
use crate::exchange::{Exchange, Outcome};
use crate::tally::Tally;

const CANARY_EVERY: Duration = Duration::from_millis(50);
const TIDY_EVERY: Duration = Duration::from_secs(3);
/// Tables that most requests use are recreated less often.
const BASE_EVERY_TURNS: usize = 8;
/// The canary's and the server's own tables.
const OWN_TABLES: [&str; 4] = [
    "devices",
    "device_readings",
    "processed_batches",
    "api_keys",
];

/// Creates the tables that the requests use.
pub(crate) async fn make_tables(address: SocketAddr) {
    let mut exchange = Exchange::new(address);
    let made = call(
        &mut exchange,
        "CreateTable",
        &corpus::plain_table(CANARY_TABLE),
    )
    .await;
    assert!(made.is_some_and(|(status, _)| status == 200));
    make_base_tables(&mut exchange).await;
}

async fn make_base_tables(exchange: &mut Exchange) {
    let [indexed, plain] = BASE_TABLES;
    // Fails if they exist.
    call(exchange, "CreateTable", &corpus::indexed_table(indexed)).await;
    call(exchange, "CreateTable", &corpus::plain_table(plain)).await;
}

/// Writes an item and reads it back repeatedly. The read must always return the newest version.
pub(crate) async fn watch_canary(address: SocketAddr, tally: Tally, stop: Arc<AtomicBool>) {
    let mut exchange = Exchange::new(address);
    let mut count = 0_u64;
    while !stop.load(Ordering::Relaxed) {
        count += 1;
        let item =
            json!({"pk": {"S": "canary"}, "count": {"N": count.to_string()}, "text": {"S": "ü€𝄞"}});
        let put = json!({"TableName": CANARY_TABLE, "Item": item});
        let get = json!({"TableName": CANARY_TABLE, "Key": {"pk": {"S": "canary"}}, "ConsistentRead": true});
        let written = call(&mut exchange, "PutItem", &put).await;
        if written.as_ref().is_none_or(|(status, _)| *status != 200) {
            tally.finding(&format!("the canary's PutItem: {written:?}"), b"");
        }
        let read = call(&mut exchange, "GetItem", &get).await;
        if read.as_ref().is_none_or(|(_, body)| body["Item"] != item) {
            tally.finding(&format!("the canary's GetItem: {read:?}"), b"");
        }
        tally.outcome("canary");
        tokio::time::sleep(CANARY_EVERY).await;
    }
}

/// Deletes tables that the attack created, and recreates its own, so that data does not accumulate.
pub(crate) async fn keep_small(address: SocketAddr, stop: Arc<AtomicBool>) {
    let mut exchange = Exchange::new(address);
    for turn in 1.. {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let with_base = turn % BASE_EVERY_TURNS == 0;
        for name in tables(&mut exchange).await {
            let is_kept = name == CANARY_TABLE
                || OWN_TABLES.contains(&name.as_str())
                || BASE_TABLES.contains(&name.as_str()) && !with_base;
            if is_kept {
                continue;
            }
            let table = json!({"TableName": name});
            if let Some((400, _)) = call(&mut exchange, "DeleteTable", &table).await {
                let open = json!({"TableName": name, "DeletionProtectionEnabled": false});
                call(&mut exchange, "UpdateTable", &open).await;
                call(&mut exchange, "DeleteTable", &table).await;
            }
        }
        make_base_tables(&mut exchange).await;
        tokio::time::sleep(TIDY_EVERY).await;
    }
}

async fn tables(exchange: &mut Exchange) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    loop {
        let request = match names.last() {
            Some(last) => json!({"ExclusiveStartTableName": last}),
            None => json!({}),
        };
        let Some((_, answer)) = call(exchange, "ListTables", &request).await else {
            return names;
        };
        let page = answer["TableNames"].as_array().cloned().unwrap_or_default();
        names.extend(page.iter().filter_map(Value::as_str).map(str::to_owned));
        if answer.get("LastEvaluatedTableName").is_none() {
            return names;
        }
    }
}

/// Sends one request; `None` if there is no response.
async fn call(exchange: &mut Exchange, operation: &str, body: &Value) -> Option<(u16, Value)> {
    let request = post(operation, body.to_string().as_bytes());
    match exchange.send(&request).await {
        Outcome::Answer(answer) => {
            let body = serde_json::from_slice(&answer.body).unwrap_or_default();
            Some((answer.status, body))
        }
        Outcome::Closed(_) | Outcome::Silence => None,
    }
}
