//! Migration of the chargers' data from the old tables: dry runs, interruptions, repeated runs, verification.

mod failing;
mod support;

use std::sync::Arc;

use failing::FailingStore;
use homeport_item::schema::TableSchema;
use homeport_item::{Item, KeyKind, Map, Value};
use homeport_store::{Put, Scan, Store, StoreError};
use homeport_systems::chargers::migration::{
    Counts, Migration, OLD_DAILY, OLD_DEVICES, OLD_EVENTS, PROGRESS, Stage, old_tables,
};
use homeport_systems::chargers::{Chargers, EventRange, Order, ScId, WirelessDeviceId, schema};
use homeport_systems::time::EpochMillis;
use support::{Fixture, NOW_MS};

/// 2026-11-01T08:00:00Z, when clocks go back.
const FALL_BACK_MS: i64 = 1_793_520_000_000;
const HALF_HOUR_MS: i64 = 1_800_000;
const COLLIDING: [&str; 2] = [
    "00000000-0000-4000-8000-000000000394",
    "00000000-0000-4000-8000-00000000226b",
];
const NEW_TABLES: [&str; 4] = [
    "evse-events",
    "evse-device-state",
    "evse-devices",
    "evse-daily-stats",
];

fn uuid(number: u8) -> String {
    format!("b319d001-6b08-4d88-b4ca-4d2d98a6d4{number:02x}")
}

fn sc_id(uuid: &str) -> ScId {
    ScId::of(uuid.parse::<WirelessDeviceId>().expect("a UUID"))
}

fn old_event(uuid: &str, timestamp: i64) -> Item {
    let decoded = Map::from([("current_ma".to_owned(), Value::from(timestamp % 1000))]);
    Item::new()
        .with("device_id", uuid)
        .with("timestamp", timestamp)
        .with("event_type", "telemetry")
        .with("data", Value::M(decoded))
        .with("payload_hex", "e5000102")
}

async fn put(fixture: &Fixture, table: &str, item: Item) {
    fixture
        .store
        .put(Put::new(table, item))
        .await
        .expect("a put");
}

/// Three devices with events around the repeated hour and state markers, a registry of two of the devices, and
/// aggregates of one device under each kind of id.
async fn old_world() -> Fixture {
    let fixture = support::fixture(&old_tables()).await;
    for number in 0..3 {
        for n in 0..8 {
            let at = FALL_BACK_MS + (n - 4) * HALF_HOUR_MS;
            put(&fixture, OLD_EVENTS, old_event(&uuid(number), at)).await;
        }
        for (mark, name) in [
            (0, "last_command"),
            (-1, "session_id"),
            (-2, "last_sync_ms"),
            (-3, "retry_count"),
        ] {
            let item = Item::new()
                .with("device_id", uuid(number))
                .with("timestamp", mark);
            put(&fixture, OLD_EVENTS, item.with(name, i64::from(number))).await;
        }
    }
    for number in 0..2 {
        let item = Item::new()
            .with("device_id", &sc_id(&uuid(number)))
            .with("wireless_device_id", uuid(number))
            .with("owner_name", format!("owner {number}"));
        put(&fixture, OLD_DEVICES, item).await;
    }
    let daily = |id: String, date: &str| {
        let item = Item::new().with("device_id", id).with("date", date);
        item.with("event_count", 96).with("ttl", 1_900_000_000)
    };
    put(&fixture, OLD_DAILY, daily(uuid(0), "2026-10-30")).await;
    put(
        &fixture,
        OLD_DAILY,
        daily(sc_id(&uuid(0)).to_string(), "2026-10-31"),
    )
    .await;
    fixture
}

async fn migration(fixture: &Fixture, dry_run: bool) -> Migration {
    let store = Arc::clone(&fixture.store);
    let migration = Migration::start(store, EpochMillis(NOW_MS), dry_run).await;
    migration.expect("starts").with_step_items(5)
}

async fn table(store: &dyn Store, name: &str) -> Result<Vec<Item>, StoreError> {
    let mut items = store.scan(Scan::new(name)).await?.items;
    items.sort_by_key(|item| serde_json::to_string(item).expect("json"));
    Ok(items)
}

async fn new_world(fixture: &Fixture) -> Vec<Vec<Item>> {
    let mut tables = Vec::new();
    for name in NEW_TABLES {
        tables.push(table(&*fixture.store, name).await.expect("a scan"));
    }
    tables
}

fn all_read() -> Counts {
    Counts {
        devices: 2,
        events: 24,
        states: 12,
        daily: 2,
        refused: 0,
        verified: 40,
        missing: 0,
    }
}

#[tokio::test]
async fn dry_run_counts_and_writes_nothing() {
    let fixture = old_world().await;
    let mut dry = migration(&fixture, true).await;
    dry.run().await.expect("runs");
    let expected = Counts {
        verified: 0,
        ..all_read()
    };
    assert_eq!(dry.progress().counts, expected);
    for name in NEW_TABLES.iter().chain([&PROGRESS]) {
        let missing = table(&*fixture.store, name).await;
        assert!(
            matches!(missing, Err(StoreError::TableNotFound(_))),
            "{name}"
        );
    }
}

#[tokio::test]
async fn dry_run_does_not_change_new_tables() {
    let fixture = old_world().await;
    fixture
        .store
        .ensure_tables(&schema::tables())
        .await
        .expect("tables");
    migration(&fixture, true).await.run().await.expect("runs");
    assert!(new_world(&fixture).await.iter().all(Vec::is_empty));
}

#[tokio::test]
async fn everything_is_migrated_and_verified() {
    let fixture = old_world().await;
    let old = table(&*fixture.store, OLD_EVENTS).await.expect("a scan");
    let mut migration = migration(&fixture, false).await;
    migration.run().await.expect("runs");
    assert!(migration.is_complete(), "{:?}", migration.descriptions());
    assert_eq!(migration.progress().counts, all_read());
    let events = table(&*fixture.store, "evse-events").await.expect("a scan");
    assert_eq!(events.len(), 24);
    for event in &events {
        assert_eq!(event.get("payload_hex"), Some(&"e5000102".into()));
        assert_eq!(event.get("timestamp"), None);
    }
    // The old tables are unchanged.
    assert_eq!(
        table(&*fixture.store, OLD_EVENTS).await.expect("a scan"),
        old
    );
}

#[tokio::test]
async fn repeated_hour_is_migrated_in_order() {
    let fixture = old_world().await;
    migration(&fixture, false).await.run().await.expect("runs");
    let clock = Arc::clone(&fixture.clock) as _;
    let chargers = Chargers::new(Arc::clone(&fixture.store), clock);
    let range = EventRange {
        order: Order::OldestFirst,
        ..EventRange::default()
    };
    let page = chargers
        .events(&sc_id(&uuid(0)), None, range, 100, None)
        .await
        .expect("a page");
    let times: Vec<i64> = page
        .items
        .iter()
        .map(|event| event.timestamp_utc.0)
        .collect();
    let expected: Vec<i64> = (0..8)
        .map(|n| FALL_BACK_MS + (n - 4) * HALF_HOUR_MS)
        .collect();
    assert_eq!(times, expected);
    let current = page.items[1].data.members().get("current_ma");
    assert_eq!(current, Some(&(expected[1] % 1000).into()));
}

#[tokio::test]
async fn markers_become_state_and_devices_are_registered() {
    let fixture = old_world().await;
    migration(&fixture, false).await.run().await.expect("runs");
    let states = table(&*fixture.store, "evse-device-state")
        .await
        .expect("a scan");
    assert_eq!(states.len(), 3);
    for state in &states {
        let number = state.get("scheduler_last_command").expect("a mark");
        for name in [
            "ota_session_id",
            "time_sync_last_sync_ms",
            "divergence_retry_count",
        ] {
            assert_eq!(state.get(name), Some(number), "{name}");
        }
        assert_eq!(
            state.get("last_seen_utc_ms"),
            Some(&(FALL_BACK_MS + 3 * HALF_HOUR_MS).into())
        );
    }
    let devices = table(&*fixture.store, "evse-devices")
        .await
        .expect("a scan");
    assert_eq!(devices.len(), 3);
    let named = devices
        .iter()
        .filter(|device| device.get("owner_name").is_some());
    assert_eq!(named.count(), 2);
    let days = table(&*fixture.store, "evse-daily-stats")
        .await
        .expect("a scan");
    let key = (&sc_id(&uuid(0))).into();
    assert!(days.iter().all(|day| day.get("device_id") == Some(&key)));
    assert_eq!(days.len(), 2);
}

#[tokio::test]
async fn run_interrupted_after_any_step_continues() {
    let whole = old_world().await;
    let mut reference = migration(&whole, false).await;
    let mut steps = 1;
    while reference.step().await.expect("a step") {
        steps += 1;
    }
    let expected = new_world(&whole).await;
    for cut in (1..steps).step_by(3) {
        let fixture = old_world().await;
        let mut first = migration(&fixture, false).await;
        for _ in 0..cut {
            assert!(first.step().await.expect("a step"), "{cut}");
        }
        drop(first);
        let mut second = migration(&fixture, false).await;
        assert_ne!(second.progress().stage, Stage::Done);
        second.run().await.expect("goes on");
        assert!(second.is_complete(), "{cut}: {:?}", second.descriptions());
        assert_eq!(second.progress().counts, all_read(), "{cut}");
        assert_eq!(new_world(&fixture).await, expected, "{cut}");
    }
}

#[tokio::test]
async fn run_with_failure_at_any_write_continues() {
    let whole = old_world().await;
    migration(&whole, false).await.run().await.expect("runs");
    let expected = new_world(&whole).await;
    let mut failed = 0;
    for writes in (0..).step_by(11) {
        let fixture = old_world().await;
        fixture
            .store
            .ensure_tables(&schema::tables())
            .await
            .expect("tables");
        // Every second time the write takes effect and only its answer is lost.
        let store = FailingStore::new(Arc::clone(&fixture.store), writes, writes % 2 == 1);
        let cut_off = Migration::start(Arc::new(store), EpochMillis(NOW_MS), false).await;
        let mut cut_off = cut_off.expect("starts").with_step_items(5);
        if cut_off.run().await.is_ok() {
            break;
        }
        failed += 1;
        let mut again = migration(&fixture, false).await;
        again.run().await.expect("goes on");
        assert!(again.is_complete(), "{writes}: {:?}", again.descriptions());
        assert_eq!(again.progress().counts, all_read(), "{writes}");
        assert_eq!(new_world(&fixture).await, expected, "{writes}");
    }
    assert!(failed >= 5, "{failed}");
}

#[tokio::test]
async fn second_run_changes_nothing() {
    let fixture = old_world().await;
    migration(&fixture, false).await.run().await.expect("runs");
    let before = new_world(&fixture).await;
    let mut done = migration(&fixture, false).await;
    assert_eq!(done.progress().stage, Stage::Done);
    assert!(!done.step().await.expect("no step"));
    done.restart().await.expect("restarts");
    done.run().await.expect("runs again");
    assert!(done.is_complete());
    assert_eq!(done.progress().counts, all_read());
    assert_eq!(new_world(&fixture).await, before);
}

#[tokio::test]
async fn newer_data_in_new_tables_is_kept() {
    let fixture = old_world().await;
    fixture
        .store
        .ensure_tables(&schema::tables())
        .await
        .expect("tables");
    let id = sc_id(&uuid(0));
    let newer = Item::new()
        .with("device_id", &id)
        .with("scheduler_last_command", "newer")
        .with("last_seen_utc_ms", NOW_MS);
    put(&fixture, "evse-device-state", newer).await;
    let mut migration = migration(&fixture, false).await;
    migration.run().await.expect("runs");
    assert!(migration.is_complete());
    let states = table(&*fixture.store, "evse-device-state")
        .await
        .expect("a scan");
    let state = states
        .iter()
        .find(|state| state.get("device_id") == Some(&(&id).into()));
    let state = state.expect("a state");
    assert_eq!(state.get("scheduler_last_command"), Some(&"newer".into()));
    assert_eq!(state.get("last_seen_utc_ms"), Some(&NOW_MS.into()));
    assert_eq!(state.get("ota_session_id"), Some(&0.into()));
}

#[tokio::test]
async fn rejected_items_are_counted_and_described() {
    let fixture = old_world().await;
    put(&fixture, OLD_EVENTS, old_event("not-a-uuid", 5)).await;
    put(&fixture, OLD_EVENTS, old_event(&uuid(1), -9)).await;
    for uuid in COLLIDING {
        put(&fixture, OLD_EVENTS, old_event(uuid, FALL_BACK_MS)).await;
    }
    let mut dry = migration(&fixture, true).await;
    dry.run().await.expect("runs");
    assert_eq!(dry.progress().counts.refused, 3, "{:?}", refused(&dry));
    assert!(!dry.is_complete());
    let mut migration = migration(&fixture, false).await;
    migration.run().await.expect("runs");
    let counts = migration.progress().counts;
    assert_eq!((counts.refused, counts.events, counts.missing), (3, 25, 0));
    assert!(!migration.is_complete());
    assert_eq!(refused(&migration), refused(&dry));
    let text = refused(&migration).join("\n");
    assert!(!text.contains("Some(") && !text.contains('"'), "{text}");
    for part in ["not-a-uuid", "-9", COLLIDING[0], COLLIDING[1]] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

/// The refused items with their reasons.
fn refused(migration: &Migration) -> Vec<String> {
    let refused = migration.refused();
    refused
        .map(|item| {
            format!(
                "{} {}: {}",
                item.source.table(),
                item.key_text(),
                item.reason
            )
        })
        .collect()
}

#[tokio::test]
async fn refused_items_are_shown_until_fixed_or_accepted() {
    let fixture = old_world().await;
    put(&fixture, OLD_EVENTS, old_event("not-a-uuid", 5)).await;
    put(&fixture, OLD_EVENTS, old_event(&uuid(1), -9)).await;
    put(
        &fixture,
        OLD_DEVICES,
        Item::new()
            .with("device_id", "SC-00000000")
            .with("wireless_device_id", "x"),
    )
    .await;
    migration(&fixture, false).await.run().await.expect("runs");
    for _ in 0..2 {
        let mut again = migration(&fixture, false).await;
        again.run().await.expect("runs again");
        assert_eq!(refused(&again).len(), 3, "{:?}", refused(&again));
        assert!(!again.is_complete());
        assert_eq!(again.progress().counts.refused, 3);
    }
    // One is deleted and one is fixed in the old tables.
    let key = Item::new()
        .with("device_id", "not-a-uuid")
        .with("timestamp", 5);
    let delete = homeport_store::Delete::new(OLD_EVENTS, key);
    fixture.store.delete(delete).await.expect("deletes");
    let fixed = Item::new()
        .with("device_id", "SC-00000000")
        .with("owner_name", "anna");
    put(&fixture, OLD_DEVICES, fixed).await;
    let mut again = migration(&fixture, false).await;
    again.run().await.expect("runs again");
    assert_eq!(refused(&again).len(), 1, "{:?}", refused(&again));
    assert_eq!(again.progress().counts.devices, all_read().devices + 1);
    again.accept_refused().await.expect("accepts");
    assert!(again.is_complete());
    let mut accepted = migration(&fixture, false).await;
    accepted.restart().await.expect("restarts");
    accepted.run().await.expect("runs again");
    assert!(accepted.is_complete(), "{:?}", refused(&accepted));
    assert_eq!(accepted.accepted_count(), 1);
}

#[tokio::test]
async fn key_names_come_from_the_old_tables() {
    let fixture = support::fixture(&[]).await;
    let tables = [
        TableSchema::new(OLD_EVENTS, "wireless_device_id", KeyKind::S).with_sort("ts", KeyKind::N),
        TableSchema::new(OLD_DEVICES, "sc_id", KeyKind::S),
        TableSchema::new(OLD_DAILY, "sc_id", KeyKind::S).with_sort("day", KeyKind::S),
    ];
    fixture.store.ensure_tables(&tables).await.expect("tables");
    let id = sc_id(&uuid(0));
    for ts in [0, FALL_BACK_MS] {
        let event = Item::new()
            .with("wireless_device_id", uuid(0))
            .with("ts", ts);
        put(&fixture, OLD_EVENTS, event.with("last_command", "pause")).await;
    }
    let device = Item::new()
        .with("sc_id", &id)
        .with("wireless_device_id", uuid(0));
    put(&fixture, OLD_DEVICES, device).await;
    let day = Item::new().with("sc_id", &id).with("day", "2026-10-30");
    put(&fixture, OLD_DAILY, day.with("date", "a text")).await;
    let mut migration = migration(&fixture, false).await.with_old_tables(tables);
    migration.run().await.expect("runs");
    assert!(migration.is_complete(), "{:?}", refused(&migration));
    let days = table(&*fixture.store, "evse-daily-stats")
        .await
        .expect("a scan");
    assert_eq!(days[0].get("date"), Some(&"2026-10-30".into()));
    assert_eq!(days[0].get("old_date"), Some(&"a text".into()));
    let events = table(&*fixture.store, "evse-events").await.expect("a scan");
    assert_eq!(events[0].get("device_id"), Some(&(&id).into()));
    assert_eq!(events[0].get("ts"), None);
    let states = table(&*fixture.store, "evse-device-state")
        .await
        .expect("a scan");
    assert_eq!(
        states[0].get("scheduler_last_command"),
        Some(&"pause".into())
    );
}

#[tokio::test]
async fn verification_finds_a_lost_item() {
    let fixture = old_world().await;
    let mut migration = migration(&fixture, false).await;
    while migration.progress().stage
        != Stage::Verify(homeport_systems::chargers::migration::Source::Devices)
    {
        migration.step().await.expect("a step");
    }
    let events = table(&*fixture.store, "evse-events").await.expect("a scan");
    let changed = events[3].clone().with("payload_hex", "00");
    put(&fixture, "evse-events", changed).await;
    let key = |name: &str| (name.to_owned(), events[9].get(name).expect("a key").clone());
    let lost: Item = ["device_id", "timestamp_mt"].map(key).into_iter().collect();
    let delete = homeport_store::Delete::new("evse-events", lost);
    fixture.store.delete(delete).await.expect("a delete");
    migration.run().await.expect("runs");
    assert!(!migration.is_complete());
    assert_eq!(
        migration.progress().counts.missing,
        2,
        "{:?}",
        migration.descriptions()
    );
}

#[tokio::test]
async fn store_without_old_tables_migrates_nothing() {
    let fixture = support::fixture(&[]).await;
    let mut migration = migration(&fixture, false).await;
    migration.run().await.expect("runs");
    assert!(migration.is_complete());
    assert_eq!(migration.progress().counts, Counts::default());
}
