//! The stream of the counters table: it must show every change of every counter once and in order, with times that never
//! decrease.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Problem, number, violation};
use crate::clients::Clients;

const PAGE_LIMIT: usize = 1000;

/// The final value of every counter, according to the stream.
pub(super) async fn counters(
    clients: &mut Clients,
    table: &str,
) -> Result<BTreeMap<String, i64>, Problem> {
    let mut counters: BTreeMap<String, i64> = BTreeMap::new();
    let mut newest_secs = 0.0;
    for record in records(clients, table).await? {
        let change = &record["dynamodb"];
        let secs = change["ApproximateCreationDateTime"].as_f64();
        let secs = secs.ok_or_else(|| format!("no time in {record}"))?;
        if secs < newest_secs {
            return violation(format!(
                "stream: {table} has a change at {secs} after one at {newest_secs}"
            ));
        }
        newest_secs = secs;
        let name = change["Keys"]["pk"]["S"].as_str().unwrap_or_default();
        let known = counters.entry(name.to_owned()).or_default();
        let old = number(&change["OldImage"], "n").unwrap_or_default();
        let new = number(&change["NewImage"], "n").unwrap_or_default();
        if old != *known || new != old + 1 {
            return violation(format!(
                "stream: {name} goes from {old} to {new} after it became {known}"
            ));
        }
        *known = new;
    }
    Ok(counters)
}

/// All records of a table's stream, from the oldest.
async fn records(clients: &mut Clients, table: &str) -> Result<Vec<Value>, String> {
    let request = json!({"TableName": table});
    let described = clients.dynamodb("DescribeTable", &request).await.done()?;
    let arn = &described["Table"]["LatestStreamArn"];
    let request = json!({"StreamArn": arn});
    let stream = clients.dynamodb("DescribeStream", &request).await.done()?;
    let shards = stream["StreamDescription"]["Shards"].as_array();
    let mut all = Vec::new();
    for shard in shards.into_iter().flatten() {
        let request = json!({
            "StreamArn": arn, "ShardId": shard["ShardId"], "ShardIteratorType": "TRIM_HORIZON",
        });
        let mut answer = clients
            .dynamodb("GetShardIterator", &request)
            .await
            .done()?;
        let mut iterator = answer["ShardIterator"].take();
        while !iterator.is_null() {
            let request = json!({"ShardIterator": iterator, "Limit": PAGE_LIMIT});
            let mut page = clients.dynamodb("GetRecords", &request).await.done()?;
            match page["Records"].take() {
                Value::Array(records) if !records.is_empty() => all.extend(records),
                // Nothing was written since.
                _ => break,
            }
            iterator = page["NextShardIterator"].take();
        }
    }
    Ok(all)
}
