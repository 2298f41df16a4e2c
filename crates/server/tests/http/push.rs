//! `/v1/push` over HTTP, with user tokens.

use crate::support::{ADMIN, Answer, NOW_MS, Server, USER_SECRET};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use serde_json::{Value, json};

const NOW: i64 = NOW_MS / 1000;
const DEVICE: &str = "/v1/push/devices/phone";

/// A token signed with HS256.
fn token_with(secret: &str, claims: &Value) -> String {
    let key = EncodingKey::from_secret(secret.as_bytes());
    jsonwebtoken::encode(&Header::new(Algorithm::HS256), claims, &key).expect("a token")
}

pub(crate) fn token_of(user: &str) -> String {
    token_with(USER_SECRET, &json!({"sub": user, "exp": NOW + 600}))
}

async fn as_bearer(server: &Server, token: &str, method: &str, path: &str, body: Value) -> Answer {
    let token = format!("Bearer {token}");
    let body = (!body.is_null()).then(|| body.to_string());
    let headers = [("authorization", token.as_str())];
    server.send(method, path, &headers, body).await
}

fn registration() -> Value {
    json!({"expoPushToken": "ExponentPushToken[abc]", "platform": "ios"})
}

#[tokio::test]
async fn user_manages_own_devices() {
    let server = Server::start().await;
    let token = token_of("user-1");
    let ask =
        async |method: &str, path: &str, body| as_bearer(&server, &token, method, path, body).await;
    let new = ask("PUT", DEVICE, registration()).await;
    assert_eq!(new.status, 201, "{new:?}");
    let expected = json!({
        "userId": "user-1", "deviceId": "phone", "expoPushToken": "ExponentPushToken[abc]",
        "platform": "ios", "registeredAt": "2027-01-15T08:00:00.000Z",
        "updatedAt": "2027-01-15T08:00:00.000Z", "isActive": true,
        "expiresAt": NOW + 90 * 24 * 60 * 60,
    });
    assert_eq!(new.body, expected);
    assert_eq!(ask("PUT", DEVICE, registration()).await.status, 200);
    assert_eq!(ask("GET", DEVICE, Value::Null).await.body, expected);
    let list = ask("GET", "/v1/push/devices", Value::Null).await;
    assert_eq!(list.body, json!({"devices": [expected]}));
    let off = ask("POST", &format!("{DEVICE}/deactivate"), Value::Null).await;
    assert_eq!((off.status, &off.body["isActive"]), (200, &json!(false)));
    let list = ask("GET", "/v1/push/devices", Value::Null).await;
    assert_eq!(list.body, json!({"devices": []}));
    assert_eq!(ask("DELETE", DEVICE, Value::Null).await.status, 204);
    for (method, path) in [
        ("GET", DEVICE.to_owned()),
        ("DELETE", DEVICE.to_owned()),
        ("POST", format!("{DEVICE}/deactivate")),
    ] {
        let gone = ask(method, &path, Value::Null).await;
        assert_eq!(gone.problem(), (404, "DEVICE_NOT_FOUND"), "{method}");
    }
}

#[tokio::test]
async fn invalid_registrations_are_rejected() {
    let server = Server::start().await;
    let token = token_of("user-1");
    for wrong in [
        json!({"expoPushToken": "fcm:abc", "platform": "ios"}),
        json!({"expoPushToken": "ExponentPushToken[a]", "platform": "windows"}),
        json!({"expoPushToken": "ExponentPushToken[a]"}),
        json!({"expoPushToken": "ExponentPushToken[a]", "platform": "ios", "userId": "other"}),
    ] {
        let refused = as_bearer(&server, &token, "PUT", DEVICE, wrong.clone()).await;
        assert_eq!(refused.problem(), (400, "INVALID_REQUEST"), "{wrong}");
    }
}

#[tokio::test]
async fn invalid_user_tokens_are_rejected() {
    let server = Server::start().await;
    let claims = |extra: Value| {
        let mut claims = json!({"sub": "user-1", "exp": NOW + 600});
        for (name, value) in extra.as_object().expect("claims") {
            claims[name] = value.clone();
        }
        token_with(USER_SECRET, &claims)
    };
    let right = claims(json!({}));
    let unsigned = {
        let mut parts = right.split('.');
        let (_, payload) = (parts.next(), parts.next().expect("a payload"));
        // {"alg":"none","typ":"JWT"}
        format!("eyJhbGciOiJub25lIiwidHlwIjoiSldUIn0.{payload}.")
    };
    // The signature is valid; only the header differs.
    let with_crit = |crit: Value| {
        let header = json!({"alg": "HS256", "typ": "JWT", "crit": crit}).to_string();
        let header = URL_SAFE_NO_PAD.encode(header);
        let payload = right.split('.').nth(1).expect("a payload");
        let key = EncodingKey::from_secret(USER_SECRET.as_bytes());
        let signed = format!("{header}.{payload}");
        let signature = jsonwebtoken::crypto::sign(signed.as_bytes(), &key, Algorithm::HS256);
        format!("{signed}.{}", signature.expect("a signature"))
    };
    let hs512 = {
        let key = EncodingKey::from_secret(USER_SECRET.as_bytes());
        let claims = json!({"sub": "user-1", "exp": NOW + 600});
        jsonwebtoken::encode(&Header::new(Algorithm::HS512), &claims, &key).expect("a token")
    };
    for (why, token) in [
        ("expired", claims(json!({"exp": NOW - 31}))),
        (
            "never expires",
            token_with(USER_SECRET, &json!({"sub": "user-1"})),
        ),
        ("not yet", claims(json!({"nbf": NOW + 31}))),
        (
            "nobody",
            token_with(USER_SECRET, &json!({"exp": NOW + 600})),
        ),
        ("no user id", claims(json!({"sub": "a b"}))),
        (
            "another secret",
            token_with(&"x".repeat(32), &json!({"sub": "user-1", "exp": NOW + 600})),
        ),
        ("another algorithm", hs512),
        ("no algorithm", unsigned),
        ("unknown crit", with_crit(json!(["http://example.com/x"]))),
        ("registered crit", with_crit(json!(["alg"]))),
        ("empty crit", with_crit(json!([]))),
        ("null crit", with_crit(Value::Null)),
        ("malformed crit", with_crit(json!("exp"))),
        ("no JWT", "abc".to_owned()),
        ("too long", "a".repeat(9000)),
    ] {
        let refused = as_bearer(&server, &token, "GET", "/v1/push/devices", Value::Null).await;
        assert_eq!(refused.problem(), (401, "TOKEN_INVALID"), "{why}");
    }
    let leeway = claims(json!({"exp": NOW - 29, "nbf": NOW + 30}));
    for token in [right, leeway] {
        let taken = as_bearer(&server, &token, "GET", "/v1/push/devices", Value::Null).await;
        assert_eq!(taken.status, 200, "{taken:?}");
    }
    let nobody = server.send("GET", "/v1/push/devices", &[], None).await;
    assert_eq!(nobody.problem(), (401, "TOKEN_MISSING"));
}

#[tokio::test]
async fn users_see_own_devices_operators_see_all() {
    let server = Server::start().await;
    let one = token_of("user-1");
    as_bearer(&server, &one, "PUT", DEVICE, registration()).await;
    let two = token_of("user-2");
    let theirs = as_bearer(&server, &two, "GET", DEVICE, Value::Null).await;
    assert_eq!(theirs.problem(), (404, "DEVICE_NOT_FOUND"));
    let asked = format!("{DEVICE}?userId=user-1");
    let theirs = as_bearer(&server, &two, "GET", &asked, Value::Null).await;
    assert_eq!(theirs.problem(), (403, "NOT_YOURS"));
    let own = as_bearer(&server, &one, "GET", &asked, Value::Null).await;
    assert_eq!(own.status, 200);
    assert_eq!(
        server.as_admin("GET", &asked, Value::Null).await.status,
        200
    );
    let whose = server.as_admin("GET", DEVICE, Value::Null).await;
    assert_eq!(whose.problem(), (400, "INVALID_REQUEST"));
    let key = server.key_of("push", []).await;
    let device = server.as_device(&key, "GET", DEVICE, Value::Null).await;
    assert_eq!(device.problem(), (401, "TOKEN_MISSING"));
}

#[tokio::test]
async fn operators_and_keys_send_users_read() {
    let server = Server::start().await;
    let one = token_of("user-1");
    as_bearer(&server, &one, "PUT", DEVICE, registration()).await;
    let path = "/v1/push/users/user-1/notifications";
    let body = json!({"title": "Done", "body": "Your photo is ready", "data": {"job": 7}});
    let admin = format!("Bearer {ADMIN}");
    let headers = [
        ("authorization", admin.as_str()),
        ("idempotency-key", "job-7"),
    ];
    let sent = server
        .send("POST", path, &headers, Some(body.to_string()))
        .await;
    assert_eq!(sent.status, 202, "{sent:?}");
    assert_eq!(sent.body["devices"][0]["state"], "queued");
    assert_eq!(sent.body["message"], body);
    let again = server
        .send("POST", path, &headers, Some(body.to_string()))
        .await;
    assert_eq!((again.status, &again.body), (200, &sent.body));
    let other = json!({"title": "Done", "body": "Another"}).to_string();
    let other = server.send("POST", path, &headers, Some(other)).await;
    assert_eq!(other.problem(), (409, "IDEMPOTENCY_KEY_REUSED"));
    let id = sent.body["notification_id"].as_str().expect("an id");
    let own = as_bearer(&server, &one, "GET", &format!("{path}/{id}"), Value::Null).await;
    assert_eq!((own.status, &own.body), (200, &sent.body));
    let list = as_bearer(&server, &one, "GET", path, Value::Null).await;
    assert_eq!(list.body, json!({"notifications": [sent.body]}));
    let two = token_of("user-2");
    let theirs = as_bearer(&server, &two, "GET", path, Value::Null).await;
    assert_eq!(theirs.problem(), (403, "NOT_YOURS"));
    let forbidden = as_bearer(&server, &one, "POST", path, body.clone()).await;
    assert_eq!(forbidden.problem(), (403, "OPERATORS_ONLY"));
    let key = server.key_of("push", ["user-1"]).await;
    assert_eq!(
        server
            .as_device(&key, "POST", path, body.clone())
            .await
            .status,
        202
    );
    let others = "/v1/push/users/user-2/notifications";
    let refused = server.as_device(&key, "POST", others, body.clone()).await;
    assert_eq!(refused.problem(), (403, "OUT_OF_SCOPE"));
    let sensor = server.key().await;
    let refused = server.as_device(&sensor, "POST", path, body).await;
    assert_eq!(refused.problem(), (403, "OUT_OF_SCOPE"));
    let unknown = format!("{path}/1800000000000-7c9e6679-7425-40de-944b-e07fc1f90ae7");
    let unknown = server.as_admin("GET", &unknown, Value::Null).await;
    assert_eq!(unknown.problem(), (404, "NOTIFICATION_NOT_FOUND"));
}

#[tokio::test]
async fn maintenance_is_for_operators() {
    let server = Server::start().await;
    let token = token_of("user-1");
    as_bearer(&server, &token, "PUT", DEVICE, registration()).await;
    as_bearer(
        &server,
        &token,
        "POST",
        &format!("{DEVICE}/deactivate"),
        Value::Null,
    )
    .await;
    server.clock.advance_ms(31 * 24 * 60 * 60 * 1000);
    let check = server.as_admin("GET", "/v1/push/check", Value::Null).await;
    assert_eq!(
        (&check.body["devices"], &check.body["active"]),
        (&json!(1), &json!(0))
    );
    let path = "/v1/push/check?userId=user-1";
    let check = server.as_admin("GET", path, Value::Null).await;
    assert_eq!(
        check.body["user_devices"],
        json!([{
            "device_id": "phone", "verdict": "inactive", "is_active": false, "has_valid_token": true,
            "explanation": "gets no notifications until it registers again: inactive",
            "expires_at": NOW + 90 * 24 * 60 * 60,
        }])
    );
    let typo = "/v1/push/check?user=user-1";
    let refused = server.as_admin("GET", typo, Value::Null).await;
    assert_eq!(refused.problem(), (400, "INVALID_REQUEST"));
    let dry_run = async || {
        server
            .as_admin("POST", "/v1/push/cleanup", json!({"dry_run": true}))
            .await
    };
    // The clean-up ignores a jump of the clock until an operator confirms it.
    assert_eq!(dry_run().await.body, json!({"found": 0, "deleted": 0}));
    let confirmed = server
        .as_admin("POST", "/v1/time/confirm", Value::Null)
        .await;
    assert_eq!(confirmed.status, 200);
    assert_eq!(dry_run().await.body, json!({"found": 1, "deleted": 0}));
    let cleaned = server.as_admin("POST", "/v1/push/cleanup", json!({})).await;
    assert_eq!(cleaned.body, json!({"found": 1, "deleted": 1}));
    let token = token_with(USER_SECRET, &json!({"sub": "user-1", "exp": NOW * 2}));
    let refused = as_bearer(&server, &token, "POST", "/v1/push/cleanup", json!({})).await;
    assert_eq!(refused.problem(), (401, "TOKEN_INVALID"));
}

#[tokio::test]
async fn operator_erases_a_user() {
    let server = Server::start().await;
    let token = token_of("user-1");
    as_bearer(&server, &token, "PUT", DEVICE, registration()).await;
    let path = "/v1/push/users/user-1";
    let list = format!("{path}/notifications");
    let message = json!({"data": {"job": 7}});
    let sent = server.as_admin("POST", &list, message).await;
    assert_eq!(sent.status, 202, "{sent:?}");
    let refused = as_bearer(&server, &token, "DELETE", path, Value::Null).await;
    assert_eq!(refused.problem(), (401, "TOKEN_INVALID"));
    let erased = server.as_admin("DELETE", path, Value::Null).await;
    assert_eq!(
        (erased.status, erased.body),
        (200, json!({"devices": 1, "notifications": 1}))
    );
    let left = as_bearer(&server, &token, "GET", DEVICE, Value::Null).await;
    assert_eq!(left.status, 404);
    let left = server.as_admin("GET", &list, Value::Null).await;
    assert_eq!(left.body, json!({"notifications": []}));
}

#[tokio::test]
async fn check_names_a_missing_table() {
    let server = Server::start().await;
    let table = "photoeditor-dev-device-tokens";
    server.engine.delete_table(table).await.expect("deleted");
    let check = server.as_admin("GET", "/v1/push/check", Value::Null).await;
    assert_eq!(check.problem(), (503, "TABLE_MISSING"));
    let detail = check.body["detail"].as_str().unwrap_or_default();
    assert!(detail.contains(table), "{detail}");
    let ready = server.send("GET", "/readyz", &[], None).await;
    assert_eq!(ready.problem(), (503, "NOT_READY"));
    let detail = ready.body["detail"].as_str().unwrap_or_default();
    assert!(detail.contains(table), "{detail}");
}

#[tokio::test]
async fn all_message_fields_are_accepted() {
    let server = Server::start().await;
    let path = "/v1/push/users/user-1/notifications";
    let message = json!({
        "title": "Done", "body": "Ready", "subtitle": "Photo", "data": {"job": 7}, "sound": "default",
        "badge": 1, "ttl": 60, "expiration": NOW, "priority": "high",
        "interruptionLevel": "time-sensitive", "channelId": "jobs", "categoryId": "job",
        "icon": "bell", "richContent": {"image": "https://example.com/a.png"},
        "mutableContent": true, "_contentAvailable": true,
    });
    let sent = server.as_admin("POST", path, message.clone()).await;
    assert_eq!((sent.status, &sent.body["message"]), (202, &message));
    for wrong in [
        json!({}),
        json!({"subtitle": "alone"}),
        json!({"title": "a", "interruptionLevel": "loud"}),
        json!({"title": "a", "contentAvailable": true}),
    ] {
        let refused = server.as_admin("POST", path, wrong.clone()).await;
        assert_eq!(refused.problem(), (400, "INVALID_REQUEST"), "{wrong}");
    }
}
