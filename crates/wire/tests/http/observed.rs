//! Errors that were observed on the real service in 2026 and published with their texts. The texts here must be identical.

use serde_json::{Value, json};

use crate::server::Server;

const INVALID: &str = "ValidationException";
const CANCELLED: &str = "TransactionCanceledException";

async fn server() -> Server {
    let server = Server::start().await;
    server.create_plain_table("plain").await;
    let table = json!({
        "TableName": "indexed", "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [
            {"AttributeName": "pk", "AttributeType": "S"}, {"AttributeName": "sk", "AttributeType": "S"},
            {"AttributeName": "ik", "AttributeType": "S"},
        ],
        "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
        "GlobalSecondaryIndexes": [{
            "IndexName": "gsi1", "KeySchema": [{"AttributeName": "ik", "KeyType": "HASH"}],
            "Projection": {"ProjectionType": "ALL"},
        }],
    });
    server.ok("CreateTable", table).await;
    let table = json!({
        "TableName": "binary", "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "B"}],
        "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
    });
    server.ok("CreateTable", table).await;
    server
}

/// Sends each request and compares the whole error.
async fn check(cases: &[(&str, Value, &str, &str)]) {
    let server = server().await;
    for (operation, request, kind, text) in cases {
        let refused = server.refused(operation, request.clone()).await;
        assert_eq!(
            refused,
            ((*kind).to_owned(), (*text).to_owned()),
            "{operation} {request}"
        );
    }
}

fn put(members: Value) -> Value {
    with(
        json!({"TableName": "plain", "Item": {"pk": {"S": "x"}}}),
        members,
    )
}

fn update(members: Value) -> Value {
    with(
        json!({"TableName": "plain", "Key": {"pk": {"S": "x"}}}),
        members,
    )
}

fn with(mut request: Value, members: Value) -> Value {
    if let (Some(request), Value::Object(members)) = (request.as_object_mut(), members) {
        request.extend(members);
    }
    request
}

#[tokio::test]
async fn table_names_are_checked() {
    let empty = "1 validation error detected: Value at 'TableName' failed to satisfy constraint: Member must have length greater than or equal to 1";
    let short = "1 validation error detected: Value 'ab' at 'tableName' failed to satisfy constraint: Member must have length greater than or equal to 3";
    check(&[
        ("PutItem", put(json!({"TableName": ""})), INVALID, empty),
        ("PutItem", json!({"TableName": "", "Item": {}}), INVALID, empty),
        ("PutItem", put(json!({"TableName": "", "ReturnValues": "INVALID"})), INVALID, empty),
        ("DeleteItem", json!({"TableName": "", "Key": {}}), INVALID, empty),
        ("UpdateItem", json!({"TableName": "", "Key": {}}), INVALID, empty),
        ("PutItem", json!({"Item": {"pk": {"S": "x"}}}), INVALID,
            "1 validation error detected: Value null at 'tableName' failed to satisfy constraint: Member must not be null"),
        ("PutItem", put(json!({"TableName": "bad table!@#"})), INVALID,
            "1 validation error detected: Value 'bad table!@#' at 'tableName' failed to satisfy constraint: Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+"),
        ("CreateTable", json!({"TableName": "ab", "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
            "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}], "BillingMode": "PAY_PER_REQUEST"}), INVALID, short),
    ])
    .await;
}

#[tokio::test]
async fn return_values_are_checked() {
    let values = "Failed to satisfy constraint: Member must satisfy enum value set: [ALL_OLD, UPDATED_OLD, ALL_NEW, UPDATE_NEW, NONE]";
    let capacity = "Value 'INVALID' at 'returnConsumedCapacity' failed to satisfy constraint: Member must satisfy enum value set: [INDEXES, TOTAL, NONE]";
    let metrics = "Value 'INVALID' at 'returnItemCollectionMetrics' failed to satisfy constraint: Member must satisfy enum value set: [SIZE, NONE]";
    let two = json!({"ReturnValues": "INVALID", "ReturnConsumedCapacity": "INVALID"});
    let three = with(
        two.clone(),
        json!({"ReturnItemCollectionMetrics": "INVALID"}),
    );
    check(&[
        (
            "PutItem",
            put(three),
            INVALID,
            &format!("3 validation errors detected: {capacity}; {values}; {metrics}"),
        ),
        (
            "DeleteItem",
            update(two.clone()),
            INVALID,
            &format!("2 validation errors detected: {capacity}; {values}"),
        ),
        (
            "UpdateItem",
            update(two),
            INVALID,
            &format!("1 validation error detected: {values}"),
        ),
    ])
    .await;
}

#[tokio::test]
async fn values_and_expressions_of_writes_are_checked() {
    let item = |value: Value| put(json!({"Item": {"pk": {"S": "x"}, "bad": value}}));
    let mut nested = json!({"S": "x"});
    for _ in 0..32 {
        nested = json!({"L": [nested]});
    }
    check(&[
        ("PutItem", item(json!({"SS": []})), INVALID,
            "1 validation error detected: One or more parameter values were invalid: An string set  may not be empty"),
        ("PutItem", item(json!({"NS": []})), INVALID,
            "1 validation error detected: One or more parameter values were invalid: An number set  may not be empty"),
        ("PutItem", item(json!({"SS": ["a", "a"]})), INVALID,
            "1 validation error detected: One or more parameter values were invalid: Input collection [\"a\", \"a\"] contains duplicates."),
        ("PutItem", item(json!({"NULL": false})), INVALID,
            "1 validation error detected: One or more parameter values were invalid: Null attribute value types must have the value of true"),
        ("PutItem", put(json!({"Expected": {"pk": {"Exists": false}}, "ConditionExpression": "attribute_not_exists(pk)"})), INVALID,
            "1 validation error detected: Can not use both expression and non-expression parameters in the same request: Non-expression parameters: {Expected} Expression parameters: {ConditionExpression}"),
        ("UpdateItem", update(json!({"UpdateExpression": "SET a = :v", "ExpressionAttributeValues": {":v": {"S": "x"}},
            "AttributeUpdates": {"a": {"Value": {"S": "x"}, "Action": "PUT"}}})), INVALID,
            "1 validation error detected: Can not use both expression and non-expression parameters in the same request: Non-expression parameters: {AttributeUpdates} Expression parameters: {UpdateExpression}"),
        ("PutItem", put(json!({"ExpressionAttributeValues": {":v": {"S": "x"}}})), INVALID,
            "1 validation error detected: ExpressionAttributeValues can only be specified when using expressions"),
        ("PutItem", put(json!({"ConditionExpression": "((attribute_not_exists(pk)))"})), INVALID,
            "1 validation error detected: Invalid ConditionExpression: The expression has redundant parentheses;"),
        ("PutItem", put(json!({"ConditionExpression": "contains(#a, #a)", "ExpressionAttributeNames": {"#a": "data"}})), INVALID,
            "1 validation error detected: Invalid ConditionExpression: The first operand must be distinct from the remaining operands for this operator or function; operator: contains, first operand: [data]"),
        ("UpdateItem", update(json!({"UpdateExpression": "SET pk = :v", "ExpressionAttributeValues": {":v": {"S": "x"}}})), INVALID,
            "One or more parameter values were invalid: Cannot update attribute pk. This attribute is part of the key"),
        ("UpdateItem", update(json!({"UpdateExpression": "INVALID SYNTAX HERE", "ExpressionAttributeValues": {":v": {"S": "x"}}})), INVALID,
            "1 validation error detected: Invalid UpdateExpression: Syntax error; token: \"INVALID\", near: \"INVALID SYNTAX\""),
        ("UpdateItem", update(json!({"UpdateExpression": "SET a = :v"})), INVALID,
            "1 validation error detected: Invalid UpdateExpression: An expression attribute value used in expression is not defined; attribute value: :v"),
        ("UpdateItem", update(json!({"UpdateExpression": ""})), INVALID,
            "1 validation error detected: Invalid UpdateExpression: The expression can not be empty;"),
        ("UpdateItem", update(json!({"UpdateExpression": "SET a = :v", "ExpressionAttributeValues": {":v": nested}})), INVALID,
            "1 validation error detected: Nesting Levels have exceeded supported limits: Attributes in the item have nested levels beyond supported limit"),
    ])
    .await;
}

#[tokio::test]
async fn keys() {
    let empty = "One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty string value. Key: pk";
    let empty_binary = "One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty binary value. Key: pk";
    let mismatch = "The provided key element does not match the schema";
    let batch = |table: &str, item: Value| json!({"RequestItems": {table: [{"PutRequest": {"Item": item}}]}});
    check(&[
        ("GetItem", json!({"TableName": "plain", "Key": {"pk": {"S": ""}}}), INVALID, empty),
        ("DeleteItem", json!({"TableName": "plain", "Key": {"pk": {"S": ""}}}), INVALID, empty),
        ("GetItem", json!({"TableName": "plain", "Key": {"pk": {"N": "1"}}}), INVALID, mismatch),
        ("GetItem", json!({"TableName": "plain", "Key": {"pk": {"L": []}}}), INVALID, mismatch),
        ("GetItem", json!({"TableName": "binary", "Key": {"pk": {"B": ""}}}), INVALID, empty_binary),
        ("PutItem", json!({"TableName": "binary", "Item": {"pk": {"B": ""}}}), INVALID, empty_binary),
        ("BatchWriteItem", batch("plain", json!({"pk": {"N": "5"}})), INVALID, mismatch),
        ("BatchWriteItem", batch("plain", json!({"pk": {"L": [{"S": "x"}]}})), INVALID, mismatch),
        ("BatchWriteItem", batch("plain", json!({"pk": {"S": ""}})), INVALID, empty),
        ("BatchWriteItem", batch("binary", json!({"pk": {"B": ""}})), INVALID, empty_binary),
        ("BatchWriteItem", batch("indexed", json!({"pk": {"S": "x"}, "sk": {"S": "x"}, "ik": {"N": "5"}})), INVALID,
            "One or more parameter values were invalid: Type mismatch for Index Key ik Expected: S Actual: N IndexName: gsi1"),
        ("BatchWriteItem", batch("indexed", json!({"pk": {"S": "x"}, "sk": {"S": "x"}, "ik": {"S": ""}})), INVALID,
            "One or more parameter values are not valid. A value specified for a secondary index key is not supported. The AttributeValue for a key attribute cannot contain an empty string value. IndexName: gsi1, IndexKey: ik"),
    ])
    .await;
}

#[tokio::test]
async fn transactions() {
    let empty = "One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty string value. Key: pk";
    let one = |action: Value| json!({"TransactItems": [action]});
    let on_key = |kind: &str, key: Value| {
        let mut action = json!({"TableName": "plain", "Key": {"pk": key}});
        match kind {
            "Update" => action["UpdateExpression"] = "REMOVE a".into(),
            "ConditionCheck" => action["ConditionExpression"] = "attribute_exists(pk)".into(),
            _ => {}
        }
        json!({ kind: action })
    };
    let index_put = |value: Value| json!({"Put": {"TableName": "indexed", "Item": {"pk": {"S": "x"}, "sk": {"S": "x"}, "ik": value}}});
    let index_update = |value: Value| {
        json!({"Update": {"TableName": "indexed", "Key": {"pk": {"S": "x"}, "sk": {"S": "x"}},
            "UpdateExpression": "SET ik = :v", "ExpressionAttributeValues": {":v": value}}})
    };
    let top_level = [
        (on_key("Update", json!({"S": ""})), empty),
        (on_key("Delete", json!({"S": ""})), empty),
        (on_key("ConditionCheck", json!({"S": ""})), empty),
        (
            json!({"Put": {"TableName": "plain", "Item": {"pk": {"S": ""}}}}),
            empty,
        ),
        (
            index_put(json!({"S": ""})),
            "One or more parameter values are not valid. A value specified for a secondary index key is not supported. The AttributeValue for a key attribute cannot contain an empty string value. IndexName: gsi1, IndexKey: ik",
        ),
        (
            index_update(json!({"S": ""})),
            "One or more parameter values are not valid. The update expression attempted to update a secondary index key to a value that is not supported. The AttributeValue for a key attribute cannot contain an empty string value.",
        ),
        (
            json!({}),
            "Invalid Request: TransactWriteRequest should contain Delete or Put or Update request",
        ),
    ];
    let cancelled = [
        (
            on_key("Update", json!({"N": "5"})),
            "The provided key element does not match the schema",
        ),
        (
            on_key("Delete", json!({"L": []})),
            "The provided key element does not match the schema",
        ),
        (
            on_key("ConditionCheck", json!({"N": "5"})),
            "The provided key element does not match the schema",
        ),
        (
            json!({"Put": {"TableName": "plain", "Item": {"pk": {"N": "5"}}}}),
            "One or more parameter values were invalid: Type mismatch for key pk expected: S actual: N",
        ),
        (
            index_put(json!({"N": "5"})),
            "One or more parameter values were invalid: Type mismatch for Index Key ik Expected: S Actual: N IndexName: gsi1",
        ),
        (
            index_update(json!({"L": []})),
            "One or more parameter values were invalid: Type mismatch for Index Key ik Expected: S Actual: L IndexName: gsi1",
        ),
    ];
    let server = server().await;
    for (action, text) in top_level {
        let refused = server
            .refused("TransactWriteItems", one(action.clone()))
            .await;
        assert_eq!(refused, (INVALID.to_owned(), text.to_owned()), "{action}");
    }
    for (action, text) in cancelled {
        let (status, answer) = server.call("TransactWriteItems", one(action.clone())).await;
        assert_eq!(status, 400, "{action}");
        let kind = answer["__type"].as_str().expect("a type");
        assert!(kind.ends_with(CANCELLED), "{action}: {answer}");
        assert_eq!(
            answer["CancellationReasons"],
            json!([{"Code": "ValidationError", "Message": text}]),
            "{action}"
        );
    }
}

#[tokio::test]
async fn reads() {
    let overlap = |one: &str, two: &str| {
        format!(
            "Invalid ProjectionExpression: Two document paths overlap with each other; must remove or rewrite one of these paths; path one: [{one}], path two: [{two}]"
        )
    };
    let projected = |text: &str, names: Option<Value>| {
        let mut request =
            json!({"TableName": "plain", "Key": {"pk": {"S": "x"}}, "ProjectionExpression": text});
        if let Some(names) = names {
            request["ExpressionAttributeNames"] = names;
        }
        request
    };
    let query = |members: Value| {
        with(
            json!({"TableName": "indexed", "KeyConditionExpression": "pk = :v", "ExpressionAttributeValues": {":v": {"S": "x"}}}),
            members,
        )
    };
    let many: Vec<Value> = (0..101)
        .map(|at| json!({"pk": {"S": format!("{at}")}}))
        .collect();
    check(&[
        ("GetItem", projected("a, a", None), INVALID, &overlap("a", "a")),
        ("GetItem", projected("a.b, a", None), INVALID, &overlap("a, b", "a")),
        ("GetItem", projected("#a, #b.b", Some(json!({"#a": "a", "#b": "a"}))), INVALID, &overlap("a", "a, b")),
        ("GetItem", projected("!!! INVALID !!!", None), INVALID, "Invalid ProjectionExpression: Syntax error; token: \"!\", near: \"!!\""),
        ("GetItem", json!({"TableName": "indexed", "Key": {"pk": {"S": "x"}}}), INVALID, "The provided key element does not match the schema"),
        ("Query", query(json!({"Limit": 0})), INVALID,
            "1 validation error detected: Value at 'Limit' failed to satisfy constraint: Member must have value greater than or equal to 1"),
        ("Query", query(json!({"Select": "INVALID_VALUE"})), INVALID,
            "1 validation error detected: Value 'INVALID_VALUE' at 'select' failed to satisfy constraint: Member must satisfy enum value set: [SPECIFIC_ATTRIBUTES, COUNT, ALL_ATTRIBUTES, ALL_PROJECTED_ATTRIBUTES]"),
        ("Query", query(json!({"KeyConditionExpression": "sk = :v"})), INVALID, "Query condition missed key schema element: pk"),
        ("Query", query(json!({"KeyConditionExpression": ""})), INVALID, "Invalid KeyConditionExpression: The expression can not be empty;"),
        ("Query", query(json!({"IndexName": "gsi1", "KeyConditionExpression": "ik = :v", "ConsistentRead": true})), INVALID,
            "Consistent reads are not supported on global secondary indexes"),
        ("Query", query(json!({"FilterExpression": "#missing = :v"})), INVALID,
            "Invalid FilterExpression: An expression attribute name used in the document path is not defined; attribute name: #missing"),
        ("Scan", json!({"TableName": "plain", "Limit": 0}), INVALID,
            "1 validation error detected: Value '0' at 'limit' failed to satisfy constraint: Member must have value greater than or equal to 1"),
        ("Scan", json!({"TableName": "plain", "Segment": 0}), INVALID,
            "The TotalSegments parameter is required but was not present in the request when Segment parameter is present"),
        ("Scan", json!({"TableName": "plain", "Segment": 5, "TotalSegments": 5}), INVALID,
            "The Segment parameter is zero-based and must be less than parameter TotalSegments: Segment: 5 is not less than TotalSegments: 5"),
        ("Scan", json!({"TableName": "plain", "TotalSegments": 4}), INVALID,
            "The Segment parameter is required but was not present in the request when parameter TotalSegments is present"),
        ("BatchGetItem", json!({"RequestItems": {"plain": {"Keys": many}}}), INVALID,
            "1 validation error detected: Value at 'RequestItems.plain.member.Keys' failed to satisfy constraint: Member must have length less than or equal to 100"),
        ("BatchWriteItem", json!({"RequestItems": {}}), INVALID, "The requestItems parameter is required for BatchWriteItem"),
    ])
    .await;
}

#[tokio::test]
async fn schemas() {
    let definition = |name: &str| json!({"AttributeName": name, "AttributeType": "S"});
    let key = |name: &str, kind: &str| json!({"AttributeName": name, "KeyType": kind});
    let create = |definitions: &[&str], keys: Value| {
        let definitions: Vec<Value> = definitions.iter().map(|name| definition(name)).collect();
        json!({"TableName": "other", "AttributeDefinitions": definitions, "KeySchema": keys, "BillingMode": "PAY_PER_REQUEST"})
    };
    check(&[
        ("CreateTable", create(&["pk"], json!([key("pk", "HASH"), key("pk", "RANGE")])), INVALID,
            "Invalid KeySchema: Some index key attribute have no definition"),
        ("CreateTable", create(&["pk", "sk", "extra"], json!([key("pk", "HASH"), key("sk", "RANGE"), key("extra", "RANGE")])), INVALID,
            "1 validation error detected: Value '[KeySchemaElement(attributeName=pk, keyType=HASH), KeySchemaElement(attributeName=sk, keyType=RANGE), KeySchemaElement(attributeName=extra, keyType=RANGE)]' at 'keySchema' failed to satisfy constraint: Member must have length less than or equal to 2"),
        ("CreateTable", create(&["pk"], json!([key("pk", "INVALID")])), INVALID,
            "1 validation error detected: Value 'INVALID' at 'keySchema.1.member.keyType' failed to satisfy constraint: Member must satisfy enum value set: [HASH, RANGE]"),
        ("UpdateTable", json!({"TableName": "plain"}), INVALID,
            "At least one of ProvisionedThroughput, BillingMode, UpdateStreamEnabled, GlobalSecondaryIndexUpdates, SSESpecification, ReplicaUpdates, MultiAccountReplicaReady, ReplicaTransitRoleArn, MultiRegionConsistency, DeletionProtectionEnabled, OnDemandThroughput, WarmThroughput or TableClass is required"),
        ("UpdateTimeToLive", json!({"TableName": "plain", "TimeToLiveSpecification": {"AttributeName": "ttl", "Enabled": false}}), INVALID,
            "TimeToLive is already disabled"),
        ("UpdateTable", json!({"TableName": "plain", "StreamSpecification": {"StreamEnabled": false}}), INVALID,
            "Table has no stream to disable: TableName: plain"),
    ])
    .await;
}
