//! ExecuteStatement, BatchExecuteStatement, ExecuteTransaction.

use serde_json::{Value, json};

use crate::server::Server;

async fn server() -> Server {
    let server = Server::start().await;
    server.create_indexed_table("things").await;
    for (pk, sk) in [("a", 1), ("a", 2), ("a", 3), ("b", 1), ("b", 2)] {
        let statement = format!(
            "INSERT INTO \"things\" VALUE {{'pk': '{pk}', 'sk': {sk}, 'g': 'all', 'l': 'x{sk}', 'v': 'v{sk}', 'n': {sk}0, 'm': {{'deep': [1, {{'x': {sk}}}]}}}}"
        );
        let answer = server
            .ok("ExecuteStatement", json!({"Statement": statement}))
            .await;
        assert_eq!(answer, json!({"Items": []}));
    }
    server
}

fn statement(text: &str) -> Value {
    json!({"Statement": text})
}

/// The results of a SELECT, with `pk` and `sk` joined.
async fn found(server: &Server, text: &str) -> Vec<String> {
    let answer = server.ok("ExecuteStatement", statement(text)).await;
    keys(&answer)
}

fn keys(answer: &Value) -> Vec<String> {
    let items = answer["Items"].as_array().expect("items");
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    items
        .iter()
        .map(|item| text(&item["pk"]["S"]) + &text(&item["sk"]["N"]))
        .collect()
}

#[tokio::test]
async fn select_queries_if_possible_and_scans_otherwise() {
    let server = server().await;
    for (text, expected, scanned) in [
        (
            "SELECT * FROM things WHERE pk = 'a'",
            &["a1", "a2", "a3"][..],
            3,
        ),
        ("SELECT * FROM things WHERE pk = 'a' AND sk = 2", &["a2"], 1),
        (
            "SELECT * FROM things WHERE pk = 'a' AND sk > 1 AND sk < 3",
            &["a2"],
            3,
        ),
        (
            "SELECT * FROM things WHERE pk = 'a' AND sk BETWEEN 2 AND 3 AND v = 'v3'",
            &["a3"],
            2,
        ),
        (
            "SELECT * FROM things WHERE pk IN ['b', 'a'] AND sk = 2",
            &["b2", "a2"],
            2,
        ),
        (
            "SELECT * FROM things WHERE pk = 'a' AND (v = 'v1' OR sk = 3)",
            &["a1", "a3"],
            3,
        ),
        ("SELECT * FROM things WHERE v = 'v3'", &["a3"], 5),
        ("SELECT * FROM things WHERE pk IN []", &[], 5),
        ("SELECT * FROM things WHERE pk = 'a' AND pk = 'b'", &[], 5),
        (
            "SELECT * FROM things WHERE contains(v, '3') OR begins_with(pk, 'z')",
            &["a3"],
            5,
        ),
        ("SELECT * FROM things WHERE m.deep[1].x = 3", &["a3"], 5),
        (
            "SELECT * FROM things WHERE size(m.deep) = 2 AND n IN [10] AND attribute_type(v, 'S') AND none IS MISSING AND pk = 'b'",
            &["b1"],
            2,
        ),
        (
            "SELECT * FROM \"things\".\"global\" WHERE g = 'all' AND v = 'v3'",
            &["a3"],
            5,
        ),
        (
            "SELECT * FROM \"things\".\"local\" WHERE pk = 'a' AND l > 'x1'",
            &["a2", "a3"],
            2,
        ),
        (
            "SELECT * FROM things WHERE pk = 'a' ORDER BY sk DESC",
            &["a3", "a2", "a1"],
            3,
        ),
        (
            "SELECT * FROM things WHERE pk IN ['a', 'b'] ORDER BY pk DESC, sk ASC",
            &["b1", "b2", "a1", "a2", "a3"],
            5,
        ),
        (
            "SELECT * FROM things WHERE pk = 'a' ORDER BY pk",
            &["a3", "a2", "a1"],
            3,
        ),
    ] {
        assert_eq!(found(&server, text).await, expected, "{text}");
        // A limit returns no token only if there are no further items.
        let limited = json!({"Statement": text, "Limit": scanned + 1});
        let answer = server.ok("ExecuteStatement", limited).await;
        assert_eq!(
            answer.get("NextToken"),
            None,
            "{text} reads more than {scanned}"
        );
        let all_but_one = json!({"Statement": text, "Limit": scanned});
        let answer = server.ok("ExecuteStatement", all_but_one).await;
        assert!(
            answer.get("NextToken").is_some(),
            "{text} reads less than {scanned}"
        );
    }
}

#[tokio::test]
async fn select_names_paths_by_their_last_name() {
    let server = server().await;
    let text = "SELECT v, m.deep[0], m.deep[1].x, none FROM things WHERE pk = 'a' AND sk = 1";
    let answer = server.ok("ExecuteStatement", statement(text)).await;
    assert_eq!(
        answer["Items"],
        json!([{"v": {"S": "v1"}, "deep[0]": {"N": "1"}, "x": {"N": "1"}}])
    );
    // Attributes that a local index does not project are fetched.
    let text = "SELECT v FROM things.local WHERE pk = 'a' AND l = 'x1'";
    let answer = server.ok("ExecuteStatement", statement(text)).await;
    assert_eq!(answer["Items"], json!([{"v": {"S": "v1"}}]));
}

#[tokio::test]
async fn pages_add_up_to_all_items() {
    let server = server().await;
    for text in [
        "SELECT * FROM things",
        "SELECT * FROM things WHERE pk IN ['b', 'a']",
        "SELECT * FROM things WHERE pk IN ['b', 'a'] ORDER BY pk, sk",
        "SELECT * FROM \"things\".\"global\" WHERE g = 'all'",
    ] {
        let whole = found(&server, text).await;
        assert_eq!(whole.len(), 5);
        for limit in 1..=3 {
            let mut seen = Vec::new();
            let mut request = json!({"Statement": text, "Limit": limit});
            loop {
                let answer = server.ok("ExecuteStatement", request.clone()).await;
                seen.extend(keys(&answer));
                let Some(token) = answer.get("NextToken") else {
                    break;
                };
                assert!(seen.len() <= 5, "{text} goes on for ever");
                request["NextToken"] = token.clone();
            }
            assert_eq!(seen, whole, "{text} by {limit}");
        }
    }
    let first = json!({"Statement": "SELECT * FROM things", "Limit": 1});
    let answer = server.ok("ExecuteStatement", first).await;
    let other = json!({"Statement": "SELECT * FROM things ", "NextToken": answer["NextToken"]});
    let (_, text) = server.refused("ExecuteStatement", other).await;
    assert_eq!(text, "NextToken does not match request");
}

#[tokio::test]
async fn writes_change_one_item_and_return_requested_values() {
    let server = server().await;
    for (text, expected) in [
        (
            "UPDATE things SET v = 'w' SET k = n + 1 REMOVE m.deep[0] WHERE pk = 'a' AND sk = 1 RETURNING MODIFIED NEW *",
            json!([{"v": {"S": "w"}, "k": {"N": "11"}, "m": {"M": {"deep": {"L": [{"M": {"x": {"N": "1"}}}]}}}}]),
        ),
        (
            "UPDATE things SET v = 'z' WHERE pk = 'a' AND sk = 1 AND v = 'w' RETURNING MODIFIED OLD *",
            json!([{"v": {"S": "w"}}]),
        ),
        (
            "UPDATE things SET tags = set_add(tags, <<'x', 'y'>>) REMOVE m, l, g, n, k WHERE pk = 'a' AND sk = 1 RETURNING ALL NEW *",
            json!([{"pk": {"S": "a"}, "sk": {"N": "1"}, "v": {"S": "z"}, "tags": {"SS": ["x", "y"]}}]),
        ),
        (
            "UPDATE things SET tags = set_delete(tags, <<'x'>>) WHERE pk = 'a' AND sk = 1 RETURNING ALL OLD *",
            json!([{"pk": {"S": "a"}, "sk": {"N": "1"}, "v": {"S": "z"}, "tags": {"SS": ["x", "y"]}}]),
        ),
        (
            "UPDATE things SET v = 'q' WHERE pk = 'a' AND sk = 1",
            json!([]),
        ),
        (
            "DELETE FROM things WHERE pk = 'a' AND sk = 1 AND v = 'q' RETURNING ALL OLD *",
            json!([{"pk": {"S": "a"}, "sk": {"N": "1"}, "v": {"S": "q"}, "tags": {"SS": ["y"]}}]),
        ),
        (
            "DELETE FROM things WHERE pk = 'a' AND sk = 1 RETURNING ALL OLD *",
            json!([]),
        ),
        (
            "DELETE FROM things WHERE pk = 'a' AND sk = 1 AND v = 'no matter'",
            json!([]),
        ),
    ] {
        let answer = server.ok("ExecuteStatement", statement(text)).await;
        assert_eq!(answer["Items"], expected, "{text}");
    }
    assert_eq!(
        found(&server, "SELECT * FROM things WHERE pk = 'a'").await,
        ["a2", "a3"]
    );
}

#[tokio::test]
async fn parameters_and_capacity_match_other_operations() {
    let server = server().await;
    let insert = json!({
        "Statement": "INSERT INTO things VALUE {'pk': ?, 'sk': ?, 'b': ?}",
        "Parameters": [{"S": "p"}, {"N": "1.0"}, {"B": "aGk="}],
        "ReturnConsumedCapacity": "TOTAL",
    });
    let answer = server.ok("ExecuteStatement", insert).await;
    assert_eq!(
        answer["ConsumedCapacity"],
        json!({"TableName": "things", "CapacityUnits": 1.0})
    );
    let select = json!({
        "Statement": "SELECT * FROM things.global WHERE g = ?", "Parameters": [{"S": "all"}],
        "ReturnConsumedCapacity": "INDEXES",
    });
    let answer = server.ok("ExecuteStatement", select).await;
    assert_eq!(
        answer["ConsumedCapacity"],
        json!({
            "TableName": "things", "CapacityUnits": 0.5, "Table": {"CapacityUnits": 0.0},
            "GlobalSecondaryIndexes": {"global": {"CapacityUnits": 0.5}},
        })
    );
}

#[tokio::test]
async fn invalid_statements_get_dynamodb_errors() {
    let server = server().await;
    let invalid = "ValidationException";
    for (text, kind, expected) in [
        (
            "SELECT * FROM none",
            "ResourceNotFoundException",
            "Requested resource not found",
        ),
        (
            "SELECT * FROM things.none",
            invalid,
            "The table does not have the specified index",
        ),
        (
            "SELECT * FROM things WHERE pk = 1",
            invalid,
            "Key attribute's data type should match its data type in table's schema: Key pk",
        ),
        (
            "SELECT * FROM things WHERE pk = 'a' ORDER BY v",
            invalid,
            "Attribute v in ORDER BY clause must be part of the primary key",
        ),
        (
            "SELECT * FROM things ORDER BY pk",
            invalid,
            "Must have WHERE clause in the statement when using ORDER BY clause.",
        ),
        (
            "SELECT * FROM things WHERE v = 'x' ORDER BY pk",
            invalid,
            "Must have at least one non-optional hash key condition in WHERE clause when using ORDER BY clause.",
        ),
        (
            "SELECT * FROM things WHERE pk IN ['a', 'b'] ORDER BY sk",
            invalid,
            "Must have hash key in ORDER BY clause when more than one hash key condition specified in WHERE clause.",
        ),
        (
            "SELECT * FROM things WHERE pk IN ['a', 'a']",
            invalid,
            "Overlapping conditions with range keys are not supported in where clause",
        ),
        (
            "SELECT n FROM things.global WHERE g = 'all'",
            invalid,
            "One or more parameter values were invalid: Global secondary index global does not project [n]",
        ),
        (
            "SELECT * FROM things.global WHERE g = 'all' AND n = 1",
            invalid,
            "One or more parameter values were invalid: Secondary index global does not project one or more filter attributes: [n]",
        ),
        (
            "INSERT INTO things VALUE {'pk': 'a', 'sk': 1}",
            "DuplicateItemException",
            "Duplicate primary key exists in table",
        ),
        (
            "INSERT INTO things VALUE {'pk': 'a'}",
            invalid,
            "One or more parameter values were invalid: Missing the key sk in the item",
        ),
        (
            "INSERT INTO things VALUE {'pk': 'a', 'sk': '1'}",
            invalid,
            "Key attribute's data type should match its data type in table's schema: Key sk",
        ),
        (
            "UPDATE things SET v = 1 WHERE pk = 'a'",
            invalid,
            "Where clause does not contain a mandatory equality on all key attributes",
        ),
        (
            "UPDATE things SET v = 1 WHERE pk = 'a' AND sk = 9",
            "ConditionalCheckFailedException",
            "The conditional request failed",
        ),
        (
            "UPDATE things SET v = 1 WHERE pk = 'a' AND sk = 1 AND v = 'no'",
            "ConditionalCheckFailedException",
            "The conditional request failed",
        ),
        (
            "UPDATE things SET sk = 2 WHERE pk = 'a' AND sk = 1",
            invalid,
            "One or more parameter values were invalid: Cannot update attribute sk. This attribute is part of the key",
        ),
        (
            "UPDATE things.global SET v = 1 WHERE pk = 'a' AND sk = 1",
            invalid,
            "This operation is not supported on an index",
        ),
        (
            "DELETE FROM things",
            invalid,
            "Where clause does not contain a mandatory equality on all key attributes",
        ),
        (
            "DELETE FROM things WHERE pk = 'a' AND sk = 1 AND v = 'no'",
            "ConditionalCheckFailedException",
            "The conditional request failed",
        ),
        (
            "DELETE FROM things WHERE pk = 'a' AND sk = 1 RETURNING ALL NEW *",
            invalid,
            "Invalid returning clause: RETURNING ALL NEW *. Only RETURNING ALL OLD * is allowed in DELETE statements.",
        ),
        (
            "EXISTS(SELECT * FROM things WHERE pk = 'a' AND sk = 1)",
            invalid,
            "EXISTS can only be used in ExecuteTransaction write requests.",
        ),
        (
            "SELECT * FROM things WHERE pk = ?",
            invalid,
            "Number of parameters in request and statement don't match.",
        ),
    ] {
        let refused = server.refused("ExecuteStatement", statement(text)).await;
        assert_eq!(refused, (kind.to_owned(), expected.to_owned()), "{text}");
    }
    let consistent =
        json!({"Statement": "SELECT * FROM things.global WHERE g = 'all'", "ConsistentRead": true});
    let (_, text) = server.refused("ExecuteStatement", consistent).await;
    assert_eq!(
        text,
        "Strongly consistent read is not supported on Global Secondary Indexes"
    );
    let told = json!({
        "Statement": "UPDATE things SET v = 1 WHERE pk = 'a' AND sk = 1 AND v = 'no'",
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    });
    let (_, answer) = server.call("ExecuteStatement", told).await;
    assert_eq!(answer["Item"]["v"], json!({"S": "v1"}));
}

#[tokio::test]
async fn batch_statements_fail_independently() {
    let server = server().await;
    let batch = json!({
        "ReturnConsumedCapacity": "TOTAL",
        "Statements": [
            {"Statement": "INSERT INTO things VALUE {'pk': 'new', 'sk': 1}"},
            {"Statement": "INSERT INTO things VALUE {'pk': 'a', 'sk': 1}"},
            {"Statement": "UPDATE things SET v = 'x' WHERE pk = 'a' AND sk = 2 AND v = 'no'", "ReturnValuesOnConditionCheckFailure": "ALL_OLD"},
            {"Statement": "DELETE FROM things WHERE pk = 'a' AND sk = 3 RETURNING ALL OLD *"},
            {"Statement": "nonsense"},
            {"Statement": "DELETE FROM none WHERE pk = 'a'"},
        ],
    });
    let answer = server.ok("BatchExecuteStatement", batch).await;
    let responses = answer["Responses"].as_array().expect("responses");
    assert_eq!(responses[0], json!({"TableName": "things"}));
    assert_eq!(
        responses[1],
        json!({"Error": {"Code": "DuplicateItem", "Message": "Duplicate primary key exists in table"}, "TableName": "things"})
    );
    assert_eq!(responses[2]["Error"]["Code"], "ConditionalCheckFailed");
    assert_eq!(responses[2]["Error"]["Item"]["v"], json!({"S": "v2"}));
    assert_eq!(responses[3]["Item"]["v"], json!({"S": "v3"}));
    assert_eq!(
        responses[4],
        json!({"Error": {"Code": "ValidationError", "Message": "Unsupported operation: Id"}})
    );
    assert_eq!(
        responses[5]["Error"],
        json!({"Code": "ResourceNotFound", "Message": "Requested resource not found"})
    );
    assert_eq!(answer["ConsumedCapacity"][0]["TableName"], "things");
    let reads = json!({"Statements": [
        {"Statement": "SELECT v FROM things WHERE pk = 'a' AND sk = 2", "ConsistentRead": true},
        {"Statement": "SELECT * FROM things WHERE pk = 'a' AND sk = 9"},
        {"Statement": "SELECT * FROM things WHERE pk = 'a'"},
    ]});
    let answer = server.ok("BatchExecuteStatement", reads).await;
    assert_eq!(
        answer["Responses"],
        json!([
            {"TableName": "things", "Item": {"v": {"S": "v2"}}},
            {"TableName": "things"},
            {"Error": {"Code": "ValidationError", "Message": "Select statements within BatchExecuteStatement must specify the primary key in the where clause."}},
        ])
    );
    for (statements, expected) in [
        (
            json!([{"Statement": "SELECT * FROM things WHERE pk = 'a' AND sk = 2"}, {"Statement": "DELETE FROM things WHERE pk = 'a' AND sk = 1"}]),
            "Read and write requests together in the same batch is not supported.",
        ),
        (
            json!([{"Statement": "INSERT INTO things VALUE {'pk': 'q', 'sk': 1, 'v': 1}"}, {"Statement": "INSERT INTO things VALUE {'pk': 'q', 'sk': 1.0}"}]),
            "Provided list of item keys contains duplicates",
        ),
    ] {
        let (_, text) = server
            .refused("BatchExecuteStatement", json!({"Statements": statements}))
            .await;
        assert_eq!(text, expected);
    }
}

#[tokio::test]
async fn transactions_of_statements_are_atomic() {
    let server = server().await;
    let statements = json!([
        {"Statement": "INSERT INTO things VALUE {'pk': 'new', 'sk': 1}"},
        {"Statement": "UPDATE things SET v = 'x' WHERE pk = 'a' AND sk = 1"},
        {"Statement": "DELETE FROM things WHERE pk = 'a' AND sk = 2"},
        {"Statement": "EXISTS(SELECT * FROM things WHERE pk = 'a' AND sk = 3 AND v = 'v3')"},
    ]);
    let request = json!({"TransactStatements": statements, "ClientRequestToken": "once", "ReturnConsumedCapacity": "TOTAL"});
    let answer = server.ok("ExecuteTransaction", request.clone()).await;
    assert_eq!(answer["Responses"], json!([]));
    assert!(answer["ConsumedCapacity"][0]["WriteCapacityUnits"].is_number());
    // A repeated request with the same token succeeds and changes nothing.
    let repeated = server.ok("ExecuteTransaction", request).await;
    assert!(repeated["ConsumedCapacity"][0]["ReadCapacityUnits"].is_number());
    let (status, answer) = server
        .call("ExecuteTransaction", json!({"TransactStatements": [
            {"Statement": "INSERT INTO things VALUE {'pk': 'new', 'sk': 1}"},
            {"Statement": "UPDATE things SET v = 'y' WHERE pk = 'a' AND sk = 1"},
            {"Statement": "EXISTS(SELECT * FROM things WHERE pk = 'a' AND sk = 3 AND v IS MISSING)", "ReturnValuesOnConditionCheckFailure": "ALL_OLD"},
        ]}))
        .await;
    assert_eq!(status, 400);
    assert_eq!(
        answer["Message"],
        "Transaction cancelled, please refer cancellation reasons for specific reasons [DuplicateItem, None, ConditionalCheckFailed]"
    );
    assert_eq!(
        answer["CancellationReasons"][0],
        json!({"Code": "DuplicateItem", "Message": "Duplicate primary key exists in table"})
    );
    assert_eq!(
        answer["CancellationReasons"][2]["Item"]["v"],
        json!({"S": "v3"})
    );
    for nowhere in [
        "DELETE FROM nowhere WHERE pk = 'a'",
        "SELECT * FROM nowhere WHERE pk = 'a'",
    ] {
        let request = json!({"TransactStatements": [{"Statement": nowhere}]});
        let (_, answer) = server.call("ExecuteTransaction", request).await;
        assert_eq!(
            answer["CancellationReasons"],
            json!([{"Code": "ResourceNotFound", "Message": "Requested resource not found"}]),
            "{nowhere}"
        );
    }
    let reads = json!({"ReturnConsumedCapacity": "TOTAL", "TransactStatements": [
        {"Statement": "SELECT v FROM things WHERE pk = 'a' AND sk = 1"},
        {"Statement": "SELECT * FROM things WHERE pk = 'a' AND sk = 2"},
    ]});
    let answer = server.ok("ExecuteTransaction", reads).await;
    assert_eq!(
        answer["Responses"],
        json!([{"Item": {"v": {"S": "x"}}}, {}])
    );
    assert_eq!(answer["ConsumedCapacity"][0]["ReadCapacityUnits"], 4.0);
    for (statements, expected) in [
        (
            json!([{"Statement": "SELECT * FROM things WHERE pk = 'a' AND sk = 1"}, {"Statement": "DELETE FROM things WHERE pk = 'a' AND sk = 1"}]),
            "ExecuteTransaction API does not support both read and write operations in the same request.",
        ),
        (
            json!([{"Statement": "SELECT * FROM things WHERE pk = 'a'"}]),
            "Validation failed in TransactStatements[0]: Select statements within ExecuteTransaction must specify the primary key in the where clause.",
        ),
        (
            json!([{"Statement": "SELECT * FROM things.global WHERE g = 'all'"}]),
            "Validation failed in TransactStatements[0]: Reads on indices are not supported within transactions.",
        ),
        (
            json!([{"Statement": "DELETE FROM things WHERE pk = 'a' AND sk = 1 RETURNING ALL OLD *"}]),
            "Validation failed in TransactStatements[0]: RETURNING clause is not supported in ExecuteTransaction.",
        ),
        (
            json!([{"Statement": "DELETE FROM things WHERE pk = 'a' AND sk = 1"}, {"Statement": "DELETE"}]),
            "Validation failed in TransactStatements[1]: Statement wasn't well formed, can't be processed: Expected FROM keyword",
        ),
        (
            json!([{"Statement": "DELETE FROM things WHERE pk = 'a' AND sk = 1"}, {"Statement": "UPDATE things SET v = 1 WHERE pk = 'a' AND sk = 1.0"}]),
            "Transaction request cannot include multiple operations on one item",
        ),
    ] {
        let refused = server
            .refused(
                "ExecuteTransaction",
                json!({"TransactStatements": statements}),
            )
            .await;
        assert_eq!(
            refused,
            ("ValidationException".to_owned(), expected.to_owned()),
            "{statements}"
        );
    }
}
