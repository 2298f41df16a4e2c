//! Backups and point-in-time recovery over HTTP.

use std::sync::Arc;
use std::time::Duration;

use homeport_engine::ManualClock;
use homeport_wire::Config;
use serde_json::{Value, json};

use crate::server::Server;

const START_MS: i64 = 1_800_000_000_000;

async fn put(server: &Server, table: &str, n: u32) {
    let item = json!({"pk": {"S": "a"}, "sk": {"N": n.to_string()}, "g": {"S": "x"}});
    let body = json!({"TableName": table, "Item": item});
    server.ok("PutItem", body).await;
}

async fn within(mut look: impl AsyncFnMut() -> bool) {
    let wait = async {
        while !look().await {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    let waited = tokio::time::timeout(Duration::from_secs(60), wait);
    waited.await.expect("waited in vain");
}

async fn backup(server: &Server, table: &str, name: &str) -> String {
    let body = json!({"TableName": table, "BackupName": name});
    let begun = server.ok("CreateBackup", body).await;
    let arn = begun["BackupDetails"]["BackupArn"].clone();
    within(async || {
        let body = json!({"BackupArn": arn});
        let (status, described) = server.call("DescribeBackup", body).await;
        assert_eq!(status, 200, "{described}");
        described["BackupDescription"]["BackupDetails"]["BackupStatus"] == "AVAILABLE"
    })
    .await;
    arn.as_str().expect("an ARN").to_owned()
}

async fn is_active(server: &Server, table: &str) {
    within(async || {
        let body = json!({"TableName": table});
        let described = server.ok("DescribeTable", body).await;
        described["Table"]["TableStatus"] == "ACTIVE"
    })
    .await;
}

async fn count(server: &Server, table: &str) -> Value {
    let scanned = server.ok("Scan", json!({"TableName": table})).await;
    scanned["Count"].clone()
}

#[tokio::test]
async fn backups_are_described_listed_and_deleted() {
    let server = Server::start().await;
    server.create_indexed_table("things").await;
    put(&server, "things", 1).await;
    let mut arns = Vec::new();
    for name in ["one", "two", "three"] {
        arns.push(backup(&server, "things", name).await);
    }
    let described = server
        .ok("DescribeBackup", json!({"BackupArn": arns[0]}))
        .await;
    let described = &described["BackupDescription"];
    assert_eq!(described["BackupDetails"]["BackupName"], "one");
    assert_eq!(described["BackupDetails"]["BackupType"], "USER");
    assert!(described["BackupDetails"]["BackupSizeBytes"].as_u64() > Some(0));
    let source = &described["SourceTableDetails"];
    assert_eq!(source["TableName"], "things");
    assert_eq!(
        (&source["ItemCount"], &source["TableSizeBytes"]),
        (&json!(1), &json!(9))
    );
    assert_eq!(source["BillingMode"], "PAY_PER_REQUEST");
    let features = &described["SourceTableFeatureDetails"];
    assert_eq!(features["LocalSecondaryIndexes"][0]["IndexName"], "local");
    assert_eq!(features["GlobalSecondaryIndexes"][0]["IndexName"], "global");
    assert_eq!(
        features["TimeToLiveDescription"]["TimeToLiveStatus"],
        "DISABLED"
    );
    let mut listed = Vec::new();
    let mut start = Value::Null;
    loop {
        let body = json!({"TableName": "things", "Limit": 2, "ExclusiveStartBackupArn": start});
        let page = server.ok("ListBackups", body).await;
        let backups = page["BackupSummaries"].as_array().expect("backups").clone();
        listed.extend(backups.iter().map(|one| one["BackupArn"].clone()));
        start = page["LastEvaluatedBackupArn"].clone();
        if start.is_null() {
            break;
        }
    }
    assert_eq!(listed, arns);
    for (filter, expected) in [
        (json!({"BackupType": "SYSTEM"}), 0),
        (json!({"BackupType": "ALL"}), 3),
        (json!({"TableName": "others"}), 0),
        (json!({"TimeRangeUpperBound": 1_000_000_000}), 0),
        (json!({"TimeRangeLowerBound": 1_000_000_000.5}), 3),
    ] {
        let page = server.ok("ListBackups", filter.clone()).await;
        let found = page["BackupSummaries"].as_array().map(Vec::len);
        assert_eq!(found, Some(expected), "{filter}");
    }
    let body = json!({"BackupArn": arns[0]});
    let deleted = server.ok("DeleteBackup", body.clone()).await;
    let status = &deleted["BackupDescription"]["BackupDetails"]["BackupStatus"];
    assert_eq!(status, "DELETED");
    for operation in ["DescribeBackup", "DeleteBackup"] {
        let refused = server.refused(operation, body.clone()).await;
        let text = format!("Backup not found: {}", arns[0]);
        assert_eq!(refused, ("BackupNotFoundException".to_owned(), text));
    }
}

#[tokio::test]
async fn restored_table_has_requested_overrides() {
    let server = Server::start().await;
    server.create_indexed_table("things").await;
    for n in 0..3 {
        put(&server, "things", n).await;
    }
    let arn = backup(&server, "things", "one").await;
    put(&server, "things", 9).await;
    server
        .ok("DeleteTable", json!({"TableName": "things"}))
        .await;
    let key = |name: &str, kind: &str| json!({"AttributeName": name, "KeyType": kind});
    let global = json!({
        "IndexName": "global",
        "KeySchema": [key("g", "HASH")],
        "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["v"]},
        "ProvisionedThroughput": {"ReadCapacityUnits": 1, "WriteCapacityUnits": 2},
    });
    let body = json!({
        "TargetTableName": "copy",
        "BackupArn": arn,
        "BillingModeOverride": "PROVISIONED",
        "ProvisionedThroughputOverride": {"ReadCapacityUnits": 5, "WriteCapacityUnits": 6},
        "LocalSecondaryIndexOverride": [],
        "GlobalSecondaryIndexOverride": [global],
    });
    let begun = server.ok("RestoreTableFromBackup", body.clone()).await;
    let begun = &begun["TableDescription"];
    assert_eq!(begun["TableStatus"], "CREATING");
    assert_eq!(begun["RestoreSummary"]["SourceBackupArn"], arn);
    assert_eq!(begun["RestoreSummary"]["RestoreInProgress"], true);
    is_active(&server, "copy").await;
    assert_eq!(count(&server, "copy").await, 3);
    let table = server
        .ok("DescribeTable", json!({"TableName": "copy"}))
        .await;
    let table = &table["Table"];
    assert_eq!(table["RestoreSummary"]["RestoreInProgress"], false);
    assert_eq!(table["ProvisionedThroughput"]["WriteCapacityUnits"], 6);
    assert!(table.get("LocalSecondaryIndexes").is_none());
    assert_eq!(table["GlobalSecondaryIndexes"][0]["ItemCount"], 3);
    let (name, text) = server.refused("RestoreTableFromBackup", body).await;
    assert_eq!(
        (name.as_str(), text.as_str()),
        ("TableAlreadyExistsException", "Table already exists: copy")
    );
    let other = json!({"IndexName": "other", "KeySchema": [key("g", "HASH")], "Projection": {"ProjectionType": "ALL"}});
    let body = json!({"TargetTableName": "more", "BackupArn": arn, "GlobalSecondaryIndexOverride": [other]});
    let (name, text) = server.refused("RestoreTableFromBackup", body).await;
    assert_eq!(name, "ValidationException");
    assert!(text.contains("other"), "{text}");
}

#[tokio::test]
async fn table_is_restored_to_any_listed_second() {
    let clock = Arc::new(ManualClock::at_ms(START_MS));
    let config = Config {
        clock: Arc::clone(&clock) as _,
        ..Config::default()
    };
    let server = Server::start_with(config).await;
    server.create_indexed_table("things").await;
    let table = json!({"TableName": "things"});
    let off = server.ok("DescribeContinuousBackups", table.clone()).await;
    let off = &off["ContinuousBackupsDescription"]["PointInTimeRecoveryDescription"];
    assert_eq!(*off, json!({"PointInTimeRecoveryStatus": "DISABLED"}));
    let to_now = json!({"SourceTableName": "things", "TargetTableName": "now", "UseLatestRestorableTime": true});
    let (name, _) = server
        .refused("RestoreTableToPointInTime", to_now.clone())
        .await;
    assert_eq!(name, "PointInTimeRecoveryUnavailableException");
    let on = json!({"TableName": "things", "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": true, "RecoveryPeriodInDays": 7}});
    let enabled = server.ok("UpdateContinuousBackups", on).await;
    let enabled = &enabled["ContinuousBackupsDescription"]["PointInTimeRecoveryDescription"];
    let start = START_MS / 1000;
    // There is a restorable time at once, although its second is not over.
    assert_eq!(enabled["EarliestRestorableDateTime"], start);
    assert_eq!(enabled["LatestRestorableDateTime"], start);
    let body = json!({"SourceTableName": "things", "TargetTableName": "at-once", "RestoreDateTime": start});
    server.ok("RestoreTableToPointInTime", body).await;
    is_active(&server, "at-once").await;
    assert_eq!(count(&server, "at-once").await, 0);
    for n in 0..5 {
        put(&server, "things", n).await;
        clock.advance_ms(1000);
    }
    let told = server.ok("DescribeContinuousBackups", table).await;
    assert_eq!(
        told["ContinuousBackupsDescription"],
        json!({
            "ContinuousBackupsStatus": "ENABLED",
            "PointInTimeRecoveryDescription": {
                "PointInTimeRecoveryStatus": "ENABLED",
                "RecoveryPeriodInDays": 7,
                "EarliestRestorableDateTime": start,
                "LatestRestorableDateTime": start + 4,
            },
        })
    );
    for second in 0..5 {
        let target = format!("at-{second}");
        let arn = "arn:aws:dynamodb:us-east-1:000000000000:table/things";
        let body = json!({"SourceTableArn": arn, "TargetTableName": target, "RestoreDateTime": start + second});
        let begun = server.ok("RestoreTableToPointInTime", body).await;
        let summary = &begun["TableDescription"]["RestoreSummary"];
        assert_eq!(summary["SourceTableArn"], arn);
        is_active(&server, &target).await;
        assert_eq!(count(&server, &target).await, second + 1);
    }
    server.ok("RestoreTableToPointInTime", to_now).await;
    is_active(&server, "now").await;
    assert_eq!(count(&server, "now").await, 5);
    for at in [start - 1, start + 5] {
        let body =
            json!({"SourceTableName": "things", "TargetTableName": "never", "RestoreDateTime": at});
        let (name, _) = server.refused("RestoreTableToPointInTime", body).await;
        assert_eq!(name, "InvalidRestoreTimeException", "{at}");
    }
}

#[tokio::test]
async fn restore_window_ignores_clock_jumps() {
    let clock = Arc::new(ManualClock::at_ms(START_MS));
    let config = Config {
        clock: Arc::clone(&clock) as _,
        ..Config::default()
    };
    let server = Server::start_with(config).await;
    server.create_indexed_table("things").await;
    let on = json!({"TableName": "things", "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": true}});
    server.ok("UpdateContinuousBackups", on).await;
    put(&server, "things", 1).await;
    clock.advance_ms(10_000);
    put(&server, "things", 2).await;
    clock.advance_ms(400 * 24 * 60 * 60 * 1000);
    let table = json!({"TableName": "things"});
    let told = server.ok("DescribeContinuousBackups", table).await;
    let told = &told["ContinuousBackupsDescription"]["PointInTimeRecoveryDescription"];
    let start = START_MS / 1000;
    assert_eq!(told["EarliestRestorableDateTime"], start);
    let latest = told["LatestRestorableDateTime"].as_i64();
    let latest = latest.expect("a time");
    assert_eq!(latest, start + 9);
    let body =
        json!({"SourceTableName": "things", "TargetTableName": "then", "RestoreDateTime": latest});
    server.ok("RestoreTableToPointInTime", body).await;
    is_active(&server, "then").await;
    // The second item was written a second later.
    assert_eq!(count(&server, "then").await, 1);
}

#[tokio::test]
async fn invalid_requests_are_rejected() {
    let server = Server::start().await;
    server.create_plain_table("things").await;
    let unknown =
        "arn:aws:dynamodb:us-east-1:000000000000:table/things/backup/01489602797149-73d8d5bc";
    let both = json!({"SourceTableName": "things", "TargetTableName": "copy", "UseLatestRestorableTime": true, "RestoreDateTime": 1});
    for (operation, body, name, text) in [
        (
            "CreateBackup",
            json!({"TableName": "things"}),
            "ValidationException",
            "'backupName'",
        ),
        (
            "CreateBackup",
            json!({"TableName": "things", "BackupName": "a b"}),
            "ValidationException",
            "regular expression pattern",
        ),
        (
            "CreateBackup",
            json!({"TableName": "none", "BackupName": "abc"}),
            "TableNotFoundException",
            "Table not found: none",
        ),
        (
            "DescribeBackup",
            json!({}),
            "ValidationException",
            "'backupArn'",
        ),
        (
            "DescribeBackup",
            json!({"BackupArn": "x".repeat(40)}),
            "ValidationException",
            "backupArn",
        ),
        (
            "DescribeBackup",
            json!({"BackupArn": unknown}),
            "BackupNotFoundException",
            "Backup not found: arn",
        ),
        (
            "DeleteBackup",
            json!({"BackupArn": unknown}),
            "BackupNotFoundException",
            "Backup not found: arn",
        ),
        (
            "RestoreTableFromBackup",
            json!({"BackupArn": unknown, "TargetTableName": "copy"}),
            "BackupNotFoundException",
            "Backup not found: arn",
        ),
        (
            "RestoreTableFromBackup",
            json!({"BackupArn": unknown, "TargetTableName": "c"}),
            "ValidationException",
            "'targetTableName'",
        ),
        (
            "ListBackups",
            json!({"Limit": 101}),
            "ValidationException",
            "'limit'",
        ),
        (
            "ListBackups",
            json!({"BackupType": "MINE"}),
            "ValidationException",
            "enum value set",
        ),
        (
            "ListBackups",
            json!({"TimeRangeLowerBound": "yesterday"}),
            "SerializationException",
            "Date",
        ),
        (
            "UpdateContinuousBackups",
            json!({"TableName": "things"}),
            "ValidationException",
            "'pointInTimeRecoverySpecification'",
        ),
        (
            "UpdateContinuousBackups",
            json!({"TableName": "things", "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": true, "RecoveryPeriodInDays": 36}}),
            "ValidationException",
            "less than or equal to 35",
        ),
        (
            "UpdateContinuousBackups",
            json!({"TableName": "none", "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": true}}),
            "TableNotFoundException",
            "none",
        ),
        (
            "RestoreTableToPointInTime",
            json!({"TargetTableName": "copy", "UseLatestRestorableTime": true}),
            "ValidationException",
            "SourceTableName",
        ),
        (
            "RestoreTableToPointInTime",
            both,
            "ValidationException",
            "RestoreDateTime",
        ),
        (
            "RestoreTableToPointInTime",
            json!({"SourceTableName": "none", "TargetTableName": "copy", "UseLatestRestorableTime": true}),
            "TableNotFoundException",
            "none",
        ),
    ] {
        let (found, said) = server.refused(operation, body.clone()).await;
        assert_eq!(found, name, "{operation} {body}: {said}");
        assert!(said.contains(text), "{operation} {body}: {said}");
    }
}
