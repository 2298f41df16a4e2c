//! Operations on tables, time to live and tags.

use serde_json::{Value, json};

use crate::server::Server;

#[tokio::test]
async fn tables_are_described_as_created() {
    let server = Server::start().await;
    server.create_indexed_table("readings").await;
    let item = json!({"pk": {"S": "a"}, "sk": {"N": "1"}});
    server
        .ok("PutItem", json!({"TableName": "readings", "Item": item}))
        .await;
    let answer = server
        .ok("DescribeTable", json!({"TableName": "readings"}))
        .await;
    let table = &answer["Table"];
    assert_eq!(table["TableStatus"], "ACTIVE");
    assert_eq!(
        table["TableArn"],
        "arn:aws:dynamodb:us-east-1:000000000000:table/readings"
    );
    assert_eq!(table["ItemCount"], 1);
    assert_eq!(table["TableSizeBytes"], 7);
    assert_eq!(
        table["BillingModeSummary"]["BillingMode"],
        "PAY_PER_REQUEST"
    );
    assert_eq!(table["LocalSecondaryIndexes"][0]["IndexName"], "local");
    let global = &table["GlobalSecondaryIndexes"][0];
    assert_eq!(global["IndexStatus"], "ACTIVE");
    assert_eq!(
        global["Projection"],
        json!({"ProjectionType": "INCLUDE", "NonKeyAttributes": ["v"]})
    );
    assert_eq!(
        server
            .refused("DescribeTable", json!({"TableName": "none"}))
            .await,
        (
            "ResourceNotFoundException".to_owned(),
            "Requested resource not found: Table: none not found".to_owned()
        )
    );
}

#[tokio::test]
async fn tables_are_listed_in_pages_and_deleted() {
    let server = Server::start().await;
    for name in ["ccc", "aaa", "bbb"] {
        server.create_plain_table(name).await;
    }
    let first = server.ok("ListTables", json!({"Limit": 2})).await;
    assert_eq!(
        first,
        json!({"TableNames": ["aaa", "bbb"], "LastEvaluatedTableName": "bbb"})
    );
    let rest = json!({"ExclusiveStartTableName": "bbb"});
    assert_eq!(
        server.ok("ListTables", rest).await,
        json!({"TableNames": ["ccc"]})
    );
    let deleted = server.ok("DeleteTable", json!({"TableName": "aaa"})).await;
    assert_eq!(deleted["TableDescription"]["TableStatus"], "DELETING");
    assert_eq!(
        server
            .refused("DeleteTable", json!({"TableName": "aaa"}))
            .await
            .0,
        "ResourceNotFoundException"
    );
    let again = json!({
        "TableName": "bbb", "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
        "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
    });
    assert_eq!(
        server.refused("CreateTable", again).await,
        (
            "ResourceInUseException".to_owned(),
            "Table already exists: bbb".to_owned()
        )
    );
}

#[tokio::test]
async fn index_is_added_filled_and_deleted() {
    let server = Server::start().await;
    server.create_plain_table("things").await;
    for number in 0..20 {
        let item = json!({"pk": {"S": number.to_string()}, "kind": {"S": "x"}});
        server
            .ok("PutItem", json!({"TableName": "things", "Item": item}))
            .await;
    }
    let create = json!({
        "TableName": "things",
        "AttributeDefinitions": [{"AttributeName": "kind", "AttributeType": "S"}],
        "GlobalSecondaryIndexUpdates": [{"Create": {
            "IndexName": "by-kind",
            "KeySchema": [{"AttributeName": "kind", "KeyType": "HASH"}],
            "Projection": {"ProjectionType": "ALL"},
        }}],
    });
    server.ok("UpdateTable", create.clone()).await;
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
    loop {
        let answer = server
            .ok("DescribeTable", json!({"TableName": "things"}))
            .await;
        if answer["Table"]["GlobalSecondaryIndexes"][0]["IndexStatus"] == "ACTIVE" {
            break;
        }
        assert!(
            std::time::Instant::now() < deadline,
            "the index never fills"
        );
        tokio::task::yield_now().await;
    }
    let query = json!({
        "TableName": "things", "IndexName": "by-kind", "Select": "COUNT",
        "KeyConditionExpression": "kind = :k", "ExpressionAttributeValues": {":k": {"S": "x"}},
    });
    assert_eq!(server.ok("Query", query.clone()).await["Count"], 20);
    assert_eq!(
        server.refused("UpdateTable", create).await.1,
        "Attempting to create an index which already exists"
    );
    let delete = json!({
        "TableName": "things",
        "GlobalSecondaryIndexUpdates": [{"Delete": {"IndexName": "by-kind"}}],
    });
    server.ok("UpdateTable", delete).await;
    let (kind, _) = server.refused("Query", query).await;
    assert_eq!(kind, "ValidationException");
}

#[tokio::test]
async fn settings_change_independently() {
    let server = Server::start().await;
    server.create_plain_table("things").await;
    let update = |changes: Value| {
        let mut update = json!({"TableName": "things"});
        for (name, value) in changes.as_object().expect("an object") {
            update[name] = value.clone();
        }
        update
    };
    let protect = |on: bool| update(json!({"DeletionProtectionEnabled": on}));
    server.ok("UpdateTable", protect(true)).await;
    assert_eq!(
        server
            .refused("DeleteTable", json!({"TableName": "things"}))
            .await
            .1,
        "Resource cannot be deleted as it is currently protected against deletion. Disable deletion protection first."
    );
    server.ok("UpdateTable", protect(false)).await;
    let provisioned = update(json!({
        "BillingMode": "PROVISIONED",
        "ProvisionedThroughput": {"ReadCapacityUnits": 3, "WriteCapacityUnits": 4},
    }));
    let answer = server.ok("UpdateTable", provisioned.clone()).await;
    assert_eq!(
        answer["TableDescription"]["ProvisionedThroughput"]["WriteCapacityUnits"],
        4
    );
    let (_, text) = server.refused("UpdateTable", provisioned).await;
    assert!(text.starts_with("The provisioned throughput for the table will not change."));
    let stream = update(json!({
        "StreamSpecification": {"StreamEnabled": true, "StreamViewType": "NEW_AND_OLD_IMAGES"},
    }));
    let answer = server.ok("UpdateTable", stream.clone()).await;
    let arn = answer["TableDescription"]["LatestStreamArn"]
        .as_str()
        .expect("an ARN");
    assert!(arn.starts_with("arn:aws:dynamodb:us-east-1:000000000000:table/things/stream/20"));
    assert_eq!(
        server.refused("UpdateTable", stream).await.1,
        "Table already has an enabled stream: TableName: things"
    );
    let encrypted = update(json!({"SSESpecification": {"Enabled": true}}));
    let answer = server.ok("UpdateTable", encrypted).await;
    assert_eq!(
        answer["TableDescription"]["SSEDescription"]["Status"],
        "ENABLED"
    );
    let class = update(json!({"TableClass": "STANDARD_INFREQUENT_ACCESS"}));
    let answer = server.ok("UpdateTable", class).await;
    assert_eq!(
        answer["TableDescription"]["TableClassSummary"]["TableClass"],
        "STANDARD_INFREQUENT_ACCESS"
    );
}

#[tokio::test]
async fn time_to_live_is_enabled_and_disabled() {
    let server = Server::start().await;
    server.create_plain_table("things").await;
    let update = |attribute: &str, on: bool| {
        json!({
            "TableName": "things",
            "TimeToLiveSpecification": {"AttributeName": attribute, "Enabled": on},
        })
    };
    let describe = json!({"TableName": "things"});
    let answer = server.ok("DescribeTimeToLive", describe.clone()).await;
    assert_eq!(
        answer,
        json!({"TimeToLiveDescription": {"TimeToLiveStatus": "DISABLED"}})
    );
    assert_eq!(
        server
            .refused("UpdateTimeToLive", update("ttl", false))
            .await
            .1,
        "TimeToLive is already disabled"
    );
    let answer = server.ok("UpdateTimeToLive", update("ttl", true)).await;
    assert_eq!(
        answer,
        json!({"TimeToLiveSpecification": {"Enabled": true, "AttributeName": "ttl"}})
    );
    assert_eq!(
        server
            .refused("UpdateTimeToLive", update("ttl", true))
            .await
            .1,
        "TimeToLive is already enabled"
    );
    assert_eq!(
        server
            .refused("UpdateTimeToLive", update("other", true))
            .await
            .1,
        "TimeToLive is active on a different AttributeName: current AttributeName is ttl"
    );
    let answer = server.ok("DescribeTimeToLive", describe).await;
    assert_eq!(
        answer,
        json!({"TimeToLiveDescription": {"TimeToLiveStatus": "ENABLED", "AttributeName": "ttl"}})
    );
}

#[tokio::test]
async fn tags_are_set_listed_and_removed() {
    let server = Server::start().await;
    server.create_plain_table("things").await;
    let arn = "arn:aws:dynamodb:us-east-1:000000000000:table/things";
    let tags: Vec<_> = (0..12)
        .map(|number| json!({"Key": format!("k{number:02}"), "Value": "v"}))
        .collect();
    server
        .ok("TagResource", json!({"ResourceArn": arn, "Tags": tags}))
        .await;
    let untag = json!({"ResourceArn": arn, "TagKeys": ["k03"]});
    server.ok("UntagResource", untag).await;
    let first = server
        .ok("ListTagsOfResource", json!({"ResourceArn": arn}))
        .await;
    assert_eq!(first["Tags"].as_array().map(Vec::len), Some(10));
    let next = json!({"ResourceArn": arn, "NextToken": first["NextToken"]});
    let rest = server.ok("ListTagsOfResource", next).await;
    assert_eq!(rest, json!({"Tags": [{"Key": "k11", "Value": "v"}]}));
    let other = "arn:aws:dynamodb:us-east-1:000000000000:table/none";
    assert_eq!(
        server
            .refused(
                "TagResource",
                json!({"ResourceArn": other, "Tags": [{"Key": "a", "Value": "b"}]})
            )
            .await,
        (
            "ResourceNotFoundException".to_owned(),
            format!("Requested resource not found: ResourcArn: {other} not found")
        )
    );
    let (kind, text) = server
        .refused("ListTagsOfResource", json!({"ResourceArn": other}))
        .await;
    assert_eq!(kind, "AccessDeniedException");
    assert!(text.contains("dynamodb:ListTagsOfResource"), "{text}");
}

#[tokio::test]
async fn limits_endpoints_and_backups_are_described() {
    let server = Server::start().await;
    server.create_plain_table("things").await;
    let limits = server.ok("DescribeLimits", json!({})).await;
    assert_eq!(limits["TableMaxReadCapacityUnits"], 40_000);
    let endpoints = server.ok("DescribeEndpoints", json!({})).await;
    assert_eq!(endpoints["Endpoints"][0]["CachePeriodInMinutes"], 1440);
    let backups = server
        .ok("DescribeContinuousBackups", json!({"TableName": "things"}))
        .await;
    assert_eq!(
        backups["ContinuousBackupsDescription"]["PointInTimeRecoveryDescription"]["PointInTimeRecoveryStatus"],
        "DISABLED"
    );
}

#[tokio::test]
async fn concurrent_updates_keep_all_settings() {
    let server = Server::start().await;
    for round in 0..5 {
        let name = format!("things{round}");
        server.create_plain_table(&name).await;
        let arn = format!("arn:aws:dynamodb:us-east-1:000000000000:table/{name}");
        tokio::join!(
            server.ok(
                "UpdateTable",
                json!({"TableName": name, "DeletionProtectionEnabled": true})
            ),
            server.ok(
                "UpdateTable",
                json!({"TableName": name, "TableClass": "STANDARD_INFREQUENT_ACCESS"})
            ),
            server.ok(
                "UpdateContributorInsights",
                json!({"TableName": name, "ContributorInsightsAction": "ENABLE"})
            ),
            server.ok(
                "TagResource",
                json!({"ResourceArn": arn, "Tags": [{"Key": "a", "Value": "b"}]})
            ),
        );
        let named = json!({"TableName": name});
        let table = server.ok("DescribeTable", named.clone()).await;
        let insights = server.ok("DescribeContributorInsights", named).await;
        let tags = server
            .ok("ListTagsOfResource", json!({"ResourceArn": arn}))
            .await;
        assert_eq!(
            (
                &table["Table"]["DeletionProtectionEnabled"],
                &table["Table"]["TableClassSummary"]["TableClass"],
                &insights["ContributorInsightsStatus"],
                &tags["Tags"][0]["Key"],
            ),
            (
                &json!(true),
                &json!("STANDARD_INFREQUENT_ACCESS"),
                &json!("ENABLED"),
                &json!("a")
            ),
            "round {round}"
        );
    }
}

#[tokio::test]
async fn concurrent_stream_changes_are_rejected() {
    let server = Server::start().await;
    for round in 0..5 {
        let name = format!("things{round}");
        server.create_plain_table(&name).await;
        let enable = |view: &str| json!({"TableName": name, "StreamSpecification": {"StreamEnabled": true, "StreamViewType": view}});
        let (one, other) = tokio::join!(
            server.call("UpdateTable", enable("NEW_IMAGE")),
            server.call("UpdateTable", enable("KEYS_ONLY")),
        );
        let mut statuses = [one.0, other.0];
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 400], "{} {}", one.1, other.1);
    }
}

#[tokio::test]
async fn recovery_period_survives_a_concurrent_update() {
    let server = Server::start().await;
    for round in 0..5 {
        let name = format!("things{round}");
        server.create_plain_table(&name).await;
        let update = |specification| json!({"TableName": name, "PointInTimeRecoverySpecification": specification});
        let on = json!({"PointInTimeRecoveryEnabled": true});
        let week = json!({"PointInTimeRecoveryEnabled": true, "RecoveryPeriodInDays": 7});
        tokio::join!(
            server.ok("UpdateContinuousBackups", update(week)),
            server.ok("UpdateContinuousBackups", update(on)),
        );
        let described = server
            .ok("DescribeContinuousBackups", json!({"TableName": name}))
            .await;
        let recovery = &described["ContinuousBackupsDescription"]["PointInTimeRecoveryDescription"];
        assert_eq!(recovery["RecoveryPeriodInDays"], 7, "{described}");
    }
}

#[tokio::test]
async fn concurrent_tags_stay_within_the_limit() {
    let server = Server::start().await;
    server.create_plain_table("things").await;
    let arn = "arn:aws:dynamodb:us-east-1:000000000000:table/things";
    let tags = |name: &str| {
        let tags: Vec<_> = (0..30)
            .map(|n| json!({"Key": format!("{name}{n}"), "Value": "v"}))
            .collect();
        server.call("TagResource", json!({"ResourceArn": arn, "Tags": tags}))
    };
    let (one, other) = tokio::join!(tags("a"), tags("b"));
    let mut statuses = [one.0, other.0];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 400]);
}
