//! `/v1/alerts` over HTTP: managing definitions; raising, listing and acknowledging alerts.

use homeport_systems::fleet::SystemName;
use serde_json::{Value, json};

use crate::support::{NOW_MS, Server};

const DEFINITIONS: &str = "/v1/alerts/definitions";
const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const SENSOR: &str = "AA:BB:CC:DD:EE:FF";

fn cold() -> Value {
    json!({
        "name": "Cold", "source": "sensors",
        "condition": {"threshold": {
            "attribute": "sensors.bme280_temp_c", "side": "below", "raise": 5.0, "clear": 7.5,
        }},
        "targets": [
            {"webhook": {"url": "https://example.com/hook", "secret": SECRET}},
            {"email": {"to": "anna@example.com"}},
        ],
    })
}

async fn send_reading(server: &Server, key: &str, number: i64, degrees: f64) {
    let reading = json!({"readings": [{
        "batch_id": format!("batch-{number}"), "hardware_id": SENSOR, "firmware_version": "1.0.16",
        "boot_id": "7c9e6679-7425-40de-944b-e07fc1f90ae7", "timestamp_ms": NOW_MS + number,
        "sensors": {"bme280_temp_c": degrees}, "sensor_status": {},
    }]});
    let answer = server
        .as_device(key, "POST", "/v1/sensors/data", reading)
        .await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let reactions = server.alerts.reactions().expect("a feed");
    let reaction = server.alerts.reaction(&SystemName::new("sensors"));
    let reaction = reaction.expect("a watched system");
    reactions.catch_up(&reaction).await.expect("judged");
}

/// Raises an alert of a sensor.
pub(crate) async fn raise(server: &Server) {
    let made = server.as_admin("POST", DEFINITIONS, cold()).await;
    assert_eq!(made.status, 201, "{made:?}");
    send_reading(server, &server.key().await, 1, 4.5).await;
}

#[tokio::test]
async fn definition_is_created_read_replaced_and_deleted() {
    let server = Server::start().await;
    let made = server.as_admin("POST", DEFINITIONS, cold()).await;
    assert_eq!(made.status, 201, "{made:?}");
    let id = made.body["definition_id"]
        .as_str()
        .expect("an id")
        .to_owned();
    let expected = json!({
        "definition_id": id, "created_at": "2027-01-15T08:00:00.000Z",
        "updated_at": "2027-01-15T08:00:00.000Z", "revision": 1,
        "name": "Cold", "enabled": true, "source": "sensors",
        "condition": {"threshold": {
            "attribute": "sensors.bme280_temp_c", "side": "below", "raise": 5, "clear": 7.5,
            "for_secs": 0, "count": 1,
        }},
        "min_interval_secs": 0,
        // Responses never contain the secret.
        "targets": [
            {"webhook": {"url": "https://example.com/hook"}},
            {"email": {"to": "anna@example.com"}},
        ],
    });
    assert_eq!(made.body, expected);
    let path = format!("{DEFINITIONS}/{id}");
    assert_eq!(
        server.as_admin("GET", &path, Value::Null).await.body,
        expected
    );
    let list = server.as_admin("GET", DEFINITIONS, Value::Null).await;
    assert_eq!(list.body, json!({"definitions": [expected]}));
    let replacement = json!({
        "name": "Silent", "source": "telemetry", "enabled": false,
        "where": {"attribute": "message_type", "equals": "status"},
        "devices": {"prefix": "van-"}, "condition": {"absence": {"after_secs": 600}},
        "quiet": {"from": "22:00", "to": "07:00", "zone": "Europe/Berlin"},
        "min_interval_secs": 60, "targets": [{"push": {"user_id": "anna"}}],
    });
    server.clock.advance_ms(1000);
    let replaced = server.as_admin("PUT", &path, replacement.clone()).await;
    assert_eq!(replaced.status, 200, "{replaced:?}");
    for (name, value) in replacement.as_object().expect("an object") {
        assert_eq!(replaced.body[name], *value, "{name}");
    }
    assert_eq!(replaced.body["revision"], 2);
    assert_eq!(replaced.body["updated_at"], "2027-01-15T08:00:01.000Z");
    assert_eq!(
        server.as_admin("DELETE", &path, Value::Null).await.status,
        204
    );
    for (method, body) in [
        ("GET", Value::Null),
        ("PUT", cold()),
        ("DELETE", Value::Null),
    ] {
        let gone = server.as_admin(method, &path, body).await;
        assert_eq!(gone.problem(), (404, "DEFINITION_NOT_FOUND"), "{method}");
    }
}

#[tokio::test]
async fn invalid_definitions_are_rejected_with_a_reason() {
    let server = Server::start().await;
    let with = |changes: Value| {
        let mut body = cold();
        for (name, value) in changes.as_object().expect("an object") {
            body[name] = value.clone();
        }
        body
    };
    for (wrong, said) in [
        (json!({"name": ""}), "name must be"),
        (json!({"source": "push"}), "source must be"),
        (json!({"surprise": 1}), "unknown member `surprise`"),
        (json!({"condition": {}}), "expected"),
        (
            json!({"condition": {"absence": {"after_secs": 1}}}),
            "after_secs must be",
        ),
        (json!({"condition": {"absence": [600]}}), "an object"),
        (
            json!({"condition": {"threshold":
                {"attribute": "t", "side": "below", "raise": 5, "clear": 4}}}),
            "clear must be",
        ),
        (
            json!({"condition": {"rate":
                {"attribute": "t", "direction": "rise", "per_minute": 0, "window_secs": 60}}}),
            "per_minute must be",
        ),
        (json!({"devices": {"listed": []}}), "devices must be"),
        (
            json!({"quiet": {"from": "7:00", "to": "08:00", "zone": "UTC"}}),
            "quiet must be",
        ),
        (
            json!({"quiet": {"from": "07:00", "to": "08:00", "zone": "Moon"}}),
            "zone must be",
        ),
        (
            json!({"targets": [{"webhook": {"url": "ftp://example.com"}}]}),
            "url must be",
        ),
        (
            json!({"targets": [{"webhook": {"url": "https://example.com", "secret": "short"}}]}),
            "secret must be",
        ),
        (
            json!({"targets": [{"email": {"to": "nobody"}}]}),
            "to must be",
        ),
        (
            json!({"targets": [{"mqtt": {"topic": "a/#"}}]}),
            "topic must be",
        ),
    ] {
        let refused = server
            .as_admin("POST", DEFINITIONS, with(wrong.clone()))
            .await;
        assert_eq!(refused.problem(), (400, "INVALID_REQUEST"), "{wrong}");
        let detail = refused.body["detail"].as_str().expect("a detail");
        assert!(detail.contains(said), "{wrong}: {detail}");
    }
    let body = with(json!({"targets": [{"webhook": {"url": "https://example.com"}}]}));
    let refused = server.as_admin("POST", DEFINITIONS, body).await;
    assert_eq!(refused.problem(), (409, "TARGET_UNAVAILABLE"));
    let detail = refused.body["detail"].as_str().expect("a detail");
    assert!(detail.contains("needs a secret"), "{detail}");
}

#[tokio::test]
async fn reading_raises_alert_that_is_acknowledged_and_cleared() {
    let server = Server::start().await;
    let key = server.key().await;
    let made = server.as_admin("POST", DEFINITIONS, cold()).await;
    let definition_id = made.body["definition_id"].as_str().expect("an id");
    send_reading(&server, &key, 1, 4.5).await;
    let open = server
        .as_admin("GET", "/v1/alerts?state=open", Value::Null)
        .await;
    let alert = open.body["alerts"][0].clone();
    let id = alert["alert_id"].as_str().expect("an id").to_owned();
    assert_eq!(
        open.body,
        json!({"alerts": [{
            "alert_id": id, "definition_id": definition_id, "definition_name": "Cold",
            "source": "sensors", "device": SENSOR, "state": "open",
            "reason": "sensors.bme280_temp_c is 4.5, below 5", "value": 4.5,
            "observed_at": "2027-01-15T08:00:00.001Z", "raised_at": "2027-01-15T08:00:00.000Z",
        }]})
    );
    let path = format!("/v1/alerts/{id}");
    let one = server.as_admin("GET", &path, Value::Null).await;
    let targets: Vec<_> = one.body["notifications"]
        .as_array()
        .expect("notifications")
        .iter()
        .map(|one| {
            (
                one["event"].clone(),
                one["target"].clone(),
                one["state"].clone(),
            )
        })
        .collect();
    assert_eq!(
        targets,
        [
            (json!("raised"), json!("webhook"), json!("queued")),
            (json!("raised"), json!("email"), json!("queued")),
        ]
    );
    let acknowledge = format!("{path}/acknowledge");
    let body = json!({"by": "anna", "note": "on my way"});
    let seen = server.as_admin("POST", &acknowledge, body).await;
    assert_eq!(
        seen.body["acknowledged"],
        json!({"at": "2027-01-15T08:00:00.000Z", "by": "anna", "note": "on my way"})
    );
    let other = server
        .as_admin("POST", &acknowledge, json!({"by": "bert"}))
        .await;
    assert_eq!(other.problem(), (409, "ALREADY_ACKNOWLEDGED"));
    send_reading(&server, &key, 2, 8.0).await;
    for (query, count) in [
        ("state=open".to_owned(), 0),
        ("state=cleared".to_owned(), 1),
        ("state=all".to_owned(), 1),
        (format!("device={SENSOR}"), 1),
        ("device=other".to_owned(), 0),
        (format!("definition={definition_id}"), 1),
    ] {
        let list = server
            .as_admin("GET", &format!("/v1/alerts?{query}"), Value::Null)
            .await;
        let alerts = list.body["alerts"].as_array().expect("alerts");
        assert_eq!(alerts.len(), count, "{query}");
    }
    let cleared = server.as_admin("GET", &path, Value::Null).await;
    assert_eq!(cleared.body["state"], "cleared");
    assert_eq!(cleared.body["clear_value"], 8);
}

#[tokio::test]
async fn alerts_are_for_operators_only() {
    let server = Server::start().await;
    let key = server.key().await;
    let id = "1800000000000-7c9e6679-7425-40de-944b-e07fc1f90ae7";
    for (method, path) in [
        ("GET", "/v1/alerts".to_owned()),
        ("GET", format!("/v1/alerts/{id}")),
        ("POST", format!("/v1/alerts/{id}/acknowledge")),
        ("GET", DEFINITIONS.to_owned()),
        ("POST", DEFINITIONS.to_owned()),
        ("PUT", format!("{DEFINITIONS}/{id}")),
        ("DELETE", format!("{DEFINITIONS}/{id}")),
    ] {
        let refused = server.as_device(&key, method, &path, Value::Null).await;
        assert_eq!(refused.status, 401, "{method} {path}");
    }
    let path = format!("/v1/alerts/{id}");
    let missing = server.as_admin("GET", &path, Value::Null).await;
    assert_eq!(missing.problem(), (404, "ALERT_NOT_FOUND"));
    let wrong = server.as_admin("GET", "/v1/alerts/7", Value::Null).await;
    assert_eq!(wrong.problem(), (400, "INVALID_REQUEST"));
}
