//! What a repeat would not mend: told, counted, kept, and no reason to refuse the message.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use homeport_systems::messages::{HOPS_MAX, Intake as _, REPUBLISHED_BYTES_MAX};
use homeport_systems::rules::FAILURES_KEPT;
use serde_json::{Value, json};

use crate::world::{OTHER, TELEMETRY, message, put_item, rule_name, world};

#[tokio::test]
async fn invalid_json_fails_the_rule_only() {
    let world = world().await;
    world.send("van/a/telemetry", "not json").await;
    assert_eq!(world.items(TELEMETRY).await, Vec::<Value>::new());
    let counts = world.counts("telemetry");
    assert_eq!((counts.matched, counts.failed), (0, 1));
    assert_eq!(world.reasons("telemetry").len(), 1);
}

#[tokio::test]
async fn error_action_gets_the_aws_message() {
    let world = world().await;
    let mut rule = put_item("SELECT * FROM 'x/+'", TELEMETRY);
    rule["errorAction"] = json!({"republish": {"topic": "errors/${ruleName}", "qos": 1}});
    world.create("strict", rule).await;
    world.send("x/a", r#"{"n": 1}"#).await;
    let published = world.broker.take();
    assert_eq!(published.len(), 1);
    assert_eq!(published[0].topic, "errors/strict");
    let mut error: Value = serde_json::from_slice(&published[0].payload).expect("JSON");
    let trace = error["cloudwatchTraceId"].take();
    assert!(
        trace.as_str().is_some_and(|trace| trace.len() == 36),
        "{trace}"
    );
    let reason = error["failures"][0]["errorMessage"].take();
    assert!(
        reason
            .as_str()
            .is_some_and(|text| text.contains("thing_name")),
        "{reason}"
    );
    assert_eq!(
        error,
        json!({
            "ruleName": "strict",
            "topic": "x/a",
            "clientId": "client-1",
            "cloudwatchTraceId": null,
            "base64OriginalPayload": STANDARD.encode(r#"{"n": 1}"#),
            "failures": [{
                "failedAction": "DynamoDBv2Action",
                "failedResource": TELEMETRY,
                "errorMessage": null,
            }],
        })
    );
    let counts = world.counts("strict");
    assert_eq!(
        (counts.matched, counts.actions_failed, counts.actions_done),
        (1, 1, 1)
    );
}

#[tokio::test]
async fn permanently_refused_write_does_not_stop_others() {
    let world = world().await;
    // The store alone knows that this table's key is missing.
    world
        .create("bad", put_item("SELECT * FROM 'van/+/telemetry'", OTHER))
        .await;
    world.send("van/a/telemetry", r#"{"n": 1}"#).await;
    assert_eq!(world.items(TELEMETRY).await.len(), 1);
    assert_eq!(world.items(OTHER).await, Vec::<Value>::new());
    assert_eq!(world.counts("bad").actions_failed, 1);
    assert_eq!(world.counts("telemetry").actions_done, 1);
}

#[tokio::test]
async fn oversized_republished_message_is_a_failure() {
    let world = world().await;
    let mut rule =
        json!({"sql": "SELECT a, a AS b FROM 'x'", "actions": [{"republish": {"topic": "y"}}]});
    rule["errorAction"] = json!({"republish": {"topic": "errors"}});
    world.create("twice", rule).await;
    let payload = json!({"a": "a".repeat(REPUBLISHED_BYTES_MAX / 2)});
    world.send("x", &payload.to_string()).await;
    let reasons = world.reasons("twice");
    assert!(reasons[0].contains("360000 bytes"), "{reasons:?}");
    let published = world.broker.take();
    assert_eq!(published.len(), 1);
    assert_eq!(published[0].topic, "errors");
}

#[tokio::test]
async fn republish_loop_ends() {
    let world = world().await;
    let circle = json!({"sql": "SELECT * FROM 'round/#'", "actions": [{"republish": {"topic": "round/again"}}]});
    world.create("circle", circle).await;
    let mut waiting = vec![message("round", "{}")];
    while let Some(message) = waiting.pop() {
        let taken = world.engine.take(&message).await;
        waiting.extend(taken.expect("taken in"));
    }
    let counts = world.counts("circle");
    assert_eq!(counts.matched, u64::from(HOPS_MAX) + 1);
    assert_eq!(
        (counts.actions_done, counts.actions_failed),
        (u64::from(HOPS_MAX), 1)
    );
    let reasons = world.reasons("circle");
    assert!(reasons[0].contains("loop"), "{reasons:?}");
}

#[tokio::test]
async fn only_the_last_failures_are_kept() {
    let world = world().await;
    for n in 0..FAILURES_KEPT + 10 {
        world.send(&format!("van/{n}/telemetry"), "not json").await;
    }
    let failures = world
        .engine
        .failures(&rule_name("telemetry"))
        .expect("a rule");
    assert_eq!(failures.len(), FAILURES_KEPT);
    assert_eq!(
        failures[0].topic,
        format!("van/{}/telemetry", FAILURES_KEPT + 9)
    );
}
