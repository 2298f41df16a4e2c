//! `/v1/telemetry`

use serde_json::{Value, json};

use crate::support::{NOW_MS, Server};

async fn with_messages() -> Server {
    let server = Server::start().await;
    server.take("van/a/status", r#"{"state": "parked"}"#).await;
    for n in 0..3 {
        server.clock.advance_ms(1000);
        let volts = format!(r#"{{"volts": 12.{n}0}}"#);
        server.take("van/a/telemetry", &volts).await;
    }
    server.take("van/b/alerts", r#"{"severity": "low"}"#).await;
    server
}

fn times(body: &Value) -> Vec<i64> {
    let messages = body["messages"].as_array().expect("messages");
    let time = |message: &Value| message["timestamp"].as_i64().expect("a time") - NOW_MS;
    messages.iter().map(time).collect()
}

#[tokio::test]
async fn messages_are_listed_by_range_and_page() {
    let server = with_messages().await;
    let list = |query: &str| {
        let path = format!("/v1/telemetry/a{query}");
        let server = &server;
        async move { server.as_admin("GET", &path, Value::Null).await }
    };
    let all = list("").await;
    assert_eq!(all.status, 200);
    assert_eq!(times(&all.body), [3000, 2000, 1000, 0]);
    assert_eq!(all.body["messages"][3]["state"], "parked");
    let range = format!("?from={}&to={}&order=asc", NOW_MS + 1000, NOW_MS + 2000);
    assert_eq!(times(&list(&range).await.body), [1000, 2000]);
    assert_eq!(times(&list("?message_type=status").await.body), [0]);
    let first = list("?limit=3").await.body;
    let cursor = first["next_cursor"].as_str().expect("a cursor").to_owned();
    let second = list(&format!("?limit=3&cursor={cursor}")).await.body;
    assert_eq!(times(&second), [0]);
    assert!(second.get("next_cursor").is_none());
    for wrong in [
        "?from=yesterday",
        "?limit=0",
        "?limit=1001",
        "?cursor=x",
        "?message_type=",
    ] {
        assert_eq!(list(wrong).await.status, 400, "{wrong}");
    }
}

#[tokio::test]
async fn latest_is_the_newest_match() {
    let server = with_messages().await;
    let latest = server
        .as_admin("GET", "/v1/telemetry/a/latest", Value::Null)
        .await;
    assert_eq!(latest.body["volts"], json!(12.2));
    assert_eq!(latest.body["thing_name"], "a");
    let status = "/v1/telemetry/a/latest?message_type=status";
    let status = server.as_admin("GET", status, Value::Null).await;
    assert_eq!(status.body["state"], "parked");
    let none = server
        .as_admin("GET", "/v1/telemetry/c/latest", Value::Null)
        .await;
    assert_eq!(none.problem(), (404, "NO_MESSAGE"));
}

#[tokio::test]
async fn messages_of_one_type_span_things() {
    let server = with_messages().await;
    let path = format!("/v1/telemetry?message_type=alert&from={NOW_MS}");
    let alerts = server.as_admin("GET", &path, Value::Null).await;
    assert_eq!(alerts.body["messages"][0]["thing_name"], "b");
    let untyped = server.as_admin("GET", "/v1/telemetry", Value::Null).await;
    assert_eq!(untyped.problem(), (400, "INVALID_REQUEST"));
}

#[tokio::test]
async fn messages_of_one_severity_span_things() {
    let server = with_messages().await;
    server.clock.advance_ms(1000);
    server
        .take("van/a/status", r#"{"severity": "critical"}"#)
        .await;
    server.clock.advance_ms(1000);
    server
        .take("van/c/alerts", r#"{"severity": "critical"}"#)
        .await;
    for (query, things) in [
        ("severity=critical&from=-24h", vec!["c", "a"]),
        ("severity=critical&message_type=alert", vec!["c"]),
        ("severity=critical&to=-1s&order=asc", vec!["a"]),
        ("severity=info", vec![]),
    ] {
        let path = format!("/v1/telemetry?{query}");
        let page = server.as_admin("GET", &path, Value::Null).await;
        let messages = page.body["messages"].as_array().expect("messages");
        let found: Vec<_> = messages
            .iter()
            .map(|item| item["thing_name"].clone())
            .collect();
        assert_eq!(found, things, "{query}");
    }
    let path = "/v1/telemetry?severity=urgent";
    let wrong = server.as_admin("GET", path, Value::Null).await;
    assert_eq!(wrong.problem(), (400, "INVALID_REQUEST"));
}

#[tokio::test]
async fn scoped_key_sees_only_its_things() {
    let server = with_messages().await;
    let own = server.key_of("telemetry", ["a"]).await;
    let any = server.key_of("telemetry", []).await;
    let other = server.key_of("sensors", []).await;
    let get = |key: String, path: &'static str| {
        let server = &server;
        async move {
            server
                .as_device(&key, "GET", path, Value::Null)
                .await
                .status
        }
    };
    for (key, path, status) in [
        (&own, "/v1/telemetry/a", 200),
        (&own, "/v1/telemetry/a/latest", 200),
        (&own, "/v1/telemetry/b", 403),
        (&own, "/v1/telemetry/b/latest", 403),
        (&own, "/v1/telemetry?message_type=alert", 403),
        (&own, "/v1/telemetry?severity=critical", 403),
        (&any, "/v1/telemetry/b", 200),
        (&any, "/v1/telemetry?message_type=alert", 200),
        (&other, "/v1/telemetry/a", 403),
        (&other, "/v1/telemetry?message_type=alert", 403),
    ] {
        assert_eq!(get(key.clone(), path).await, status, "{path}");
    }
    let nobody = server.send("GET", "/v1/telemetry/a", &[], None).await;
    assert_eq!(nobody.problem(), (401, "TOKEN_MISSING"));
}

#[tokio::test]
async fn commands_need_a_permission() {
    let server = Server::start().await;
    let command = json!({"command": "heat"});
    let publish = "/v1/topics/van/a/commands";
    let send = "/v1/telemetry/a/commands";
    for scopes in [json!([]), json!(["a"])] {
        let body = json!({"system": "telemetry", "scopes": scopes, "all": scopes == json!([])});
        let plain = server.as_admin("POST", "/v1/api-keys", body.clone()).await;
        let key = plain.body["api_key"].as_str().expect("a key");
        let refused = server.as_device(key, "POST", send, command.clone()).await;
        assert_eq!(refused.problem(), (403, "PERMISSION_MISSING"));
        let refused = server
            .as_device(key, "POST", publish, command.clone())
            .await;
        assert_eq!(refused.problem(), (403, "OUT_OF_SCOPE"));
        let mut body = body;
        body["permissions"] = json!(["send_commands"]);
        let permitted = server.as_admin("POST", "/v1/api-keys", body).await;
        assert_eq!(permitted.body["permissions"], json!(["send_commands"]));
        let key = permitted.body["api_key"].as_str().expect("a key");
        let sent = server.as_device(key, "POST", send, command.clone()).await;
        assert_eq!(sent.status, 202, "{sent:?}");
        let sent = server
            .as_device(key, "POST", publish, command.clone())
            .await;
        assert_eq!(sent.status, 200, "{sent:?}");
        let other = server.as_device(key, "POST", "/v1/telemetry/b/commands", command.clone());
        let expected = if scopes == json!([]) { 202 } else { 403 };
        assert_eq!(other.await.status, expected);
    }
}

#[tokio::test]
async fn thing_names_have_one_rule() {
    let server = Server::start().await;
    for name in ["%C3%BC%20b", "a%2B", "a%23"] {
        for (method, path) in [
            ("POST", format!("/v1/topics/van/{name}/telemetry")),
            ("GET", format!("/v1/telemetry/{name}")),
            ("POST", format!("/v1/telemetry/{name}/commands")),
        ] {
            let body = json!({"command": "x"});
            let answer = server.as_admin(method, &path, body).await;
            assert_eq!(answer.problem(), (400, "INVALID_REQUEST"), "{path}");
        }
    }
}

#[tokio::test]
async fn published_command_triggers_rules() {
    let server = Server::start().await;
    let rule = json!({
        "sql": "SELECT topic(2) AS thing_name, timestamp() AS timestamp, topic(3) AS message_type, * FROM 'van/+/commands'",
        "actions": [{"dynamoDBv2": {"putItem": {"tableName": "van-telemetry"}}}],
    });
    let made = server.as_admin("PUT", "/v1/rules/commands", rule).await;
    assert_eq!(made.status, 201, "{made:?}");
    let command = json!({"command": "heat", "parameters": {"target": 21.5}});
    let sent = server
        .as_admin("POST", "/v1/telemetry/a/commands", command.clone())
        .await;
    assert_eq!(sent.status, 202);
    assert_eq!(sent.body["topic"], "van/a/commands");
    let seen = server
        .as_admin("GET", "/v1/telemetry/a/latest", Value::Null)
        .await;
    assert_eq!(seen.body["command_id"], sent.body["command_id"]);
    assert_eq!(seen.body["parameters"], json!({"target": 21.5}));
    let path = "/v1/telemetry/b/commands";
    for wrong in [
        json!({}),
        json!({"command": ""}),
        json!({"command": "x", "more": 1}),
        json!([1]),
    ] {
        let refused = server.as_admin("POST", path, wrong.clone()).await;
        assert_eq!(refused.problem(), (400, "INVALID_REQUEST"), "{wrong}");
    }
}
