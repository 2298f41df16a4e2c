//! Uplinks of AWS IoT Wireless over HTTP and on topics.

use serde_json::{Value, json};

use crate::support::{NOW_MS, Server};

const UPLINKS: &str = "/v1/chargers/uplinks";
const TOPIC: &str = "/v1/topics/chargers/uplinks";
const UUID: &str = "b319d001-6b08-4d88-b4ca-4d2d98a6d43c";
const SC_ID: &str = "SC-C014EA63";
const OTHER: &str = "b319d001-6b08-4d88-b4ca-4d2d98a6d43d";

/// With the payload `{"current_ma": 16000}`.
fn sidewalk(device: &str, sequence: u64) -> Value {
    json!({
        "MessageId": "48a0c3cb-7dc6-4e03-b738-9f3565808bd0",
        "WirelessDeviceId": device,
        "PayloadData": "eyJjdXJyZW50X21hIjogMTYwMDB9",
        "WirelessMetadata": {"Sidewalk": {
            "CmdExStatus": "COMMAND_EXEC_STATUS_UNSPECIFIED", "NackExStatus": [], "Seq": sequence,
            "Timestamp": "2027-01-15T07:45:00.295912052Z",
        }},
    })
}

async fn events(server: &Server) -> Vec<Value> {
    let path = format!("/v1/chargers/{SC_ID}/events?order=asc");
    let answer = server.as_admin("GET", &path, Value::Null).await;
    answer.body["events"].as_array().expect("events").clone()
}

#[tokio::test]
async fn uplink_becomes_an_event_once() {
    let server = Server::start().await;
    let key = server.key_of("chargers", []).await;
    let sent = sidewalk(UUID, 7);
    let answer = server.as_device(&key, "POST", UPLINKS, sent.clone()).await;
    let stored = json!({
        "status": "stored", "device_id": SC_ID, "timestamp_mt": "2027-01-15 00:45:00.295",
        "timestamp_utc_ms": NOW_MS - 900_000 + 295,
    });
    assert_eq!(answer.body, json!({"results": [stored]}), "{answer:?}");
    let answer = server.as_device(&key, "POST", UPLINKS, sent.clone()).await;
    assert_eq!(answer.body["results"][0]["status"], "duplicate");
    let events = events(&server).await;
    assert_eq!(events.len(), 1);
    assert_eq!(events[0]["event_type"], "telemetry");
    assert_eq!(events[0]["data"], json!({"current_ma": 16_000}));
    assert_eq!(events[0]["uplink"], json!({"message": sent}));
}

#[tokio::test]
async fn invalid_uplink_fails_alone_and_not_in_a_list() {
    let server = Server::start().await;
    let key = server.key_of("chargers", [UUID]).await;
    let mut unreadable = sidewalk(UUID, 1);
    unreadable["PayloadData"] = json!("?");
    let mut early = sidewalk(UUID, 1);
    early["WirelessMetadata"]["Sidewalk"]["Timestamp"] = json!("2027-02-15T07:45:00Z");
    for (uplink, problem) in [
        (unreadable.clone(), (400, "INVALID_UPLINK")),
        (early.clone(), (400, "TIME_IN_FUTURE")),
        (sidewalk(OTHER, 1), (403, "OUT_OF_SCOPE")),
        (json!({"uplinks": []}), (400, "INVALID_REQUEST")),
        (
            json!({"uplinks": vec![sidewalk(UUID, 1); 101]}),
            (400, "INVALID_REQUEST"),
        ),
        (
            json!({"uplinks": [], "WirelessDeviceId": UUID}),
            (400, "INVALID_REQUEST"),
        ),
        (json!([sidewalk(UUID, 1)]), (400, "INVALID_REQUEST")),
    ] {
        let answer = server.as_device(&key, "POST", UPLINKS, uplink).await;
        assert_eq!(answer.problem(), problem);
    }
    let list = json!({"uplinks": [unreadable, sidewalk(UUID, 1), sidewalk(OTHER, 1), early, 7]});
    let answer = server.as_device(&key, "POST", UPLINKS, list).await;
    let results = answer.body["results"].as_array().expect("results");
    let codes: Vec<_> = results.iter().map(|result| &result["code"]).collect();
    assert_eq!(
        codes,
        [
            &json!("INVALID_UPLINK"),
            &Value::Null,
            &json!("OUT_OF_SCOPE"),
            &json!("TIME_IN_FUTURE"),
            &json!("INVALID_UPLINK"),
        ]
    );
    let reason = results[0]["reason"].as_str().expect("a reason");
    assert!(reason.starts_with("PayloadData must be Base64"), "{reason}");
    assert_eq!(results[1]["status"], "stored");
}

#[tokio::test]
async fn uplink_without_decoder_is_stored_with_the_reason() {
    let server = Server::start().await;
    let mut uplink = sidewalk(UUID, 1);
    uplink["PayloadData"] = json!("AQI=");
    let answer = server.as_admin("POST", UPLINKS, uplink).await;
    let result = &answer.body["results"][0];
    assert_eq!(result["status"], "stored", "{answer:?}");
    assert_eq!(result["undecoded"], "no decoder is for this uplink");
    let event = events(&server).await.remove(0);
    assert_eq!(event["event_type"], "undecoded_uplink");
    assert_eq!(event["uplink"]["message"]["PayloadData"], "AQI=");
}

#[tokio::test]
async fn uplink_on_its_topic_is_stored() {
    let server = Server::start().await;
    let own = format!("{TOPIC}/{UUID}");
    for (path, sequence) in [(TOPIC, 1), (&own, 2)] {
        let answer = server
            .as_admin("POST", path, sidewalk(UUID, sequence))
            .await;
        assert_eq!(answer.status, 200, "{answer:?}");
    }
    assert_eq!(events(&server).await.len(), 2);
    for (path, uplink) in [
        (TOPIC, json!({"WirelessDeviceId": UUID})),
        (&own, sidewalk(OTHER, 3)),
        (&format!("{TOPIC}/{SC_ID}"), sidewalk(UUID, 4)),
    ] {
        let answer = server.as_admin("POST", path, uplink).await;
        assert_eq!(answer.problem(), (400, "INVALID_UPLINK"), "{path}");
    }
    let answer = server
        .as_admin("POST", &format!("{TOPIC}-other"), json!({}))
        .await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(events(&server).await.len(), 2);
}

#[tokio::test]
async fn rules_move_uplinks_of_other_topics() {
    let server = Server::start().await;
    let rule = json!({"ruleName": "uplinks", "topicRulePayload": {
        "sql": "SELECT * FROM 'project/observed'", "actions": [{"republish": {"topic": "chargers/uplinks"}}],
    }});
    let answer = server.as_admin("POST", "/v1/rules", rule).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    for uplink in [json!({"WirelessDeviceId": 1}), sidewalk(UUID, 1)] {
        let answer = server
            .as_admin("POST", "/v1/topics/project/observed", uplink)
            .await;
        assert_eq!(answer.status, 200, "{answer:?}");
    }
    assert_eq!(events(&server).await.len(), 1);
}
