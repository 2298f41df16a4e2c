//! Every operation is authorized for the resources that it uses, whatever else its request names.

mod audit_log;
mod world;

use homeport_wire::{Config, OPERATIONS};
use serde_json::{Value, json};

use crate::server::Server;
use crate::signing::{ADMIN, ANN, credentials};
use audit_log::AuditLog;
use world::{Case, Names, World, arn, key, table};

/// The request with each foreign member that names another resource.
fn misleading(case: &Case, request: &Value, names: &Names) -> Vec<(String, Value)> {
    let foreign = names.members().into_iter();
    let foreign = foreign.filter(|(name, _)| !case.members.contains(&name.as_str()));
    foreign
        .map(|(name, value)| {
            let mut request = request.clone();
            request[&name] = value;
            (name, request)
        })
        .collect()
}

#[tokio::test]
async fn every_operation_has_a_case() {
    let world = World::new().await;
    let cases: Vec<&str> = world.cases().iter().map(|case| case.operation).collect();
    assert_eq!(cases, OPERATIONS);
}

#[tokio::test]
async fn every_naming_member_is_tried() {
    let world = World::new().await;
    let tried = world.mine.members();
    for case in world.cases() {
        for (member, value) in case.other.as_object().expect("members") {
            let names_the_table = value.to_string().contains(world.secret.table);
            let is_listed = case.members.contains(&member.as_str());
            assert!(!names_the_table || is_listed, "{} {member}", case.operation);
        }
        for member in case.members {
            assert!(tried.contains_key(*member), "{} {member}", case.operation);
        }
    }
}

#[tokio::test]
async fn foreign_members_permit_nothing() {
    let world = World::new().await;
    for case in world.cases() {
        let (status, denial) = world
            .server
            .call_as(&ANN, case.operation, case.other.clone())
            .await;
        let text = denial["Message"].as_str().unwrap_or_default();
        let resource = format!("on resource: {} because", case.resource);
        assert_eq!(status, 400, "{}: {denial}", case.operation);
        assert!(text.contains(&resource), "{}: {denial}", case.operation);
        for (member, request) in misleading(&case, &case.other, &world.mine) {
            let answer = world.server.call_as(&ANN, case.operation, request).await;
            let expected = (400, denial.clone());
            assert_eq!(answer, expected, "{} with {member}", case.operation);
        }
    }
}

#[tokio::test]
async fn foreign_members_change_no_response() {
    let world = World::new().await;
    for case in world.cases() {
        let Some(own) = &case.own else {
            continue;
        };
        let call = |request: Value| world.server.call_as(&ANN, case.operation, request);
        let expected = call(own.clone()).await;
        let kind = expected.1["__type"].as_str().unwrap_or_default();
        let denied = kind.ends_with("#AccessDeniedException");
        // The only exception is the tags of a missing table, as in DynamoDB.
        assert!(!denied, "{}: {}", case.operation, expected.1);
        for (member, request) in misleading(&case, own, &world.secret) {
            let answer = call(request).await;
            assert_eq!(answer, expected, "{} with {member}", case.operation);
        }
    }
}

#[tokio::test]
async fn audit_log_names_the_used_resource() {
    let (log, _guard) = AuditLog::start();
    let world = World::new().await;
    log.take();
    for case in world.cases() {
        let with_foreign = |request: &Value, names: &Names| {
            let mut request = request.clone();
            for (member, value) in names.members() {
                if !case.members.contains(&member.as_str()) {
                    request[&member] = value;
                }
            }
            request
        };
        let call = |request: Value| world.server.call_as(&ANN, case.operation, request);
        call(with_foreign(&case.other, &world.mine)).await;
        let resource = case.resource.strip_prefix(&arn("table/"));
        let resource = resource.unwrap_or(&case.resource).to_owned();
        assert_eq!(log.take(), [resource], "{}", case.operation);
        if let Some(own) = &case.own {
            call(with_foreign(own, &world.secret)).await;
            for line in log.take() {
                assert!(line.contains("mine"), "{}: {line}", case.operation);
                assert!(!line.contains("secret"), "{}: {line}", case.operation);
            }
        }
    }
    // Also after many permitted tables.
    let mut items: Vec<Value> = (10..90)
        .map(|number| format!("mine-{}{number}", "x".repeat(200)))
        .map(|table| json!({"Get": {"TableName": table, "Key": key()}}))
        .collect();
    items.push(json!({"Get": {"TableName": "secret", "Key": key()}}));
    let request = json!({"TransactItems": items});
    denied(
        &world
            .server
            .call_as(&ANN, "TransactGetItems", request)
            .await,
    );
    assert_eq!(log.take(), ["secret"]);
}

fn denied(answer: &(u16, Value)) -> &str {
    let kind = answer.1["__type"].as_str().unwrap_or_default();
    assert!(kind.ends_with("#AccessDeniedException"), "{answer:?}");
    answer.1["Message"].as_str().unwrap_or_default()
}

#[tokio::test]
async fn transfers_need_bucket_permissions() {
    let world = World::new().await;
    let call = |operation, request| world.server.call_as(&ANN, operation, request);
    let export = |bucket: &str, prefix: &str| json!({"TableArn": arn("table/mine"), "S3Bucket": bucket, "S3Prefix": prefix});
    let import = |bucket: &str, prefix: &str, name: &str| json!({"S3BucketSource": {"S3Bucket": bucket, "S3KeyPrefix": prefix}, "InputFormat": "DYNAMODB_JSON", "TableCreationParameters": table(name)});
    let (status, answer) = call("ExportTableToPointInTime", export("mine", "a")).await;
    assert_eq!(status, 200, "{answer}");
    let (status, answer) = call("ImportTable", import("mine", "items", "mine-copy")).await;
    assert_eq!(status, 200, "{answer}");
    let answer = call("ExportTableToPointInTime", export("secret", "mine/")).await;
    let text = denied(&answer);
    let needed = "s3:PutObject on resource: arn:aws:s3:::secret/mine/AWSDynamoDB/* because";
    assert!(text.contains(needed), "{text}");
    let answer = call("ImportTable", import("secret", "", "mine-other")).await;
    let text = denied(&answer);
    let needed = "s3:ListBucket on resource: arn:aws:s3:::secret because";
    assert!(text.contains(needed), "{text}");
    for prefix in ["kept", "/kept/a", "kept//a", "//kept"] {
        denied(&call("ExportTableToPointInTime", export("mine", prefix)).await);
    }
    for prefix in ["kept/", "k", ""] {
        denied(&call("ImportTable", import("mine", prefix, "mine-other")).await);
    }
    for prefix in ["..", "../secret", "a/../../secret"] {
        let (status, answer) = call("ExportTableToPointInTime", export("mine", prefix)).await;
        assert_eq!(status, 400, "{prefix}: {answer}");
    }
}

#[tokio::test]
async fn every_named_table_needs_a_permission() {
    let world = World::new().await;
    let elsewhere = |table: &str| format!("arn:aws:dynamodb:eu-west-1:123456789012:table/{table}");
    let (mine, secret) = (&world.mine, &world.secret);
    let get = |name: &str| json!({"Get": {"TableName": name, "Key": key()}});
    let put = |name: &str| json!({"Put": {"TableName": name, "Item": key()}});
    let select = |name: &str| json!({"Statement": format!("SELECT * FROM {name} WHERE pk = 'a' AND sk = 1")});
    let keys = || json!({"Keys": [key()]});
    let latest = |source: Value, target: &str| {
        let mut request = source;
        request["TargetTableName"] = json!(target);
        request["UseLatestRestorableTime"] = json!(true);
        request
    };
    for (operation, request) in [
        (
            "GetItem",
            json!({"TableName": elsewhere("secret"), "Key": key()}),
        ),
        (
            "GetItem",
            json!({"TableName": "secret", "tableName": "mine", "Key": key()}),
        ),
        // No table can have this name.
        (
            "GetItem",
            json!({"TableName": format!("mine-{}", "x".repeat(5000)), "Key": key()}),
        ),
        (
            "Query",
            json!({"TableName": arn("table/secret/index/local"), "KeyConditionExpression": "pk = :p", "ExpressionAttributeValues": {":p": {"S": "a"}}}),
        ),
        ("CreateTable", table(&elsewhere("secret-new"))),
        (
            "ImportTable",
            json!({"S3BucketSource": {"S3Bucket": "mine", "S3KeyPrefix": "items"}, "InputFormat": "DYNAMODB_JSON", "TableCreationParameters": table(&elsewhere("secret-new"))}),
        ),
        (
            "ExportTableToPointInTime",
            json!({"TableArn": elsewhere("secret"), "S3Bucket": "mine"}),
        ),
        (
            "ExecuteStatement",
            json!({"Statement": "SELECT * FROM \"secret\".\"local\" WHERE pk = 'a'"}),
        ),
        ("DescribeTable", json!({"TableName": elsewhere("secret")})),
        (
            "ListTagsOfResource",
            json!({"ResourceArn": elsewhere("secret")}),
        ),
        (
            "ListTagsOfResource",
            json!({"ResourceArn": arn("table/secret/index/local")}),
        ),
        (
            "BatchGetItem",
            json!({"RequestItems": {"mine": keys(), "secret": keys()}}),
        ),
        (
            "BatchGetItem",
            json!({"RequestItems": {"mine": keys(), elsewhere("secret"): keys()}}),
        ),
        (
            "BatchWriteItem",
            json!({"RequestItems": {"mine": [{"PutRequest": {"Item": key()}}], "secret": [{"DeleteRequest": {"Key": key()}}]}}),
        ),
        (
            "TransactGetItems",
            json!({"TransactItems": [get("mine"), get("secret")]}),
        ),
        (
            "TransactWriteItems",
            json!({"TransactItems": [put("mine"), put(&elsewhere("secret"))]}),
        ),
        (
            "BatchExecuteStatement",
            json!({"Statements": [select("mine"), select("secret")]}),
        ),
        (
            "ExecuteTransaction",
            json!({"TransactStatements": [select("mine"), select("secret")]}),
        ),
        (
            "RestoreTableFromBackup",
            json!({"BackupArn": mine.backup, "TargetTableName": "secret-copy"}),
        ),
        (
            "RestoreTableFromBackup",
            json!({"BackupArn": secret.backup, "TargetTableName": "mine-copy"}),
        ),
        (
            "RestoreTableToPointInTime",
            latest(json!({"SourceTableName": "mine"}), "secret-copy"),
        ),
        (
            "RestoreTableToPointInTime",
            latest(json!({"SourceTableArn": elsewhere("secret")}), "mine-copy"),
        ),
        (
            "RestoreTableToPointInTime",
            latest(
                json!({"SourceTableName": "mine", "SourceTableArn": arn("table/secret")}),
                "mine-copy",
            ),
        ),
        (
            "ListStreams",
            json!({"TableName": "mine", "ExclusiveStartStreamArn": secret.stream}),
        ),
        ("ListStreams", json!({})),
        ("ListBackups", json!({})),
        ("ListExports", json!({})),
        ("ListImports", json!({})),
        ("ListContributorInsights", json!({})),
    ] {
        let answer = world.server.call_as(&ANN, operation, request.clone()).await;
        assert_eq!(answer.0, 400, "{operation} {request}: {}", answer.1);
        denied(&answer);
    }
    let own = json!({"TableName": elsewhere("mine"), "Key": key()});
    let (status, answer) = world.server.call_as(&ANN, "GetItem", own).await;
    assert_eq!(status, 200, "{answer}");
    // The ARN in the text of an iterator is ignored.
    let (_, read) = secret.iterator.split_once('|').expect("an iterator");
    let request = json!({"ShardIterator": format!("{}|{read}", mine.stream)});
    denied(&world.server.call_as(&ANN, "GetRecords", request).await);
    // A stream outlives its table.
    let deleted = json!({"TableName": "secret"});
    let (status, answer) = world.server.call_as(&ADMIN, "DeleteTable", deleted).await;
    assert_eq!(status, 200, "{answer}");
    for (operation, request) in [
        ("DescribeStream", json!({"StreamArn": secret.stream})),
        (
            "GetShardIterator",
            json!({"StreamArn": secret.stream, "ShardId": secret.shard, "ShardIteratorType": "TRIM_HORIZON"}),
        ),
        ("GetRecords", json!({"ShardIterator": secret.iterator})),
    ] {
        let call = |caller| world.server.call_as(caller, operation, request.clone());
        let (status, answer) = call(&ADMIN).await;
        assert_eq!(status, 200, "{operation}: {answer}");
        denied(&call(&ANN).await);
    }
}

#[tokio::test]
async fn overlong_lists_are_rejected_before_permission_checks() {
    let world = World::new().await;
    let get = json!({"Get": {"TableName": "secret", "Key": key()}});
    let put = json!({"Put": {"TableName": "secret", "Item": key()}});
    let select = json!({"Statement": "SELECT * FROM secret WHERE pk = 'a' AND sk = 1"});
    let own_get = json!({"Get": {"TableName": "mine", "Key": key()}});
    let own_put = json!({"Put": {"TableName": "mine", "Item": key()}});
    let own_select = json!({"Statement": "SELECT * FROM mine WHERE pk = 'a' AND sk = 1"});
    for (operation, member, len_max, own, other) in [
        ("TransactGetItems", "TransactItems", 100, &own_get, &get),
        ("TransactWriteItems", "TransactItems", 100, &own_put, &put),
        (
            "ExecuteTransaction",
            "TransactStatements",
            100,
            &own_select,
            &select,
        ),
        (
            "BatchExecuteStatement",
            "Statements",
            25,
            &own_select,
            &select,
        ),
    ] {
        let mut list = vec![own.clone(); len_max];
        list.push(other.clone());
        let answer = world.server.call_as(&ANN, operation, json!({member: list}));
        let (_, answer) = answer.await;
        let kind = answer["__type"].as_str().unwrap_or_default();
        assert!(
            kind.ends_with("#ValidationException"),
            "{operation}: {answer}"
        );
        list.remove(0);
        let answer = world.server.call_as(&ANN, operation, json!({member: list}));
        denied(&answer.await);
    }
}

#[tokio::test]
async fn tags_of_a_new_table_need_a_permission() {
    let policy = r#"{"Statement":[
        {"Effect":"Allow","Action":"*","Resource":"*"},
        {"Effect":"Deny","Action":"dynamodb:TagResource","Resource":"*"}]}"#;
    let server = Server::start_with(Config {
        credentials: credentials(policy),
        ..Config::default()
    })
    .await;
    let mut request = table("tagged");
    request["Tags"] = json!([{"Key": "owner", "Value": "ann"}]);
    let import = json!({"S3BucketSource": {"S3Bucket": "mine"}, "InputFormat": "DYNAMODB_JSON", "TableCreationParameters": request});
    for (operation, request) in [("CreateTable", request), ("ImportTable", import)] {
        let answer = server.call_as(&ANN, operation, request).await;
        let text = denied(&answer);
        let tagged = arn("table/tagged");
        let needed = format!("dynamodb:TagResource on resource: {tagged} with an explicit deny");
        assert!(text.contains(&needed), "{operation}: {text}");
    }
    let (status, answer) = server.call_as(&ANN, "CreateTable", table("plain")).await;
    assert_eq!(status, 200, "{answer}");
}

#[tokio::test]
async fn page_starts_reveal_no_other_table() {
    let world = World::new().await;
    let (mine, secret) = (&world.mine, &world.secret);
    let id = |arn: &str| arn.rsplit('/').next().unwrap_or_default().to_owned();
    let statement = "SELECT * FROM secret";
    let page = json!({"Statement": statement, "Limit": 1});
    let insights = |table: &str| json!({"TableName": table, "ContributorInsightsAction": "ENABLE"});
    for table in ["mine", "secret"] {
        let more = json!({"TableName": table, "Item": {"pk": {"S": "b"}, "sk": {"N": "1"}}});
        world.server.call_as(&ADMIN, "PutItem", more).await;
        let request = insights(table);
        let enabled = world
            .server
            .call_as(&ADMIN, "UpdateContributorInsights", request);
        assert_eq!(enabled.await.0, 200);
    }
    let (_, page) = world.server.call_as(&ADMIN, "ExecuteStatement", page).await;
    let token = page["NextToken"].as_str().expect("a token");
    for (operation, request) in [
        (
            "ListBackups",
            json!({"TableName": "mine", "ExclusiveStartBackupArn": secret.backup}),
        ),
        (
            "ListBackups",
            json!({"TableName": "mine", "ExclusiveStartBackupArn": arn("table/secret/backup/0")}),
        ),
        (
            "ListExports",
            json!({"TableArn": arn("table/mine"), "NextToken": id(&secret.export)}),
        ),
        (
            "ListExports",
            json!({"TableArn": arn("table/mine"), "NextToken": "0"}),
        ),
        (
            "ListImports",
            json!({"TableArn": arn("table/mine"), "NextToken": id(&secret.import)}),
        ),
        (
            "ListContributorInsights",
            json!({"TableName": "mine", "NextToken": "secret/"}),
        ),
        (
            "ListContributorInsights",
            json!({"TableName": "mine", "NextToken": "a/"}),
        ),
        (
            "ExecuteStatement",
            json!({"Statement": "SELECT * FROM mine", "NextToken": token}),
        ),
        (
            "ListStreams",
            json!({"TableName": "mine", "ExclusiveStartStreamArn": mine.stream}),
        ),
    ] {
        let (_, answer) = world.server.call_as(&ANN, operation, request.clone()).await;
        let shown = answer.to_string();
        assert!(!shown.contains("secret"), "{operation} {request}: {shown}");
    }
}

#[tokio::test]
async fn repeated_members_are_rejected() {
    let world = World::new().await;
    let key = key();
    for (operation, body) in [
        (
            "GetItem",
            format!(r#"{{"TableName":"mine","Key":{key},"TableName":"secret"}}"#),
        ),
        (
            "GetItem",
            format!(r#"{{"TableName":"secret","Key":{key},"TableName":"mine"}}"#),
        ),
        (
            "GetItem",
            format!(r#"{{"TableName":null,"Key":{key},"TableName":"mine"}}"#),
        ),
        (
            "TransactGetItems",
            format!(
                r#"{{"TransactItems":[{{"Get":{{"TableName":"mine","TableName":"mine","Key":{key}}}}}]}}"#
            ),
        ),
        (
            "RestoreTableFromBackup",
            format!(
                r#"{{"BackupArn":"{}","TargetTableName":"mine-copy","TargetTableName":"secret-copy"}}"#,
                world.mine.backup
            ),
        ),
        (
            "RestoreTableFromBackup",
            format!(
                r#"{{"BackupArn":"{}","TargetTableName":"mine-copy","BillingModeOverride":"PROVISIONED","BillingModeOverride":"PAY_PER_REQUEST"}}"#,
                world.mine.backup
            ),
        ),
    ] {
        let (status, answer) = world.server.send_as(&ANN, operation, body.clone()).await;
        let kind = answer["__type"].as_str().unwrap_or_default();
        assert_eq!(status, 400, "{body}: {answer}");
        assert!(
            kind.ends_with("#SerializationException"),
            "{body}: {answer}"
        );
    }
    // Of repeated map keys the last one counts, for the policy and for the operation.
    let entry = format!(r#"{{"Keys":[{key}]}}"#);
    let body = format!(r#"{{"RequestItems":{{"mine":{entry},"secret":{entry},"secret":null}}}}"#);
    denied(&world.server.send_as(&ANN, "BatchGetItem", body).await);
}

#[tokio::test]
async fn only_permitted_attributes_are_returned() {
    let policy = r#"{"Statement":[{"Effect":"Allow","Action":"dynamodb:*","Resource":"arn:aws:dynamodb:*:*:table/notes","Condition":{
        "ForAllValues:StringEquals":{"dynamodb:Attributes":["pk","open"]},
        "StringEqualsIfExists":{"dynamodb:Select":"SPECIFIC_ATTRIBUTES","dynamodb:ReturnValues":"NONE"}}}]}"#;
    let server = Server::start_with(Config {
        credentials: credentials(policy),
        ..Config::default()
    })
    .await;
    let created = json!({
        "TableName": "notes", "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
        "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
    });
    assert_eq!(server.call_as(&ADMIN, "CreateTable", created).await.0, 200);
    let item = json!({"TableName": "notes", "Item": {"pk": {"S": "a"}, "open": {"S": "o"}, "hidden": {"S": "h"}}});
    assert_eq!(server.call_as(&ADMIN, "PutItem", item).await.0, 200);
    let key = json!({"pk": {"S": "a"}});
    let condition = json!({"ConditionExpression": "#o = :x", "ExpressionAttributeNames": {"#o": "open"}, "ExpressionAttributeValues": {":x": {"S": "x"}}});
    let with = |mut request: Value, more: &Value| {
        for (name, value) in more.as_object().expect("members") {
            request[name] = value.clone();
        }
        request
    };
    let returned = json!({"ReturnValuesOnConditionCheckFailure": "ALL_OLD"});
    let delete = with(json!({"TableName": "notes", "Key": key}), &condition);
    for (operation, request, permitted) in [
        (
            "BatchGetItem",
            json!({"RequestItems": {"notes": {"Keys": [key], "ProjectionExpression": "pk"}}}),
            true,
        ),
        (
            "BatchGetItem",
            json!({"RequestItems": {"notes": {"Keys": [key]}}}),
            false,
        ),
        (
            "BatchGetItem",
            json!({"RequestItems": {"notes": {"Keys": [key], "AttributesToGet": ["hidden"]}}}),
            false,
        ),
        ("DeleteItem", delete.clone(), true),
        ("DeleteItem", with(delete.clone(), &returned), false),
        (
            "TransactWriteItems",
            json!({"TransactItems": [{"Delete": with(delete, &returned)}]}),
            false,
        ),
        (
            "ExecuteStatement",
            json!({"Statement": "UPDATE notes SET open = 'p' WHERE pk = 'a'"}),
            true,
        ),
        (
            "ExecuteStatement",
            json!({"Statement": "UPDATE notes SET open = 'p' WHERE pk = 'a' RETURNING ALL OLD *"}),
            false,
        ),
    ] {
        let answer = server.call_as(&ANN, operation, request.clone()).await;
        let kind = answer.1["__type"].as_str().unwrap_or_default();
        let is_permitted = !kind.ends_with("#AccessDeniedException");
        assert_eq!(is_permitted, permitted, "{operation} {request}: {answer:?}");
    }
}
