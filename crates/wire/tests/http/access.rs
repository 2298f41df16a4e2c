//! What credentials with policies may do.

use hmac::{Hmac, Mac as _};
use homeport_wire::{Config, Credential, Policy};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::server::Server;

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
    let policy = Policy::parse(POLICY, "ann").expect("a policy");
    let server = Server::start_with(Config {
        credentials: vec![
            Credential::new("ADMIN", "admin secret"),
            Credential::new("ANN", "ann secret")
                .of_user("ann")
                .limited_by(policy),
        ],
        ..Config::default()
    })
    .await;
    server.create_indexed_table_as(&ADMIN, "things").await;
    server
}

struct Who {
    id: &'static str,
    secret: &'static str,
}
const ADMIN: Who = Who {
    id: "ADMIN",
    secret: "admin secret",
};
const ANN: Who = Who {
    id: "ANN",
    secret: "ann secret",
};

fn hmac(key: &[u8], data: &str) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("any length");
    mac.update(data.as_bytes());
    mac.finalize().into_bytes().to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Server {
    async fn create_indexed_table_as(&self, who: &Who, name: &str) {
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
        let (status, answer) = self.call_as(who, "CreateTable", table).await;
        assert_eq!(status, 200, "{answer}");
    }

    /// Calls an operation with a request that `who` signed, as an SDK would sign it.
    async fn call_as(&self, who: &Who, operation: &str, body: Value) -> (u16, Value) {
        let body = body.to_string();
        let now = homeport_engine::Clock::now_ms(&homeport_engine::SystemClock) / 1000;
        let date = timestamp(now);
        let scope = format!("{}/us-east-1/dynamodb/aws4_request", &date[..8]);
        let canonical = format!(
            "POST\n/\n\nhost:{}\nx-amz-date:{date}\nx-amz-target:DynamoDB_20120810.{operation}\n\nhost;x-amz-date;x-amz-target\n{}",
            self.address,
            hex(&Sha256::digest(&body))
        );
        let to_sign = format!(
            "AWS4-HMAC-SHA256\n{date}\n{scope}\n{}",
            hex(&Sha256::digest(canonical))
        );
        let mut key = hmac(format!("AWS4{}", who.secret).as_bytes(), &date[..8]);
        for part in ["us-east-1", "dynamodb", "aws4_request"] {
            key = hmac(&key, part);
        }
        let signature = hex(&hmac(&key, &to_sign));
        let request = self
            .request(operation)
            .header("host", &self.address)
            .header("x-amz-date", &date)
            .header("authorization", format!("AWS4-HMAC-SHA256 Credential={}/{scope}, SignedHeaders=host;x-amz-date;x-amz-target, Signature={signature}", who.id))
            .body(body.into());
        let response = self.send(request.expect("a request")).await;
        let status = response.status().as_u16();
        let body = http_body_util::BodyExt::collect(response.into_body())
            .await
            .expect("a body");
        (
            status,
            serde_json::from_slice(&body.to_bytes()).expect("JSON"),
        )
    }
}

/// A time as signatures write it.
fn timestamp(secs: i64) -> String {
    let (days, second) = (secs.div_euclid(86_400), secs.rem_euclid(86_400));
    let mut year = 1970;
    let mut left = days;
    let is_leap = |year: i64| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    while left >= 365 + i64::from(is_leap(year)) {
        left -= 365 + i64::from(is_leap(year));
        year += 1;
    }
    let mut month = 1;
    for days in [
        31,
        28 + i64::from(is_leap(year)),
        31,
        30,
        31,
        30,
        31,
        31,
        30,
        31,
        30,
        31,
    ] {
        if left < days {
            break;
        }
        left -= days;
        month += 1;
    }
    format!(
        "{year:04}{month:02}{:02}T{:02}{:02}{:02}Z",
        left + 1,
        second / 3600,
        second / 60 % 60,
        second % 60
    )
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
async fn a_policy_permits_what_it_allows_and_nothing_else() {
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
    // Who has no policy may do everything.
    let (status, _) = server
        .call_as(&ADMIN, "Scan", json!({"TableName": "things"}))
        .await;
    assert_eq!(status, 200);
}

#[tokio::test]
async fn refusals_say_what_is_missing_in_aws_s_words() {
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
async fn what_cannot_be_read_is_not_permitted() {
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
