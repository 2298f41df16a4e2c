//! `/v1/alerts` over HTTP: managing definitions; raising, listing and acknowledging alerts.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use homeport_systems::alerts::{Deliver, Email, WebhookCall, Worker};
use homeport_systems::fleet::SystemName;
use homeport_systems::outbox::SendError;
use serde_json::{Value, json};

use crate::support::{NOW_MS, Server};

pub(crate) const DEFINITIONS: &str = "/v1/alerts/definitions";
const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const SENSOR: &str = "AA:BB:CC:DD:EE:FF";

pub(crate) fn cold() -> Value {
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

/// Keeps the bodies of webhooks.
#[derive(Default)]
struct Webhooks(Mutex<Vec<Value>>);

#[async_trait]
impl Deliver for Webhooks {
    async fn webhook(&self, call: &WebhookCall) -> Result<(), SendError> {
        let body = serde_json::from_str(&call.body).expect("JSON");
        self.0.lock().expect("no panic").push(body);
        Ok(())
    }

    async fn email(&self, _: &Email) -> Result<(), SendError> {
        Err(SendError::Refused("550".to_owned()))
    }
}

pub(crate) async fn send_reading(server: &Server, key: &str, number: i64, degrees: f64) {
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
        "name": "Cold", "enabled": true, "severity": "warning", "source": "sensors",
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
            "source": "sensors", "device": SENSOR, "severity": "warning", "state": "open",
            "reason": "sensors.bme280_temp_c is 4.5, below 5", "value": 4.5,
            "observed_at": "2027-01-15T08:00:00.001Z", "raised_at": "2027-01-15T08:00:00.000Z",
            "comment_count": 0,
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
        ("severity=warning".to_owned(), 1),
        ("severity=critical".to_owned(), 0),
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
        ("POST", "/v1/alerts/acknowledge".to_owned()),
        ("POST", format!("/v1/alerts/{id}/snooze")),
        ("POST", format!("/v1/alerts/{id}/wake")),
        ("POST", format!("/v1/alerts/{id}/assign")),
        ("POST", format!("/v1/alerts/{id}/comments")),
        ("POST", format!("{DEFINITIONS}/{id}/test")),
        ("GET", format!("{DEFINITIONS}/{id}/tests/{id}")),
        ("GET", DEFINITIONS.to_owned()),
        ("POST", DEFINITIONS.to_owned()),
        ("POST", format!("{DEFINITIONS}/preview")),
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

/// A server with an open alert; returns the path of the alert.
async fn with_alert() -> (Server, String) {
    let server = Server::start().await;
    let key = server.key().await;
    server.as_admin("POST", DEFINITIONS, cold()).await;
    send_reading(&server, &key, 1, 4.5).await;
    let open = server.as_admin("GET", "/v1/alerts", Value::Null).await;
    let id = open.body["alerts"][0]["alert_id"].as_str().expect("an id");
    let path = format!("/v1/alerts/{id}");
    (server, path)
}

#[tokio::test]
async fn alert_is_snoozed_assigned_and_commented() {
    let (server, path) = with_alert().await;
    let post = async |action: &str, body: Value| {
        let path = format!("{path}/{action}");
        server.as_admin("POST", &path, body).await
    };
    let snoozed = post("snooze", json!({"by": "anna", "for_secs": 3600})).await;
    let expected = json!({
        "at": "2027-01-15T08:00:00.000Z", "by": "anna", "until": "2027-01-15T09:00:00.000Z",
    });
    assert_eq!((snoozed.status, &snoozed.body["snoozed"]), (200, &expected));
    assert_eq!(snoozed.body["state"], "open");
    let later = json!({"by": "anna", "until": "2027-01-15T10:00:00Z"});
    let later = post("snooze", later).await;
    assert_eq!(later.body["snoozed"]["until"], "2027-01-15T10:00:00.000Z");
    let woken = post("wake", json!({"by": "bob"})).await;
    assert_eq!((woken.status, &woken.body["snoozed"]), (200, &Value::Null));
    let assigned = post("assign", json!({"by": "anna", "to": "bob"})).await;
    let expected = json!({"at": "2027-01-15T08:00:00.000Z", "by": "anna", "to": "bob"});
    assert_eq!(assigned.body["assigned"], expected);
    let nobody = post("assign", json!({"by": "anna", "to": null})).await;
    assert_eq!(
        (nobody.status, &nobody.body["assigned"]),
        (200, &Value::Null)
    );
    let comment = post("comments", json!({"by": "bob", "text": "door was open"})).await;
    let expected = json!({"at": "2027-01-15T08:00:00.000Z", "by": "bob", "text": "door was open"});
    assert_eq!((comment.status, &comment.body), (201, &expected));
    let alert = server.as_admin("GET", &path, Value::Null).await;
    assert_eq!(alert.body["comments"], json!([expected]));
    assert_eq!(alert.body["comment_count"], 1);
    for (action, body, said) in [
        ("snooze", json!({"by": "anna"}), "either until or for_secs"),
        (
            "snooze",
            json!({"by": "anna", "for_secs": 0}),
            "for_secs must be 1 to 2678400",
        ),
        (
            "snooze",
            json!({"by": "anna", "until": "2027-01-15T07:00:00Z"}),
            "until must be",
        ),
        ("snooze", json!({"by": "", "for_secs": 60}), "by"),
        ("assign", json!({"by": "anna"}), "to"),
        ("assign", json!({"by": "anna", "to": ""}), "to must be"),
        (
            "comments",
            json!({"by": "anna", "text": ""}),
            "text must be",
        ),
        (
            "comments",
            json!({"by": "anna", "text": "x", "note": "y"}),
            "unknown member `note`",
        ),
    ] {
        let refused = post(action, body.clone()).await;
        assert_eq!(
            refused.problem(),
            (400, "INVALID_REQUEST"),
            "{action} {body}"
        );
        let detail = refused.body["detail"].as_str().expect("a detail");
        assert!(detail.contains(said), "{action} {body}: {detail}");
    }
}

#[tokio::test]
async fn many_alerts_are_acknowledged_at_once() {
    let (server, path) = with_alert().await;
    let id = path.rsplit('/').next().expect("an id");
    let missing = "1800000000000-7c9e6679-7425-40de-944b-e07fc1f90ae7";
    let acknowledge = async |body: Value| {
        let path = "/v1/alerts/acknowledge";
        server.as_admin("POST", path, body).await
    };
    let by = json!({"at": "2027-01-15T08:00:00.000Z", "by": "anna"});
    let done = acknowledge(json!({"by": "anna", "filter": {"device": SENSOR}})).await;
    assert_eq!(
        (done.status, &done.body),
        (
            200,
            &json!({
                "results": [{"alert_id": id, "result": "acknowledged", "acknowledged": by}],
                "has_more": false,
            })
        )
    );
    let listed = acknowledge(json!({"by": "bob", "alert_ids": [id, missing]})).await;
    assert_eq!(
        listed.body["results"],
        json!([
            {"alert_id": id, "result": "already_acknowledged"},
            {"alert_id": missing, "result": "not_found"},
        ])
    );
    for wrong in [
        json!({"by": "anna"}),
        json!({"by": "anna", "alert_ids": []}),
        json!({"by": "anna", "alert_ids": vec![missing; 101]}),
        json!({"by": "anna", "alert_ids": [missing], "filter": {}}),
        json!({"by": "anna", "alert_ids": ["7"]}),
        json!({"by": "anna", "filter": {"state": "open"}}),
    ] {
        let refused = acknowledge(wrong.clone()).await;
        assert_eq!(refused.problem(), (400, "INVALID_REQUEST"), "{wrong}");
    }
}

#[tokio::test]
async fn test_of_targets_is_read_with_its_results() {
    let server = Server::start().await;
    let made = server.as_admin("POST", DEFINITIONS, cold()).await;
    let id = made.body["definition_id"].as_str().expect("an id");
    let path = format!("{DEFINITIONS}/{id}");
    let test = server
        .as_admin("POST", &format!("{path}/test"), Value::Null)
        .await;
    assert_eq!(test.status, 202, "{test:?}");
    let notifications = test.body["notifications"]
        .as_array()
        .expect("notifications");
    let shown = |name: &str| -> Vec<&Value> {
        notifications
            .iter()
            .map(|notification| &notification[name])
            .collect()
    };
    assert_eq!(shown("event"), ["test", "test"]);
    assert_eq!(shown("state"), ["queued", "queued"]);
    assert_eq!(
        shown("to"),
        ["https://example.com/hook", "anna@example.com"]
    );
    let test_id = test.body["test_id"].as_str().expect("an id");
    let read = format!("{path}/tests/{test_id}");
    let read = server.as_admin("GET", &read, Value::Null).await;
    assert_eq!((read.status, &read.body), (200, &test.body));
    let missing = format!("{path}/tests/{id}");
    let missing = server.as_admin("GET", &missing, Value::Null).await;
    assert_eq!(missing.problem(), (404, "TEST_NOT_FOUND"));
    let mut silent = cold();
    silent["targets"] = json!([]);
    let silent = server.as_admin("POST", DEFINITIONS, silent).await;
    let id = silent.body["definition_id"].as_str().expect("an id");
    let path = format!("{DEFINITIONS}/{id}/test");
    let refused = server.as_admin("POST", &path, Value::Null).await;
    assert_eq!(refused.problem(), (409, "NO_TARGETS"));
    let none = server
        .as_admin("GET", "/v1/alerts?delivery=failed", Value::Null)
        .await;
    assert_eq!(none.body, json!({"alerts": []}));
}

#[tokio::test]
async fn value_has_one_type_everywhere() {
    let (server, path) = with_alert().await;
    let webhooks = Arc::<Webhooks>::default();
    let mut worker = Worker::new(server.alerts.clone(), Arc::clone(&webhooks) as _);
    worker.turn().await.expect("a turn");
    let alert = server.as_admin("GET", &path, Value::Null).await;
    let webhook = webhooks.0.lock().expect("no panic")[0].clone();
    assert_eq!(alert.body["value"], json!(4.5));
    assert_eq!(webhook["data"]["value"], alert.body["value"]);
    // Timelines and the live feed show stored items in DynamoDB's form, where this is a number.
    let timeline = format!("/v1/devices/sensors/{SENSOR}/timeline?types=alert");
    let timeline = server.as_admin("GET", &timeline, Value::Null).await;
    let entries = timeline.body["entries"].as_array().expect("entries");
    for entry in entries {
        assert_eq!(entry["item"]["value"], json!({"N": "4.5"}), "{entry}");
    }
    assert!(!entries.is_empty());
}

#[tokio::test]
async fn failed_delivery_is_found_by_filter() {
    let (server, path) = with_alert().await;
    let mut worker = Worker::new(server.alerts.clone(), Arc::<Webhooks>::default());
    worker.turn().await.expect("a turn");
    let alert = server.as_admin("GET", &path, Value::Null).await;
    let failed = &alert.body["notifications"][1];
    assert_eq!(
        (&failed["target"], &failed["state"]),
        (&json!("email"), &json!("failed"))
    );
    assert_eq!(failed["reason"], "refused: 550");
    let list = server
        .as_admin("GET", "/v1/alerts?delivery=failed", Value::Null)
        .await;
    assert_eq!(list.body["alerts"][0]["alert_id"], alert.body["alert_id"]);
    assert_eq!(
        list.body["alerts"][0]["delivery_failed_at"],
        "2027-01-15T08:00:00.000Z"
    );
    let wrong = server
        .as_admin("GET", "/v1/alerts?delivery=late", Value::Null)
        .await;
    assert_eq!(wrong.problem(), (400, "INVALID_REQUEST"));
}
