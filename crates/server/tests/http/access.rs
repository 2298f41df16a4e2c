//! Authentication: API keys, scopes, the admin token, rate limits; and `/v1/api-keys`.

use base64::Engine as _;

use crate::support::{ADMIN, Answer, Server};
use homeport_server::RateLimit;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

const DEVICES: &str = "/v1/sensors/devices";

fn registration(hardware_id: &str) -> Value {
    json!({
        "hardware_id": hardware_id, "boot_id": "7c9e6679-7425-40de-944b-e07fc1f90ae7",
        "firmware_version": "1", "capabilities": {},
    })
}

#[tokio::test]
async fn requests_without_valid_credentials_are_rejected() {
    let server = Server::start().await;
    let wrong_key = "0".repeat(64);
    for (headers, expected) in [
        (vec![], (401, "TOKEN_MISSING")),
        (vec![("authorization", "Basic xyz")], (401, "TOKEN_MISSING")),
        (
            vec![("authorization", "Bearer wrong")],
            (401, "TOKEN_INVALID"),
        ),
        (vec![("x-api-key", "short")], (401, "KEY_INVALID")),
        (
            vec![("x-api-key", wrong_key.as_str())],
            (401, "KEY_INVALID"),
        ),
    ] {
        let answer = server.send("GET", DEVICES, &headers, None).await;
        assert_eq!(answer.problem(), expected, "{headers:?}");
        assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
    }
    let data = server.send("POST", "/v1/sensors/data", &[], None).await;
    assert_eq!(data.problem(), (401, "KEY_MISSING"));
    let token = format!("Bearer {ADMIN}");
    let operator = server
        .send(
            "POST",
            "/v1/sensors/data",
            &[("authorization", &token)],
            None,
        )
        .await;
    assert_eq!(operator.problem(), (401, "KEY_MISSING"));
}

#[tokio::test]
async fn key_is_created_listed_and_revoked() {
    let server = Server::start().await;
    let body = json!({"description": "greenhouse", "scopes": ["AA:BB:CC:DD:EE:FF"]});
    let made = server.as_admin("POST", "/v1/api-keys", body).await;
    assert_eq!(made.status, 201, "{made:?}");
    let key = made.body["api_key"].as_str().expect("a key").to_owned();
    // The scope covers this device, which is not registered, and not the list of all devices.
    let device = format!("{DEVICES}/AA:BB:CC:DD:EE:FF");
    let unregistered = server.as_device(&key, "GET", &device, Value::Null).await;
    assert_eq!(unregistered.status, 404);
    let all = server.as_device(&key, "GET", DEVICES, Value::Null).await;
    assert_eq!(all.problem(), (403, "OUT_OF_SCOPE"));
    let list = server.as_admin("GET", "/v1/api-keys", Value::Null).await;
    assert_eq!(list.body["keys"][0]["description"], "greenhouse");
    assert!(!list.body.to_string().contains(&key));
    let path = format!(
        "/v1/api-keys/{}",
        made.body["key_id"].as_str().expect("an id")
    );
    let revoked = server.as_admin("DELETE", &path, Value::Null).await;
    assert_eq!(revoked.body["is_active"], false);
    assert_eq!(revoked.body["was_active"], true);
    let refused = server.as_device(&key, "GET", DEVICES, Value::Null).await;
    assert_eq!(refused.problem(), (401, "KEY_INVALID"));
    assert_eq!(
        server.as_admin("DELETE", &path, Value::Null).await.status,
        200
    );
}

#[tokio::test]
async fn invalid_keys_are_rejected() {
    let server = Server::start().await;
    for body in [
        json!({"description": "", "all": true}),
        json!({"system": "toasters", "all": true}),
        json!({"scopes": [""]}),
        json!({}),
        json!({"all": false}),
        json!({"all": true, "scopes": ["AA:BB:CC:DD:EE:FF"]}),
        json!({"all": true, "permissions": ["send_commands"]}),
        json!({"system": "telemetry", "all": true, "permissions": ["everything"]}),
        json!({"scope": ["typo"]}),
    ] {
        let answer = server.as_admin("POST", "/v1/api-keys", body.clone()).await;
        assert_eq!(answer.problem(), (400, "INVALID_REQUEST"), "{body}");
    }
    let unknown = "/v1/api-keys/550e8400-e29b-41d4-a716-446655440000";
    let missing = server.as_admin("DELETE", unknown, Value::Null).await;
    assert_eq!(missing.problem(), (404, "KEY_NOT_FOUND"));
    let none = server
        .as_admin("DELETE", "/v1/api-keys/x", Value::Null)
        .await;
    assert_eq!(none.problem(), (400, "INVALID_REQUEST"));
}

#[tokio::test]
async fn scopes_that_match_nothing_are_rejected() {
    let server = Server::start().await;
    for (system, scope, expected) in [
        (
            "sensors",
            "aa:bb:cc:dd:ee:ff",
            "AA:BB:CC:DD:EE:FF, in upper case",
        ),
        ("chargers", "charger 1", "an SC-ID"),
        ("telemetry", "van/1", "a thing name"),
        ("push", "two words", "a user id"),
        ("records", "-", "a group id"),
    ] {
        let body = json!({"system": system, "scopes": [scope]});
        let answer = server.as_admin("POST", "/v1/api-keys", body).await;
        assert_eq!(answer.problem(), (400, "INVALID_REQUEST"), "{system}");
        let detail = answer.body["detail"].as_str().expect("a detail");
        assert!(
            detail.contains(scope) && detail.contains(expected),
            "{detail}"
        );
    }
}

#[tokio::test]
async fn bearer_scheme_is_case_insensitive() {
    let server = Server::start().await;
    for scheme in ["Bearer", "bearer", "BEARER"] {
        let sent = format!("{scheme} {ADMIN}");
        let answer = server
            .send("GET", DEVICES, &[("authorization", &sent)], None)
            .await;
        assert_eq!(answer.status, 200, "{scheme}");
    }
}

#[tokio::test]
async fn key_of_another_system_cannot_read_sensors() {
    let server = Server::start().await;
    let own = server.key().await;
    let device = "AA:BB:CC:DD:EE:FF";
    let registered = registration(device);
    let registered = server
        .as_device(&own, "POST", "/v1/sensors/register", registered)
        .await;
    assert_eq!(registered.status, 200);
    let other = server.key_of("telemetry", ["van-1"]).await;
    for path in ["", "/AA:BB:CC:DD:EE:FF", "/AA:BB:CC:DD:EE:FF/readings"] {
        let path = format!("{DEVICES}{path}");
        let answer = server.as_device(&own, "GET", &path, Value::Null).await;
        assert_eq!(answer.status, 200, "{path}");
        let answer = server.as_device(&other, "GET", &path, Value::Null).await;
        assert_eq!(answer.problem(), (403, "OUT_OF_SCOPE"), "{path}");
    }
    let latest = format!("{DEVICES}/{device}/latest");
    let answer = server.as_device(&other, "GET", &latest, Value::Null).await;
    assert_eq!(answer.problem(), (403, "OUT_OF_SCOPE"));
}

#[tokio::test]
async fn store_failures_are_503_and_not_401_or_404() {
    let server = Server::start().await;
    let verified = server.key().await;
    let device = format!("{DEVICES}/AA:BB:CC:DD:EE:FF");
    let known = server.as_device(&verified, "GET", DEVICES, Value::Null);
    assert_eq!(known.await.status, 200);
    for table in ["api_keys", "devices", "device_readings"] {
        server.engine.delete_table(table).await.expect("deleted");
    }
    for path in [DEVICES, device.as_str(), &format!("{device}/latest")] {
        let answer = server.as_device(&verified, "GET", path, Value::Null).await;
        assert_eq!(answer.problem(), (503, "STORE_UNAVAILABLE"), "{path}");
        assert_eq!(answer.header("retry-after"), Some("1"));
    }
    let reading = json!({"readings": [{
        "batch_id": "b", "hardware_id": "AA:BB:CC:DD:EE:FF", "timestamp_ms": crate::support::NOW_MS,
        "boot_id": "7c9e6679-7425-40de-944b-e07fc1f90ae7", "firmware_version": "1", "sensors": {}, "sensor_status": {},
    }]});
    let answer = server
        .as_device(&verified, "POST", "/v1/sensors/data", reading)
        .await;
    assert_eq!(answer.problem(), (503, "STORE_UNAVAILABLE"));
    // The key is verified again.
    server.clock.advance_ms(60_000);
    let answer = server.as_device(&verified, "GET", "/v1/sensors/devices", Value::Null);
    assert_eq!(answer.await.problem(), (503, "STORE_UNAVAILABLE"));
}

#[tokio::test]
async fn invalid_cursors_are_rejected() {
    let server = Server::start().await;
    let forged = |list: &str, start: Value| {
        let digest = hex::encode(&Sha256::digest(list)[..8]);
        let cursor = json!([2, {"l": digest, "s": start}]).to_string();
        base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(cursor)
    };
    let elsewhere = json!({"hardware_id": {"S": "a"}, "gsi1pk": {"S": "b"}, "gsi1sk": {"S": "c"}});
    for (path, list, start) in [
        (DEVICES, "sensors/devices", json!({})),
        (DEVICES, "sensors/devices", elsewhere),
        (
            DEVICES,
            "sensors/devices",
            json!({"hardware_id": {"N": "1"}}),
        ),
        ("/v1/api-keys", "api-keys", json!({})),
        ("/v1/chargers", "chargers/fleet", json!({})),
    ] {
        let path = format!("{path}?cursor={}", forged(list, start.clone()));
        let answer = server.as_admin("GET", &path, Value::Null).await;
        assert_eq!(answer.problem(), (400, "INVALID_CURSOR"), "{list} {start}");
    }
}

#[tokio::test]
async fn key_scopes_restrict_reads_and_writes() {
    let server = Server::start().await;
    let key = server.key_for(["AA:BB:CC:DD:EE:FF"]).await;
    let path = "/v1/sensors/register";
    let own = server
        .as_device(&key, "POST", path, registration("AA:BB:CC:DD:EE:FF"))
        .await;
    assert_eq!(own.status, 200);
    let other = server
        .as_device(&key, "POST", path, registration("AA:BB:CC:DD:EE:00"))
        .await;
    assert_eq!(other.problem(), (403, "OUT_OF_SCOPE"));
    let reading = json!({"readings": [{
        "batch_id": "b", "hardware_id": "AA:BB:CC:DD:EE:00", "timestamp_ms": crate::support::NOW_MS,
        "boot_id": "7c9e6679-7425-40de-944b-e07fc1f90ae7", "firmware_version": "1", "sensors": {}, "sensor_status": {},
    }]});
    let answer = server
        .as_device(&key, "POST", "/v1/sensors/data", reading)
        .await;
    assert_eq!(
        answer.body["results"][0]["code"], "OUT_OF_SCOPE",
        "{answer:?}"
    );
    assert_eq!(answer.body["acknowledged_batch_ids"], json!([]));
    for (path, status) in [
        ("/AA:BB:CC:DD:EE:FF", 200),
        ("/AA:BB:CC:DD:EE:FF/readings", 200),
        ("/AA:BB:CC:DD:EE:00", 403),
        ("/AA:BB:CC:DD:EE:00/latest", 403),
        ("/AA:BB:CC:DD:EE:00/readings", 403),
        ("", 403),
    ] {
        let path = format!("{DEVICES}{path}");
        let answer = server.as_device(&key, "GET", &path, Value::Null).await;
        assert_eq!(answer.status, status, "{path}: {answer:?}");
    }
}

#[tokio::test]
async fn rate_limited_key_gets_retry_after() {
    let limit = RateLimit {
        per_second: 1.0,
        burst: 2.0,
    };
    let server = Server::start_with(limit).await;
    let key = server.key().await;
    for _ in 0..2 {
        assert_eq!(
            server
                .as_device(&key, "GET", DEVICES, Value::Null)
                .await
                .status,
            200
        );
    }
    let held = server.as_device(&key, "GET", DEVICES, Value::Null).await;
    assert_eq!(held.problem(), (429, "RATE_LIMITED"));
    assert_eq!(held.header("retry-after"), Some("1"));
    let other = server.key().await;
    assert_eq!(
        server
            .as_device(&other, "GET", DEVICES, Value::Null)
            .await
            .status,
        200
    );
    server.clock.advance_ms(1000);
    assert_eq!(
        server
            .as_device(&key, "GET", DEVICES, Value::Null)
            .await
            .status,
        200
    );
}

#[tokio::test]
async fn safe_request_ids_are_kept() {
    let server = Server::start().await;
    let kept = server
        .send("GET", "/healthz", &[("x-request-id", "abc-1.2")], None)
        .await;
    assert_eq!(kept.header("x-request-id"), Some("abc-1.2"));
    let long = "x".repeat(65);
    for bad in ["two words", "a\"b", long.as_str()] {
        let made = server
            .send("GET", "/healthz", &[("x-request-id", bad)], None)
            .await;
        assert_ne!(made.header("x-request-id"), Some(bad));
    }
}

#[tokio::test]
async fn array_bodies_are_rejected() {
    let server = Server::start().await;
    let made = server
        .as_admin("POST", "/v1/api-keys", json!(["greenhouse", null, []]))
        .await;
    assert_eq!(made.problem(), (400, "INVALID_REQUEST"));
    let key = server.key().await;
    let mut body = registration("AA:BB:CC:DD:EE:FF");
    body["capabilities"] = json!([["bme280"], {}]);
    let registered = server
        .as_device(&key, "POST", "/v1/sensors/register", body)
        .await;
    assert_eq!(registered.problem(), (400, "INVALID_REQUEST"));
    let reading = json!([
        "b",
        "AA:BB:CC:DD:EE:FF",
        "7c9e6679-7425-40de-944b-e07fc1f90ae7",
        "1",
        crate::support::NOW_MS,
        {},
        {}
    ]);
    let path = "/v1/sensors/data";
    let whole = server
        .as_device(&key, "POST", path, json!([[reading.clone()]]))
        .await;
    assert_eq!(whole.problem(), (400, "INVALID_REQUEST"));
    let one = server
        .as_device(&key, "POST", path, json!({"readings": [reading]}))
        .await;
    assert_eq!(one.body["results"][0]["code"], "INVALID_READING", "{one:?}");
}

#[tokio::test]
async fn wrong_method_lists_allowed_methods() {
    let server = Server::start().await;
    let answer = server
        .send("PUT", "/v1/sensors/devices/AA:BB:CC:DD:EE:FF", &[], None)
        .await;
    assert_eq!(answer.problem(), (405, "METHOD_NOT_ALLOWED"));
    let mut allowed: Vec<&str> = answer
        .header("allow")
        .expect("methods")
        .split(',')
        .collect();
    allowed.sort_unstable();
    assert_eq!(allowed, ["DELETE", "GET", "HEAD", "PATCH"]);
}

#[tokio::test]
async fn every_operation_documents_common_errors() {
    let server = Server::start().await;
    let document = server.send("GET", "/openapi.json", &[], None).await;
    let paths = document.body["paths"].as_object().expect("paths");
    for (path, operations) in paths {
        for (method, operation) in operations.as_object().expect("operations") {
            let answers = operation["responses"].as_object().expect("answers");
            let has_body = operation.get("requestBody").is_some();
            for (status, is_needed) in [("408", true), ("500", true), ("413", has_body)] {
                assert!(
                    !is_needed || answers.contains_key(status),
                    "{method} {path} {status}"
                );
            }
        }
    }
}

#[tokio::test]
async fn openapi_document_and_docs_page_are_served() {
    let server = Server::start().await;
    let document = server.send("GET", "/openapi.json", &[], None).await;
    assert_eq!(document.body["openapi"], "3.1.0");
    let paths = document.body["paths"].as_object().expect("paths");
    assert!(paths.contains_key("/v1/sensors/devices/{hardware_id}/readings"));
    let page = server.send("GET", "/docs", &[], None).await;
    assert!(page.body.as_str().expect("text").contains("Homeport API"));
    for path in ["/healthz", "/readyz", "/metrics"] {
        assert_eq!(
            server.send("GET", path, &[], None).await.status,
            200,
            "{path}"
        );
    }
}

#[tokio::test]
async fn docs_page_has_security_headers() {
    let server = Server::start().await;
    let console = server.send("GET", "/", &[], None).await;
    let docs = server.send("GET", "/docs", &[], None).await;
    for name in [
        "content-security-policy",
        "x-content-type-options",
        "x-frame-options",
        "referrer-policy",
        "cross-origin-opener-policy",
    ] {
        assert!(console.header(name).is_some(), "{name}");
        assert_eq!(docs.header(name), console.header(name), "{name}");
    }
    // The policy allows scripts and styles from files only.
    let page = docs.body.as_str().expect("text");
    assert!(!page.contains("<style"), "{page}");
    assert!(!page.contains("<script>"), "{page}");
    let files = page.split('"').filter(|text| text.starts_with("/docs/"));
    let files: Vec<&str> = files.collect();
    assert_eq!(files, ["/docs/page.css", "/docs/page.js"]);
    for (path, media_type) in [
        (files[0], "text/css; charset=utf-8"),
        (files[1], "text/javascript; charset=utf-8"),
    ] {
        let file = server.send("GET", path, &[], None).await;
        assert_eq!(file.status, 200, "{path}");
        assert_eq!(file.header("content-type"), Some(media_type), "{path}");
        assert_eq!(file.header("x-content-type-options"), Some("nosniff"));
    }
}

#[tokio::test]
async fn cors_allows_only_the_api() {
    let server = Server::start().await;
    let origin = ("origin", "https://app.example");
    for (path, is_allowed) in [
        ("/metrics", false),
        ("/healthz", false),
        ("/readyz", false),
        ("/", false),
        ("/docs", false),
        ("/openapi.json", false),
        ("/v1/session", false),
        ("/v1/nothing", true),
        ("/v1/sensors/devices", true),
        ("/v1/push/devices", true),
    ] {
        let answer = server.send("GET", path, &[origin], None).await;
        let allowed = answer.header("access-control-allow-origin");
        assert_eq!(allowed, is_allowed.then_some(origin.1), "{path}");
        let preflight = [origin, ("access-control-request-method", "GET")];
        let answer = server.send("OPTIONS", path, &preflight, None).await;
        let allowed = answer.header("access-control-allow-origin");
        assert_eq!(allowed, is_allowed.then_some(origin.1), "OPTIONS {path}");
    }
}

/// Sends a bearer token from a client address.
async fn with_token(server: &Server, path: &str, token: &str, client: &str) -> Answer {
    let bearer = format!("Bearer {token}");
    let headers = [("authorization", &*bearer), ("x-forwarded-for", client)];
    server.send("GET", path, &headers, None).await
}

#[tokio::test]
async fn wrong_bearer_tokens_are_limited_on_every_route() {
    let server = Server::start().await;
    // Routes for operators, for API keys or operators, and for users or operators.
    let paths = [
        "/v1/api-keys",
        "/v1/sensors/devices",
        "/v1/push/devices?userId=u",
    ];
    for path in paths.iter().cycle().take(10) {
        let answer = with_token(&server, path, "a guess", "192.0.2.1").await;
        assert_eq!(answer.status, 401, "{path}");
    }
    for path in paths {
        let answer = with_token(&server, path, "a guess", "192.0.2.1").await;
        assert_eq!(answer.problem(), (429, "RATE_LIMITED"), "{path}");
        assert_eq!(answer.header("retry-after"), Some("6"));
        // Another client behind the same proxy is not limited, and the right token always passes.
        let answer = with_token(&server, path, ADMIN, "192.0.2.1").await;
        assert_eq!(answer.status, 200, "{path}");
    }
    let answer = with_token(&server, paths[0], "a guess", "192.0.2.2").await;
    assert_eq!(answer.problem(), (401, "TOKEN_INVALID"));
}

#[tokio::test]
async fn unknown_keys_are_limited_by_address() {
    let server = Server::start().await;
    let key = server.key().await;
    let send = async |key: &str, client: &str| {
        let headers = [("x-api-key", key), ("x-forwarded-for", client)];
        server.send("GET", DEVICES, &headers, None).await
    };
    let unknown = |number: usize| format!("{number:064x}");
    for number in 0..100 {
        let answer = send(&unknown(number), "192.0.2.1").await;
        assert_eq!(answer.problem(), (401, "KEY_INVALID"));
    }
    let limited = send(&unknown(100), "192.0.2.1").await;
    assert_eq!(limited.problem(), (429, "RATE_LIMITED"));
    assert_eq!(limited.header("retry-after"), Some("1"));
    // Other addresses are not limited, and neither is a key that was valid lately, beside the tries.
    let other = send(&unknown(101), "192.0.2.2").await;
    assert_eq!(other.problem(), (401, "KEY_INVALID"));
    server.clock.advance_ms(31_000);
    for number in 200..232 {
        send(&unknown(number), "192.0.2.1").await;
    }
    let limited = send(&unknown(300), "192.0.2.1").await;
    assert_eq!(limited.problem(), (429, "RATE_LIMITED"));
    assert_eq!(send(&key, "192.0.2.1").await.status, 200);
}

#[tokio::test]
async fn rejected_jwts_are_not_wrong_admin_tokens() {
    let server = Server::start().await;
    // {"alg":"HS256"}.{}.x
    let token = "eyJhbGciOiJIUzI1NiJ9.e30.eA";
    let path = "/v1/push/devices?userId=u";
    for _ in 0..12 {
        let answer = with_token(&server, path, token, "192.0.2.1").await;
        assert_eq!(answer.status, 401);
    }
}
