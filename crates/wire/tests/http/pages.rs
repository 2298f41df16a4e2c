//! Query and Scan.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::server::Server;

async fn with_readings() -> Server {
    let server = Server::start().await;
    server.create_indexed_table("readings").await;
    for sk in 0..10 {
        let item = json!({
            "pk": {"S": "a"}, "sk": {"N": sk.to_string()}, "l": {"S": format!("l{}", 9 - sk)},
            "g": {"S": if sk % 2 == 0 { "even" } else { "odd" }}, "v": {"N": sk.to_string()}, "w": {"S": "x"},
        });
        server
            .ok("PutItem", json!({"TableName": "readings", "Item": item}))
            .await;
    }
    server
}

fn numbers(answer: &Value) -> Vec<i64> {
    let items = answer["Items"].as_array().expect("items");
    items
        .iter()
        .map(|item| {
            item["sk"]["N"]
                .as_str()
                .expect("a number")
                .parse()
                .expect("a number")
        })
        .collect()
}

#[tokio::test]
async fn queries_page_forwards_and_backwards() {
    let server = with_readings().await;
    let mut query = json!({
        "TableName": "readings",
        "KeyConditionExpression": "pk = :p AND sk >= :s",
        "ExpressionAttributeValues": {":p": {"S": "a"}, ":s": {"N": "3"}},
        "ScanIndexForward": false,
        "Limit": 3,
        "ReturnConsumedCapacity": "TOTAL",
    });
    let first = server.ok("Query", query.clone()).await;
    assert_eq!(numbers(&first), [9, 8, 7]);
    assert_eq!(first["Count"], 3);
    assert_eq!(first["ConsumedCapacity"]["CapacityUnits"], json!(0.5));
    query["ExclusiveStartKey"] = first["LastEvaluatedKey"].clone();
    query["Limit"] = json!(100);
    let rest = server.ok("Query", query).await;
    assert_eq!(numbers(&rest), [6, 5, 4, 3]);
    assert_eq!(rest["LastEvaluatedKey"], Value::Null);
}

#[tokio::test]
async fn filters_projections_and_counts_apply() {
    let server = with_readings().await;
    let query = json!({
        "TableName": "readings",
        "KeyConditionExpression": "pk = :p",
        "FilterExpression": "v > :v",
        "ProjectionExpression": "sk",
        "ExpressionAttributeValues": {":p": {"S": "a"}, ":v": {"N": "6"}},
    });
    let answer = server.ok("Query", query.clone()).await;
    assert_eq!(
        answer["Items"],
        json!([{"sk": {"N": "7"}}, {"sk": {"N": "8"}}, {"sk": {"N": "9"}}])
    );
    assert_eq!(
        (&answer["Count"], &answer["ScannedCount"]),
        (&json!(3), &json!(10))
    );
    let mut count = query;
    count
        .as_object_mut()
        .expect("an object")
        .remove("ProjectionExpression");
    count["Select"] = json!("COUNT");
    let answer = server.ok("Query", count).await;
    assert_eq!(answer, json!({"Count": 3, "ScannedCount": 10}));
}

#[tokio::test]
async fn index_reads_fetch_missing_attributes() {
    let server = with_readings().await;
    let global = json!({
        "TableName": "readings", "IndexName": "global",
        "KeyConditionExpression": "g = :g", "ExpressionAttributeValues": {":g": {"S": "even"}},
    });
    let answer = server.ok("Query", global.clone()).await;
    assert_eq!(answer["Count"], 5);
    let names: BTreeSet<_> = answer["Items"][0]
        .as_object()
        .expect("an item")
        .keys()
        .cloned()
        .collect();
    assert_eq!(names, ["g", "pk", "sk", "v"].map(str::to_owned).into());
    let local = json!({
        "TableName": "readings", "IndexName": "local", "Select": "ALL_ATTRIBUTES",
        "KeyConditionExpression": "pk = :p AND begins_with(l, :l)",
        "ExpressionAttributeValues": {":p": {"S": "a"}, ":l": {"S": "l"}},
        "Limit": 1, "ReturnConsumedCapacity": "INDEXES",
    });
    let answer = server.ok("Query", local).await;
    assert_eq!(numbers(&answer), [9]);
    assert_eq!(answer["Items"][0]["w"], json!({"S": "x"}));
    assert_eq!(
        answer["LastEvaluatedKey"],
        json!({"pk": {"S": "a"}, "sk": {"N": "9"}, "l": {"S": "l0"}})
    );
    assert_eq!(
        answer["ConsumedCapacity"],
        json!({"TableName": "readings", "CapacityUnits": 1.0, "Table": {"CapacityUnits": 0.5},
            "LocalSecondaryIndexes": {"local": {"CapacityUnits": 0.5}}})
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_attributes_come_from_one_snapshot() {
    const ITEMS: usize = 60;
    const WRITES: usize = 80;
    let server = Server::start().await;
    server.create_indexed_table("readings").await;
    // All items move together between the ends of the index.
    let write = async |round: usize| {
        let l = if round.is_multiple_of(2) {
            "even"
        } else {
            "odd"
        };
        let puts: Vec<Value> = (0..ITEMS)
            .map(|sk| {
                let item = json!({"pk": {"S": "a"}, "sk": {"N": sk.to_string()}, "l": {"S": l}, "w": {"S": l}});
                json!({"Put": {"TableName": "readings", "Item": item}})
            })
            .collect();
        let body = json!({"TransactItems": puts});
        server.ok("TransactWriteItems", body).await;
    };
    write(0).await;
    let is_done = std::sync::atomic::AtomicBool::new(false);
    let writing = async {
        for round in 1..=WRITES {
            write(round).await;
        }
        is_done.store(true, std::sync::atomic::Ordering::SeqCst);
    };
    let reading = async {
        while !is_done.load(std::sync::atomic::Ordering::SeqCst) {
            let query = json!({
                "TableName": "readings", "IndexName": "local", "Select": "ALL_ATTRIBUTES",
                "KeyConditionExpression": "pk = :p AND l = :l", "ConsistentRead": true,
                "ExpressionAttributeValues": {":p": {"S": "a"}, ":l": {"S": "even"}},
            });
            let answer = server.ok("Query", query).await;
            for item in answer["Items"].as_array().expect("items") {
                assert_eq!(item["w"], json!({"S": "even"}));
            }
        }
    };
    tokio::join!(writing, reading);
}

#[tokio::test]
async fn scan_segments_cover_the_table_once() {
    let server = Server::start().await;
    server.create_plain_table("things").await;
    for number in 0..50 {
        let item = json!({"pk": {"S": format!("item-{number}")}});
        server
            .ok("PutItem", json!({"TableName": "things", "Item": item}))
            .await;
    }
    let mut seen = BTreeSet::new();
    for segment in 0..4 {
        let mut scan =
            json!({"TableName": "things", "Segment": segment, "TotalSegments": 4, "Limit": 7});
        loop {
            let page = server.ok("Scan", scan.clone()).await;
            for item in page["Items"].as_array().expect("items") {
                assert!(seen.insert(item["pk"]["S"].to_string()), "seen twice");
            }
            if page["LastEvaluatedKey"].is_null() {
                break;
            }
            scan["ExclusiveStartKey"] = page["LastEvaluatedKey"].clone();
        }
    }
    assert_eq!(seen.len(), 50);
}

#[tokio::test]
async fn invalid_pages_are_rejected() {
    let server = with_readings().await;
    let query = |changes: Value| {
        let mut query = json!({
            "TableName": "readings",
            "KeyConditionExpression": "pk = :p",
            "ExpressionAttributeValues": {":p": {"S": "a"}},
        });
        for (name, value) in changes.as_object().expect("an object") {
            query[name] = value.clone();
        }
        query
    };
    for (changes, text) in [
        (
            json!({"IndexName": "none"}),
            "The table does not have the specified index: none",
        ),
        (
            json!({"IndexName": "global", "ConsistentRead": true}),
            "Consistent reads are not supported on global secondary indexes",
        ),
        (
            json!({"KeyConditionExpression": "sk = :p"}),
            "Query condition missed key schema element: pk",
        ),
        (
            json!({"ExpressionAttributeValues": {":p": {"N": "1"}}}),
            "One or more parameter values were invalid: Condition parameter type does not match schema type",
        ),
        (
            json!({"FilterExpression": "sk = :p"}),
            "Filter Expression can only contain non-primary key attributes: Primary key attribute: sk",
        ),
        (
            json!({"ExclusiveStartKey": {"pk": {"S": "a"}}}),
            "The provided starting key is invalid",
        ),
        (
            json!({"ExclusiveStartKey": {"pk": {"S": "b"}, "sk": {"N": "1"}}}),
            "The provided starting key is outside query boundaries based on provided conditions",
        ),
        (
            json!({"IndexName": "global", "KeyConditionExpression": "g = :p", "Select": "ALL_ATTRIBUTES"}),
            "One or more parameter values were invalid: Select type ALL_ATTRIBUTES is not supported for global secondary index global because its projection type is not ALL",
        ),
        (
            json!({"IndexName": "global", "KeyConditionExpression": "g = :p", "ProjectionExpression": "w"}),
            "One or more parameter values were invalid: Global secondary index global does not project [w]",
        ),
    ] {
        let refused = server.refused("Query", query(changes.clone())).await;
        assert_eq!(
            refused,
            ("ValidationException".to_owned(), text.to_owned()),
            "{changes}"
        );
    }
}
