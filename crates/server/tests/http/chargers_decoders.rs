//! `/v1/chargers/decoders` over HTTP.

use serde_json::{Value, json};

use crate::support::{ADMIN, Server};

const DECODERS: &str = "/v1/chargers/decoders";
const EVSE: &str = "/v1/chargers/decoders/evse-v1";

fn decoder() -> Value {
    json!({"fields": [{"name": "current_ma", "offset": 1, "type": "u16", "unit": "mA"}]})
}

#[tokio::test]
async fn decoder_is_changed_by_version() {
    let server = Server::start().await;
    let answer = server.as_admin("PUT", EVSE, decoder()).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    assert_eq!(answer.header("etag"), Some("\"1\""));
    let token = format!("Bearer {ADMIN}");
    let put = async |if_match: &str| {
        let headers = [("authorization", &*token), ("if-match", if_match)];
        server
            .send("PUT", EVSE, &headers, Some(decoder().to_string()))
            .await
    };
    assert_eq!(put("\"1\"").await.status, 200);
    assert_eq!(put("\"1\"").await.problem(), (412, "DECODER_CHANGED"));
    assert_eq!(put("1").await.problem(), (400, "INVALID_REQUEST"));
    let answer = server.as_admin("GET", EVSE, Value::Null).await;
    assert_eq!(
        (answer.body["version"].as_i64(), answer.header("etag")),
        (Some(2), Some("\"2\""))
    );
    let field = &answer.body["decoder"]["fields"][0];
    assert_eq!(field["unit"], "mA", "{answer:?}");
    let list = server.as_admin("GET", DECODERS, Value::Null).await;
    assert_eq!(list.body["decoders"][0]["name"], "evse-v1", "{list:?}");
    assert_eq!(
        server.as_admin("DELETE", EVSE, Value::Null).await.status,
        204
    );
    let gone = server.as_admin("GET", EVSE, Value::Null).await;
    assert_eq!(gone.problem(), (404, "DECODER_NOT_FOUND"));
    let versions = server
        .as_admin("GET", &format!("{EVSE}/versions"), Value::Null)
        .await;
    assert_eq!(
        versions.body["versions"][0]["deleted"], true,
        "{versions:?}"
    );
    let first = server
        .as_admin("GET", &format!("{EVSE}/versions/1"), Value::Null)
        .await;
    assert_eq!(first.body["version"], 1, "{first:?}");
    let never = server
        .as_admin("GET", &format!("{EVSE}/versions/9"), Value::Null)
        .await;
    assert_eq!(never.problem(), (404, "VERSION_NOT_FOUND"));
}

#[tokio::test]
async fn invalid_decoder_names_its_place() {
    let server = Server::start().await;
    for (decoder, code, detail) in [
        (
            json!({"fields": [{"name": "a", "ofset": 1, "type": "u8"}]}),
            "INVALID_REQUEST",
            "did you mean `offset`?",
        ),
        (
            json!({"fields": [{"name": "a", "offset": 1, "type": "u12"}]}),
            "INVALID_REQUEST",
            "unknown variant `u12`",
        ),
        (
            json!({"fields": [{"name": "a", "offset": 1, "type": "u8", "bits": {"first": 8, "length": 1}}]}),
            "INVALID_DECODER",
            "fields[0].bits: ",
        ),
    ] {
        let answer = server.as_admin("PUT", EVSE, decoder).await;
        assert_eq!(answer.problem(), (400, code));
        let said = answer.body["detail"].as_str().expect("a detail");
        assert!(said.contains(detail), "{said}");
    }
    let reserved = server
        .as_admin("PUT", &format!("{DECODERS}/test"), decoder())
        .await;
    assert_ne!(reserved.status, 201, "{reserved:?}");
}

#[tokio::test]
async fn test_shows_the_event_or_the_failed_field() {
    let server = Server::start().await;
    server.as_admin("PUT", EVSE, decoder()).await;
    let path = format!("{DECODERS}/test");
    for (body, expected) in [
        (
            json!({"name": "evse-v1", "payload_hex": "093e80"}),
            json!({"decoded": true, "event_type": "telemetry", "data": {"current_ma": 16_000}}),
        ),
        (
            json!({"decoder": decoder(), "payload_base64": "CT4="}),
            json!({
                "decoded": false, "field": "current_ma",
                "reason": "needs bytes 1 to 2, and the payload has 2 bytes",
            }),
        ),
    ] {
        let answer = server.as_admin("POST", &path, body).await;
        assert_eq!(answer.body, expected);
    }
    for (body, problem) in [
        (json!({"payload_hex": ""}), (400, "INVALID_REQUEST")),
        (json!({"name": "evse-v1"}), (400, "INVALID_REQUEST")),
        (
            json!({"name": "evse-v1", "payload_hex": "x"}),
            (400, "INVALID_REQUEST"),
        ),
        (
            json!({"name": "evse-v1", "payload_hex": "00".repeat(2049)}),
            (400, "INVALID_REQUEST"),
        ),
        (
            json!({"name": "other", "payload_hex": ""}),
            (404, "DECODER_NOT_FOUND"),
        ),
        (
            json!({"decoder": {"fields": [], "event_type": "a b"}, "payload_hex": ""}),
            (400, "INVALID_DECODER"),
        ),
    ] {
        let answer = server.as_admin("POST", &path, body).await;
        assert_eq!(answer.problem(), problem, "{answer:?}");
    }
}

#[tokio::test]
async fn only_operators_manage_decoders() {
    let server = Server::start().await;
    let key = server.key_of("chargers", []).await;
    for (method, path) in [
        ("GET", DECODERS),
        ("GET", EVSE),
        ("PUT", EVSE),
        ("DELETE", EVSE),
        ("GET", "/v1/chargers/decoders/evse-v1/versions"),
        ("GET", "/v1/chargers/decoders/evse-v1/versions/1"),
        ("POST", "/v1/chargers/decoders/test"),
    ] {
        let answer = server.as_device(&key, method, path, decoder()).await;
        assert!(
            matches!(answer.status, 401 | 403),
            "{method} {path} {answer:?}"
        );
    }
}
