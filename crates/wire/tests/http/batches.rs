//! BatchWriteItem and BatchGetItem.

use serde_json::json;

use crate::server::Server;

#[tokio::test]
async fn batches_write_and_read_several_tables() {
    let server = Server::start().await;
    server.create_plain_table("first").await;
    server.create_plain_table("second").await;
    let put = |key: &str| json!({"PutRequest": {"Item": {"pk": {"S": key}, "v": {"S": "x"}}}});
    let write = json!({
        "RequestItems": {"first": [put("a"), put("b")], "second": [put("c")]},
        "ReturnConsumedCapacity": "TOTAL",
    });
    let answer = server.ok("BatchWriteItem", write).await;
    assert_eq!(answer["UnprocessedItems"], json!({}));
    assert_eq!(answer["ConsumedCapacity"].as_array().map(Vec::len), Some(2));
    let delete =
        json!({"RequestItems": {"first": [{"DeleteRequest": {"Key": {"pk": {"S": "b"}}}}]}});
    server.ok("BatchWriteItem", delete).await;
    let key = |key: &str| json!({"pk": {"S": key}});
    let get = json!({
        "RequestItems": {
            "first": {"Keys": [key("a"), key("b")], "ProjectionExpression": "#p", "ExpressionAttributeNames": {"#p": "pk"}},
            "second": {"Keys": [key("c")], "ConsistentRead": true},
        },
        "ReturnConsumedCapacity": "TOTAL",
    });
    let answer = server.ok("BatchGetItem", get).await;
    assert_eq!(
        answer["Responses"],
        json!({"first": [{"pk": {"S": "a"}}], "second": [{"pk": {"S": "c"}, "v": {"S": "x"}}]})
    );
    assert_eq!(answer["UnprocessedKeys"], json!({}));
    assert_eq!(
        answer["ConsumedCapacity"],
        json!([{"TableName": "first", "CapacityUnits": 1.0}, {"TableName": "second", "CapacityUnits": 1.0}])
    );
}

#[tokio::test]
async fn keys_beyond_response_size_are_unprocessed() {
    let server = Server::start().await;
    server.create_plain_table("large").await;
    let text = "x".repeat(390 * 1024);
    for number in 0..44 {
        let item = json!({"pk": {"S": format!("{number:02}")}, "text": {"S": text}});
        server
            .ok("PutItem", json!({"TableName": "large", "Item": item}))
            .await;
    }
    let keys: Vec<_> = (0..44)
        .map(|number| json!({"pk": {"S": format!("{number:02}")}}))
        .collect();
    let get = json!({"RequestItems": {"large": {"Keys": keys}}});
    let answer = server.ok("BatchGetItem", get).await;
    let found = answer["Responses"]["large"]
        .as_array()
        .expect("items")
        .len();
    let left = answer["UnprocessedKeys"]["large"]["Keys"]
        .as_array()
        .expect("keys")
        .len();
    assert_eq!(found + left, 44);
    assert!(left > 0);
}

#[tokio::test]
async fn invalid_batches_are_rejected() {
    let server = Server::start().await;
    server.create_plain_table("first").await;
    let put = json!({"PutRequest": {"Item": {"pk": {"S": "a"}}}});
    let delete = json!({"DeleteRequest": {"Key": {"pk": {"S": "a"}}}});
    assert_eq!(
        server
            .refused(
                "BatchWriteItem",
                json!({"RequestItems": {"first": [put, delete]}})
            )
            .await
            .1,
        "Provided list of item keys contains duplicates"
    );
    assert_eq!(
        server
            .refused("BatchWriteItem", json!({"RequestItems": {"none": [put]}}))
            .await,
        (
            "ResourceNotFoundException".to_owned(),
            "Requested resource not found".to_owned()
        )
    );
    assert_eq!(
        server
            .refused(
                "BatchGetItem",
                json!({"RequestItems": {"first": {"Keys": [{"x": {"S": "a"}}]}}})
            )
            .await
            .1,
        "The provided key element does not match the schema"
    );
}
