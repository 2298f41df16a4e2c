//! PutItem, GetItem, UpdateItem, DeleteItem.

use serde_json::{Value, json};

use crate::server::Server;

#[tokio::test]
async fn items_of_every_type_round_trip() {
    let server = Server::start().await;
    server.create_plain_table("things").await;
    let item = json!({
        "pk": {"S": "é\"\\\n\u{1}"},
        "n": {"N": "-1.5"},
        "b": {"B": "aGk="},
        "t": {"BOOL": true},
        "z": {"NULL": true},
        "m": {"M": {"x": {"L": [{"S": ""}, {"N": "12345678901234567890123456789012345678"}]}}},
        "ss": {"SS": ["a", "b"]},
        "ns": {"NS": ["1", "2"]},
        "bs": {"BS": ["YQ=="]},
    });
    server
        .ok("PutItem", json!({"TableName": "things", "Item": item}))
        .await;
    let key = json!({"pk": item["pk"]});
    let get = json!({"TableName": "things", "Key": key, "ConsistentRead": true, "ReturnConsumedCapacity": "TOTAL"});
    let answer = server.ok("GetItem", get).await;
    assert_eq!(answer["Item"], item);
    assert_eq!(
        answer["ConsumedCapacity"],
        json!({"TableName": "things", "CapacityUnits": 1.0})
    );
    let projected =
        json!({"TableName": "things", "Key": key, "ProjectionExpression": "n, m.x[1], nothing"});
    let answer = server.ok("GetItem", projected).await;
    assert_eq!(
        answer["Item"],
        json!({"n": {"N": "-1.5"}, "m": {"M": {"x": {"L": [{"N": "12345678901234567890123456789012345678"}]}}}})
    );
    let other = json!({"TableName": "things", "Key": {"pk": {"S": "other"}}});
    assert_eq!(server.ok("GetItem", other).await, json!({}));
}

#[tokio::test]
async fn failed_conditions_prevent_writes() {
    let server = Server::start().await;
    server.create_plain_table("things").await;
    let put = |value: &str| {
        json!({
            "TableName": "things",
            "Item": {"pk": {"S": "a"}, "v": {"S": value}},
            "ConditionExpression": "attribute_not_exists(pk)",
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        })
    };
    server.ok("PutItem", put("1")).await;
    let (status, answer) = server.call("PutItem", put("2")).await;
    assert_eq!(status, 400);
    assert_eq!(
        answer,
        json!({
            "__type": "com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException",
            "message": "The conditional request failed",
            "Item": {"pk": {"S": "a"}, "v": {"S": "1"}},
        })
    );
}

#[tokio::test]
async fn updates_return_requested_values() {
    let server = Server::start().await;
    server.create_plain_table("things").await;
    let update = |returned: &str| {
        json!({
            "TableName": "things",
            "Key": {"pk": {"S": "a"}},
            "UpdateExpression": "ADD #c :one SET seen = :t",
            "ExpressionAttributeNames": {"#c": "count"},
            "ExpressionAttributeValues": {":one": {"N": "1"}, ":t": {"BOOL": true}},
            "ReturnValues": returned,
        })
    };
    let attributes = |answer: Value| answer["Attributes"].clone();
    assert_eq!(
        attributes(server.ok("UpdateItem", update("UPDATED_OLD")).await),
        Value::Null
    );
    assert_eq!(
        attributes(server.ok("UpdateItem", update("UPDATED_OLD")).await),
        json!({"count": {"N": "1"}, "seen": {"BOOL": true}})
    );
    assert_eq!(
        attributes(server.ok("UpdateItem", update("ALL_NEW")).await),
        json!({"pk": {"S": "a"}, "count": {"N": "3"}, "seen": {"BOOL": true}})
    );
    let delete =
        json!({"TableName": "things", "Key": {"pk": {"S": "a"}}, "ReturnValues": "ALL_OLD"});
    assert_eq!(
        attributes(server.ok("DeleteItem", delete.clone()).await)["count"],
        json!({"N": "3"})
    );
    assert_eq!(server.ok("DeleteItem", delete).await, json!({}));
}

#[tokio::test]
async fn writes_consume_capacity_of_table_and_indexes() {
    let server = Server::start().await;
    server.create_indexed_table("readings").await;
    let item = json!({"pk": {"S": "a"}, "sk": {"N": "1"}, "l": {"S": "x"}, "g": {"S": "y"}, "v": {"S": "z"}});
    let put = json!({
        "TableName": "readings", "Item": item,
        "ReturnConsumedCapacity": "INDEXES", "ReturnItemCollectionMetrics": "SIZE",
    });
    let answer = server.ok("PutItem", put.clone()).await;
    assert_eq!(
        answer["ConsumedCapacity"],
        json!({
            "TableName": "readings", "CapacityUnits": 3.0, "Table": {"CapacityUnits": 1.0},
            "LocalSecondaryIndexes": {"local": {"CapacityUnits": 1.0}},
            "GlobalSecondaryIndexes": {"global": {"CapacityUnits": 1.0}},
        })
    );
    assert_eq!(
        answer["ItemCollectionMetrics"]["ItemCollectionKey"],
        json!({"pk": {"S": "a"}})
    );
    // The same update again changes no index.
    let answer = server.ok("PutItem", put).await;
    assert_eq!(answer["ConsumedCapacity"]["CapacityUnits"], json!(1.0));
    let moved = json!({
        "TableName": "readings", "Key": {"pk": {"S": "a"}, "sk": {"N": "1"}},
        "UpdateExpression": "SET g = :g", "ExpressionAttributeValues": {":g": {"S": "other"}},
        "ReturnConsumedCapacity": "INDEXES",
    });
    let answer = server.ok("UpdateItem", moved).await;
    assert_eq!(
        answer["ConsumedCapacity"]["GlobalSecondaryIndexes"]["global"]["CapacityUnits"],
        json!(2.0)
    );
}

#[tokio::test]
async fn invalid_keys_and_tables_are_rejected() {
    let server = Server::start().await;
    server.create_indexed_table("readings").await;
    let get = |key: Value| json!({"TableName": "readings", "Key": key});
    for (operation, body, kind, text) in [
        (
            "GetItem",
            json!({"TableName": "none", "Key": {}}),
            "ResourceNotFoundException",
            "Requested resource not found",
        ),
        (
            "GetItem",
            get(json!({"pk": {"S": "a"}})),
            "ValidationException",
            "The provided key element does not match the schema",
        ),
        (
            "DeleteItem",
            get(json!({"pk": {"S": ""}, "sk": {"N": "1"}})),
            "ValidationException",
            "One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty string value. Key: pk",
        ),
        (
            "PutItem",
            json!({"TableName": "readings", "Item": {"pk": {"S": "a"}}}),
            "ValidationException",
            "One or more parameter values were invalid: Missing the key sk in the item",
        ),
        (
            "PutItem",
            json!({"TableName": "readings", "Item": {"pk": {"S": "a"}, "sk": {"S": "1"}}}),
            "ValidationException",
            "One or more parameter values were invalid: Type mismatch for key sk expected: N actual: S",
        ),
        (
            "PutItem",
            json!({"TableName": "readings", "Item": {"pk": {"S": "a"}, "sk": {"N": "1"}, "g": {"N": "1"}}}),
            "ValidationException",
            "One or more parameter values were invalid: Type mismatch for Index Key g Expected: S Actual: N IndexName: global",
        ),
        (
            "UpdateItem",
            json!({"TableName": "readings", "Key": {"pk": {"S": "a"}, "sk": {"N": "1"}},
                "UpdateExpression": "REMOVE pk"}),
            "ValidationException",
            "One or more parameter values were invalid: Cannot update attribute pk. This attribute is part of the key",
        ),
        (
            "GetItem",
            json!({"TableName": "readings", "Key": {"pk": {"S": "a"}, "sk": {"N": "1"}}, "ProjectionExpression": "pk.x"}),
            "ValidationException",
            "Key attributes must be scalars; list random access '[]' and map lookup '.' are not allowed: Key: pk",
        ),
    ] {
        let refused = server.refused(operation, body).await;
        assert_eq!(refused, (kind.to_owned(), text.to_owned()));
    }
}
