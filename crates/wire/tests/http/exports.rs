//! Exports and imports over HTTP, with a directory for buckets.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use homeport_engine::ManualClock;
use homeport_wire::Config;
use serde_json::{Value, json};

use crate::server::Server;

const START_MS: i64 = 1_800_000_000_000;
const ARN: &str = "arn:aws:dynamodb:us-east-1:000000000000:table/things";

struct World {
    server: Server,
    clock: Arc<ManualClock>,
    buckets: tempfile::TempDir,
}

impl World {
    /// A table with recovery and one new item in each of five seconds. The first item is deleted in the last second.
    async fn new() -> Self {
        let buckets = tempfile::tempdir().expect("a directory");
        std::fs::create_dir(buckets.path().join("exports")).expect("a bucket");
        let clock = Arc::new(ManualClock::at_ms(START_MS));
        let server = Server::start_with(Config {
            clock: Arc::clone(&clock) as _,
            buckets: Some(buckets.path().to_owned()),
            ..Config::default()
        })
        .await;
        server.create_plain_table("things").await;
        let on = json!({"TableName": "things", "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": true}});
        server.ok("UpdateContinuousBackups", on).await;
        for n in 0..5 {
            let item = json!({"pk": {"S": format!("i{n}")}, "set": {"NS": ["1", "2.5"]}, "b": {"B": "AAE="}});
            let body = json!({"TableName": "things", "Item": item});
            server.ok("PutItem", body).await;
            clock.advance_ms(1000);
        }
        let first = json!({"TableName": "things", "Key": {"pk": {"S": "i0"}}});
        server.ok("DeleteItem", first).await;
        clock.advance_ms(1000);
        Self {
            server,
            clock,
            buckets,
        }
    }

    /// Waits until a transfer has ended, and returns its description.
    async fn ended(&self, operation: &str, body: Value, wrapper: &str, status: &str) -> Value {
        let wait = async {
            loop {
                let answer = self.server.ok(operation, body.clone()).await;
                let described = answer[wrapper].clone();
                if described[status] != "IN_PROGRESS" {
                    return described;
                }
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        let waited = tokio::time::timeout(Duration::from_secs(60), wait);
        waited.await.expect("waited in vain")
    }

    async fn export(&self, more: Value) -> Value {
        let mut body = json!({"TableArn": ARN, "S3Bucket": "exports"});
        for (name, value) in more.as_object().expect("members") {
            body[name] = value.clone();
        }
        let begun = self.server.ok("ExportTableToPointInTime", body).await;
        let arn = begun["ExportDescription"]["ExportArn"].clone();
        let body = json!({"ExportArn": arn});
        self.ended("DescribeExport", body, "ExportDescription", "ExportStatus")
            .await
    }

    async fn import(&self, table: &str, prefix: &str) -> Value {
        let body = import_request(table, prefix, "GZIP");
        let begun = self.server.ok("ImportTable", body).await;
        let arn = begun["ImportTableDescription"]["ImportArn"].clone();
        let body = json!({"ImportArn": arn});
        self.ended(
            "DescribeImport",
            body,
            "ImportTableDescription",
            "ImportStatus",
        )
        .await
    }

    async fn items(&self, table: &str) -> Vec<Value> {
        let scanned = self.server.ok("Scan", json!({"TableName": table})).await;
        let mut items = scanned["Items"].as_array().expect("items").clone();
        items.sort_by_key(|item| item["pk"]["S"].as_str().map(str::to_owned));
        items
    }

    fn read(&self, key: &str) -> Value {
        let path = self.buckets.path().join("exports").join(key);
        let text = std::fs::read_to_string(path).expect("a file");
        serde_json::from_str(text.lines().next().expect("a line")).expect("JSON")
    }
}

fn import_request(table: &str, prefix: &str, compression: &str) -> Value {
    json!({
        "S3BucketSource": {"S3Bucket": "exports", "S3KeyPrefix": prefix},
        "InputFormat": "DYNAMODB_JSON",
        "InputCompressionType": compression,
        "TableCreationParameters": {
            "TableName": table,
            "BillingMode": "PAY_PER_REQUEST",
            "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
            "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
        },
    })
}

#[tokio::test]
async fn exported_items_are_imported_unchanged() {
    let world = World::new().await;
    let now = world.export(json!({})).await;
    assert_eq!(now["ExportStatus"], "COMPLETED", "{now}");
    assert_eq!(now["ItemCount"], 4);
    let second = START_MS / 1000 + 2;
    let then = json!({"ExportTime": second, "S3Prefix": "a/b/"});
    let then = world.export(then).await;
    assert_eq!(
        (&then["ItemCount"], &then["ExportTime"]),
        (&json!(3), &json!(second as f64))
    );
    let manifest = then["ExportManifest"].as_str().expect("a manifest");
    assert!(manifest.starts_with("a/b/AWSDynamoDB/01"), "{manifest}");
    let summary = world.read(manifest);
    assert_eq!(summary["version"], "2020-06-30");
    assert_eq!(summary["itemCount"], 3);
    assert_eq!(summary["tableArn"], ARN);
    assert_eq!(summary["exportTime"], "2027-01-15T08:00:02.000Z");
    let files = summary["manifestFilesS3Key"].as_str().expect("a key");
    let file = world.read(files);
    assert_eq!(file["itemCount"], 3);
    let data = file["dataFileS3Key"].as_str().expect("a key").to_owned();
    assert!(Path::new(&data).starts_with("a/b/AWSDynamoDB"));
    let imported = world.import("copy", &data).await;
    assert_eq!(imported["ImportStatus"], "COMPLETED", "{imported}");
    assert_eq!(imported["ImportedItemCount"], 3);
    let copied = world.items("copy").await;
    let keys: Vec<_> = copied.iter().map(|item| item["pk"]["S"].clone()).collect();
    assert_eq!(keys, ["i0", "i1", "i2"]);
    // A prefix may also select a whole export.
    let prefix = now["ExportManifest"].as_str().expect("a manifest");
    let prefix = prefix.trim_end_matches("manifest-summary.json");
    world.import("again", prefix).await;
    assert_eq!(world.items("again").await, world.items("things").await);
    let listed = world
        .server
        .ok("ListExports", json!({"MaxResults": 1}))
        .await;
    assert_eq!(listed["ExportSummaries"][0]["ExportArn"], now["ExportArn"]);
    let rest = json!({"TableArn": ARN, "NextToken": listed["NextToken"]});
    let listed = world.server.ok("ListExports", rest).await;
    assert_eq!(listed["ExportSummaries"][0]["ExportArn"], then["ExportArn"]);
    assert!(listed.get("NextToken").is_none());
    let listed = world.server.ok("ListImports", json!({})).await;
    assert_eq!(
        listed["ImportSummaryList"].as_array().map(Vec::len),
        Some(2)
    );
}

#[tokio::test]
async fn invalid_lines_are_counted_and_skipped() {
    let world = World::new().await;
    let folder = world.buckets.path().join("exports").join("mine");
    std::fs::create_dir(&folder).expect("a folder");
    let lines = [
        r#"{"Item":{"pk":{"S":"a"}}}"#,
        r#"{"Item":{"pk":{"N":"1"}}}"#,
        r#"{"Item":{"other":{"S":"a"}}}"#,
        "nonsense",
        "",
        r#"{"Item":{"pk":{"S":"a"},"n":{"N":"2"}}}"#,
    ];
    std::fs::write(folder.join("one.json"), lines.join("\n")).expect("a file");
    let body = import_request("mine", "mine/", "NONE");
    let begun = world.server.ok("ImportTable", body.clone()).await;
    let arn = begun["ImportTableDescription"]["ImportArn"].clone();
    let body_of = json!({"ImportArn": arn});
    let described = world
        .ended(
            "DescribeImport",
            body_of,
            "ImportTableDescription",
            "ImportStatus",
        )
        .await;
    assert_eq!(described["ErrorCount"], 3);
    assert_eq!(described["ProcessedItemCount"], 5);
    let item = json!({"pk": {"S": "a"}, "n": {"N": "2"}});
    assert_eq!(world.items("mine").await, [item]);
    let (name, _) = world.server.refused("ImportTable", body).await;
    assert_eq!(name, "ResourceInUseException");
    // A file that cannot be read creates no table.
    let gzip = import_request("never", "mine/", "GZIP");
    let begun = world.server.ok("ImportTable", gzip).await;
    let arn = begun["ImportTableDescription"]["ImportArn"].clone();
    let described = world
        .ended(
            "DescribeImport",
            json!({"ImportArn": arn}),
            "ImportTableDescription",
            "ImportStatus",
        )
        .await;
    assert_eq!(described["ImportStatus"], "FAILED", "{described}");
    let wait = async {
        let body = json!({"TableName": "never"});
        while world.server.call("DescribeTable", body.clone()).await.0 == 200 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    let waited = tokio::time::timeout(Duration::from_secs(60), wait);
    waited.await.expect("the table goes");
}

#[tokio::test]
async fn repeated_request_starts_nothing() {
    let world = World::new().await;
    let first = world.export(json!({"ClientToken": "one"})).await;
    world.clock.advance_ms(5);
    let again = world.export(json!({"ClientToken": "one"})).await;
    assert_eq!(again["ExportArn"], first["ExportArn"]);
    let other =
        json!({"TableArn": ARN, "S3Bucket": "exports", "S3Prefix": "x", "ClientToken": "one"});
    let (name, _) = world
        .server
        .refused("ExportTableToPointInTime", other)
        .await;
    assert_eq!(name, "ExportConflictException");
}

#[tokio::test]
async fn invalid_requests_are_rejected() {
    let world = World::new().await;
    world.server.create_plain_table("plain").await;
    let plain = "arn:aws:dynamodb:us-east-1:000000000000:table/plain";
    let of = |more: Value| {
        let mut body = json!({"TableArn": ARN, "S3Bucket": "exports"});
        for (name, value) in more.as_object().expect("members") {
            body[name] = value.clone();
        }
        body
    };
    let export = "ExportTableToPointInTime";
    for (operation, body, name, text) in [
        (
            export,
            json!({"TableArn": ARN}),
            "ValidationException",
            "'s3Bucket'",
        ),
        (
            export,
            of(json!({"S3Bucket": "../x"})),
            "ValidationException",
            "bucket name",
        ),
        (
            export,
            of(json!({"S3Bucket": "other"})),
            "ValidationException",
            "does not exist",
        ),
        (
            export,
            of(json!({"S3Prefix": "a/../../b"})),
            "ValidationException",
            "prefix",
        ),
        (
            export,
            of(json!({"ExportFormat": "ION"})),
            "ValidationException",
            "ION",
        ),
        (
            export,
            of(json!({"ExportType": "INCREMENTAL_EXPORT"})),
            "ValidationException",
            "INCREMENTAL_EXPORT",
        ),
        (
            export,
            of(json!({"ExportTime": 1})),
            "InvalidExportTimeException",
            "ExportTime",
        ),
        (
            export,
            of(json!({"TableArn": plain})),
            "PointInTimeRecoveryUnavailableException",
            "plain",
        ),
        (
            export,
            of(json!({"TableArn": "none"})),
            "TableNotFoundException",
            "none",
        ),
        (
            "DescribeExport",
            json!({"ExportArn": format!("{ARN}/export/1")}),
            "ExportNotFoundException",
            "Export not found",
        ),
        (
            "DescribeImport",
            json!({"ImportArn": format!("{ARN}/import/1")}),
            "ImportNotFoundException",
            "Import not found",
        ),
        (
            "DescribeImport",
            json!({"ImportArn": "x".repeat(40)}),
            "ValidationException",
            "Invalid ImportArn",
        ),
        (
            "ListExports",
            json!({"MaxResults": 26}),
            "ValidationException",
            "'maxResults'",
        ),
        (
            "ImportTable",
            import_request("copy", "nothing/here", "GZIP"),
            "ValidationException",
            "No files",
        ),
        (
            "ImportTable",
            import_request("copy", "", "ZSTD"),
            "ValidationException",
            "ZSTD",
        ),
        (
            "ImportTable",
            import_request("c", "", "GZIP"),
            "ValidationException",
            "tableName",
        ),
        (
            "ImportTable",
            json!({}),
            "ValidationException",
            "3 validation errors",
        ),
    ] {
        let (found, said) = world.server.refused(operation, body.clone()).await;
        assert_eq!(found, name, "{operation} {body}: {said}");
        assert!(said.contains(text), "{operation} {body}: {said}");
    }
    let without = Server::start().await;
    let (name, text) = without.refused(export, of(json!({}))).await;
    assert_eq!(name, "ValidationException");
    assert!(text.contains("dynamodb.buckets"), "{text}");
}

#[tokio::test]
async fn symbolic_links_cannot_leave_bucket() {
    let world = World::new().await;
    let outside = tempfile::tempdir().expect("a directory");
    let line = r#"{"Item":{"pk":{"S":"a"}}}"#;
    std::fs::write(outside.path().join("items.json"), line).expect("a file");
    let buckets = world.buckets.path();
    for link in ["linked", "exports/link"] {
        std::os::unix::fs::symlink(outside.path(), buckets.join(link)).expect("a link");
    }
    std::fs::create_dir(buckets.join("exports/real")).expect("a folder");
    std::os::unix::fs::symlink(outside.path(), buckets.join("exports/real/AWSDynamoDB"))
        .expect("a link");
    for (bucket, prefix) in [
        ("linked", ""),
        ("exports", "link"),
        ("exports", "link/deeper"),
        // The folder that every export creates.
        ("exports", "real"),
    ] {
        let export = json!({"TableArn": ARN, "S3Bucket": bucket, "S3Prefix": prefix});
        let (kind, text) = world
            .server
            .refused("ExportTableToPointInTime", export)
            .await;
        assert_eq!(kind, "ValidationException", "{bucket} {prefix}: {text}");
    }
    for (bucket, prefix) in [
        ("linked", "items"),
        ("exports", "link/"),
        ("exports", "real/AWSDynamoDB/"),
    ] {
        let mut import = import_request("copy", prefix, "NONE");
        import["S3BucketSource"]["S3Bucket"] = json!(bucket);
        let (kind, text) = world.server.refused("ImportTable", import).await;
        assert_eq!(kind, "ValidationException", "{bucket} {prefix}: {text}");
    }
    let left = std::fs::read_dir(outside.path()).expect("a directory");
    assert_eq!(left.count(), 1, "an export wrote out of its bucket");
}
