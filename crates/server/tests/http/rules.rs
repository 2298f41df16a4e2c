//! `/v1/rules`

use serde_json::{Value, json};

use crate::support::{ADMIN, Answer, Server};

fn rule() -> Value {
    json!({
        "sql": "SELECT topic(2) AS thing_name, timestamp() AS timestamp, 'x' AS message_type, *\nFROM 'x/+'",
        "awsIotSqlVersion": "2016-03-23",
        "actions": [{"dynamoDBv2": {"roleArn": "arn:aws:iam::1:role/r", "putItem": {"tableName": "van-telemetry"}}}],
    })
}

async fn with_version(server: &Server, method: &str, version: &str, body: Value) -> Answer {
    let token = format!("Bearer {ADMIN}");
    let headers = [("authorization", token.as_str()), ("if-match", version)];
    let body = (!body.is_null()).then(|| body.to_string());
    server.send(method, "/v1/rules/mine", &headers, body).await
}

#[tokio::test]
async fn rule_is_created_read_changed_and_deleted() {
    let server = Server::start().await;
    let new = json!({"ruleName": "mine", "topicRulePayload": rule()});
    let made = server.as_admin("POST", "/v1/rules", new.clone()).await;
    assert_eq!(made.status, 201, "{made:?}");
    assert_eq!(made.header("etag"), Some("\"1\""));
    let again = server.as_admin("POST", "/v1/rules", new).await;
    assert_eq!(again.problem(), (409, "RULE_EXISTS"));
    server.take("x/a", r#"{"n": 1}"#).await;
    let shown = server.as_admin("GET", "/v1/rules/mine", Value::Null).await;
    let body = &shown.body;
    assert_eq!(body["ruleName"], "mine");
    assert_eq!(body["actions"], rule()["actions"]);
    assert_eq!(body["sql"], rule()["sql"]);
    assert_eq!(body["counts"]["matched"], 1);
    assert_eq!(
        (&body["source"], &body["version"]),
        (&json!("store"), &json!(1))
    );
    assert!(
        body["notes"][0]
            .as_str()
            .expect("a note")
            .contains("roleArn")
    );
    let patched = with_version(&server, "PATCH", "\"1\"", json!({"description": "d"})).await;
    assert_eq!((patched.status, &patched.body["version"]), (200, &json!(2)));
    let stale = with_version(&server, "PUT", "\"1\"", rule()).await;
    assert_eq!(stale.problem(), (412, "RULE_CHANGED"));
    let wrong = with_version(&server, "PUT", "two", rule()).await;
    assert_eq!(wrong.problem(), (400, "INVALID_REQUEST"));
    let replaced = with_version(&server, "PUT", "\"2\"", rule()).await;
    assert_eq!(
        (replaced.status, &replaced.body["version"]),
        (200, &json!(3))
    );
    assert!(replaced.body.get("description").is_none());
    let deleted = with_version(&server, "DELETE", "\"3\"", Value::Null).await;
    assert_eq!(deleted.status, 204);
    let gone = server.as_admin("GET", "/v1/rules/mine", Value::Null).await;
    assert_eq!(gone.problem(), (404, "RULE_NOT_FOUND"));
}

/// Stores a rule that writes to a table; returns its notes.
async fn notes_of(server: &Server, sql: &str, table: &str) -> String {
    let action = json!({"dynamoDBv2": {"putItem": {"tableName": table}}});
    let rule = json!({"sql": sql, "awsIotSqlVersion": "2016-03-23", "actions": [action]});
    let put = server.as_admin("PUT", "/v1/rules/noted", rule).await;
    assert!(matches!(put.status, 200 | 201), "{put:?}");
    put.body["notes"].to_string()
}

#[tokio::test]
async fn telemetry_without_ttl_is_noted() {
    let server = Server::start().await;
    for (selection, table, is_noted) in [
        ("*", "van-telemetry", true),
        ("*", "photoeditor-dev-device-tokens", false),
        ("*, timestamp() + 1000 AS ttl", "van-telemetry", false),
        ("x, ttl", "van-telemetry", false),
        ("VALUE *", "van-telemetry", true),
        ("VALUE item", "van-telemetry", false),
    ] {
        let sql = format!("SELECT {selection} FROM 'a/+'");
        let notes = notes_of(&server, &sql, table).await;
        assert_eq!(notes.contains("without ttl"), is_noted, "{sql} {notes}");
    }
}

#[tokio::test]
async fn rule_that_never_runs_is_noted() {
    let server = Server::start().await;
    let deep = format!("'{}b'", "a/".repeat(40));
    for (rest, is_noted) in [
        ("'a/+'", false),
        ("'van/+/telemetry' WHERE x > 1", false),
        ("'van/#'", false),
        ("'#' WHERE true", false),
        ("'a' WHERE false OR x", false),
        ("'a' WHERE false", true),
        ("'a' WHERE x AND 1", true),
        ("'$aws/things/+/shadow/update'", true),
        ("'van/b c/telemetry'", true),
        (deep.as_str(), true),
    ] {
        let sql = format!("SELECT * FROM {rest}");
        let notes = notes_of(&server, &sql, "van-telemetry").await;
        assert_eq!(notes.contains("never runs"), is_noted, "{rest} {notes}");
    }
}

#[tokio::test]
async fn rule_is_disabled_and_enabled() {
    let server = Server::start().await;
    for (word, disabled, stored) in [("disable", true, 0), ("enable", false, 1)] {
        let path = format!("/v1/rules/telemetry/{word}");
        let switched = server.as_admin("POST", &path, Value::Null).await;
        assert_eq!(switched.body["ruleDisabled"], disabled);
        server.take("van/a/telemetry", "{}").await;
        let list = server.as_admin("GET", "/v1/telemetry/a", Value::Null).await;
        assert_eq!(
            list.body["messages"].as_array().map(Vec::len),
            Some(stored),
            "{word}"
        );
    }
}

#[tokio::test]
async fn rule_versions_and_errors_are_listed() {
    let server = Server::start().await;
    let disable = "/v1/rules/telemetry/disable";
    server.as_admin("POST", disable, Value::Null).await;
    let enable = "/v1/rules/telemetry/enable";
    server.as_admin("POST", enable, Value::Null).await;
    server.take("van/a/telemetry", "not json").await;
    let versions = "/v1/rules/telemetry/versions";
    let versions = server.as_admin("GET", versions, Value::Null).await.body;
    let disabled: Vec<_> = versions["versions"]
        .as_array()
        .expect("versions")
        .iter()
        .map(|one| (one["version"].clone(), one["ruleDisabled"].clone()))
        .collect();
    let expected = [(3, false), (2, true), (1, false)];
    assert_eq!(
        disabled,
        expected.map(|(version, off)| (json!(version), json!(off)))
    );
    let one = "/v1/rules/telemetry/versions/2";
    let one = server.as_admin("GET", one, Value::Null).await;
    assert_eq!(one.body["ruleDisabled"], true);
    let none = "/v1/rules/telemetry/versions/9";
    let none = server.as_admin("GET", none, Value::Null).await;
    assert_eq!(none.problem(), (404, "VERSION_NOT_FOUND"));
    let errors = "/v1/rules/telemetry/errors";
    let errors = server.as_admin("GET", errors, Value::Null).await.body;
    assert_eq!(errors["errors"][0]["topic"], "van/a/telemetry");
    assert!(errors["errors"][0].get("failedAction").is_none());
}

#[tokio::test]
async fn rule_errors_name_their_position() {
    let server = Server::start().await;
    let put = |body: String| {
        let server = &server;
        async move {
            let token = format!("Bearer {ADMIN}");
            let headers = [("authorization", token.as_str())];
            server
                .send("PUT", "/v1/rules/mine", &headers, Some(body))
                .await
        }
    };
    let unknown = put(
        "{\n  \"sql\": \"SELECT * FROM 'a'\",\n  \"actions\": [{\"lambda\": {}}]\n}".to_owned(),
    )
    .await;
    assert_eq!(unknown.problem(), (400, "INVALID_REQUEST"));
    let detail = unknown.body["detail"].as_str().expect("a detail");
    assert!(
        detail.contains("lambda") && detail.contains("line 3"),
        "{detail}"
    );
    let syntax = put(json!({"sql": "SELECT *\nFORM 'a'", "actions": []}).to_string()).await;
    assert_eq!(syntax.problem(), (400, "INVALID_RULE"));
    let detail = syntax.body["detail"].as_str().expect("a detail");
    assert!(detail.contains("line 2"), "{detail}");
    let name = server
        .as_admin("GET", "/v1/rules/not-a-name", Value::Null)
        .await;
    assert_eq!(name.problem(), (400, "INVALID_REQUEST"));
}

#[tokio::test]
async fn statement_test_reports_result_and_reasons() {
    let server = Server::start().await;
    let token = format!("Bearer {ADMIN}");
    let body = r#"{"sql": "SELECT n, missing, timestamp() AS at FROM 'x/+' WHERE n > 0", "topic": "x/a",
        "payload": {"n": 0.1234567890123456789012345678901234567}, "timestamp": 7}"#;
    let headers = [("authorization", token.as_str())];
    let tried = server
        .send("POST", "/v1/rules/test", &headers, Some(body.to_owned()))
        .await;
    assert_eq!(tried.status, 200, "{tried:?}");
    assert_eq!(tried.body["matched"], true);
    assert_eq!(tried.body["result"]["at"], 7);
    assert!(tried.body["result"].get("missing").is_none());
    let undefined = &tried.body["undefined"][0];
    assert_eq!(
        (&undefined["expression"], &undefined["line"]),
        (&json!("missing"), &json!(1))
    );
    let unmet = body.replace("n > 0", "n > 1");
    let unmet = server
        .send("POST", "/v1/rules/test", &headers, Some(unmet))
        .await;
    assert_eq!(unmet.body["matched"], false);
    assert_eq!(unmet.body["unmet"]["expression"], "n > 1");
    let wrong = body.replace("SELECT", "SELEKT");
    let wrong = server
        .send("POST", "/v1/rules/test", &headers, Some(wrong))
        .await;
    assert_eq!(wrong.problem(), (400, "INVALID_RULE"));
    let topic = body.replace("\"x/a\"", "\"x/#\"");
    let topic = server
        .send("POST", "/v1/rules/test", &headers, Some(topic))
        .await;
    assert_eq!(topic.problem(), (400, "INVALID_RULE"));
}

#[tokio::test]
async fn rules_are_for_operators() {
    let server = Server::start().await;
    let key = server.key_of("telemetry", []).await;
    for (method, path) in [
        ("GET", "/v1/rules"),
        ("POST", "/v1/rules"),
        ("GET", "/v1/rules/telemetry"),
        ("PUT", "/v1/rules/telemetry"),
        ("PATCH", "/v1/rules/telemetry"),
        ("DELETE", "/v1/rules/telemetry"),
        ("POST", "/v1/rules/telemetry/disable"),
        ("GET", "/v1/rules/telemetry/versions"),
        ("GET", "/v1/rules/telemetry/errors"),
        ("POST", "/v1/rules/test"),
    ] {
        let refused = server.as_device(&key, method, path, Value::Null).await;
        assert_eq!(refused.problem(), (401, "TOKEN_MISSING"), "{method} {path}");
    }
    let list = server
        .as_admin("GET", "/v1/rules?limit=2", Value::Null)
        .await;
    assert_eq!(list.body["rules"].as_array().map(Vec::len), Some(2));
    assert!(list.body["next_cursor"].is_string());
}

#[tokio::test]
async fn replay_pages_show_would_be_writes() {
    let server = Server::start().await;
    for volts in ["12.50", "11.5", "9"] {
        let payload = format!(r#"{{"volts": {volts}}}"#);
        server.take("van/a/telemetry", &payload).await;
    }
    let replay = async |query: &str, body: Value| {
        let path = format!("/v1/rules/telemetry/replay?thing=a{query}");
        server.as_admin("POST", &path, body).await
    };
    let same = replay("", json!({})).await;
    assert_eq!(same.status, 200, "{same:?}");
    assert_eq!(same.body["messages"], json!([]));
    let totals = json!({"messages": 3, "same": 3, "different": 0, "failures": 0});
    assert_eq!(same.body["totals"], totals);

    let sql = "SELECT topic(2) AS thing_name, timestamp() AS timestamp, 'telemetry' AS message_type,\n\
               * , volts < 12 AS is_low FROM 'van/+/telemetry'";
    let first = replay("&limit=2", json!({"sql": sql})).await;
    let totals = json!({"messages": 2, "same": 0, "different": 2, "failures": 0});
    assert_eq!(first.body["totals"], totals);
    let write = &first.body["messages"][0]["writes"][0];
    assert_eq!(write["difference"], "changed");
    assert_eq!(write["key"]["thing_name"], "a");
    let added = json!({"attribute": "is_low", "wouldBe": false});
    let changes = write["changes"].as_array().expect("changes");
    assert!(changes.contains(&added), "{changes:?}");
    let cursor = first.body["next_cursor"].as_str().expect("a cursor");
    let rest = format!("&limit=2&cursor={cursor}");
    let second = replay(&rest, json!({"sql": sql})).await;
    assert_eq!(second.body["totals"]["messages"], 1);
    assert!(second.body.get("next_cursor").is_none());
    let other = replay(&format!("{rest}&from=2000-01-01T00:00:00Z"), json!({})).await;
    assert_eq!(other.problem(), (400, "INVALID_CURSOR"));

    let candidate = json!({"topicRulePayload": {
        "sql": "SELECT volts FROM 'van/+/telemetry' WHERE volts < 10",
        "actions": [{"republish": {"topic": "low/${topic(2)}"}}]}});
    let not_there = "/v1/rules/not_there/replay?thing=a";
    let new = server.as_admin("POST", not_there, candidate).await;
    let messages = new.body["messages"].as_array().expect("messages");
    assert_eq!(messages.len(), 1, "{new:?}");
    assert_eq!(messages[0]["effects"], json!(["republish on low/a"]));
    // Nothing was written.
    let stored = server.as_admin("GET", "/v1/telemetry/a", Value::Null).await;
    assert!(!stored.body.to_string().contains("is_low"), "{stored:?}");
}

#[tokio::test]
async fn invalid_replays_are_rejected() {
    let server = Server::start().await;
    let ask = async |path: &str, body: Value| {
        let answer = server.as_admin("POST", path, body).await;
        let (status, code) = answer.problem();
        (status, code.to_owned())
    };
    let path = "/v1/rules/telemetry/replay?thing=a";
    let invalid = (400, "INVALID_REQUEST".to_owned());
    for query in ["&limit=0", "&limit=101", "&from=yesterday"] {
        let answer = ask(&format!("{path}{query}"), json!({})).await;
        assert_eq!(answer, invalid, "{query}");
    }
    for thing in ["", "?thing=", "?thing=a/b"] {
        let path = format!("/v1/rules/telemetry/replay{thing}");
        assert_eq!(ask(&path, json!({})).await, invalid, "{thing}");
    }
    for body in [
        json!([]),
        json!({"until": 1}),
        json!({"topicRulePayload": []}),
        json!({"sql": "SELECT 1", "topicRulePayload": rule()}),
    ] {
        assert_eq!(ask(path, body.clone()).await, invalid, "{body}");
    }
    let wrong = ask(path, json!({"sql": "SELECT"})).await;
    assert_eq!(wrong, (400, "INVALID_RULE".to_owned()));
    let missing = ask("/v1/rules/none/replay?thing=a", json!({})).await;
    assert_eq!(missing, (404, "RULE_NOT_FOUND".to_owned()));
    let device = server.send("POST", path, &[], Some("{}".to_owned())).await;
    assert_eq!(device.status, 401);
}
