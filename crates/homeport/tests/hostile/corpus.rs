//! Valid requests of every operation, which the attacks mutate.

use serde_json::{Value, json};

/// The canary's own table.
pub(crate) const CANARY_TABLE: &str = "canary";
/// Tables that always exist, so that many requests get past the check of the table name.
pub(crate) const BASE_TABLES: [&str; 2] = ["hostile-0", "hostile-1"];

/// Operations of DynamoDB Streams, which have their own target prefix.
pub(crate) const STREAM_OPERATIONS: [&str; 4] = [
    "DescribeStream",
    "GetRecords",
    "GetShardIterator",
    "ListStreams",
];

/// A table with local and global indexes.
pub(crate) fn indexed_table(name: &str) -> Value {
    json!({
        "TableName": name,
        "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [
            {"AttributeName": "pk", "AttributeType": "S"},
            {"AttributeName": "sk", "AttributeType": "N"},
            {"AttributeName": "l", "AttributeType": "S"},
            {"AttributeName": "g", "AttributeType": "B"},
        ],
        "KeySchema": [
            {"AttributeName": "pk", "KeyType": "HASH"},
            {"AttributeName": "sk", "KeyType": "RANGE"},
        ],
        "LocalSecondaryIndexes": [{
            "IndexName": "local",
            "KeySchema": [
                {"AttributeName": "pk", "KeyType": "HASH"},
                {"AttributeName": "l", "KeyType": "RANGE"},
            ],
            "Projection": {"ProjectionType": "KEYS_ONLY"},
        }],
        "GlobalSecondaryIndexes": [{
            "IndexName": "global",
            "KeySchema": [{"AttributeName": "g", "KeyType": "HASH"}],
            "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["v"]},
        }],
        "StreamSpecification": {"StreamEnabled": true, "StreamViewType": "NEW_AND_OLD_IMAGES"},
        "Tags": [{"Key": "owner", "Value": "nobody"}],
    })
}

/// A table with the string key `pk` only.
pub(crate) fn plain_table(name: &str) -> Value {
    json!({
        "TableName": name,
        "BillingMode": "PROVISIONED",
        "ProvisionedThroughput": {"ReadCapacityUnits": 5, "WriteCapacityUnits": 5},
        "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
        "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
    })
}

fn item(number: usize) -> Value {
    json!({
        "pk": {"S": format!("p{}", number % 7)},
        "sk": {"N": number.to_string()},
        "l": {"S": "local"},
        "g": {"B": "AAECAw=="},
        "v": {"M": {
            "list": {"L": [{"N": "1.5"}, {"BOOL": true}, {"NULL": true}, {"S": "ü€𝄞"}]},
            "numbers": {"NS": ["1", "2.5", "-3e10"]},
            "texts": {"SS": ["a", "b"]},
            "bytes": {"BS": ["AA==", "AQ=="]},
        }},
        "count": {"N": "41"},
    })
}

/// Valid requests of every operation; `number` varies some of them.
pub(crate) fn requests(number: usize) -> Vec<(&'static str, Value)> {
    let table = BASE_TABLES[0];
    let plain = BASE_TABLES[1];
    let new = format!("new-{}", number % 20);
    let arn = format!("arn:aws:dynamodb:us-east-1:000000000000:table/{table}");
    let stream = format!("{arn}/stream/2026-01-01T00:00:00.000");
    let shard = "shardId-00000001800000000000-00000001";
    let backup = format!("{arn}/backup/01800000000000-0badcafe");
    let key = json!({"pk": {"S": format!("p{}", number % 7)}, "sk": {"N": number.to_string()}});
    let plain_key = json!({"pk": {"S": format!("p{}", number % 7)}});
    vec![
        ("CreateTable", indexed_table(&new)),
        ("CreateTable", plain_table(&new)),
        ("DescribeTable", json!({"TableName": table})),
        (
            "ListTables",
            json!({"Limit": 10, "ExclusiveStartTableName": "a"}),
        ),
        ("DeleteTable", json!({"TableName": new})),
        (
            "UpdateTable",
            json!({
                "TableName": new,
                "BillingMode": "PAY_PER_REQUEST",
                "AttributeDefinitions": [{"AttributeName": "x", "AttributeType": "S"}],
                "GlobalSecondaryIndexUpdates": [{"Create": {
                    "IndexName": "added",
                    "KeySchema": [{"AttributeName": "x", "KeyType": "HASH"}],
                    "Projection": {"ProjectionType": "ALL"},
                }}],
            }),
        ),
        (
            "UpdateTable",
            json!({
                "TableName": new, "GlobalSecondaryIndexUpdates": [{"Delete": {"IndexName": "added"}}],
            }),
        ),
        (
            "PutItem",
            json!({
                "TableName": table, "Item": item(number), "ReturnValues": "ALL_OLD",
                "ConditionExpression": "attribute_not_exists(pk) OR #c BETWEEN :low AND :high",
                "ExpressionAttributeNames": {"#c": "count"},
                "ExpressionAttributeValues": {":low": {"N": "0"}, ":high": {"N": "1e3"}},
                "ReturnConsumedCapacity": "INDEXES",
                "ReturnItemCollectionMetrics": "SIZE",
            }),
        ),
        (
            "GetItem",
            json!({
                "TableName": table, "Key": key, "ConsistentRead": true,
                "ProjectionExpression": "v.#l[0], g, count",
                "ExpressionAttributeNames": {"#l": "list"},
            }),
        ),
        (
            "UpdateItem",
            json!({
                "TableName": table, "Key": key, "ReturnValues": "UPDATED_NEW",
                "UpdateExpression": "SET #c = if_not_exists(#c, :zero) + :one, v.#l = list_append(v.#l, :more) REMOVE l ADD total :one DELETE texts :texts",
                "ConditionExpression": "attribute_exists(pk) AND size(v) > :zero AND NOT contains(l, :text)",
                "ExpressionAttributeNames": {"#c": "count", "#l": "list"},
                "ExpressionAttributeValues": {
                    ":zero": {"N": "0"}, ":one": {"N": "1"}, ":more": {"L": [{"S": "x"}]},
                    ":texts": {"SS": ["a"]}, ":text": {"S": "zzz"},
                },
            }),
        ),
        (
            "UpdateItem",
            json!({
                "TableName": plain, "Key": plain_key, "UpdateExpression": "ADD hits :one",
                "ExpressionAttributeValues": {":one": {"N": "1"}}, "ReturnValues": "ALL_NEW",
            }),
        ),
        (
            "UpdateItem",
            json!({
                "TableName": table, "Key": key, "ReturnValues": "ALL_NEW", "ConditionalOperator": "OR",
                "AttributeUpdates": {
                    "total": {"Action": "ADD", "Value": {"N": "1"}}, "texts": {"Action": "DELETE", "Value": {"SS": ["a"]}},
                    "log": {"Action": "ADD", "Value": {"L": [{"S": "x"}]}}, "l": {"Action": "DELETE"}, "w": {"Value": {"BOOL": true}},
                },
                "Expected": {"count": {"ComparisonOperator": "GE", "AttributeValueList": [{"N": "0"}]}, "none": {"Exists": false}},
            }),
        ),
        (
            "Query",
            json!({
                "TableName": table, "AttributesToGet": ["pk", "count"],
                "KeyConditions": {
                    "pk": {"ComparisonOperator": "EQ", "AttributeValueList": [{"S": "p1"}]},
                    "sk": {"ComparisonOperator": "BETWEEN", "AttributeValueList": [{"N": "0"}, {"N": "1e6"}]},
                },
                "QueryFilter": {"count": {"ComparisonOperator": "IN", "AttributeValueList": [{"N": "41"}]}},
            }),
        ),
        (
            "Scan",
            json!({
                "TableName": table, "Limit": 20,
                "ScanFilter": {"v": {"ComparisonOperator": "NOT_NULL"}, "l": {"ComparisonOperator": "BEGINS_WITH", "AttributeValueList": [{"S": "l"}]}},
            }),
        ),
        (
            "ExecuteStatement",
            json!({
                "Statement": format!("SELECT pk, v.list[0] FROM \"{table}\" WHERE pk IN ['p1', ?] AND sk BETWEEN 0 AND 1e6 AND (size(v) > 1 OR NOT contains(l, 'x')) ORDER BY pk, sk DESC"),
                "Parameters": [{"S": "p2"}], "Limit": 5, "ReturnConsumedCapacity": "INDEXES",
            }),
        ),
        (
            "ExecuteStatement",
            json!({"Statement": format!("INSERT INTO \"{table}\" VALUE {{'pk': 'p{}', 'sk': {number}.5, 'm': {{'l': [1, 'x', <<'a'>>, null, true]}}}}", number % 7)}),
        ),
        (
            "BatchExecuteStatement",
            json!({"Statements": [
                {"Statement": format!("UPDATE \"{table}\" SET w = list_append(w, [1]) SET t = set_add(t, <<1>>) REMOVE m.l[0] WHERE pk = 'p1' AND sk = {number} RETURNING MODIFIED NEW *")},
                {"Statement": format!("DELETE FROM \"{plain}\" WHERE pk = ? AND attribute_type(hits, 'N') RETURNING ALL OLD *"), "Parameters": [{"S": "p3"}]},
            ]}),
        ),
        (
            "ExecuteTransaction",
            json!({"TransactStatements": [
                {"Statement": format!("UPDATE \"{plain}\" SET hits = hits + 1 WHERE pk = 'p4'")},
                {"Statement": format!("EXISTS(SELECT * FROM \"{plain}\" WHERE pk = 'p5' AND hits IS NOT MISSING)")},
            ]}),
        ),
        (
            "DeleteItem",
            json!({
                "TableName": table, "Key": key, "ReturnValues": "ALL_OLD",
                "ConditionExpression": "begins_with(pk, :p) OR attribute_type(v, :m)",
                "ExpressionAttributeValues": {":p": {"S": "p"}, ":m": {"S": "M"}},
                "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
            }),
        ),
        (
            "Query",
            json!({
                "TableName": table, "Limit": 5, "ScanIndexForward": false,
                "KeyConditionExpression": "pk = :p AND sk BETWEEN :a AND :b",
                "FilterExpression": "#c IN (:a, :b) OR attribute_exists(v.numbers)",
                "ExpressionAttributeNames": {"#c": "count"},
                "ExpressionAttributeValues": {":p": {"S": "p1"}, ":a": {"N": "0"}, ":b": {"N": "1e9"}},
                "ExclusiveStartKey": key,
            }),
        ),
        (
            "Query",
            json!({
                "TableName": table, "IndexName": "global", "Select": "COUNT",
                "KeyConditionExpression": "g = :g",
                "ExpressionAttributeValues": {":g": {"B": "AAECAw=="}},
            }),
        ),
        (
            "Scan",
            json!({
                "TableName": table, "Limit": 10, "Segment": 1, "TotalSegments": 4,
                "FilterExpression": "contains(v.texts, :t)",
                "ExpressionAttributeValues": {":t": {"S": "a"}}, "ReturnConsumedCapacity": "TOTAL",
            }),
        ),
        (
            "Scan",
            json!({"TableName": table, "IndexName": "local", "Select": "ALL_PROJECTED_ATTRIBUTES"}),
        ),
        (
            "BatchGetItem",
            json!({"RequestItems": {
                table: {"Keys": [key], "ProjectionExpression": "pk, v"},
                plain: {"Keys": [plain_key], "ConsistentRead": true},
            }}),
        ),
        (
            "BatchWriteItem",
            json!({"RequestItems": {
                table: [{"PutRequest": {"Item": item(number)}}, {"DeleteRequest": {"Key": {"pk": {"S": "p0"}, "sk": {"N": "-1"}}}}],
                plain: [{"PutRequest": {"Item": {"pk": {"S": "p0"}, "x": {"N": "0"}}}}],
            }}),
        ),
        (
            "TransactGetItems",
            json!({"TransactItems": [
                {"Get": {"TableName": table, "Key": key, "ProjectionExpression": "pk"}},
                {"Get": {"TableName": plain, "Key": plain_key}},
            ]}),
        ),
        (
            "TransactWriteItems",
            json!({"ClientRequestToken": format!("token-{}", number % 50), "TransactItems": [
                {"Put": {"TableName": table, "Item": item(number), "ConditionExpression": "attribute_not_exists(pk)"}},
                {"Update": {"TableName": plain, "Key": {"pk": {"S": "u"}}, "UpdateExpression": "SET a = :a",
                    "ExpressionAttributeValues": {":a": {"N": "1"}}}},
                {"Delete": {"TableName": plain, "Key": {"pk": {"S": "d"}}}},
                {"ConditionCheck": {"TableName": plain, "Key": {"pk": {"S": "c"}}, "ConditionExpression": "attribute_not_exists(pk)",
                    "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}},
            ]}),
        ),
        (
            "UpdateTimeToLive",
            json!({"TableName": plain, "TimeToLiveSpecification": {"AttributeName": "ttl", "Enabled": true}}),
        ),
        ("DescribeTimeToLive", json!({"TableName": plain})),
        (
            "TagResource",
            json!({"ResourceArn": arn, "Tags": [{"Key": "a", "Value": "b"}]}),
        ),
        (
            "UntagResource",
            json!({"ResourceArn": arn, "TagKeys": ["a"]}),
        ),
        ("ListTagsOfResource", json!({"ResourceArn": arn})),
        ("DescribeLimits", json!({})),
        ("DescribeEndpoints", json!({})),
        ("DescribeContinuousBackups", json!({"TableName": table})),
        (
            "UpdateContinuousBackups",
            json!({"TableName": table, "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": true, "RecoveryPeriodInDays": 3}}),
        ),
        (
            "RestoreTableToPointInTime",
            json!({
                "SourceTableName": table, "TargetTableName": "restored", "RestoreDateTime": 1_800_000_000.5,
                "BillingModeOverride": "PAY_PER_REQUEST", "LocalSecondaryIndexOverride": [],
            }),
        ),
        (
            "CreateBackup",
            json!({"TableName": plain, "BackupName": "saved"}),
        ),
        ("ListBackups", json!({"TableName": plain, "Limit": 5})),
        ("DescribeBackup", json!({"BackupArn": backup})),
        ("DeleteBackup", json!({"BackupArn": backup})),
        (
            "RestoreTableFromBackup",
            json!({"TargetTableName": "restored", "BackupArn": backup}),
        ),
        (
            "ExportTableToPointInTime",
            json!({
                "TableArn": arn, "S3Bucket": "exports", "S3Prefix": "a/../b", "ExportTime": 1_800_000_000.5,
                "ClientToken": "again", "ExportFormat": "DYNAMODB_JSON",
            }),
        ),
        ("ListExports", json!({"TableArn": arn, "MaxResults": 5})),
        (
            "DescribeExport",
            json!({"ExportArn": format!("{arn}/export/01800000000000-0badcafe")}),
        ),
        (
            "ImportTable",
            json!({
                "S3BucketSource": {"S3Bucket": "exports", "S3KeyPrefix": "../"},
                "InputFormat": "DYNAMODB_JSON", "InputCompressionType": "GZIP",
                "TableCreationParameters": indexed_table("imported"),
            }),
        ),
        ("ListImports", json!({"TableArn": arn, "PageSize": 5})),
        (
            "DescribeImport",
            json!({"ImportArn": format!("{arn}/import/01800000000000-0badcafe")}),
        ),
        ("ListStreams", json!({"TableName": table, "Limit": 5})),
        (
            "DescribeStream",
            json!({"StreamArn": stream, "Limit": 5, "ShardFilter": {"Type": "CHILD_SHARDS", "ShardId": shard}}),
        ),
        (
            "GetShardIterator",
            json!({
                "StreamArn": stream, "ShardId": shard, "ShardIteratorType": "AT_SEQUENCE_NUMBER",
                "SequenceNumber": "100000000000000000001",
            }),
        ),
        (
            "GetRecords",
            json!({"ShardIterator": format!("{stream}|1|AQAAAAcAAAGLz+Unew=="), "Limit": 5}),
        ),
    ]
}
