//! The parameters from before expressions, in every operation that has them.

use serde_json::{Value, json};

use crate::server::Server;

async fn server() -> Server {
    let server = Server::start().await;
    server.create_indexed_table("things").await;
    for sk in 1..=5 {
        let item = json!({
            "pk": {"S": "a"}, "sk": {"N": sk.to_string()}, "g": {"S": "all"}, "v": {"S": format!("v{sk}")},
            "tags": {"SS": ["odd", "any"]}, "a.b": {"N": "7"}, "m": {"M": {"x": {"N": "1"}}},
        });
        server
            .ok("PutItem", json!({"TableName": "things", "Item": item}))
            .await;
    }
    server
}

fn with(mut request: Value, members: Value) -> Value {
    let request_members = request.as_object_mut().expect("an object");
    request_members.extend(members.as_object().expect("an object").clone());
    request
}

fn key(sk: i64) -> Value {
    json!({"pk": {"S": "a"}, "sk": {"N": sk.to_string()}})
}

/// The sort keys of a page.
fn found(answer: &Value) -> Vec<&str> {
    let items = answer["Items"].as_array().expect("items");
    items
        .iter()
        .map(|item| item["sk"]["N"].as_str().expect("a number"))
        .collect()
}

#[tokio::test]
async fn key_conditions_and_query_filters_select_items() {
    let server = server().await;
    let pk = json!({"ComparisonOperator": "EQ", "AttributeValueList": [{"S": "a"}]});
    let sort = |operator: &str, values: Value| json!({"pk": pk, "sk": {"ComparisonOperator": operator, "AttributeValueList": values}});
    for (members, expected) in [
        (
            json!({"KeyConditions": {"pk": pk}}),
            &["1", "2", "3", "4", "5"][..],
        ),
        (
            json!({"KeyConditions": sort("GT", json!([{"N": "3"}]))}),
            &["4", "5"],
        ),
        (
            json!({"KeyConditions": sort("LE", json!([{"N": "2"}])), "ScanIndexForward": false}),
            &["2", "1"],
        ),
        (
            json!({"KeyConditions": sort("BETWEEN", json!([{"N": "2"}, {"N": "4"}]))}),
            &["2", "3", "4"],
        ),
        (
            json!({"KeyConditions": {"pk": pk}, "QueryFilter": {"v": {"ComparisonOperator": "IN", "AttributeValueList": [{"S": "v2"}, {"S": "v5"}]}}}),
            &["2", "5"],
        ),
        (
            json!({
                "KeyConditions": {"pk": pk}, "ConditionalOperator": "OR",
                "QueryFilter": {
                    "v": {"ComparisonOperator": "EQ", "AttributeValueList": [{"S": "v1"}]},
                    "none": {"ComparisonOperator": "NOT_NULL"},
                },
            }),
            &["1"],
        ),
        (
            json!({
                "KeyConditions": {"pk": pk}, "FilterExpression": "v = :v",
                "ExpressionAttributeValues": {":v": {"S": "v3"}},
            }),
            &["3"],
        ),
        (
            json!({"IndexName": "global", "KeyConditions": {"g": {"ComparisonOperator": "EQ", "AttributeValueList": [{"S": "all"}]}}, "Limit": 2}),
            &["1", "2"],
        ),
    ] {
        let query = with(json!({"TableName": "things"}), members);
        let answer = server.ok("Query", query.clone()).await;
        assert_eq!(found(&answer), expected, "{query}");
    }
}

#[tokio::test]
async fn scan_filters_select_items() {
    let server = server().await;
    for (filter, expected) in [
        (json!({}), 5),
        (
            json!({"tags": {"ComparisonOperator": "CONTAINS", "AttributeValueList": [{"S": "odd"}]}}),
            5,
        ),
        (
            json!({"tags": {"ComparisonOperator": "NOT_CONTAINS", "AttributeValueList": [{"S": "odd"}]}}),
            0,
        ),
        (
            json!({"v": {"ComparisonOperator": "BEGINS_WITH", "AttributeValueList": [{"S": "v"}]}, "sk": {"ComparisonOperator": "GE", "AttributeValueList": [{"N": "4"}]}}),
            2,
        ),
        (
            json!({"m": {"ComparisonOperator": "NE", "AttributeValueList": [{"M": {"x": {"N": "1"}}}]}}),
            0,
        ),
        (
            json!({"a.b": {"ComparisonOperator": "EQ", "AttributeValueList": [{"N": "7.0"}]}}),
            5,
        ),
    ] {
        let scan = json!({"TableName": "things", "ScanFilter": filter});
        let answer = server.ok("Scan", scan.clone()).await;
        assert_eq!(answer["Count"], expected, "{scan}");
        assert_eq!(answer["ScannedCount"], 5);
    }
}

#[tokio::test]
async fn reads_return_requested_attributes() {
    let server = server().await;
    let names = json!(["v", "a.b", "none"]);
    let expected = json!({"v": {"S": "v1"}, "a.b": {"N": "7"}});
    let get = json!({"TableName": "things", "Key": key(1), "AttributesToGet": names});
    assert_eq!(server.ok("GetItem", get).await["Item"], expected);
    let batch = json!({"RequestItems": {"things": {"Keys": [key(1)], "AttributesToGet": names}}});
    let answer = server.ok("BatchGetItem", batch).await;
    assert_eq!(answer["Responses"]["things"], json!([expected]));
    let conditions = json!({
        "pk": {"ComparisonOperator": "EQ", "AttributeValueList": [{"S": "a"}]},
        "sk": {"ComparisonOperator": "EQ", "AttributeValueList": [{"N": "1"}]},
    });
    let query = json!({"TableName": "things", "KeyConditions": conditions, "AttributesToGet": names, "Select": "SPECIFIC_ATTRIBUTES"});
    assert_eq!(server.ok("Query", query).await["Items"], json!([expected]));
    let scan = json!({"TableName": "things", "Limit": 1, "AttributesToGet": names});
    assert_eq!(server.ok("Scan", scan).await["Items"], json!([expected]));
}

#[tokio::test]
async fn writes_require_their_expectations() {
    let server = server().await;
    let failed = (
        "ConditionalCheckFailedException".to_owned(),
        "The conditional request failed".to_owned(),
    );
    let put = |expected: Value| json!({"TableName": "things", "Item": with(key(1), json!({"v": {"S": "new"}})), "Expected": expected});
    assert_eq!(
        server
            .refused("PutItem", put(json!({"pk": {"Exists": false}})))
            .await,
        failed
    );
    let either = with(
        put(
            json!({"v": {"Value": {"S": "no"}}, "sk": {"ComparisonOperator": "LT", "AttributeValueList": [{"N": "2"}]}}),
        ),
        json!({"ConditionalOperator": "OR", "ReturnValues": "ALL_OLD"}),
    );
    assert_eq!(
        server.ok("PutItem", either).await["Attributes"]["v"],
        json!({"S": "v1"})
    );
    let delete = |value: &str| json!({"TableName": "things", "Key": key(1), "Expected": {"v": {"Value": {"S": value}}}});
    assert_eq!(server.refused("DeleteItem", delete("v1")).await, failed);
    server.ok("DeleteItem", delete("new")).await;
    let told = json!({
        "TableName": "things", "Key": key(2), "Expected": {"v": {"ComparisonOperator": "NULL"}},
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    });
    let (status, answer) = server.call("DeleteItem", told).await;
    assert_eq!((status, &answer["Item"]["v"]), (400, &json!({"S": "v2"})));
}

#[tokio::test]
async fn attribute_updates_change_and_return_values() {
    let server = server().await;
    let update = |updates: Value, returned: &str| json!({"TableName": "things", "Key": key(1), "AttributeUpdates": updates, "ReturnValues": returned});
    let answer = server
        .ok(
            "UpdateItem",
            update(
                json!({
                    "v": {"Value": {"S": "w"}},
                    "a.b": {"Action": "ADD", "Value": {"N": "-2"}},
                    "tags": {"Action": "DELETE", "Value": {"SS": ["odd"]}},
                    "log": {"Action": "ADD", "Value": {"L": [{"N": "1"}]}},
                    "m": {"Action": "DELETE"},
                }),
                "UPDATED_NEW",
            ),
        )
        .await;
    assert_eq!(
        answer["Attributes"],
        json!({"v": {"S": "w"}, "a.b": {"N": "5"}, "tags": {"SS": ["any"]}, "log": {"L": [{"N": "1"}]}})
    );
    let answer = server
        .ok(
            "UpdateItem",
            update(
                json!({"log": {"Action": "ADD", "Value": {"L": [{"N": "2"}]}}}),
                "UPDATED_OLD",
            ),
        )
        .await;
    assert_eq!(answer["Attributes"], json!({"log": {"L": [{"N": "1"}]}}));
    let mismatch = (
        "ValidationException".to_owned(),
        "Type mismatch for attribute to update".to_owned(),
    );
    for updates in [
        json!({"v": {"Action": "ADD", "Value": {"N": "1"}}}),
        json!({"v": {"Action": "ADD", "Value": {"L": []}}}),
        json!({"log": {"Action": "DELETE", "Value": {"SS": ["x"]}}}),
    ] {
        let refused = server
            .refused("UpdateItem", update(updates.clone(), "NONE"))
            .await;
        assert_eq!(refused, mismatch, "{updates}");
    }
    let key_update = update(json!({"sk": {"Value": {"N": "1"}}}), "NONE");
    let (_, text) = server.refused("UpdateItem", key_update).await;
    assert_eq!(
        text,
        "One or more parameter values were invalid: Cannot update attribute sk. This attribute is part of the key"
    );
    // An update of a missing item creates it.
    let fresh = json!({"TableName": "things", "Key": key(9), "AttributeUpdates": {}, "ReturnValues": "ALL_NEW"});
    assert_eq!(server.ok("UpdateItem", fresh).await["Attributes"], key(9));
}

#[tokio::test]
async fn malformed_parameters_are_rejected() {
    let server = server().await;
    for (operation, members, kind, text) in [
        (
            "Query",
            json!({"KeyConditions": {"pk": {"ComparisonOperator": "EQ", "AttributeValueList": [{"S": "a"}]}}, "QueryFilter": {"sk": {"ComparisonOperator": "NOT_NULL"}}}),
            "ValidationException",
            "QueryFilter can only contain non-primary key attributes: Primary key attribute: sk",
        ),
        (
            "Scan",
            json!({"ScanFilter": {"a": {"ComparisonOperator": "LT", "AttributeValueList": [{"SS": ["x"]}]}}}),
            "ValidationException",
            "One or more parameter values were invalid: ComparisonOperator LT is not valid for SS AttributeValue type",
        ),
        (
            "Scan",
            json!({"ScanFilter": {"a": {"ComparisonOperator": "EQ", "AttributeValueList": [{"N": "x"}]}}}),
            "ValidationException",
            "The parameter cannot be converted to a numeric value: x",
        ),
        (
            "Scan",
            json!({"ScanFilter": {"a": "x"}}),
            "SerializationException",
            "Unexpected value type in payload",
        ),
        (
            "Scan",
            json!({"ScanFilter": []}),
            "SerializationException",
            "Unrecognized collection type java.util.Map<java.lang.String, com.amazonaws.dynamodb.v20120810.Condition>",
        ),
        (
            "UpdateItem",
            json!({"Key": key(1), "AttributeUpdates": {"v": {"Value": "x"}}}),
            "SerializationException",
            "Unexpected value type in payload",
        ),
    ] {
        let request = with(json!({"TableName": "things"}), members);
        let refused = server.refused(operation, request.clone()).await;
        assert_eq!(
            refused,
            (kind.to_owned(), text.to_owned()),
            "{operation} {request}"
        );
    }
}
