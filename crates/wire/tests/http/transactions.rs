//! TransactWriteItems and TransactGetItems.

use serde_json::{Value, json};

use crate::server::Server;

fn put(key: &str, value: &str) -> Value {
    json!({"Put": {"TableName": "things", "Item": {"pk": {"S": key}, "v": {"S": value}}}})
}

#[tokio::test]
async fn transactions_are_atomic() {
    let server = Server::start().await;
    server.create_plain_table("things").await;
    let first =
        json!({"TransactItems": [put("a", "1"), put("b", "2")], "ReturnConsumedCapacity": "TOTAL"});
    let answer = server.ok("TransactWriteItems", first).await;
    assert_eq!(
        answer["ConsumedCapacity"],
        json!([{"TableName": "things", "CapacityUnits": 4.0, "WriteCapacityUnits": 4.0}])
    );
    let check = json!({"ConditionCheck": {
        "TableName": "things", "Key": {"pk": {"S": "a"}}, "ConditionExpression": "v = :v",
        "ExpressionAttributeValues": {":v": {"S": "9"}}, "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }});
    let (status, answer) = server
        .call(
            "TransactWriteItems",
            json!({"TransactItems": [put("c", "3"), check]}),
        )
        .await;
    assert_eq!(status, 400);
    assert_eq!(
        answer,
        json!({
            "__type": "com.amazonaws.dynamodb.v20120810#TransactionCanceledException",
            "Message": "Transaction cancelled, please refer cancellation reasons for specific reasons [None, ConditionalCheckFailed]",
            "CancellationReasons": [
                {"Code": "None"},
                {"Code": "ConditionalCheckFailed", "Message": "The conditional request failed",
                    "Item": {"pk": {"S": "a"}, "v": {"S": "1"}}},
            ],
        })
    );
    let get = |key: &str| json!({"Get": {"TableName": "things", "Key": {"pk": {"S": key}}}});
    let answer = server
        .ok(
            "TransactGetItems",
            json!({"TransactItems": [get("a"), get("c")], "ReturnConsumedCapacity": "TOTAL"}),
        )
        .await;
    assert_eq!(
        answer["Responses"],
        json!([{"Item": {"pk": {"S": "a"}, "v": {"S": "1"}}}, {}])
    );
    assert_eq!(
        answer["ConsumedCapacity"],
        json!([{"TableName": "things", "CapacityUnits": 4.0, "ReadCapacityUnits": 4.0}])
    );
}

#[tokio::test]
async fn token_makes_transaction_idempotent() {
    let server = Server::start().await;
    server.create_plain_table("things").await;
    let add = |by: &str| {
        json!({
            "ClientRequestToken": "once",
            "TransactItems": [{"Update": {
                "TableName": "things", "Key": {"pk": {"S": "a"}}, "UpdateExpression": "ADD n :n",
                "ExpressionAttributeValues": {":n": {"N": by}},
            }}],
        })
    };
    server.ok("TransactWriteItems", add("1")).await;
    server.ok("TransactWriteItems", add("1")).await;
    let get = json!({"TableName": "things", "Key": {"pk": {"S": "a"}}});
    assert_eq!(
        server.ok("GetItem", get).await["Item"]["n"],
        json!({"N": "1"})
    );
    let (kind, _) = server.refused("TransactWriteItems", add("2")).await;
    assert_eq!(kind, "IdempotentParameterMismatchException");
}

#[tokio::test]
async fn invalid_transactions_are_rejected() {
    let server = Server::start().await;
    server.create_plain_table("things").await;
    assert_eq!(
        server
            .refused(
                "TransactWriteItems",
                json!({"TransactItems": [put("a", "1"), put("a", "2")]})
            )
            .await
            .1,
        "Transaction request cannot include multiple operations on one item"
    );
    let missing = json!({"Put": {"TableName": "none", "Item": {"pk": {"S": "a"}}}});
    assert_eq!(
        server
            .refused("TransactWriteItems", json!({"TransactItems": [missing]}))
            .await
            .0,
        "ResourceNotFoundException"
    );
    let keyless = json!({"Put": {"TableName": "things", "Item": {"x": {"S": "a"}}}});
    let (_, answer) = server
        .call(
            "TransactWriteItems",
            json!({"TransactItems": [put("a", "1"), keyless]}),
        )
        .await;
    assert_eq!(answer["CancellationReasons"][1]["Code"], "ValidationError");
}
