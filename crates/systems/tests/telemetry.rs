//! Telemetry: the frozen table, the documented queries, commands.

mod support;

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use homeport_item::schema::{IndexProjection, KeyAttribute};
use homeport_item::{Item, KeyKind};
use homeport_store::{Put, StoreError};
use homeport_systems::messages::{Delivery, Message, Publish};
use homeport_systems::severity::Severity;
use homeport_systems::telemetry::{
    Command, FleetSelection, HistoryRange, Order, Settings, Telemetry, TelemetryError, ThingName,
    schema,
};
use homeport_systems::time::EpochMillis;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use support::{Fixture, NOW_MS};

const TABLE: &str = "van-telemetry";

#[derive(Default)]
struct Broker(Mutex<Vec<Message>>);

#[async_trait]
impl Publish for Broker {
    async fn publish(&self, message: Message) -> Result<(), StoreError> {
        self.0.lock().expect("not poisoned").push(message);
        Ok(())
    }
}

struct World {
    telemetry: Telemetry,
    broker: Arc<Broker>,
    fixture: Fixture,
}

async fn world() -> World {
    let fixture = support::fixture(&schema::tables(TABLE)).await;
    let broker = Arc::new(Broker::default());
    let telemetry = Telemetry::new(
        Arc::clone(&fixture.store),
        Arc::clone(&fixture.clock) as _,
        &Settings::default(),
    );
    World {
        telemetry,
        broker,
        fixture,
    }
}

fn thing(name: &str) -> ThingName {
    name.parse().expect("a thing")
}

impl World {
    async fn add(&self, thing: &str, at: i64, message_type: &str) {
        self.add_until(thing, at, message_type, NOW_MS / 1000 + 1000)
            .await;
    }

    async fn add_until(&self, thing: &str, at: i64, message_type: &str, ttl: i64) {
        let item = Item::new()
            .with("thing_name", thing)
            .with("timestamp", NOW_MS + at)
            .with("message_type", message_type)
            .with("ttl", ttl);
        let put = self.fixture.store.put(Put::new(TABLE, item)).await;
        put.expect("put");
    }

    /// The times of all pages, of one type or of all types.
    async fn times(&self, name: &str, kind: Option<&str>, range: HistoryRange) -> Vec<i64> {
        let kind = kind.map(|kind| kind.parse().expect("a type"));
        let (mut times, mut cursor) = (Vec::new(), None);
        loop {
            let page = self
                .telemetry
                .history(&thing(name), kind.as_ref(), range, 2, cursor)
                .await
                .expect("a page");
            times.extend(page.items.iter().map(time_of));
            cursor = page.next;
            if cursor.is_none() {
                return times;
            }
            assert_eq!(page.items.len(), 2, "a page is full or the last");
        }
    }
}

fn time_of(item: &Item) -> i64 {
    let time = item
        .get("timestamp")
        .and_then(|at| at.as_number()?.to_i64());
    time.expect("a time") - NOW_MS
}

fn oldest_first() -> HistoryRange {
    HistoryRange {
        order: Order::OldestFirst,
        ..HistoryRange::default()
    }
}

#[test]
fn table_has_the_documented_schema() {
    assert_eq!(Settings::default().table, TABLE);
    let table = schema::telemetry(TABLE);
    let key = |name: &str, kind| KeyAttribute::new(name, kind);
    assert_eq!(table.key.partition, key("thing_name", KeyKind::S));
    assert_eq!(table.key.sort, Some(key("timestamp", KeyKind::N)));
    assert_eq!(table.ttl_attribute.as_deref(), Some("ttl"));
    assert_eq!(table.indexes.len(), 2);
    let expected = [
        ("MessageTypeIndex", "message_type"),
        ("AlertSeverityIndex", "severity"),
    ];
    for (index, (name, attribute)) in table.indexes.iter().zip(expected) {
        assert_eq!(index.name, name);
        assert_eq!(index.key.partition, key(attribute, KeyKind::S));
        assert_eq!(index.key.sort, Some(key("timestamp", KeyKind::N)));
        assert_eq!(
            (&index.projection, index.local),
            (&IndexProjection::All, false)
        );
    }
}

#[tokio::test]
async fn range_includes_both_ends() {
    let world = world().await;
    for at in 0..5 {
        world.add("a", at, "telemetry").await;
    }
    world.add("b", 2, "telemetry").await;
    assert_eq!(
        world.times("a", None, HistoryRange::default()).await,
        [4, 3, 2, 1, 0]
    );
    assert_eq!(
        world.times("a", None, oldest_first()).await,
        [0, 1, 2, 3, 4]
    );
    let bounded = |from: Option<i64>, to: Option<i64>| HistoryRange {
        from: from.map(|at| EpochMillis(NOW_MS + at)),
        to: to.map(|at| EpochMillis(NOW_MS + at)),
        order: Order::OldestFirst,
    };
    assert_eq!(
        world.times("a", None, bounded(Some(1), Some(3))).await,
        [1, 2, 3]
    );
    assert_eq!(world.times("a", None, bounded(Some(3), None)).await, [3, 4]);
    assert_eq!(world.times("a", None, bounded(None, Some(1))).await, [0, 1]);
    assert_eq!(
        world.times("a", None, bounded(Some(3), Some(1))).await,
        Vec::<i64>::new()
    );
}

#[tokio::test]
async fn page_of_one_type_is_full_or_last() {
    let world = world().await;
    for at in 0..40 {
        let kind = if at % 10 == 0 { "status" } else { "telemetry" };
        world.add("a", at, kind).await;
    }
    let times = world.times("a", Some("status"), oldest_first()).await;
    assert_eq!(times, [0, 10, 20, 30]);
}

#[tokio::test]
async fn latest_of_a_type_is_found_behind_many_others() {
    let world = world().await;
    world.add("a", 0, "status").await;
    for at in 1..100 {
        world.add("a", at, "telemetry").await;
    }
    let latest = |name: &str, kind: Option<&str>| {
        let kind = kind.map(|kind| kind.parse().expect("a type"));
        let (telemetry, name) = (world.telemetry.clone(), thing(name));
        async move { telemetry.latest(&name, kind.as_ref()).await }
    };
    assert_eq!(time_of(&latest("a", None).await.expect("one")), 99);
    assert_eq!(time_of(&latest("a", Some("status")).await.expect("one")), 0);
    let none = latest("a", Some("alert")).await;
    assert_eq!(none, Err(TelemetryError::NoMessage(thing("a"))));
    let nobody = latest("b", None).await;
    assert_eq!(nobody, Err(TelemetryError::NoMessage(thing("b"))));
}

#[tokio::test]
async fn expired_messages_are_not_returned() {
    let world = world().await;
    world.add("a", 0, "status").await;
    world.add_until("a", 1, "status", NOW_MS / 1000 + 10).await;
    world.fixture.clock.advance_ms(11_000);
    assert_eq!(world.times("a", None, oldest_first()).await, [0]);
    let kind = "status".parse().expect("a type");
    let latest = world.telemetry.latest(&thing("a"), Some(&kind)).await;
    assert_eq!(time_of(&latest.expect("one")), 0);
    let page = world
        .telemetry
        .of_fleet(&FleetSelection::Type(kind), oldest_first(), 10, None)
        .await;
    assert_eq!(page.expect("a page").items.len(), 1);
}

#[tokio::test]
async fn type_is_found_across_all_things() {
    let world = world().await;
    // Two of them have the same time: the cursor must distinguish them.
    for (name, at) in [("a", 0), ("b", 1), ("c", 1), ("d", 2)] {
        world.add(name, at, "alert").await;
        world.add(name, at + 10, "telemetry").await;
    }
    let alert = FleetSelection::Type("alert".parse().expect("a type"));
    let (mut things, mut cursor) = (Vec::new(), None);
    loop {
        let range = HistoryRange {
            from: Some(EpochMillis(NOW_MS + 1)),
            ..HistoryRange::default()
        };
        let page = world
            .telemetry
            .of_fleet(&alert, range, 1, cursor)
            .await
            .expect("a page");
        things.extend(page.items.iter().map(|item| {
            let name = item.get("thing_name").and_then(|name| name.as_str());
            name.expect("a name").to_owned()
        }));
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(things[0], "d");
    things.sort_unstable();
    assert_eq!(things, ["b", "c", "d"]);
}

/// The things that the index of severities finds.
async fn things_of(world: &World, severity: Severity, message_type: Option<&str>) -> Vec<String> {
    let message_type = message_type.map(|word| word.parse().expect("a type"));
    let selection = FleetSelection::Severity(severity, message_type);
    let page = world
        .telemetry
        .of_fleet(&selection, oldest_first(), 10, None);
    let items = page.await.expect("a page").items;
    let things = items.iter().map(|item| {
        let name = item.get("thing_name").and_then(|name| name.as_str());
        name.expect("a name").to_owned()
    });
    things.collect()
}

async fn add_severity(fixture: &Fixture, thing: &str, at: i64, severity: &str) {
    let item = Item::new()
        .with("thing_name", thing)
        .with("timestamp", NOW_MS + at)
        .with("message_type", if at % 2 == 0 { "alert" } else { "status" })
        .with("severity", severity);
    let put = fixture.store.put(Put::new(TABLE, item)).await;
    put.expect("put");
}

#[tokio::test]
async fn severity_is_found_across_all_things() {
    let world = world().await;
    for (name, at, severity) in [
        ("a", 0, "critical"),
        ("b", 1, "critical"),
        ("c", 2, "warning"),
        ("d", 4, "critical"),
    ] {
        add_severity(&world.fixture, name, at, severity).await;
        world.add(name, at + 10, "telemetry").await;
    }
    let critical = things_of(&world, Severity::Critical, None).await;
    assert_eq!(critical, ["a", "b", "d"]);
    let alerts = things_of(&world, Severity::Critical, Some("alert")).await;
    assert_eq!(alerts, ["a", "d"]);
    assert_eq!(
        things_of(&world, Severity::Info, None).await,
        Vec::<String>::new()
    );
}

#[tokio::test]
async fn existing_table_gets_the_severity_index() {
    let mut before = schema::telemetry(TABLE);
    before.indexes.truncate(1);
    let fixture = support::fixture(&[before]).await;
    add_severity(&fixture, "a", 0, "critical").await;
    // No index can hold a number as severity.
    let other = Item::new()
        .with("thing_name", "b")
        .with("timestamp", NOW_MS)
        .with("severity", 3);
    let put = fixture.store.put(Put::new(TABLE, other)).await;
    put.expect("put");
    let tables = schema::tables(TABLE);
    fixture
        .store
        .ensure_tables(&tables)
        .await
        .expect("completed");
    let world = World {
        telemetry: Telemetry::new(
            Arc::clone(&fixture.store),
            Arc::clone(&fixture.clock) as _,
            &Settings::default(),
        ),
        broker: Arc::default(),
        fixture,
    };
    assert_eq!(things_of(&world, Severity::Critical, None).await, ["a"]);
    let b = world.telemetry.latest(&thing("b"), None).await;
    assert_eq!(time_of(&b.expect("the item")), 0);
}

#[tokio::test]
async fn cursor_of_another_list_is_rejected() {
    let world = world().await;
    for at in 0..3 {
        world.add("a", at, "telemetry").await;
    }
    let page = world
        .telemetry
        .history(&thing("a"), None, oldest_first(), 1, None)
        .await;
    let cursor = page.expect("a page").next;
    let other = world
        .telemetry
        .history(&thing("b"), None, oldest_first(), 1, cursor)
        .await;
    assert!(matches!(other, Err(TelemetryError::Cursor(_))));
}

#[tokio::test]
async fn command_is_published_on_topic_of_its_thing() {
    let world = world().await;
    let parameters = r#"{"target": 21.50, "big": 0.1234567890123456789012345678901234567}"#;
    let command = Command {
        name: "heat".parse().expect("a command"),
        parameters: Some(RawValue::from_string(parameters.to_owned()).expect("JSON")),
    };
    let send = |name: &str| {
        let (world, command, name) = (&world, command.clone(), thing(name));
        async move {
            let sender = Some("admin".to_owned());
            let publish = &*world.broker;
            let sent = (world.telemetry).send_command(publish, &name, &command, sender);
            sent.await
        }
    };
    let sent = send("van-1").await.expect("sent");
    let messages = std::mem::take(&mut *world.broker.0.lock().expect("not poisoned"));
    assert_eq!(messages.len(), 1);
    let message = &messages[0];
    assert_eq!(message.topic, "van/van-1/commands");
    assert_eq!(
        (message.delivery, message.retain),
        (Delivery::AtLeastOnce, false)
    );
    let text = std::str::from_utf8(&message.payload).expect("text");
    assert!(text.contains(parameters), "digit for digit: {text}");
    let payload: Value = serde_json::from_str(text).expect("JSON");
    assert_eq!(payload["command"], "heat");
    assert_eq!(payload["command_id"], json!(sent.command_id.to_string()));
    assert_eq!(payload["timestamp"], json!(NOW_MS));
    assert!("van-01#shard-1".parse::<ThingName>().is_err());
}
