//! Items that other programs wrote into the tables.

use homeport_item::{Item, Value};
use homeport_store::Put;

use super::*;

async fn put(fixture: &Fixture, table: &str, item: Item) {
    let put = Put::new(table, item);
    fixture.store.put(put).await.expect("a put");
}

/// A device with only the attributes of its key and of the list of devices.
fn bare_device(number: u8) -> Item {
    Item::new()
        .with("hardware_id", &hardware_id(number))
        .with("gsi1pk", "devices")
        .with("gsi1sk", "2027-01-15T07:00:00Z")
}

/// The newest item of a device, without the attributes of a reading.
fn bare_reading(number: u8) -> Item {
    Item::new()
        .with("hardware_id", &hardware_id(number))
        .with("ts_batch", format!("{}#bare", NOW_MS + 1000))
}

#[tokio::test]
async fn unreadable_device_does_not_hide_others() {
    let (sensors, fixture) = sensors().await;
    for number in [1, 3] {
        let registered = sensors.register(registration(number)).await;
        registered.expect("registers");
    }
    put(&fixture, "devices", bare_device(2)).await;
    let page = sensors.list_devices(10, None).await.expect("a page");
    let mut listed: Vec<_> = page
        .items
        .iter()
        .map(|device| &device.hardware_id)
        .collect();
    listed.sort();
    assert_eq!(listed, [&hardware_id(1), &hardware_id(3)]);
    let one = sensors.device(&hardware_id(2)).await;
    assert!(
        matches!(one, Err(SensorsError::Malformed { .. })),
        "{one:?}"
    );
}

#[tokio::test]
async fn readings_of_unreadable_device_are_stored() {
    let (sensors, fixture) = sensors().await;
    let named = bare_device(1).with("friendly_name", "greenhouse");
    put(&fixture, "devices", named).await;
    let unusable = bare_device(2).with("friendly_name", true);
    put(
        &fixture,
        "devices",
        unusable.with("last_seen_at", "yesterday"),
    )
    .await;
    let both = vec![reading(1, 0), reading(2, 0)];
    for readings in [both, vec![reading(1, 5)], vec![reading(2, 5)]] {
        let outcomes = sensors.ingest(readings).await.expect("outcomes");
        assert!(
            outcomes.iter().all(|it| *it == IngestOutcome::Stored),
            "{outcomes:?}"
        );
    }
    let latest = sensors.latest_reading(&hardware_id(1)).await;
    let name = latest.expect("a reading").friendly_name;
    assert_eq!(name.expect("a name").as_str(), "greenhouse");
    let latest = sensors.latest_reading(&hardware_id(2)).await;
    assert_eq!(latest.expect("a reading").friendly_name, None);
}

#[tokio::test]
async fn device_with_invalid_last_activity_can_register() {
    let (sensors, fixture) = sensors().await;
    let known = Item::new()
        .with("confirmation_id", BOOT_ID)
        .with("first_registered_at", "2026-01-15T08:00:00Z");
    for last_seen_at in [Value::from("yesterday"), Value::from(7), Value::Null] {
        let mut device = bare_device(1).with("last_seen_at", last_seen_at);
        for (name, value) in known.attributes() {
            device.insert(name, value.clone());
        }
        put(&fixture, "devices", device).await;
        let registered = sensors.register(registration(1)).await.expect("registers");
        assert_eq!(registered.confirmation_id.to_string(), BOOT_ID);
        let device = sensors.device(&hardware_id(1)).await.expect("a device");
        assert_eq!(device.last_seen_at.to_string(), "2027-01-15T08:00:00Z");
    }
}

#[tokio::test]
async fn unreadable_reading_does_not_hide_others() {
    let (sensors, fixture) = sensors().await;
    let all = (0..3).map(|at| reading(1, at * 5));
    sensors.ingest(all.collect()).await.expect("ingests");
    put(&fixture, "device_readings", bare_reading(1)).await;
    let latest = sensors.latest_reading(&hardware_id(1)).await;
    assert_eq!(latest.expect("a reading").timestamp, EpochMillis(NOW_MS));
    let range = ReadingRange::default();
    let page = sensors.readings(&hardware_id(1), range, 3, None).await;
    let page = page.expect("a page");
    assert_eq!(page.items.len(), 2);
    let rest = sensors
        .readings(&hardware_id(1), range, 3, page.next)
        .await
        .expect("a page");
    assert_eq!((rest.items.len(), rest.next), (1, None));
    put(&fixture, "device_readings", bare_reading(2)).await;
    let latest = sensors.latest_reading(&hardware_id(2)).await;
    assert_eq!(latest, Err(SensorsError::NoReadings(hardware_id(2))));
}
