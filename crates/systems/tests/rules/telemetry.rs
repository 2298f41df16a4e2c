//! The rules that ship with Homeport, and what is promised of telemetry.

use std::sync::Arc;

use homeport_store::Store;
use homeport_systems::messages::{Intake as _, IntakeError, Publisher};
use homeport_systems::rules::RuleError;
use serde_json::{Value, json};

use crate::failing::FailingStore;
use crate::support::NOW_MS;
use crate::world::{OTHER, TELEMETRY, World, engine_on, message, put_item, rule_name, world};

/// The payload behind the design document's sample.
const SAMPLE: &str = r#"{"battery_voltage": 13.2, "glycol_temp": 72,
    "pdm1": {"1": true, "2": false}, "hvac_mode": "heat", "hvac_temp": 68}"#;
const TTL_SECS: i64 = NOW_MS / 1000 + 30 * 24 * 60 * 60;

#[tokio::test]
async fn telemetry_is_stored_as_documented() {
    let world = world().await;
    world.send("van/storyteller-van-01/telemetry", SAMPLE).await;
    assert_eq!(
        world.items(TELEMETRY).await,
        [json!({
            "thing_name": {"S": "storyteller-van-01"},
            "timestamp": {"N": NOW_MS.to_string()},
            "message_type": {"S": "telemetry"},
            "battery_voltage": {"N": "13.2"},
            "glycol_temp": {"N": "72"},
            "pdm1": {"M": {"1": {"BOOL": true}, "2": {"BOOL": false}}},
            "hvac_mode": {"S": "heat"},
            "hvac_temp": {"N": "68"},
            "ttl": {"N": TTL_SECS.to_string()},
        })]
    );
}

#[tokio::test]
async fn status_and_alerts_have_own_types() {
    let world = world().await;
    for topic in [
        "van/a/status",
        "van/a/alerts",
        "van/a/other",
        "car/a/telemetry",
    ] {
        world.send(topic, r#"{"x": 1}"#).await;
    }
    let types = |item: &Value| item["message_type"]["S"].as_str().map(str::to_owned);
    let items = world.items(TELEMETRY).await;
    let mut types: Vec<_> = items.iter().filter_map(types).collect();
    types.sort_unstable();
    assert_eq!(types, ["alert", "status"]);
}

#[tokio::test]
async fn severity_of_any_type_is_stored() {
    let world = world().await;
    for (number, severity) in ["\"critical\"", "3", "true", "null", "\"\""]
        .iter()
        .enumerate()
    {
        let payload = format!(r#"{{"severity": {severity}}}"#);
        world.send(&format!("van/{number}/alerts"), &payload).await;
    }
    let mut stored: Vec<(String, Value)> = world
        .items(TELEMETRY)
        .await
        .iter()
        .map(|item| {
            (
                item["thing_name"]["S"].to_string(),
                item["severity"].clone(),
            )
        })
        .collect();
    stored.sort_by(|(a, _), (b, _)| a.cmp(b));
    let severities: Vec<Value> = stored.into_iter().map(|(_, severity)| severity).collect();
    let text = |text: &str| json!({"S": text});
    assert_eq!(
        severities,
        [
            text("critical"),
            text("3"),
            text("true"),
            Value::Null,
            Value::Null
        ]
    );
}

#[tokio::test]
async fn payload_cannot_forge_rule_attributes() {
    let world = world().await;
    let forged = r#"{"thing_name": "other", "timestamp": 1, "message_type": "alert", "ttl": 1}"#;
    world.send("van/a/telemetry", forged).await;
    assert_eq!(
        world.items(TELEMETRY).await,
        [json!({
            "thing_name": {"S": "a"},
            "timestamp": {"N": NOW_MS.to_string()},
            "message_type": {"S": "telemetry"},
            "ttl": {"N": TTL_SECS.to_string()},
        })]
    );
}

#[tokio::test]
async fn numbers_keep_every_digit() {
    let world = world().await;
    let digits = "0.1234567890123456789012345678901234567";
    world
        .send("van/a/telemetry", &format!(r#"{{"x": {digits}}}"#))
        .await;
    assert_eq!(world.items(TELEMETRY).await[0]["x"]["N"], digits);
}

#[tokio::test]
async fn expiry_in_milliseconds_is_stored_in_seconds() {
    let world = world().await;
    let notes = |world: &World| {
        world
            .engine
            .rule(&rule_name("telemetry"))
            .expect("a rule")
            .notes
    };
    assert_eq!(notes(&world), Vec::<String>::new());
    world.send("van/a/telemetry", "{}").await;
    assert_eq!(
        world.items(TELEMETRY).await[0]["ttl"]["N"],
        TTL_SECS.to_string()
    );
    let notes = notes(&world);
    assert!(notes[0].contains("stored in seconds"), "{notes:?}");
    // One that is in seconds stays what it is.
    let sql = format!(
        "SELECT topic(2) AS thing_name, timestamp() AS timestamp, {TTL_SECS} AS ttl FROM 'b/+'"
    );
    world.create("seconds", put_item(&sql, TELEMETRY)).await;
    world.send("b/c", "{}").await;
    let items = world.items(TELEMETRY).await;
    assert!(
        items
            .iter()
            .all(|item| item["ttl"] == json!({"N": TTL_SECS.to_string()}))
    );
    let rule = world.engine.rule(&rule_name("seconds")).expect("a rule");
    assert!(
        !rule.notes.iter().any(|note| note.contains("seconds")),
        "{rule:?}"
    );
}

#[tokio::test]
async fn two_messages_in_one_millisecond_are_kept() {
    let world = world().await;
    for n in 0..5 {
        world
            .send("van/a/telemetry", &format!(r#"{{"n": {n}}}"#))
            .await;
    }
    // Another process knows nothing of these moments: the condition tells it.
    let other = world.other_engine().await;
    let taken = other.take(&message("van/a/telemetry", r#"{"n": 5}"#)).await;
    taken.expect("taken in");
    let items = world.items(TELEMETRY).await;
    let mut stored: Vec<_> = items
        .iter()
        .map(|item| (item["timestamp"]["N"].clone(), item["n"]["N"].clone()))
        .collect();
    stored.sort_by_key(|(at, _)| at.to_string());
    let expected: Vec<_> = (0..6)
        .map(|n| (json!((NOW_MS + n).to_string()), json!(n.to_string())))
        .collect();
    assert_eq!(stored, expected);
}

#[tokio::test]
async fn concurrent_messages_are_all_kept() {
    let world = Arc::new(world().await);
    let tasks = (0..20).map(|n| {
        let world = Arc::clone(&world);
        tokio::spawn(async move {
            world
                .send("van/a/telemetry", &format!(r#"{{"n": {n}}}"#))
                .await
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.expect("no panic");
    }
    assert_eq!(world.items(TELEMETRY).await.len(), 20);
}

#[tokio::test]
async fn device_time_is_not_changed() {
    let world = world().await;
    let sql = "SELECT topic(2) AS thing_name, * FROM 'own/+'";
    world.create("own", put_item(sql, TELEMETRY)).await;
    world.send("own/a", r#"{"timestamp": 7, "n": 1}"#).await;
    world.send("own/a", r#"{"timestamp": 7, "n": 2}"#).await;
    let items = world.items(TELEMETRY).await;
    assert_eq!(
        items.len(),
        1,
        "the second is the first once more, or corrects it"
    );
    assert_eq!(items[0]["n"]["N"], "2");
}

#[tokio::test]
async fn message_fails_while_the_store_is_down() {
    let world = world().await;
    let store = Arc::clone(&world.fixture.store);
    let down = Arc::new(FailingStore::new(store, 0, false)) as Arc<dyn Store>;
    let engine = engine_on(&world.fixture, down, Vec::new());
    // Loading reads only: all that ships was made by the other engine.
    engine.load().await.expect("rules");
    let taken = engine.take(&message("van/a/telemetry", "{}")).await;
    assert!(matches!(taken, Err(IntakeError::Store(error)) if error.is_transient()));
    assert_eq!(world.items(TELEMETRY).await, Vec::<Value>::new());
    // What no rule wants is taken all the same.
    engine
        .take(&message("elsewhere", "{}"))
        .await
        .expect("taken in");
}

#[tokio::test]
async fn writes_of_a_message_are_one_transaction() {
    let world = world().await;
    let sql = "SELECT topic(2) AS thing_name, timestamp() AS timestamp, 'copy' AS message_type, * FROM 'van/+/telemetry'";
    world.create("copy", put_item(sql, TELEMETRY)).await;
    let store = Arc::clone(&world.fixture.store);
    // Lets single writes through and refuses transactions, which is how it is known that this is one.
    let no_transactions = Arc::new(FailingStore::new(store, 100, false)) as Arc<dyn Store>;
    let engine = engine_on(&world.fixture, no_transactions, Vec::new());
    engine.load().await.expect("rules");
    let taken = engine.take(&message("van/a/telemetry", "{}")).await;
    assert!(matches!(taken, Err(IntakeError::Store(error)) if error.is_transient()));
    assert_eq!(world.items(TELEMETRY).await, Vec::<Value>::new());
    world.send("van/a/telemetry", "{}").await;
    let items = world.items(TELEMETRY).await;
    let times: Vec<_> = items
        .iter()
        .map(|item| item["timestamp"]["N"].clone())
        .collect();
    assert_eq!(
        items.len(),
        2,
        "each has a millisecond of its own: {times:?}"
    );
}

#[tokio::test]
async fn foreign_table_is_written_and_missing_one_rejected() {
    let world = world().await;
    let sql = "SELECT topic(2) AS id, * FROM 'x/+'";
    world.create("other", put_item(sql, OTHER)).await;
    world.send("x/a", r#"{"n": 1}"#).await;
    world.send("x/a", r#"{"n": 2}"#).await;
    let expected = json!({"id": {"S": "a"}, "n": {"N": "2"}});
    assert_eq!(world.items(OTHER).await, [expected]);
    for (table, is_missing) in [
        ("no-such-table", true),
        ("api_keys", false),
        ("homeport-rules", false),
    ] {
        let refused = world
            .engine
            .create(crate::world::new("r", put_item(sql, table)))
            .await;
        let error = refused.expect_err(table);
        assert_eq!(
            matches!(error, RuleError::TableNotFound { .. }),
            is_missing,
            "{error}"
        );
        assert!(error.to_string().contains("actions[0]"), "{error}");
    }
}

#[tokio::test]
async fn messages_of_alerts_reach_no_rule() {
    let world = world().await;
    let mut said = message("van/a/alerts", r#"{"type": "alert.raised"}"#);
    said.publisher = Publisher::alerts();
    world.engine.take(&said).await.expect("taken in");
    assert!(world.items(TELEMETRY).await.is_empty());
    // From a device it would have been stored.
    said.publisher = Publisher {
        client_id: Some("a".to_owned()),
        principal: Some("alerts".to_owned()),
    };
    world.engine.take(&said).await.expect("taken in");
    assert_eq!(world.items(TELEMETRY).await.len(), 1);
}
