//! Streams over HTTP: records, iterators, pages and errors.

use std::sync::Arc;

use homeport_engine::ManualClock;
use homeport_wire::Config;
use serde_json::{Value, json};

use crate::server::Server;

async fn with_stream(server: &Server, name: &str, view: &str) -> String {
    let made = server
        .ok(
            "CreateTable",
            json!({
                "TableName": name,
                "BillingMode": "PAY_PER_REQUEST",
                "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
                "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
                "StreamSpecification": {"StreamEnabled": true, "StreamViewType": view},
            }),
        )
        .await;
    let arn = &made["TableDescription"]["LatestStreamArn"];
    arn.as_str().expect("an ARN").to_owned()
}

async fn iterator(server: &Server, arn: &str, more: Value) -> String {
    let described = server.ok("DescribeStream", json!({"StreamArn": arn})).await;
    let shard = &described["StreamDescription"]["Shards"][0]["ShardId"];
    let mut body = json!({"StreamArn": arn, "ShardId": shard});
    for (name, value) in more.as_object().expect("members") {
        body[name] = value.clone();
    }
    let answer = server.ok("GetShardIterator", body).await;
    answer["ShardIterator"].as_str().expect("text").to_owned()
}

async fn put(server: &Server, table: &str, n: u32) {
    let item = json!({"id": {"S": "a"}, "n": {"N": n.to_string()}});
    let body = json!({"TableName": table, "Item": item});
    server.ok("PutItem", body).await;
}

#[tokio::test]
async fn records_have_images_of_their_view() {
    let server = Server::start().await;
    for (view, new, old) in [
        ("KEYS_ONLY", false, false),
        ("NEW_IMAGE", true, false),
        ("OLD_IMAGE", false, true),
        ("NEW_AND_OLD_IMAGES", true, true),
    ] {
        let arn = with_stream(&server, view, view).await;
        put(&server, view, 1).await;
        put(&server, view, 2).await;
        let from = iterator(&server, &arn, json!({"ShardIteratorType": "TRIM_HORIZON"})).await;
        let page = server
            .ok("GetRecords", json!({"ShardIterator": from}))
            .await;
        let records = page["Records"].as_array().expect("records");
        assert_eq!(records.len(), 2, "{page}");
        let (first, second) = (&records[0], &records[1]);
        assert_eq!(first["eventName"], "INSERT");
        assert_eq!(second["eventName"], "MODIFY");
        assert_ne!(first["eventID"], second["eventID"]);
        assert_eq!(first["eventID"].as_str().map(str::len), Some(32));
        assert_eq!(second["eventVersion"], "1.1");
        assert_eq!(second["eventSource"], "aws:dynamodb");
        assert_eq!(second["awsRegion"], "us-east-1");
        assert!(second.get("userIdentity").is_none());
        let change = &second["dynamodb"];
        assert_eq!(change["Keys"], json!({"id": {"S": "a"}}));
        assert_eq!(change["StreamViewType"], view);
        let image = |n: &str| json!({"id": {"S": "a"}, "n": {"N": n}});
        let shown = |is_shown: bool, image: Value| if is_shown { image } else { Value::Null };
        assert_eq!(change["NewImage"], shown(new, image("2")));
        assert_eq!(change["OldImage"], shown(old, image("1")));
        // A key of 3 bytes, and items of 6.
        let size = 3 + 6 * (usize::from(new) + usize::from(old));
        assert_eq!(change["SizeBytes"], size);
        assert!(change["ApproximateCreationDateTime"].is_i64());
        let sequence = |record: &Value| record["dynamodb"]["SequenceNumber"].clone();
        let (one, two) = (sequence(first), sequence(second));
        assert!(one.as_str() < two.as_str() && one.as_str().map(str::len) == Some(21));
    }
}

#[tokio::test]
async fn iterators_start_at_requested_position() {
    let server = Server::start().await;
    let arn = with_stream(&server, "things", "NEW_IMAGE").await;
    for n in 0..5 {
        put(&server, "things", n).await;
    }
    let all = iterator(&server, &arn, json!({"ShardIteratorType": "TRIM_HORIZON"})).await;
    let page = server.ok("GetRecords", json!({"ShardIterator": all})).await;
    let third = page["Records"][2]["dynamodb"]["SequenceNumber"].clone();
    let mut places = Vec::new();
    for (asked, expected) in [
        (json!({"ShardIteratorType": "TRIM_HORIZON"}), 0..7),
        (json!({"ShardIteratorType": "LATEST"}), 5..7),
        (
            json!({"ShardIteratorType": "AT_SEQUENCE_NUMBER", "SequenceNumber": third}),
            2..7,
        ),
        (
            json!({"ShardIteratorType": "AFTER_SEQUENCE_NUMBER", "SequenceNumber": third}),
            3..7,
        ),
    ] {
        places.push((iterator(&server, &arn, asked).await, expected));
    }
    put(&server, "things", 5).await;
    put(&server, "things", 6).await;
    for (from, expected) in places {
        let mut read = Vec::new();
        let mut next = Some(from.clone());
        while let Some(from) = next {
            let body = json!({"ShardIterator": from, "Limit": 2});
            let page = server.ok("GetRecords", body).await;
            let records = page["Records"].as_array().expect("records");
            assert!(records.len() <= 2);
            read.extend(records.iter().map(|record| {
                let number = &record["dynamodb"]["NewImage"]["n"]["N"];
                let number = number.as_str().expect("digits");
                number.parse::<i32>().expect("a number")
            }));
            let goes_on = !records.is_empty();
            let following = page["NextShardIterator"].as_str().expect("an open shard");
            next = goes_on.then(|| following.to_owned());
        }
        assert_eq!(read, expected.collect::<Vec<_>>(), "{from}");
    }
}

#[tokio::test]
async fn iterators_expire_after_fifteen_minutes() {
    let clock = Arc::new(ManualClock::at_ms(1_800_000_000_000));
    let config = Config {
        clock: Arc::clone(&clock) as _,
        ..Config::default()
    };
    let server = Server::start_with(config).await;
    let arn = with_stream(&server, "things", "NEW_IMAGE").await;
    let from = iterator(&server, &arn, json!({"ShardIteratorType": "TRIM_HORIZON"})).await;
    clock.advance_ms(15 * 60 * 1000);
    let body = json!({"ShardIterator": from});
    let page = server.ok("GetRecords", body.clone()).await;
    clock.advance_ms(1);
    let (name, _) = server.refused("GetRecords", body).await;
    assert_eq!(name, "ExpiredIteratorException");
    let next = json!({"ShardIterator": page["NextShardIterator"]});
    server.ok("GetRecords", next).await;
}

#[tokio::test]
async fn disabled_stream_ends() {
    let server = Server::start().await;
    let arn = with_stream(&server, "things", "NEW_IMAGE").await;
    put(&server, "things", 1).await;
    let off = json!({"TableName": "things", "StreamSpecification": {"StreamEnabled": false}});
    let table = server.ok("UpdateTable", off).await;
    assert_eq!(table["TableDescription"]["LatestStreamArn"], arn);
    assert!(
        table["TableDescription"]
            .get("StreamSpecification")
            .is_none()
    );
    let described = server.ok("DescribeStream", json!({"StreamArn": arn})).await;
    let described = &described["StreamDescription"];
    assert_eq!(described["StreamStatus"], "DISABLED");
    let range = &described["Shards"][0]["SequenceNumberRange"];
    assert_eq!(
        range["StartingSequenceNumber"],
        range["EndingSequenceNumber"]
    );
    let from = iterator(&server, &arn, json!({"ShardIteratorType": "TRIM_HORIZON"})).await;
    let page = server
        .ok("GetRecords", json!({"ShardIterator": from}))
        .await;
    assert_eq!(page["Records"].as_array().map(Vec::len), Some(1));
    assert!(page.get("NextShardIterator").is_none());
    server
        .ok("DeleteTable", json!({"TableName": "things"}))
        .await;
    let listed = server
        .ok("ListStreams", json!({"TableName": "things"}))
        .await;
    assert_eq!(listed["Streams"][0]["StreamArn"], arn);
}

#[tokio::test]
async fn streams_are_listed_in_pages() {
    let server = Server::start().await;
    let mut arns = Vec::new();
    for name in ["aaa", "bbb", "ccc"] {
        arns.push(with_stream(&server, name, "KEYS_ONLY").await);
    }
    let mut listed = Vec::new();
    let mut start = Value::Null;
    loop {
        let body = json!({"Limit": 2, "ExclusiveStartStreamArn": start});
        let page = server.ok("ListStreams", body).await;
        let streams = page["Streams"].as_array().expect("streams").clone();
        listed.extend(streams.iter().map(|one| one["StreamArn"].clone()));
        start = page["LastEvaluatedStreamArn"].clone();
        if start.is_null() {
            break;
        }
    }
    assert_eq!(listed, arns);
    let one = server.ok("ListStreams", json!({"TableName": "bbb"})).await;
    assert_eq!(one["Streams"][0]["StreamArn"], arns[1]);
    assert_eq!(one["Streams"].as_array().map(Vec::len), Some(1));
    let filter =
        json!({"Type": "CHILD_SHARDS", "ShardId": "shardId-00000000000000000000-00000000"});
    let body = json!({"StreamArn": arns[0], "ShardFilter": filter});
    let described = server.ok("DescribeStream", body).await;
    assert_eq!(described["StreamDescription"]["Shards"], json!([]));
}

#[tokio::test]
async fn invalid_requests_are_rejected() {
    let server = Server::start().await;
    let arn = with_stream(&server, "things", "NEW_IMAGE").await;
    let described = server.ok("DescribeStream", json!({"StreamArn": arn})).await;
    let shard = described["StreamDescription"]["Shards"][0]["ShardId"].clone();
    let unknown =
        "arn:aws:dynamodb:us-east-1:000000000000:table/things/stream/2020-01-01T00:00:00.000";
    let missing = "shardId-00000001500000000000-0000000f";
    let of_kind = |kind: &str, sequence: Value| json!({"StreamArn": arn, "ShardId": shard, "ShardIteratorType": kind, "SequenceNumber": sequence});
    for (operation, body, name, text) in [
        (
            "DescribeStream",
            json!({}),
            "ValidationException",
            "Value null at 'streamArn'",
        ),
        (
            "DescribeStream",
            json!({"StreamArn": "short"}),
            "ValidationException",
            "length greater than or equal to 37",
        ),
        (
            "DescribeStream",
            json!({"StreamArn": "x".repeat(40)}),
            "ValidationException",
            "Invalid StreamArn",
        ),
        (
            "DescribeStream",
            json!({"StreamArn": unknown}),
            "ResourceNotFoundException",
            "Requested resource not found: Stream: arn",
        ),
        (
            "DescribeStream",
            json!({"StreamArn": arn, "Limit": 101}),
            "ValidationException",
            "less than or equal to 100",
        ),
        (
            "DescribeStream",
            json!({"StreamArn": arn, "ShardFilter": {"Type": "CHILD_SHARDS"}}),
            "ValidationException",
            "ShardFilter",
        ),
        (
            "ListStreams",
            json!({"TableName": "none"}),
            "ResourceNotFoundException",
            "none",
        ),
        (
            "ListStreams",
            json!({"Limit": 0}),
            "ValidationException",
            "'limit'",
        ),
        (
            "GetShardIterator",
            json!({"StreamArn": arn}),
            "ValidationException",
            "2 validation errors detected",
        ),
        (
            "GetShardIterator",
            of_kind("NOW", Value::Null),
            "ValidationException",
            "enum value set",
        ),
        (
            "GetShardIterator",
            of_kind("AT_SEQUENCE_NUMBER", Value::Null),
            "ValidationException",
            "SequenceNumber",
        ),
        (
            "GetShardIterator",
            of_kind("AT_SEQUENCE_NUMBER", json!("5")),
            "ValidationException",
            "'sequenceNumber'",
        ),
        (
            "GetShardIterator",
            of_kind("AT_SEQUENCE_NUMBER", json!("100000000000000999999")),
            "ValidationException",
            "Invalid SequenceNumber",
        ),
        (
            "GetShardIterator",
            json!({"StreamArn": arn, "ShardId": missing, "ShardIteratorType": "LATEST"}),
            "ResourceNotFoundException",
            "Shard does not exist",
        ),
        (
            "GetRecords",
            json!({"ShardIterator": "x"}),
            "ValidationException",
            "Invalid ShardIterator",
        ),
        (
            "GetRecords",
            json!({"ShardIterator": "x", "Limit": 1001}),
            "ValidationException",
            "less than or equal to 1000",
        ),
    ] {
        let (found, said) = server.refused(operation, body.clone()).await;
        assert_eq!(found, name, "{operation} {body}: {said}");
        assert!(said.contains(text), "{operation} {body}: {said}");
    }
}
