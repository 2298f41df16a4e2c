//! `/v1/push/broadcasts` over HTTP.

use homeport_systems::api_keys::{KeyPermission, NewApiKey};
use serde_json::{Value, json};

use crate::support::{ADMIN, Answer, Server};

const BROADCASTS: &str = "/v1/push/broadcasts";

fn message() -> Value {
    json!({"platform": "ios", "title": "Update", "data": {"version": 7}})
}

async fn send(server: &Server, key: &str, body: Value) -> Answer {
    let token = format!("Bearer {ADMIN}");
    let headers = [("authorization", &*token), ("idempotency-key", key)];
    server
        .send("POST", BROADCASTS, &headers, Some(body.to_string()))
        .await
}

#[tokio::test]
async fn broadcast_is_accepted_read_and_cancelled() {
    let server = Server::start().await;
    let accepted = send(&server, "release-7", message()).await;
    assert_eq!(accepted.status, 202, "{accepted:?}");
    let id = accepted.body["broadcast_id"]
        .as_str()
        .expect("an id")
        .to_owned();
    let expected = json!({
        "broadcast_id": id, "state": "queued", "platform": "ios",
        "message": {"title": "Update", "data": {"version": 7}},
        "created_at": "2027-01-15T08:00:00.000Z",
        "devices": {"found": 0, "queued": 0, "sent": 0, "delivered": 0, "failed": 0, "dropped": 0},
        "failures": {},
        "trace": [{"at": "2027-01-15T08:00:00.000Z", "step": "accepted"}],
    });
    assert_eq!(accepted.body, expected);
    let again = send(&server, "release-7", message()).await;
    assert_eq!((again.status, &again.body), (200, &expected));
    let other = send(&server, "release-7", json!({"title": "Other"})).await;
    assert_eq!(other.problem(), (409, "IDEMPOTENCY_KEY_REUSED"));
    let path = format!("{BROADCASTS}/{id}");
    assert_eq!(
        server.as_admin("GET", &path, Value::Null).await.body,
        expected
    );
    let list = server.as_admin("GET", BROADCASTS, Value::Null).await;
    assert_eq!(list.body, json!({"broadcasts": [expected]}));
    let cancel = format!("{path}/cancel");
    for _ in 0..2 {
        let cancelled = server.as_admin("POST", &cancel, Value::Null).await;
        assert_eq!(
            (cancelled.status, &cancelled.body["state"]),
            (200, &json!("cancelled"))
        );
    }
}

#[tokio::test]
async fn invalid_broadcasts_are_rejected() {
    let server = Server::start().await;
    for wrong in [
        json!({"platform": "ios"}),
        json!({"platform": "windows", "title": "a"}),
        json!({"title": "a", "user": "b"}),
        json!({"title": ""}),
    ] {
        let refused = server.as_admin("POST", BROADCASTS, wrong.clone()).await;
        assert_eq!(refused.problem(), (400, "INVALID_REQUEST"), "{wrong}");
    }
    let typo = json!({"title": "a", "platfrom": "ios"});
    let refused = server.as_admin("POST", BROADCASTS, typo).await;
    let detail = refused.body["detail"].as_str().expect("a detail");
    assert!(detail.contains("platform"), "{detail}");
    let unknown = format!("{BROADCASTS}/1800000000000-550e8400-e29b-41d4-a716-446655440000");
    for (method, path) in [
        ("GET", unknown.clone()),
        ("POST", format!("{unknown}/cancel")),
    ] {
        let missing = server.as_admin(method, &path, Value::Null).await;
        assert_eq!(missing.problem(), (404, "BROADCAST_NOT_FOUND"));
    }
}

#[tokio::test]
async fn keys_need_the_permission_to_broadcast() {
    let server = Server::start().await;
    let (plain, scoped) = (
        server.key_of("push", []).await,
        server.key_of("push", ["anna"]).await,
    );
    let new = NewApiKey {
        system: Some("push".to_owned()),
        all: true,
        permissions: [KeyPermission::SendBroadcasts].into(),
        ..NewApiKey::default()
    };
    let (_, permitted) = server.api_keys.create(new).await.expect("a key");
    let permitted = permitted.reveal().to_owned();
    let sent = server
        .as_device(&permitted, "POST", BROADCASTS, message())
        .await;
    assert_eq!(sent.status, 202, "{sent:?}");
    let id = sent.body["broadcast_id"].as_str().expect("an id");
    let cancel = format!("{BROADCASTS}/{id}/cancel");
    for key in [&plain, &scoped] {
        for path in [BROADCASTS, &cancel] {
            let refused = server.as_device(key, "POST", path, message()).await;
            assert_eq!(refused.problem(), (403, "PERMISSION_MISSING"), "{path}");
        }
    }
    let read = server
        .as_device(&plain, "GET", BROADCASTS, Value::Null)
        .await;
    assert_eq!(read.status, 200);
    let refused = server
        .as_device(&scoped, "GET", BROADCASTS, Value::Null)
        .await;
    assert_eq!(refused.problem(), (403, "OUT_OF_SCOPE"));
    let cancelled = server
        .as_device(&permitted, "POST", &cancel, Value::Null)
        .await;
    assert_eq!(cancelled.status, 200);
}
