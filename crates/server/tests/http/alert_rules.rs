//! Conditions on states, and previews of alert definitions, over HTTP.

use serde_json::{Value, json};

use crate::support::{NOW_MS, Server};

const DEFINITIONS: &str = "/v1/alerts/definitions";

fn definition(condition: Value) -> Value {
    json!({"name": "State", "source": "chargers", "severity": "critical", "condition": condition})
}

#[tokio::test]
async fn state_conditions_are_shown_as_created() {
    let server = Server::start().await;
    for condition in [
        json!({"equality": {"attribute": "data.state", "operator": "equals", "value": "F", "for_secs": 60, "count": 2}}),
        json!({"equality": {"attribute": "data.state", "operator": "differs", "value": 2.50, "for_secs": 0, "count": 1}}),
        json!({"equality": {"attribute": "data.online", "operator": "equals", "value": false, "for_secs": 0, "count": 1}}),
        json!({"change": {"attribute": "data.firmware", "clear_after_secs": 3600}}),
        json!({"fault": {"attribute": "data.fault_*", "for_secs": 0, "count": 3}}),
    ] {
        let body = definition(condition.clone());
        let made = server.as_admin("POST", DEFINITIONS, body).await;
        assert_eq!(made.status, 201, "{made:?}");
        assert_eq!(made.body["condition"], condition);
        assert_eq!(made.body["severity"], "critical");
    }
}

#[tokio::test]
async fn invalid_state_conditions_are_rejected() {
    let server = Server::start().await;
    let equality = |value: Value| json!({"equality": {"attribute": "a", "operator": "equals", "value": value}});
    for (wrong, said) in [
        (equality(json!("")), "value must be"),
        (equality(json!(null)), "expected a text, a number"),
        (equality(json!(["F"])), "expected a text, a number"),
        (
            json!({"equality": {"attribute": "a", "operator": "is", "value": 1}}),
            "unknown variant `is`",
        ),
        (
            json!({"equality": {"attribute": "a", "operator": "equals", "value": 1, "counts": 2}}),
            "unknown member `counts`",
        ),
        (
            json!({"change": {"attribute": "a", "clear_after_secs": 2_678_401}}),
            "clear_after_secs must be",
        ),
        (json!({"fault": {"attribute": "*"}}), "attribute must be"),
        (
            json!({"fault": {"attribute": "a", "count": 0}}),
            "count must be",
        ),
    ] {
        for path in [DEFINITIONS.to_owned(), format!("{DEFINITIONS}/preview")] {
            let body = definition(wrong.clone());
            let refused = server.as_admin("POST", &path, body).await;
            assert_eq!(refused.problem(), (400, "INVALID_REQUEST"), "{wrong}");
            let detail = refused.body["detail"].as_str().expect("a detail");
            assert!(detail.contains(said), "{wrong}: {detail}");
        }
    }
}

#[tokio::test]
async fn preview_shows_what_would_have_been_raised() {
    let server = Server::start().await;
    let uuid = "b319d001-6b08-4d88-b4ca-4d2d98a6d43c";
    let events: Vec<Value> = [("A", 50), ("F", 40), ("F", 30), ("A", 20), ("F", 10)]
        .iter()
        .map(|(state, minutes)| {
            json!({"wireless_device_id": uuid, "event_type": "telemetry",
                "occurred_at": NOW_MS - minutes * 60_000, "data": {"state": state}})
        })
        .collect();
    let body = json!({"events": events});
    let key = server.key_of("chargers", []).await;
    let stored = server
        .as_device(&key, "POST", "/v1/chargers/events", body)
        .await;
    assert_eq!(stored.status, 200, "{stored:?}");
    let is_f = json!({"equality": {"attribute": "data.state", "operator": "equals", "value": "F"}});
    let preview = format!("{DEFINITIONS}/preview");
    let found = server
        .as_admin("POST", &preview, definition(is_f.clone()))
        .await;
    assert_eq!(
        found.body,
        json!({
            "from": "2027-01-08T08:00:00.000Z", "to": "2027-01-15T08:00:00.000Z",
            "raised": 2, "devices_judged": 1, "items_read": 5, "limits_reached": [],
            "devices": [{"device": "SC-C014EA63", "raised": 2, "alerts": [
                {"raised_at": "2027-01-15T07:20:00.000Z", "reason": "data.state is \"F\"",
                 "cleared_at": "2027-01-15T07:40:00.000Z", "clear_reason": "data.state is \"A\""},
                {"raised_at": "2027-01-15T07:50:00.000Z", "reason": "data.state is \"F\""},
            ]}],
        })
    );
    let path = format!("{preview}?from=-15m");
    let found = server
        .as_admin("POST", &path, definition(is_f.clone()))
        .await;
    assert_eq!(found.body["raised"], 1, "{found:?}");
    let path = format!("{preview}?from=-1h&to=-2h");
    let refused = server.as_admin("POST", &path, definition(is_f)).await;
    assert_eq!(refused.problem().0, 400);
    // Nothing was created.
    let list = server.as_admin("GET", DEFINITIONS, Value::Null).await;
    assert_eq!(list.body, json!({"definitions": []}));
}
