//! The rules of sensors, one test each.

mod foreign;
mod refused;
#[path = "../support/mod.rs"]
mod support;

use std::collections::BTreeMap;
use std::sync::Arc;

use homeport_item::{Item, Value};
use homeport_store::{Clock as _, Get, ManualClock, Scan, Store};
use homeport_systems::cursor::Cursor;
use homeport_systems::sensors::{
    Capabilities, HardwareId, IngestOutcome, NameChange, Named, Order, Reading, ReadingRange,
    Registration, Rejection, SensorStatus, Sensors, SensorsError, Settings, schema,
};
use homeport_systems::time::EpochMillis;
use support::{Fixture, NOW_MS};

const BOOT_ID: &str = "7c9e6679-7425-40de-944b-e07fc1f90ae7";

async fn sensors() -> (Sensors, Fixture) {
    sensors_with(Settings::default()).await
}

async fn sensors_with(settings: Settings) -> (Sensors, Fixture) {
    let fixture = support::fixture(&schema::tables()).await;
    let clock = Arc::clone(&fixture.clock) as _;
    let sensors = Sensors::new(Arc::clone(&fixture.store), clock, settings);
    (sensors, fixture)
}

fn hardware_id(number: u8) -> HardwareId {
    format!("AA:BB:CC:DD:EE:{number:02X}")
        .parse()
        .expect("a MAC address")
}

fn registration(number: u8) -> Registration {
    Registration {
        hardware_id: hardware_id(number),
        boot_id: BOOT_ID.parse().expect("a UUID"),
        firmware_version: "1.0.16".parse().expect("a version"),
        friendly_name: NameChange::Keep,
        capabilities: Capabilities::new(vec!["bme280".parse().expect("a name")], BTreeMap::new())
            .expect("few"),
    }
}

fn reading(device: u8, minutes_ago: i64) -> Reading {
    let timestamp = NOW_MS - minutes_ago * 60_000;
    let hardware_id = hardware_id(device);
    Reading {
        batch_id: format!(
            "{hardware_id}_{BOOT_ID}_{}_{timestamp}",
            timestamp - 300_000
        )
        .parse()
        .expect("a batch id"),
        hardware_id,
        boot_id: BOOT_ID.parse().expect("a UUID"),
        firmware_version: "1.0.16".parse().expect("a version"),
        timestamp: EpochMillis(timestamp),
        sensors: Named::from([(
            "bme280_temp_c".parse().expect("a name"),
            "22.5".parse().expect("a number"),
        )]),
        sensor_status: Named::from([("bme280".parse().expect("a name"), SensorStatus::Ok)]),
        friendly_name: None,
    }
}

async fn count(store: &dyn Store, table: &str) -> usize {
    store.scan(Scan::new(table)).await.expect("a scan").count
}

async fn device_item(store: &dyn Store, number: u8) -> Item {
    let key = Item::new().with("hardware_id", &hardware_id(number));
    let item = store.get(Get::new("devices", key)).await;
    item.expect("a get").expect("a device")
}

#[tokio::test]
async fn first_registration_stores_the_documented_device() {
    let (sensors, fixture) = sensors().await;
    let registered = sensors.register(registration(1)).await.expect("registers");
    assert!(registered.is_new);
    let item = device_item(&*fixture.store, 1).await;
    assert_eq!(
        serde_json::to_value(&item).expect("json"),
        serde_json::json!({
            "hardware_id": {"S": "AA:BB:CC:DD:EE:01"},
            "confirmation_id": {"S": registered.confirmation_id.to_string()},
            "capabilities": {"M": {"features": {"M": {}}, "sensors": {"L": [{"S": "bme280"}]}}},
            "first_registered_at": {"S": "2027-01-15T08:00:00Z"},
            "last_seen_at": {"S": "2027-01-15T08:00:00Z"},
            "last_boot_id": {"S": BOOT_ID},
            "firmware_version": {"S": "1.0.16"},
            "gsi1pk": {"S": "devices"},
            "gsi1sk": {"S": "2027-01-15T08:00:00Z"},
        })
    );
}

#[tokio::test]
async fn boot_and_firmware_follow_data_of_newer_boot() {
    let (sensors, fixture) = sensors().await;
    let boots = [
        BOOT_ID,
        "550e8400-e29b-41d4-a716-446655440000",
        "0b8f3c0e-8f61-4b0c-9f59-3f0c2e1c7a11",
    ];
    let of = |boot: usize, minutes_ago| Reading {
        boot_id: boots[boot].parse().expect("a UUID"),
        firmware_version: format!("1.0.{boot}").parse().expect("a version"),
        ..reading(1, minutes_ago)
    };
    let last = async || {
        let item = device_item(&*fixture.store, 1).await;
        let text = |name: &str| item.get(name).and_then(Value::as_str).map(str::to_owned);
        (
            text("last_boot_id").expect("a boot"),
            text("firmware_version").expect("a version"),
        )
    };
    let boot = |boot: usize| (boots[boot].to_owned(), format!("1.0.{boot}"));
    for (step, sent, expected) in [
        ("first data", vec![of(0, 60)], 0),
        (
            "newer boot, together with a late reading",
            vec![of(1, 50), of(0, 55)],
            1,
        ),
        ("late reading of the old boot", vec![of(0, 58)], 1),
        ("newer boot within the same minute", vec![of(2, 49)], 2),
    ] {
        sensors.ingest(sent).await.expect("ingests");
        assert_eq!(last().await, boot(expected), "{step}");
    }
    // After a registration, the device first sends what it stored before its restart.
    let again = Registration {
        boot_id: boots[0].parse().expect("a UUID"),
        firmware_version: "1.0.0".parse().expect("a version"),
        ..registration(1)
    };
    sensors.register(again).await.expect("registers");
    sensors.ingest(vec![of(2, 40)]).await.expect("ingests");
    assert_eq!(last().await, boot(0));
}

#[tokio::test]
async fn later_registration_keeps_the_confirmation_id() {
    let (sensors, fixture) = sensors().await;
    let first = sensors.register(registration(1)).await.expect("registers");
    fixture.clock.advance_ms(90_000);
    let again = Registration {
        boot_id: "550e8400-e29b-41d4-a716-446655440000"
            .parse()
            .expect("a UUID"),
        firmware_version: "2.0.0".parse().expect("a version"),
        friendly_name: NameChange::Set("greenhouse".parse().expect("a name")),
        ..registration(1)
    };
    let second = sensors.register(again).await.expect("registers again");
    assert!(!second.is_new);
    assert_eq!(second.confirmation_id, first.confirmation_id);
    assert_eq!(second.registered_at, first.registered_at);
    let device = sensors.device(&hardware_id(1)).await.expect("a device");
    assert_eq!(device.last_seen_at.to_string(), "2027-01-15T08:01:30Z");
    assert_eq!(device.firmware_version.as_str(), "2.0.0");
    assert_eq!(
        device.last_boot_id.to_string(),
        "550e8400-e29b-41d4-a716-446655440000"
    );
    assert_eq!(device.friendly_name.expect("a name").as_str(), "greenhouse");
    let item = device_item(&*fixture.store, 1).await;
    assert_eq!(item.get("gsi1sk"), item.get("last_seen_at"));
}

#[tokio::test]
async fn registration_with_null_removes_the_name() {
    let (sensors, _fixture) = sensors().await;
    let name = |change| Registration {
        friendly_name: change,
        ..registration(1)
    };
    let set = NameChange::Set("roof".parse().expect("a name"));
    sensors.register(name(set)).await.expect("registers");
    sensors
        .register(name(NameChange::Keep))
        .await
        .expect("registers");
    assert!(
        sensors
            .device(&hardware_id(1))
            .await
            .expect("a device")
            .friendly_name
            .is_some()
    );
    sensors
        .register(name(NameChange::Remove))
        .await
        .expect("registers");
    assert!(
        sensors
            .device(&hardware_id(1))
            .await
            .expect("a device")
            .friendly_name
            .is_none()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn racing_registrations_share_one_confirmation_id() {
    let (sensors, fixture) = sensors().await;
    let racers = (0..16).map(|_| {
        let sensors = sensors.clone();
        tokio::spawn(async move { sensors.register(registration(1)).await })
    });
    let mut confirmations = Vec::new();
    let mut new = 0;
    for racer in racers.collect::<Vec<_>>() {
        let registered = racer.await.expect("no panic").expect("registers");
        confirmations.push(registered.confirmation_id);
        new += usize::from(registered.is_new);
    }
    confirmations.dedup();
    assert_eq!((confirmations.len(), new), (1, 1));
    assert_eq!(count(&*fixture.store, "devices").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn racing_registrations_never_move_last_activity_back() {
    let (behind, fixture) = sensors().await;
    let clock = Arc::new(ManualClock::at_ms(NOW_MS));
    let store = Arc::clone(&fixture.store);
    let ahead = Sensors::new(store, Arc::clone(&clock) as _, Settings::default());
    behind.register(registration(1)).await.expect("registers");
    for _ in 0..50 {
        clock.advance_ms(10_000);
        let racers = [&ahead, &behind, &behind, &behind].map(|sensors| {
            let sensors = sensors.clone();
            tokio::spawn(async move { sensors.register(registration(1)).await })
        });
        for racer in racers {
            racer.await.expect("no panic").expect("registers");
        }
        let device = behind.device(&hardware_id(1)).await.expect("a device");
        let seen_ms = device.last_seen_at.seconds().0 * 1000;
        assert_eq!(seen_ms, clock.now_ms());
    }
}

#[tokio::test]
async fn reading_is_stored_with_its_marker() {
    let (sensors, fixture) = sensors().await;
    sensors.register(registration(1)).await.expect("registers");
    let outcomes = sensors.ingest(vec![reading(1, 0)]).await.expect("ingests");
    assert_eq!(outcomes, [IngestOutcome::Stored]);
    let batch_id = reading(1, 0).batch_id;
    let key = Item::new().with("batch_id", &batch_id);
    let marker = fixture.store.get(Get::new("processed_batches", key)).await;
    assert_eq!(
        marker.expect("a get").expect("a marker"),
        Item::new()
            .with("batch_id", &batch_id)
            .with("hardware_id", "AA:BB:CC:DD:EE:01")
            .with("received_at", "2027-01-15T08:00:00Z")
            .with("expiration_time", NOW_MS / 1000 + 30 * 24 * 3600)
    );
    let latest = sensors
        .latest_reading(&hardware_id(1))
        .await
        .expect("a reading");
    assert_eq!(latest, reading(1, 0));
}

#[tokio::test]
async fn duplicate_writes_nothing() {
    let (sensors, fixture) = sensors().await;
    sensors.ingest(vec![reading(1, 0)]).await.expect("ingests");
    let changed = Reading {
        sensors: Named::default(),
        ..reading(1, 0)
    };
    fixture.clock.advance_ms(1000);
    let outcomes = sensors.ingest(vec![changed]).await.expect("ingests");
    assert_eq!(outcomes, [IngestOutcome::Duplicate]);
    let latest = sensors
        .latest_reading(&hardware_id(1))
        .await
        .expect("a reading");
    assert_eq!(latest.sensors.len(), 1);
    assert_eq!(count(&*fixture.store, "device_readings").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn same_batch_over_many_connections_is_stored_once() {
    let (sensors, fixture) = sensors().await;
    sensors.register(registration(1)).await.expect("registers");
    let senders = (0..16).map(|_| {
        let sensors = sensors.clone();
        tokio::spawn(async move { sensors.ingest(vec![reading(1, 0), reading(1, 5)]).await })
    });
    let mut stored = 0;
    for sender in senders.collect::<Vec<_>>() {
        let outcomes = sender.await.expect("no panic").expect("ingests");
        stored += outcomes
            .iter()
            .filter(|outcome| **outcome == IngestOutcome::Stored)
            .count();
    }
    assert_eq!(stored, 2);
    assert_eq!(count(&*fixture.store, "device_readings").await, 2);
}

#[tokio::test]
async fn batch_id_of_another_device_is_a_conflict() {
    let (sensors, fixture) = sensors().await;
    sensors.ingest(vec![reading(1, 0)]).await.expect("ingests");
    let stolen = Reading {
        hardware_id: hardware_id(2),
        ..reading(1, 0)
    };
    let outcomes = sensors.ingest(vec![stolen]).await.expect("ingests");
    assert_eq!(
        outcomes,
        [IngestOutcome::Rejected(Rejection::BatchIdConflict)]
    );
    assert_eq!(count(&*fixture.store, "device_readings").await, 1);
}

#[tokio::test]
async fn request_may_mix_all_outcomes() {
    let (sensors, fixture) = sensors().await;
    sensors.ingest(vec![reading(1, 50)]).await.expect("ingests");
    let stolen = Reading {
        hardware_id: hardware_id(2),
        ..reading(1, 0)
    };
    let old = reading(1, 91 * 24 * 60);
    let request = vec![
        reading(1, 0),
        reading(1, 50),
        reading(1, 0),
        stolen,
        old,
        reading(2, 10),
    ];
    let outcomes = sensors.ingest(request).await.expect("ingests");
    assert_eq!(
        outcomes,
        [
            IngestOutcome::Stored,
            IngestOutcome::Duplicate,
            IngestOutcome::Duplicate,
            IngestOutcome::Rejected(Rejection::BatchIdConflict),
            IngestOutcome::Expired,
            IngestOutcome::Stored,
        ]
    );
    assert_eq!(count(&*fixture.store, "device_readings").await, 3);
}

#[tokio::test]
async fn expired_reading_is_accepted_but_not_stored() {
    let (sensors, fixture) = sensors().await;
    let old = reading(1, 91 * 24 * 60);
    let first = sensors.ingest(vec![old.clone()]).await.expect("ingests");
    let second = sensors.ingest(vec![old]).await.expect("ingests");
    assert_eq!(
        (&first[0], &second[0]),
        (&IngestOutcome::Expired, &IngestOutcome::Duplicate)
    );
    assert_eq!(count(&*fixture.store, "device_readings").await, 0);
}

#[tokio::test]
async fn readings_can_be_kept_forever() {
    let settings = Settings {
        retention_secs: None,
        ..Settings::default()
    };
    let (sensors, fixture) = sensors_with(settings).await;
    let outcomes = sensors
        .ingest(vec![reading(1, 3 * 365 * 24 * 60)])
        .await
        .expect("ingests");
    assert_eq!(outcomes, [IngestOutcome::Stored]);
    let items = fixture
        .store
        .scan(Scan::new("device_readings"))
        .await
        .expect("a scan")
        .items;
    assert_eq!(items[0].get("expiration_time"), None);
}

#[tokio::test]
async fn reading_and_marker_expire_separately() {
    let (sensors, fixture) = sensors().await;
    sensors.ingest(vec![reading(1, 0)]).await.expect("ingests");
    fixture.clock.advance_ms(30 * 24 * 3_600_000);
    assert_eq!(count(&*fixture.store, "processed_batches").await, 0);
    assert_eq!(count(&*fixture.store, "device_readings").await, 1);
    fixture.clock.advance_ms(60 * 24 * 3_600_000);
    assert_eq!(count(&*fixture.store, "device_readings").await, 0);
    assert!(matches!(
        sensors.latest_reading(&hardware_id(1)).await,
        Err(SensorsError::NoReadings(_))
    ));
}

#[tokio::test]
async fn reading_registers_an_unknown_device() {
    let (sensors, _fixture) = sensors().await;
    sensors.ingest(vec![reading(9, 0)]).await.expect("ingests");
    let device = sensors.device(&hardware_id(9)).await.expect("a device");
    assert_eq!(device.capabilities.sensors()[0].as_str(), "bme280");
    assert_eq!(device.firmware_version.as_str(), "1.0.16");
}

#[tokio::test]
async fn reading_keeps_the_name_of_its_time() {
    let (sensors, _fixture) = sensors().await;
    sensors.register(registration(1)).await.expect("registers");
    sensors.ingest(vec![reading(1, 10)]).await.expect("ingests");
    let name = NameChange::Set("roof".parse().expect("a name"));
    sensors
        .rename_device(&hardware_id(1), name)
        .await
        .expect("renames");
    sensors.ingest(vec![reading(1, 5)]).await.expect("ingests");
    let range = ReadingRange {
        order: Order::OldestFirst,
        ..ReadingRange::default()
    };
    let page = sensors
        .readings(&hardware_id(1), range, 10, None)
        .await
        .expect("a page");
    let names: Vec<_> = page
        .items
        .iter()
        .map(|reading| reading.friendly_name.as_ref().map(|name| name.as_str()))
        .collect();
    assert_eq!(names, [None, Some("roof")]);
}

#[tokio::test]
async fn readings_update_last_activity_once_a_minute() {
    let (sensors, fixture) = sensors().await;
    sensors.register(registration(1)).await.expect("registers");
    let seen = || async {
        let item = device_item(&*fixture.store, 1).await;
        assert_eq!(item.get("gsi1sk"), item.get("last_seen_at"));
        item.get("last_seen_at")
            .and_then(Value::as_str)
            .expect("a time")
            .to_owned()
    };
    fixture.clock.advance_ms(59_000);
    sensors.ingest(vec![reading(1, 1)]).await.expect("ingests");
    assert_eq!(seen().await, "2027-01-15T08:00:00Z");
    fixture.clock.advance_ms(1_000);
    sensors.ingest(vec![reading(1, 2)]).await.expect("ingests");
    assert_eq!(seen().await, "2027-01-15T08:01:00Z");
    fixture.clock.advance_ms(-600_000);
    sensors.ingest(vec![reading(1, 3)]).await.expect("ingests");
    sensors.register(registration(1)).await.expect("registers");
    assert_eq!(seen().await, "2027-01-15T08:01:00Z");
}

#[tokio::test]
async fn devices_are_listed_by_activity() {
    let (sensors, fixture) = sensors().await;
    for number in 0..7 {
        sensors
            .register(registration(number))
            .await
            .expect("registers");
        fixture.clock.advance_ms(1000);
    }
    sensors
        .register(registration(2))
        .await
        .expect("registers again");
    let mut listed = Vec::new();
    let mut cursor = None;
    loop {
        let page = sensors.list_devices(3, cursor).await.expect("a page");
        listed.extend(page.items.into_iter().map(|device| device.hardware_id));
        match page.next {
            Some(next) => cursor = Some(Cursor::decode(&next.encode()).expect("a cursor")),
            None => break,
        }
    }
    let expected: Vec<_> = [2, 6, 5, 4, 3, 1, 0].map(hardware_id).into();
    assert_eq!(listed, expected);
}

#[tokio::test]
async fn range_includes_both_ends() {
    let (sensors, _fixture) = sensors().await;
    let all: Vec<_> = (0..20).map(|at| reading(1, at * 5)).collect();
    sensors.ingest(all).await.expect("ingests");
    let range = |order| ReadingRange {
        from: Some(EpochMillis(NOW_MS - 50 * 60_000)),
        to: Some(EpochMillis(NOW_MS - 10 * 60_000)),
        order,
    };
    let mut times = Vec::new();
    let mut cursor = None;
    loop {
        let page = sensors
            .readings(&hardware_id(1), range(Order::OldestFirst), 4, cursor)
            .await
            .expect("a page");
        assert!(page.items.len() <= 4);
        times.extend(
            page.items
                .iter()
                .map(|reading| (NOW_MS - reading.timestamp.0) / 60_000),
        );
        match page.next {
            Some(next) => cursor = Some(next),
            None => break,
        }
    }
    assert_eq!(times, [50, 45, 40, 35, 30, 25, 20, 15, 10]);
    let newest = sensors
        .readings(&hardware_id(1), range(Order::NewestFirst), 100, None)
        .await
        .expect("a page");
    assert_eq!(newest.items.len(), 9);
    assert_eq!(newest.items[0].timestamp, EpochMillis(NOW_MS - 10 * 60_000));
    assert_eq!(newest.next, None);
}

#[tokio::test]
async fn cursor_of_another_range_is_rejected() {
    let (sensors, _fixture) = sensors().await;
    let all: Vec<_> = (0..5).map(|at| reading(1, at * 5)).collect();
    sensors.ingest(all).await.expect("ingests");
    let page = sensors
        .readings(&hardware_id(1), ReadingRange::default(), 2, None)
        .await
        .expect("a page");
    let other = sensors
        .readings(&hardware_id(2), ReadingRange::default(), 2, page.next)
        .await;
    assert!(matches!(other, Err(SensorsError::Cursor(_))));
}

#[tokio::test]
async fn unknown_devices_are_missing() {
    let (sensors, _fixture) = sensors().await;
    let missing = SensorsError::DeviceMissing(hardware_id(1));
    assert_eq!(sensors.device(&hardware_id(1)).await, Err(missing.clone()));
    let renamed = sensors
        .rename_device(&hardware_id(1), NameChange::Remove)
        .await;
    assert_eq!(renamed, Err(missing));
}
