//! Reactions on changes: each at least once, in order, from where they stopped.

mod recorder;
mod support;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use homeport_item::schema::TableSchema;
use homeport_item::{Item, Map};
use homeport_store::{Delete, Put};
use homeport_systems::chargers::{
    Chargers, DailyReaction, EventData, EventDevice, NewEvent, ScId, WirelessDeviceId,
    schema as charger_schema,
};
use homeport_systems::reactions::{Reactions, schema};
use homeport_systems::time::EpochMillis;
use recorder::{Recorder, THINGS};
use support::{Fixture, NOW_MS};

async fn fixture() -> Fixture {
    let tables: Vec<TableSchema> = [
        vec![recorder::things()],
        schema::tables(),
        charger_schema::tables(),
    ]
    .concat();
    support::fixture(&tables).await
}

fn reactions(fixture: &Fixture) -> Reactions {
    let (store, clock) = (Arc::clone(&fixture.store), Arc::clone(&fixture.clock));
    Reactions::new(store, fixture.feed(), clock)
}

async fn put(fixture: &Fixture, id: &str, value: &str) {
    let item = recorder::thing(id, value);
    fixture
        .store
        .put(Put::new(THINGS, item))
        .await
        .expect("put");
}

#[tokio::test]
async fn new_reaction_starts_from_the_table() {
    let fixture = fixture().await;
    put(&fixture, "a", "1").await;
    let (reactions, recorder) = (reactions(&fixture), Recorder::default());
    reactions.catch_up(&recorder).await.expect("caught up");
    assert_eq!(recorder.take(), ["start over"]);
    put(&fixture, "a", "2").await;
    put(&fixture, "b", "1").await;
    let key = Item::new().with("id", "a");
    let delete = fixture.store.delete(Delete::new(THINGS, key));
    delete.await.expect("deleted");
    reactions.catch_up(&recorder).await.expect("caught up");
    assert_eq!(recorder.take(), ["a: 1 to 2", "b: - to 1", "a: 2 to -"]);
}

#[tokio::test]
async fn restart_continues_at_the_position() {
    let fixture = fixture().await;
    let recorder = Recorder::default();
    reactions(&fixture)
        .catch_up(&recorder)
        .await
        .expect("caught up");
    put(&fixture, "a", "1").await;
    reactions(&fixture)
        .catch_up(&recorder)
        .await
        .expect("caught up");
    put(&fixture, "a", "2").await;
    let fixture = fixture.reopen().await;
    put(&fixture, "a", "3").await;
    recorder.take();
    reactions(&fixture)
        .catch_up(&recorder)
        .await
        .expect("caught up");
    assert_eq!(recorder.take(), ["a: 1 to 2", "a: 2 to 3"]);
}

#[tokio::test]
async fn failed_reaction_gets_its_changes_again() {
    let fixture = fixture().await;
    let (reactions, recorder) = (reactions(&fixture), Recorder::default());
    reactions.catch_up(&recorder).await.expect("caught up");
    recorder.take();
    recorder.fails.store(true, Ordering::Relaxed);
    put(&fixture, "a", "1").await;
    reactions.catch_up(&recorder).await.expect_err("it fails");
    recorder.fails.store(false, Ordering::Relaxed);
    reactions.catch_up(&recorder).await.expect("caught up");
    assert_eq!(recorder.take(), ["a: - to 1", "a: - to 1"]);
}

#[tokio::test]
async fn position_of_another_store_starts_over() {
    let fixture = fixture().await;
    let item = Item::new()
        .with(schema::REACTION, "recorder")
        .with(schema::POSITION, "1000000");
    let position = fixture.store.put(Put::new(schema::REACTIONS, item));
    position.await.expect("put");
    let (reactions, recorder) = (reactions(&fixture), Recorder::default());
    reactions.catch_up(&recorder).await.expect("caught up");
    put(&fixture, "a", "1").await;
    reactions.catch_up(&recorder).await.expect("caught up");
    assert_eq!(recorder.take(), ["start over", "a: - to 1"]);
}

#[tokio::test]
async fn following_applies_changes_and_reports_status() {
    let fixture = fixture().await;
    let reactions = reactions(&fixture);
    let recorder = Arc::new(Recorder::default());
    let following = {
        let (reactions, recorder) = (reactions.clone(), Arc::clone(&recorder));
        tokio::spawn(async move { reactions.follow(recorder).await })
    };
    let applied = || {
        reactions
            .status()
            .all()
            .first()
            .map(|(_, status)| status.clone())
    };
    let wait = async {
        while applied().is_none() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        put(&fixture, "a", "1").await;
        while applied().is_none_or(|status| status.applied < 1) {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        recorder.fails.store(true, Ordering::Relaxed);
        put(&fixture, "a", "2").await;
        while applied().is_none_or(|status| status.failures < 1) {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        assert_eq!(
            applied().and_then(|status| status.problem),
            Some("told to fail".to_owned())
        );
        recorder.fails.store(false, Ordering::Relaxed);
        while applied().is_none_or(|status| status.applied < 2) {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), wait)
        .await
        .expect("in time");
    following.abort();
    assert_eq!(recorder.take()[..2], ["start over", "a: - to 1"]);
    assert_eq!(
        applied().map(|status| (status.lag_ms, status.problem)),
        Some((0, None))
    );
}

fn charger() -> WirelessDeviceId {
    let charger = "b319d001-6b08-4d88-b4ca-4d2d98a6d43c".parse();
    charger.expect("a UUID")
}

/// How many events each day has by its statistics, the oldest day first.
async fn counted(chargers: &Chargers) -> Vec<u64> {
    let page = chargers
        .daily(&ScId::of(charger()), None, None, 10, None)
        .await;
    let days = page.expect("days").items;
    let count = |day: &Item| day.get(charger_schema::EVENT_COUNT)?.as_number()?.to_i64();
    days.iter()
        .map(|day| {
            count(day)
                .and_then(|count| count.try_into().ok())
                .expect("a count")
        })
        .collect()
}

#[tokio::test]
async fn daily_statistics_include_late_events() {
    let fixture = fixture().await;
    let chargers = Chargers::new(Arc::clone(&fixture.store), Arc::clone(&fixture.clock) as _);
    let store_at = async |at_ms: i64| {
        let event = NewEvent {
            device: EventDevice::Wireless(charger()),
            event_type: "telemetry".parse().expect("a type"),
            occurred_at: Some(EpochMillis(at_ms)),
            sequence: None,
            data: EventData::new(Map::new()).expect("data"),
            uplink: None,
        };
        chargers.ingest(vec![event]).await.expect("stored");
    };
    let (reactions, daily) = (reactions(&fixture), DailyReaction::new(chargers.clone()));
    store_at(NOW_MS).await;
    assert!(counted(&chargers).await.is_empty());
    // What was stored before the first start is counted from the table.
    reactions.catch_up(&daily).await.expect("caught up");
    assert_eq!(counted(&chargers).await, [1]);
    store_at(NOW_MS - 60_000).await;
    let two_days_ms = 2 * 24 * 3_600_000;
    store_at(NOW_MS - two_days_ms).await;
    reactions.catch_up(&daily).await.expect("caught up");
    assert_eq!(counted(&chargers).await, [1, 2]);
}
