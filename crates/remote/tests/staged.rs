//! Simulated states that no implementation of DynamoDB produces on demand: a table that is being
//! deleted, an existing key, expired items that are not deleted for days.

#[allow(dead_code)]
mod script;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use homeport_item::expression::{KeyCondition, Projection};
use homeport_item::schema::TableSchema;
use homeport_item::{Item, KeyKind, Value as ItemValue};
use homeport_remote::{AccessKey, Remote, Settings, TableOptions};
use homeport_store::{Clock as _, Query, Store, SystemClock};
use script::{Answer, error, server, success};
use serde_json::{Value, json};

const TABLE: &str = "things";

async fn connect<F>(answer: F, tables: TableOptions) -> Remote
where
    F: Fn(&str, &Value) -> Answer + Send + Sync + 'static,
{
    let url = server::serve(move |operation, body| {
        let body = serde_json::from_str(&body).expect("JSON");
        answer(&operation, &body)
    })
    .await;
    let settings = Settings {
        endpoint_url: Some(url),
        region: Some("us-east-1".to_owned()),
        access_key: Some(AccessKey::new("test", "test")),
        tables,
    };
    let connected = Remote::connect(settings, Arc::new(SystemClock)).await;
    connected.expect("the settings are complete")
}

fn described(status: &str, more: &Value) -> Answer {
    let mut table = json!({
        "TableName": TABLE,
        "TableStatus": status,
        "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
        "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
    });
    for (name, value) in more.as_object().into_iter().flatten() {
        table[name] = value.clone();
    }
    success(&json!({ "Table": table }).to_string())
}

fn no_time_to_live() -> Answer {
    success(r#"{"TimeToLiveDescription":{"TimeToLiveStatus":"DISABLED"}}"#)
}

#[tokio::test]
async fn table_under_deletion_is_created_again_afterwards() {
    let looks = AtomicUsize::new(0);
    let made = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&made);
    let remote = connect(
        move |operation, _| match operation {
            "DescribeTable" if counted.load(Ordering::SeqCst) > 0 => {
                described("ACTIVE", &Value::Null)
            }
            "DescribeTable" => match looks.fetch_add(1, Ordering::SeqCst) {
                0..3 => described("DELETING", &Value::Null),
                _ => error(400, "ResourceNotFoundException"),
            },
            "CreateTable" => {
                counted.fetch_add(1, Ordering::SeqCst);
                success("{}")
            }
            "DescribeTimeToLive" => no_time_to_live(),
            _ => error(400, "NotInTheScript"),
        },
        TableOptions::default(),
    )
    .await;
    let wanted = TableSchema::new(TABLE, "pk", KeyKind::S);
    assert_eq!(remote.ensure_tables(&[wanted]).await, Ok(()));
    assert_eq!(made.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn unchanged_encryption_key_is_not_an_error() {
    let key = "arn:aws:kms:us-east-1:111122223333:key/the-key-itself";
    let options = TableOptions {
        kms_key_id: Some("the-same-key-by-another-name".to_owned()),
        ..TableOptions::default()
    };
    let remote = connect(
        move |operation, _| match operation {
            "DescribeTable" => {
                let encryption = json!({"Status": "ENABLED", "KMSMasterKeyArn": key});
                described("ACTIVE", &json!({ "SSEDescription": encryption }))
            }
            "DescribeTimeToLive" => no_time_to_live(),
            "UpdateTable" => Some((
                400,
                json!({
                    "__type": "com.amazon.coral.validate#ValidationException",
                    "message": "One or more parameter values were invalid: Table is already encrypted with given KMSMasterKeyId",
                })
                .to_string(),
            )),
            _ => error(400, "NotInTheScript"),
        },
        options,
    )
    .await;
    let wanted = TableSchema::new(TABLE, "pk", KeyKind::S);
    assert_eq!(remote.ensure_tables(&[wanted]).await, Ok(()));
}

/// A table with one partition of `count` items, some of them expired.
async fn unswept(count: usize, is_expired: fn(usize) -> bool) -> (Remote, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let now_secs = SystemClock.now_secs();
    let remote = connect(
        move |operation, body| match operation {
            "DescribeTable" => described(
                "ACTIVE",
                &json!({
                    "KeySchema": [
                        {"AttributeName": "pk", "KeyType": "HASH"},
                        {"AttributeName": "at", "KeyType": "RANGE"},
                    ],
                    "AttributeDefinitions": [
                        {"AttributeName": "pk", "AttributeType": "S"},
                        {"AttributeName": "at", "AttributeType": "N"},
                    ],
                }),
            ),
            "DescribeTimeToLive" => success(
                r#"{"TimeToLiveDescription":{"TimeToLiveStatus":"ENABLED","AttributeName":"expires"}}"#,
            ),
            "Query" => {
                counted.fetch_add(1, Ordering::SeqCst);
                let after = body["ExclusiveStartKey"]["at"]["N"].as_str();
                let first = after.map_or(0, |at| at.parse::<usize>().expect("a number") + 1);
                let limit = body["Limit"].as_u64().expect("a limit");
                let end = count.min(first + usize::try_from(limit).expect("small"));
                let items: Vec<_> = (first..end)
                    .map(|at| {
                        let expires = if is_expired(at) { now_secs - 100 } else { now_secs + 1000 };
                        let mut item = json!({
                            "pk": {"S": "a"},
                            "at": {"N": at.to_string()},
                            "n": {"N": at.to_string()},
                            "expires": {"N": expires.to_string()},
                        });
                        project(&mut item, body);
                        item
                    })
                    .collect();
                let mut answer = json!({"Count": items.len(), "ScannedCount": items.len(), "Items": items});
                if end < count {
                    answer["LastEvaluatedKey"] =
                        json!({"pk": {"S": "a"}, "at": {"N": (end - 1).to_string()}});
                }
                success(&answer.to_string())
            }
            _ => error(400, "NotInTheScript"),
        },
        TableOptions::default(),
    )
    .await;
    (remote, asked)
}

/// Applies the request's projection to an item.
fn project(item: &mut Value, body: &Value) {
    let Some(projection) = body["ProjectionExpression"].as_str() else {
        return;
    };
    let paths = projection.split(',').map(str::trim);
    let names: Vec<_> = paths
        .map(|path| {
            body["ExpressionAttributeNames"][path]
                .as_str()
                .unwrap_or(path)
        })
        .collect();
    let attributes = item.as_object_mut().expect("an item");
    attributes.retain(|name, _| names.contains(&name.as_str()));
}

fn query(limit: usize, start: Option<Item>) -> Query {
    let mut query = Query::new(TABLE, KeyCondition::new("pk", "a"));
    query.limit = Some(limit);
    query.start = start;
    query.projection = Some(Projection::new(["n"]));
    query
}

#[tokio::test]
async fn item_after_many_expired_ones_needs_few_requests() {
    let (remote, asked) = unswept(1200, |at| at < 1000).await;
    let page = remote.query(query(1, None)).await.expect("a page");
    assert_eq!(page.items, [Item::new().with("n", 1000)]);
    assert!(
        asked.load(Ordering::SeqCst) <= 10,
        "{} requests",
        asked.load(Ordering::SeqCst)
    );
}

#[tokio::test]
async fn pages_return_visible_items_once_among_expired() {
    fn is_expired(at: usize) -> bool {
        at % 3 == 1 || (100..400).contains(&at) || at >= 590
    }
    for limit in [1, 2, 3, 7, 50, 1000] {
        let (remote, _) = unswept(600, is_expired).await;
        let mut found = Vec::new();
        let mut start = None;
        loop {
            let page = remote.query(query(limit, start)).await.expect("a page");
            assert!(page.items.len() <= limit && page.count == page.items.len());
            assert_eq!(page.scanned, page.count);
            found.extend(page.items);
            start = page.next;
            if start.is_none() {
                break;
            }
        }
        let visible = (0..600).filter(|at| !is_expired(*at));
        let expected: Vec<_> = visible
            .map(|at| Item::new().with("n", ItemValue::from(i64::try_from(at).expect("small"))))
            .collect();
        assert_eq!(found, expected, "limit {limit}");
    }
}
