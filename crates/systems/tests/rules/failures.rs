//! What a repeat would not mend: told, counted, kept, and no reason to refuse the message.

use std::sync::atomic::Ordering;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use homeport_store::StoreError;
use homeport_systems::messages::{HOPS_MAX, Intake as _, Message, Publish, PublishSlot};
use homeport_systems::rules::{FAILURES_KEPT, RuleEngine};
use serde_json::{Value, json};
use std::sync::Arc;

use crate::world::{OTHER, TELEMETRY, engine_on, message, new, put_item, rule_name, world};

/// A broker without subscribers: what is published goes to the rules.
struct RulesOnly(RuleEngine);

#[async_trait]
impl Publish for RulesOnly {
    async fn publish(&self, message: Message) -> Result<(), StoreError> {
        self.0.take(&message).await
    }
}

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
async fn unavailable_broker_fails_the_message() {
    let world = world().await;
    let republish = json!({"sql": "SELECT * FROM 'x'", "actions": [{"republish": {"topic": "y"}}]});
    world.create("again", republish).await;
    world.broker.is_down.store(true, Ordering::Relaxed);
    let taken = world.engine.take(&message("x", "{}")).await;
    assert!(taken.expect_err("not published").is_transient());
    world.broker.is_down.store(false, Ordering::Relaxed);
    world.send("x", "{}").await;
    assert_eq!(world.broker.take().len(), 1);
    assert_eq!(world.reasons("again"), Vec::<String>::new());
}

#[tokio::test]
async fn republish_loop_ends() {
    let world = world().await;
    let slot = PublishSlot::new();
    let store = Arc::clone(&world.fixture.store);
    let engine = engine_on(&world.fixture, store, Arc::new(slot.clone()), Vec::new());
    let broker: Arc<dyn Publish> = Arc::new(RulesOnly(engine.clone()));
    assert!(slot.fill(&broker));
    assert!(!slot.fill(&broker), "the first one keeps the place");
    engine.load().await.expect("rules");
    let circle = json!({"sql": "SELECT * FROM 'round/#'", "actions": [{"republish": {"topic": "round/again"}}]});
    engine.create(new("circle", circle)).await.expect("a rule");
    engine
        .take(&message("round", "{}"))
        .await
        .expect("taken in");
    let counts = engine.rule(&rule_name("circle")).expect("a rule").counts;
    assert_eq!(counts.matched, u64::from(HOPS_MAX) + 1);
    assert_eq!(
        (counts.actions_done, counts.actions_failed),
        (u64::from(HOPS_MAX), 1)
    );
    let failures = engine.failures(&rule_name("circle")).expect("a rule");
    assert!(failures[0].reason.contains("loop"), "{failures:?}");
    drop(broker);
    let gone = engine.take(&message("round", "{}")).await;
    assert!(gone.expect_err("nobody publishes").is_transient());
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
