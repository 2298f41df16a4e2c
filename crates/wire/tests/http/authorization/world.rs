//! Two tables with all kinds of resources, and requests of every operation for each of them.

use std::sync::Arc;

use homeport_engine::ManualClock;
use homeport_wire::Config;
use serde_json::{Map, Value, json};

use crate::server::Server;
use crate::signing::{ADMIN, credentials};

const NOW_MS: i64 = 1_800_000_000_000;
/// Everything on tables whose names begin with `mine`, and on the bucket of that name except one folder.
const POLICY: &str = r#"{"Statement":[
  {"Effect":"Allow","Action":"dynamodb:*","Resource":["arn:aws:dynamodb:*:*:table/mine","arn:aws:dynamodb:*:*:table/mine/*","arn:aws:dynamodb:*:*:table/mine-*"]},
  {"Effect":"Allow","Action":"s3:*","Resource":["arn:aws:s3:::mine","arn:aws:s3:::mine/*"]},
  {"Effect":"Deny","Action":"s3:*","Resource":"arn:aws:s3:::mine/kept/*"}
]}"#;

/// A server with two tables, on one of which Ann has every right.
pub(super) struct World {
    pub(super) server: Server,
    _buckets: tempfile::TempDir,
    pub(super) mine: Names,
    pub(super) secret: Names,
}

/// The resources of one table that requests can name.
pub(super) struct Names {
    pub(super) table: &'static str,
    pub(super) stream: String,
    pub(super) shard: String,
    pub(super) iterator: String,
    pub(super) backup: String,
    pub(super) export: String,
    pub(super) import: String,
}

/// An operation, a request for each of the two tables, and the resource that the second one needs a permission for.
pub(super) struct Case {
    pub(super) operation: &'static str,
    /// Permitted, and always with the same response; `None` for operations across all tables.
    pub(super) own: Option<Value>,
    /// A request for the secret table.
    pub(super) other: Value,
    pub(super) resource: String,
    /// The members of the operation that name resources.
    pub(super) members: &'static [&'static str],
}

pub(super) fn arn(resource: &str) -> String {
    format!("arn:aws:dynamodb:us-east-1:000000000000:{resource}")
}

pub(super) fn key() -> Value {
    json!({"pk": {"S": "a"}, "sk": {"N": "1"}})
}

pub(super) fn table(name: &str) -> Value {
    let attribute = |name: &str, kind: &str| json!({"AttributeName": name, "AttributeType": kind});
    let key = |name: &str, kind: &str| json!({"AttributeName": name, "KeyType": kind});
    json!({
        "TableName": name, "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [attribute("pk", "S"), attribute("sk", "N"), attribute("l", "S")],
        "KeySchema": [key("pk", "HASH"), key("sk", "RANGE")],
        "LocalSecondaryIndexes": [{
            "IndexName": "local", "KeySchema": [key("pk", "HASH"), key("l", "RANGE")],
            "Projection": {"ProjectionType": "ALL"},
        }],
    })
}

impl World {
    pub(super) async fn new() -> Self {
        let buckets = tempfile::tempdir().expect("a directory");
        let server = Server::start_with(Config {
            credentials: credentials(POLICY),
            buckets: Some(buckets.path().to_owned()),
            clock: Arc::new(ManualClock::at_ms(NOW_MS)),
            ..Config::default()
        })
        .await;
        let mine = Names::new(&server, buckets.path(), "mine").await;
        let secret = Names::new(&server, buckets.path(), "secret").await;
        Self {
            server,
            _buckets: buckets,
            mine,
            secret,
        }
    }

    pub(super) fn cases(&self) -> Vec<Case> {
        let (mine, secret) = (&self.mine, &self.secret);
        let by_table = |operation, request: fn(&str) -> Value, members| Case {
            operation,
            own: Some(request("mine")),
            other: request("secret"),
            resource: arn("table/secret"),
            members,
        };
        // Changes address a missing table, so that every response is the same.
        let change = |operation, request: fn(&str) -> Value, members| Case {
            own: Some(request("mine-missing")),
            ..by_table(operation, request, members)
        };
        let of = |operation, request: fn(&Names) -> Value, resource: &str, members| Case {
            operation,
            own: Some(request(mine)),
            other: request(secret),
            resource: resource.to_owned(),
            members,
        };
        let account_wide = |operation, members| Case {
            operation,
            own: None,
            other: json!({}),
            resource: "*".to_owned(),
            members,
        };
        let named: &[&str] = &["TableName"];
        let paged: &[&str] = &["TableName", "IndexName"];
        let tagged: &[&str] = &["ResourceArn"];
        let backed_up: &[&str] = &["BackupArn"];
        let streamed: &[&str] = &["StreamArn"];
        let restored: &[&str] = &["SourceTableName", "SourceTableArn", "TargetTableName"];
        vec![
            of(
                "BatchExecuteStatement",
                |names| json!({"Statements": [{"Statement": format!("SELECT * FROM {} WHERE pk = 'a' AND sk = 1", names.table)}]}),
                &arn("table/secret"),
                &["Statements"],
            ),
            by_table(
                "BatchGetItem",
                |name| json!({"RequestItems": {name: {"Keys": [key()]}}}),
                &["RequestItems"],
            ),
            by_table(
                "BatchWriteItem",
                |name| json!({"RequestItems": {name: [{"PutRequest": {"Item": key()}}]}}),
                &["RequestItems"],
            ),
            change(
                "CreateBackup",
                |name| json!({"TableName": name, "BackupName": "one"}),
                named,
            ),
            // The table exists already.
            by_table("CreateTable", table, named),
            Case {
                own: Some(json!({"BackupArn": arn("table/mine/backup/01800000000000-abcdefab")})),
                ..of(
                    "DeleteBackup",
                    |names| json!({"BackupArn": names.backup}),
                    &secret.backup,
                    backed_up,
                )
            },
            by_table(
                "DeleteItem",
                |name| json!({"TableName": name, "Key": {"pk": {"S": "b"}, "sk": {"N": "1"}}}),
                named,
            ),
            change("DeleteTable", |name| json!({"TableName": name}), named),
            of(
                "DescribeBackup",
                |names| json!({"BackupArn": names.backup}),
                &secret.backup,
                backed_up,
            ),
            by_table(
                "DescribeContinuousBackups",
                |name| json!({"TableName": name}),
                named,
            ),
            by_table(
                "DescribeContributorInsights",
                |name| json!({"TableName": name}),
                paged,
            ),
            account_wide("DescribeEndpoints", &[]),
            of(
                "DescribeExport",
                |names| json!({"ExportArn": names.export}),
                &secret.export,
                &["ExportArn"],
            ),
            of(
                "DescribeImport",
                |names| json!({"ImportArn": names.import}),
                &secret.import,
                &["ImportArn"],
            ),
            account_wide("DescribeLimits", &[]),
            of(
                "DescribeStream",
                |names| json!({"StreamArn": names.stream}),
                &secret.stream,
                streamed,
            ),
            by_table("DescribeTable", |name| json!({"TableName": name}), named),
            by_table(
                "DescribeTimeToLive",
                |name| json!({"TableName": name}),
                named,
            ),
            of(
                "ExecuteStatement",
                |names| json!({"Statement": format!("SELECT * FROM {} WHERE pk = 'a'", names.table)}),
                &arn("table/secret"),
                &["Statement"],
            ),
            of(
                "ExecuteTransaction",
                |names| json!({"TransactStatements": [{"Statement": format!("SELECT * FROM {} WHERE pk = 'a' AND sk = 1", names.table)}]}),
                &arn("table/secret"),
                &["TransactStatements"],
            ),
            change(
                "ExportTableToPointInTime",
                |name| json!({"TableArn": arn(&format!("table/{name}")), "S3Bucket": "mine"}),
                &["TableArn", "S3Bucket", "S3Prefix"],
            ),
            by_table(
                "GetItem",
                |name| json!({"TableName": name, "Key": key()}),
                named,
            ),
            of(
                "GetRecords",
                |names| json!({"ShardIterator": names.iterator}),
                &secret.stream,
                &["ShardIterator"],
            ),
            of(
                "GetShardIterator",
                |names| json!({"StreamArn": names.stream, "ShardId": names.shard, "ShardIteratorType": "TRIM_HORIZON"}),
                &secret.stream,
                streamed,
            ),
            Case {
                // There is no file with this prefix.
                own: Some(
                    json!({"S3BucketSource": {"S3Bucket": "mine", "S3KeyPrefix": "none/"}, "InputFormat": "DYNAMODB_JSON", "TableCreationParameters": table("mine-new")}),
                ),
                ..of(
                    "ImportTable",
                    |names| json!({"S3BucketSource": {"S3Bucket": "mine"}, "InputFormat": "DYNAMODB_JSON", "TableCreationParameters": table(names.table)}),
                    &arn("table/secret"),
                    &["S3BucketSource", "TableCreationParameters"],
                )
            },
            by_table(
                "ListBackups",
                |name| json!({"TableName": name}),
                &["TableName", "ExclusiveStartBackupArn"],
            ),
            by_table(
                "ListContributorInsights",
                |name| json!({"TableName": name}),
                named,
            ),
            by_table(
                "ListExports",
                |name| json!({"TableArn": arn(&format!("table/{name}"))}),
                &["TableArn"],
            ),
            by_table(
                "ListImports",
                |name| json!({"TableArn": arn(&format!("table/{name}"))}),
                &["TableArn"],
            ),
            by_table(
                "ListStreams",
                |name| json!({"TableName": name}),
                &["TableName", "ExclusiveStartStreamArn"],
            ),
            account_wide("ListTables", &["ExclusiveStartTableName"]),
            by_table(
                "ListTagsOfResource",
                |name| json!({"ResourceArn": arn(&format!("table/{name}"))}),
                tagged,
            ),
            by_table(
                "PutItem",
                |name| json!({"TableName": name, "Item": key()}),
                named,
            ),
            Case {
                resource: arn("table/secret/index/local"),
                ..by_table(
                    "Query",
                    |name| json!({"TableName": name, "IndexName": "local", "KeyConditionExpression": "pk = :p", "ExpressionAttributeValues": {":p": {"S": "a"}}}),
                    paged,
                )
            },
            Case {
                own: Some(
                    json!({"BackupArn": arn("table/mine/backup/01800000000000-abcdefab"), "TargetTableName": "mine-new"}),
                ),
                ..of(
                    "RestoreTableFromBackup",
                    |names| json!({"BackupArn": names.backup, "TargetTableName": "mine-new"}),
                    &secret.backup,
                    &["BackupArn", "TargetTableName"],
                )
            },
            change(
                "RestoreTableToPointInTime",
                |name| json!({"SourceTableName": name, "TargetTableName": "mine-new", "UseLatestRestorableTime": true}),
                restored,
            ),
            by_table("Scan", |name| json!({"TableName": name}), paged),
            change(
                "TagResource",
                |name| json!({"ResourceArn": arn(&format!("table/{name}")), "Tags": [{"Key": "k", "Value": "v"}]}),
                tagged,
            ),
            by_table(
                "TransactGetItems",
                |name| json!({"TransactItems": [{"Get": {"TableName": name, "Key": key()}}]}),
                &["TransactItems"],
            ),
            by_table(
                "TransactWriteItems",
                |name| json!({"TransactItems": [{"Put": {"TableName": name, "Item": key()}}]}),
                &["TransactItems"],
            ),
            change(
                "UntagResource",
                |name| json!({"ResourceArn": arn(&format!("table/{name}")), "TagKeys": ["k"]}),
                tagged,
            ),
            change(
                "UpdateContinuousBackups",
                |name| json!({"TableName": name, "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": true}}),
                named,
            ),
            change(
                "UpdateContributorInsights",
                |name| json!({"TableName": name, "ContributorInsightsAction": "ENABLE"}),
                paged,
            ),
            by_table(
                "UpdateItem",
                |name| json!({"TableName": name, "Key": key()}),
                named,
            ),
            change(
                "UpdateTable",
                |name| json!({"TableName": name, "DeletionProtectionEnabled": true}),
                named,
            ),
            change(
                "UpdateTimeToLive",
                |name| json!({"TableName": name, "TimeToLiveSpecification": {"AttributeName": "t", "Enabled": true}}),
                named,
            ),
        ]
    }
}

impl Names {
    /// A table with an item and all kinds of resources.
    async fn new(server: &Server, buckets: &std::path::Path, table: &'static str) -> Self {
        let ok = async |operation: &str, body: Value| -> Value {
            let (status, answer) = server.call_as(&ADMIN, operation, body).await;
            assert_eq!(status, 200, "{operation}: {answer}");
            answer
        };
        std::fs::create_dir(buckets.join(table)).expect("a bucket");
        let lines = r#"{"Item":{"pk":{"S":"a"},"sk":{"N":"1"}}}"#;
        std::fs::write(buckets.join(table).join("items.json"), lines).expect("a file");
        let mut created = self::table(table);
        created["StreamSpecification"] =
            json!({"StreamEnabled": true, "StreamViewType": "NEW_IMAGE"});
        let created = ok("CreateTable", created).await;
        ok("PutItem", json!({"TableName": table, "Item": key()})).await;
        ok("UpdateContinuousBackups", json!({"TableName": table, "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": true}})).await;
        let stream = created["TableDescription"]["LatestStreamArn"].clone();
        let described = ok("DescribeStream", json!({"StreamArn": stream})).await;
        let shard = described["StreamDescription"]["Shards"][0]["ShardId"].clone();
        let iterator = ok(
            "GetShardIterator",
            json!({"StreamArn": stream, "ShardId": shard, "ShardIteratorType": "TRIM_HORIZON"}),
        )
        .await;
        let backup = ok(
            "CreateBackup",
            json!({"TableName": table, "BackupName": "one"}),
        )
        .await;
        let export = ok(
            "ExportTableToPointInTime",
            json!({"TableArn": arn(&format!("table/{table}")), "S3Bucket": table}),
        )
        .await;
        let export = &export["ExportDescription"]["ExportArn"];
        let import = ok("ImportTable", json!({"S3BucketSource": {"S3Bucket": table, "S3KeyPrefix": "items"}, "InputFormat": "DYNAMODB_JSON", "TableCreationParameters": self::table(&format!("{table}-imported"))})).await;
        let import = &import["ImportTableDescription"]["ImportArn"];
        let backup = &backup["BackupDetails"]["BackupArn"];
        // After these have ended, descriptions no longer change.
        for (operation, body, status, ended) in [
            (
                "DescribeBackup",
                json!({"BackupArn": backup}),
                "/BackupDescription/BackupDetails/BackupStatus",
                "AVAILABLE",
            ),
            (
                "DescribeExport",
                json!({"ExportArn": export}),
                "/ExportDescription/ExportStatus",
                "COMPLETED",
            ),
            (
                "DescribeImport",
                json!({"ImportArn": import}),
                "/ImportTableDescription/ImportStatus",
                "COMPLETED",
            ),
        ] {
            let waiting = async {
                while ok(operation, body.clone()).await.pointer(status) != Some(&json!(ended)) {
                    tokio::task::yield_now().await;
                }
            };
            let waited = tokio::time::timeout(std::time::Duration::from_secs(60), waiting);
            waited.await.expect(operation);
        }
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        Self {
            table,
            stream: text(&stream),
            shard: text(&shard),
            iterator: text(&iterator["ShardIterator"]),
            backup: text(backup),
            export: text(export),
            import: text(import),
        }
    }

    /// Every member that names a resource in the request of some operation.
    pub(super) fn members(&self) -> Map<String, Value> {
        let table = self.table;
        let members = json!({
            "TableName": table,
            "IndexName": "local",
            "TableArn": arn(&format!("table/{table}")),
            "ResourceArn": arn(&format!("table/{table}")),
            "StreamArn": self.stream,
            "ShardIterator": self.iterator,
            "BackupArn": self.backup,
            "ExportArn": self.export,
            "ImportArn": self.import,
            "SourceTableName": table,
            "SourceTableArn": arn(&format!("table/{table}")),
            "TargetTableName": format!("{table}-new"),
            "S3Bucket": table,
            "S3Prefix": "",
            "S3BucketSource": {"S3Bucket": table},
            "TableCreationParameters": self::table(&format!("{table}-new")),
            "RequestItems": {table: {"Keys": [key()]}},
            "TransactItems": [{"Get": {"TableName": table, "Key": key()}}],
            "Statement": format!("SELECT * FROM {table}"),
            "Statements": [{"Statement": format!("SELECT * FROM {table}")}],
            "TransactStatements": [{"Statement": format!("SELECT * FROM {table}")}],
            "ExclusiveStartTableName": table,
            "ExclusiveStartStreamArn": self.stream,
            "ExclusiveStartBackupArn": self.backup,
        });
        match members {
            Value::Object(members) => members,
            _ => Map::new(),
        }
    }
}
