//! A rule run over stored history: what it would have written, beside what is there.

use std::sync::Arc;

use homeport_item::Value as Attribute;
use homeport_systems::rules::{Difference, REPLAY_PAGE_MAX, ReplayRange, Replayed, RuleDocument};
use homeport_systems::telemetry::{Settings, Telemetry};
use homeport_systems::time::EpochMillis;
use serde_json::{Value, json};

use crate::support::NOW_MS;
use crate::world::{OTHER, TELEMETRY, World, put_item, rule_name, world};

async fn replay(world: &World, document: Value, from: Option<i64>) -> Vec<Replayed> {
    let telemetry = Telemetry::new(
        Arc::clone(&world.fixture.store),
        Arc::clone(&world.fixture.clock) as _,
        &Settings::default(),
    );
    let range = ReplayRange {
        thing: "a".parse().expect("a thing"),
        from: from.map(EpochMillis),
        to: None,
    };
    let document: RuleDocument = serde_json::from_value(document).expect("a rule");
    let replay = world
        .engine
        .replay(&rule_name("r"), &document, telemetry, range);
    let mut replay = replay.expect("a rule");
    let mut all = Vec::new();
    while let Some(page) = replay.page(REPLAY_PAGE_MAX).await.expect("a page") {
        all.extend(page);
    }
    all
}

async fn with_history() -> World {
    let world = world().await;
    world.send("van/a/telemetry", r#"{"volts": 12.50}"#).await;
    world.send("van/a/alerts", r#"{"volts": 11.5}"#).await;
    world.send("van/b/telemetry", r#"{"volts": 9}"#).await;
    world
}

#[tokio::test]
async fn unchanged_rule_replays_without_differences() {
    let world = with_history().await;
    let rule = world.engine.rule(&rule_name("telemetry")).expect("a rule");
    let document = serde_json::from_str(&rule.rule.document.to_json()).expect("JSON");
    let replayed = replay(&world, document, None).await;
    assert_eq!(replayed.len(), 1, "{replayed:?}");
    assert_eq!(replayed[0].topic, "van/a/telemetry");
    assert_eq!(replayed[0].at, EpochMillis(NOW_MS));
    assert_eq!(replayed[0].would_write[0].difference, Difference::Same);
}

#[tokio::test]
async fn changed_rule_replays_with_its_differences() {
    let world = with_history().await;
    let sql = "SELECT topic(2) AS thing_name, timestamp() AS timestamp, 'alert' AS message_type, volts * 1000 AS millivolts FROM 'van/+/alerts'";
    let replayed = replay(&world, put_item(sql, TELEMETRY), None).await;
    let Difference::Changed(changed) = &replayed[0].would_write[0].difference else {
        panic!("{replayed:?}");
    };
    let shown: Vec<_> = changed
        .iter()
        .map(|(name, is, would_be)| (name.as_str(), is.is_some(), would_be.clone()))
        .collect();
    assert_eq!(
        shown,
        [
            ("millivolts", false, Some(Attribute::from(11_500))),
            ("ttl", true, None),
            ("volts", true, None),
        ]
    );
}

#[tokio::test]
async fn replay_writes_and_runs_nothing() {
    let world = with_history().await;
    let before = world.items(TELEMETRY).await;
    let document = json!({
        "sql": "SELECT topic(2) AS id, volts FROM 'van/#' WHERE volts < 12.5 OR volts > 12",
        "ruleDisabled": true,
        "actions": [
            {"dynamoDBv2": {"putItem": {"tableName": OTHER}}},
            {"republish": {"topic": "low/${topic(2)}"}},
            {"http": {"url": "https://example.com/${topic(3)}"}},
        ],
    });
    let replayed = replay(&world, document, None).await;
    let effects: Vec<_> = replayed
        .iter()
        .map(|one| one.other_effects.clone())
        .collect();
    let expected = |level: &str| {
        vec![
            "republish on low/a".to_owned(),
            format!("post to https://example.com/{level}"),
        ]
    };
    assert_eq!(effects, [expected("telemetry"), expected("alerts")]);
    assert!(matches!(
        replayed[0].would_write[0].difference,
        Difference::Unknown(_)
    ));
    assert_eq!(world.items(TELEMETRY).await, before);
    assert_eq!(world.items(OTHER).await, Vec::<Value>::new());
    assert_eq!(
        world.items("homeport-rule-requests").await,
        Vec::<Value>::new()
    );
    assert!(world.broker.take().is_empty());
    let later = replay(
        &world,
        put_item("SELECT * FROM 'van/#'", OTHER),
        Some(NOW_MS + 1),
    )
    .await;
    assert_eq!(later.len(), 1, "the range counts: {later:?}");
}

#[tokio::test]
async fn replay_reports_failures() {
    let world = with_history().await;
    let sql = "SELECT volts FROM 'van/+/telemetry'";
    let replayed = replay(&world, put_item(sql, TELEMETRY), None).await;
    assert!(
        replayed[0].failures[0].contains("thing_name"),
        "{replayed:?}"
    );
    assert!(replayed[0].would_write.is_empty());
}
