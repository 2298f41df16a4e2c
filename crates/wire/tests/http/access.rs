//! Permissions of credentials with policies.

use homeport_wire::Config;
use serde_json::{Value, json};

use crate::server::Server;
use crate::signing::{ADMIN, ANN, Caller, credentials};

const POLICY: &str = r#"{"Version":"2012-10-17","Statement":[
  {"Effect":"Allow","Action":["dynamodb:GetItem","dynamodb:PutItem","dynamodb:UpdateItem","dynamodb:Query","dynamodb:Batch*","dynamodb:PartiQL*","dynamodb:ConditionCheckItem"],
   "Resource":["arn:aws:dynamodb:*:*:table/things","arn:aws:dynamodb:*:*:table/things/index/local"],
   "Condition":{"ForAllValues:StringEquals":{"dynamodb:LeadingKeys":["${aws:username}"]}}},
  {"Effect":"Allow","Action":"dynamodb:DescribeTable","Resource":"arn:aws:dynamodb:*:*:table/*"},
  {"Effect":"Allow","Action":"dynamodb:Scan","Resource":"arn:aws:dynamodb:*:*:table/things",
   "Condition":{"ForAllValues:StringEquals":{"dynamodb:Attributes":["v"]},"StringEquals":{"dynamodb:Select":"SPECIFIC_ATTRIBUTES"}}},
  {"Effect":"Deny","Action":"dynamodb:PartiQLSelect","Resource":"*","Condition":{"Bool":{"dynamodb:FullTableScan":"true"}}}
]}"#;

async fn server() -> Server {
    let server = Server::start_with(Config {
        credentials: credentials(POLICY),
        ..Config::default()
    })
    .await;
    server.create_indexed_table_as(&ADMIN, "things").await;
    server
}

impl Server {
    async fn create_indexed_table_as(&self, caller: &Caller, name: &str) {
        let attribute =
            |name: &str, kind: &str| json!({"AttributeName": name, "AttributeType": kind});
        let key = |name: &str, kind: &str| json!({"AttributeName": name, "KeyType": kind});
        let table = json!({
            "TableName": name, "BillingMode": "PAY_PER_REQUEST",
            "AttributeDefinitions": [attribute("pk", "S"), attribute("sk", "N"), attribute("l", "S")],
            "KeySchema": [key("pk", "HASH"), key("sk", "RANGE")],
            "LocalSecondaryIndexes": [{
                "IndexName": "local", "KeySchema": [key("pk", "HASH"), key("l", "RANGE")],
                "Projection": {"ProjectionType": "ALL"},
            }],
        });
        let (status, answer) = self.call_as(caller, "CreateTable", table).await;
        assert_eq!(status, 200, "{answer}");
    }
}

fn key(pk: &str) -> Value {
    json!({"pk": {"S": pk}, "sk": {"N": "1"}})
}

fn denied(answer: &Value) -> &str {
    assert_eq!(
        answer["__type"], "com.amazon.coral.service#AccessDeniedException",
        "{answer}"
    );
    answer["Message"].as_str().expect("a text")
}

#[tokio::test]
async fn policy_permits_only_what_it_allows() {
    let server = server().await;
    let own = json!({"TableName": "things", "Item": key("ann")});
    assert_eq!(server.call_as(&ANN, "PutItem", own).await.0, 200);
    let condition = |pk: &str| {
        json!({"TableName": "things", "KeyConditionExpression": "#p = :p",
        "ExpressionAttributeNames": {"#p": "pk"}, "ExpressionAttributeValues": {":p": {"S": pk}}})
    };
    let legacy = |pk: &str| json!({"TableName": "things", "KeyConditions": {"pk": {"ComparisonOperator": "EQ", "AttributeValueList": [{"S": pk}]}}});
    let with_index = |mut request: Value| {
        request["IndexName"] = json!("local");
        request
    };
    let batch = |pks: &[&str]| json!({"RequestItems": {"things": {"Keys": pks.iter().map(|pk| key(pk)).collect::<Vec<_>>()}}});
    let writes = |pks: &[&str]| json!({"RequestItems": {"things": pks.iter().map(|pk| json!({"PutRequest": {"Item": key(pk)}})).collect::<Vec<_>>()}});
    let transaction = |pk: &str| {
        json!({"TransactItems": [
            {"Put": {"TableName": "things", "Item": {"pk": {"S": "ann"}, "sk": {"N": "2"}}}},
            {"ConditionCheck": {"TableName": "things", "Key": key(pk), "ConditionExpression": "attribute_exists(pk)"}},
        ]})
    };
    let statement = |text: &str| json!({"Statement": text});
    for (operation, request, permitted) in [
        (
            "GetItem",
            json!({"TableName": "things", "Key": key("ann")}),
            true,
        ),
        (
            "GetItem",
            json!({"TableName": "arn:aws:dynamodb:us-east-1:000000000000:table/things", "Key": key("ann")}),
            true,
        ),
        (
            "GetItem",
            json!({"TableName": "things", "Key": key("bob")}),
            false,
        ),
        (
            "PutItem",
            json!({"TableName": "things", "Item": key("bob")}),
            false,
        ),
        (
            "DeleteItem",
            json!({"TableName": "things", "Key": key("ann")}),
            false,
        ),
        ("Query", condition("ann"), true),
        ("Query", condition("bob"), false),
        ("Query", with_index(condition("ann")), true),
        ("Query", legacy("ann"), true),
        ("Query", legacy("bob"), false),
        ("BatchGetItem", batch(&["ann"]), true),
        ("BatchGetItem", batch(&["ann", "bob"]), false),
        ("BatchWriteItem", writes(&["ann"]), true),
        ("BatchWriteItem", writes(&["bob"]), false),
        ("TransactWriteItems", transaction("ann"), true),
        ("TransactWriteItems", transaction("bob"), false),
        (
            "ExecuteStatement",
            statement("SELECT * FROM things WHERE pk = 'ann'"),
            true,
        ),
        (
            "ExecuteStatement",
            statement("SELECT * FROM things WHERE pk IN ['ann', 'bob']"),
            false,
        ),
        ("ExecuteStatement", statement("SELECT * FROM things"), false),
        (
            "ExecuteStatement",
            statement("INSERT INTO things VALUE {'pk': 'ann', 'sk': 77}"),
            true,
        ),
        (
            "ExecuteStatement",
            statement("INSERT INTO things VALUE {'pk': 'bob', 'sk': 77}"),
            false,
        ),
        (
            "ExecuteStatement",
            statement("UPDATE things SET v = 1 WHERE pk = 'bob' AND sk = 1 AND pk = 'bob'"),
            false,
        ),
        (
            "ExecuteStatement",
            statement("SELECT * FROM things WHERE pk = 'ann' AND pk = 'ann'"),
            false,
        ),
        (
            "BatchExecuteStatement",
            json!({"Statements": [{"Statement": "DELETE FROM things WHERE pk = ? AND sk = 77", "Parameters": [{"S": "ann"}]}]}),
            true,
        ),
        (
            "BatchExecuteStatement",
            json!({"Statements": [{"Statement": "DELETE FROM things WHERE pk = ? AND sk = 77", "Parameters": [{"S": "bob"}]}]}),
            false,
        ),
        (
            "Scan",
            json!({"TableName": "things", "ProjectionExpression": "v"}),
            true,
        ),
        (
            "Scan",
            json!({"TableName": "things", "ProjectionExpression": "v", "FilterExpression": "attribute_exists(other)"}),
            false,
        ),
        ("Scan", json!({"TableName": "things"}), false),
        ("DescribeTable", json!({"TableName": "things"}), true),
        ("DeleteTable", json!({"TableName": "things"}), false),
        ("ListTables", json!({}), false),
        (
            "GetItem",
            json!({"TableName": "other", "Key": key("ann")}),
            false,
        ),
    ] {
        let (status, answer) = server.call_as(&ANN, operation, request.clone()).await;
        if permitted {
            assert_eq!(status, 200, "{operation} {request}: {answer}");
        } else {
            assert_eq!(status, 400, "{operation} {request}: {answer}");
            denied(&answer);
        }
    }
    // A credential without a policy has all permissions.
    let (status, _) = server
        .call_as(&ADMIN, "Scan", json!({"TableName": "things"}))
        .await;
    assert_eq!(status, 200);
}

#[tokio::test]
async fn denials_name_the_missing_permission() {
    let server = server().await;
    let (_, answer) = server
        .call_as(
            &ANN,
            "DeleteItem",
            json!({"TableName": "things", "Key": key("ann")}),
        )
        .await;
    assert_eq!(
        denied(&answer),
        "User: arn:aws:iam::000000000000:user/ann is not authorized to perform: dynamodb:DeleteItem on resource: arn:aws:dynamodb:us-east-1:000000000000:table/things because no identity-based policy allows the dynamodb:DeleteItem action"
    );
    let (_, answer) = server
        .call_as(
            &ANN,
            "ExecuteStatement",
            json!({"Statement": "SELECT * FROM things"}),
        )
        .await;
    assert_eq!(
        denied(&answer),
        "User: arn:aws:iam::000000000000:user/ann is not authorized to perform: dynamodb:PartiQLSelect on resource: arn:aws:dynamodb:us-east-1:000000000000:table/things with an explicit deny in an identity-based policy"
    );
}

#[tokio::test]
async fn unreadable_values_are_not_permitted() {
    let server = server().await;
    let own = json!({"pk": {"S": "ann"}, "sk": {"N": "1"}});
    for (operation, request) in [
        (
            "PutItem",
            json!({"TableName": "things", "Item": {"sk": {"N": "1"}}}),
        ),
        (
            "PutItem",
            json!({"TableName": "things", "Item": {"pk": {"S": "ann", "N": "1"}, "sk": {"N": "1"}}}),
        ),
        (
            "Query",
            json!({"TableName": "things", "KeyConditionExpression": "pk = :p OR pk = :p", "ExpressionAttributeValues": {":p": {"S": "ann"}}}),
        ),
        ("Query", json!({"TableName": "things"})),
        ("BatchGetItem", json!({"RequestItems": {}})),
        ("BatchGetItem", json!({"RequestItems": {"things": null}})),
        (
            "TransactWriteItems",
            json!({"TransactItems": [{"Nothing": {"TableName": "things", "Key": own}}]}),
        ),
        ("ExecuteStatement", json!({"Statement": "nonsense"})),
        ("ExecuteStatement", json!({})),
    ] {
        let (status, answer) = server.call_as(&ANN, operation, request.clone()).await;
        assert_eq!(status, 400, "{operation} {request}: {answer}");
        denied(&answer);
    }
}
