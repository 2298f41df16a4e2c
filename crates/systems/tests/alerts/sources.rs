//! Readings of sensors and records, beside telemetry; and tables that nobody watches.

use std::sync::Arc;
use std::time::Duration;

use homeport_systems::alerts::{DefinitionTerms, Devices, StateFilter};
use homeport_systems::chargers;
use homeport_systems::fleet::SystemName;
use homeport_systems::records::{
    self, Attributes, NewDevice, NewGroup, NewJournal, NewRecord, RecordValue, Records,
};
use homeport_systems::sensors::{self, IngestOutcome, Named, Reading, Sensors};
use homeport_systems::time::EpochMillis;

use crate::support::NOW_MS;
use crate::world::{World, low_battery};

pub(crate) const SENSOR: &str = "AA:BB:CC:DD:EE:01";

pub(crate) fn sensors_of(world: &World) -> Sensors {
    let (store, clock) = (&world.fixture.store, &world.fixture.clock);
    Sensors::new(
        Arc::clone(store),
        Arc::clone(clock) as _,
        sensors::Settings::default(),
    )
}

pub(crate) fn reading(batch_id: &str, at_ms: i64, volts: &str) -> Reading {
    Reading {
        batch_id: batch_id.parse().expect("a batch id"),
        hardware_id: SENSOR.parse().expect("a MAC address"),
        boot_id: "7c9e6679-7425-40de-944b-e07fc1f90ae7"
            .parse()
            .expect("a UUID"),
        firmware_version: "1.0.16".parse().expect("a version"),
        timestamp: EpochMillis(at_ms),
        sensors: Named::from([(
            "volts".parse().expect("a name"),
            volts.parse().expect("a number"),
        )]),
        sensor_status: Named::default(),
        friendly_name: None,
    }
}

pub(crate) fn of_sensors() -> DefinitionTerms {
    let mut terms = DefinitionTerms {
        source: SystemName::new("sensors"),
        ..low_battery()
    };
    if let homeport_systems::alerts::Condition::Threshold(threshold) = &mut terms.condition {
        threshold.attribute = "sensors.volts".parse().expect("a path");
    }
    terms
}

#[tokio::test]
async fn readings_of_sensors_are_judged() {
    let world = World::new().await;
    let sensors = sensors_of(&world);
    world.create(of_sensors()).await;
    // Two windows may end in one millisecond: each is judged, in the order of their keys.
    let readings = vec![
        reading("b", NOW_MS, "11"),
        reading("a", NOW_MS, "13"),
        reading("late", NOW_MS - 1, "14"),
    ];
    let outcomes = sensors.ingest(readings).await.expect("stored");
    assert!(
        outcomes.iter().all(|one| *one == IngestOutcome::Stored),
        "{outcomes:?}"
    );
    world.judge("sensors").await;
    let open = world.list(StateFilter::Open).await;
    assert_eq!(open.len(), 1);
    assert_eq!(open[0].device.as_str(), SENSOR);
    assert_eq!(open[0].reason, "sensors.volts is 11, below 12");
}

#[tokio::test]
async fn records_are_judged_under_their_public_ids() {
    let world = World::new().await;
    let (store, clock) = (&world.fixture.store, &world.fixture.clock);
    let records = Records::new(
        Arc::clone(store),
        Arc::clone(clock) as _,
        records::Settings::default(),
    );
    let group = NewGroup {
        name: "home".parse().expect("a name"),
        retention: None,
        external_id: None,
        attributes: Attributes::default(),
    };
    let group = records.add_group(group).await.expect("a group").id;
    let device = NewDevice {
        name: "roof".parse().expect("a name"),
        model: None,
        acl_policy: None,
        attributes: Attributes::default(),
    };
    let device = records
        .add_device(group, device)
        .await
        .expect("a device")
        .id;
    let journal = NewJournal {
        name: "volts".parse().expect("a name"),
        data_type: "number".parse().expect("a type"),
        attributes: Attributes::default(),
    };
    let journal = records.add_journal(group, device, journal).await;
    let journal = journal.expect("a journal").id;
    let ids = records.ids().await.expect("ids");
    let mut terms = DefinitionTerms {
        source: SystemName::new("records"),
        devices: Devices::Prefix(format!("{}/", ids.group(group)).parse().expect("a prefix")),
        ..low_battery()
    };
    if let homeport_systems::alerts::Condition::Threshold(threshold) = &mut terms.condition {
        threshold.attribute = "value".parse().expect("a path");
    }
    world.create(terms).await;
    for (at_ms, volts) in [(NOW_MS, "11"), (NOW_MS - 1, "13")] {
        let record = NewRecord {
            value: RecordValue::Number(volts.parse().expect("a number")),
            unit: "V".parse().expect("a unit"),
            kind: "voltage".parse().expect("a type"),
            timestamp: Some(at_ms.try_into().expect("a time")),
            id: None,
        };
        let added = records.add_record(group, device, journal, record).await;
        added.expect("added");
    }
    world.judge("records").await;
    let open = world.list(StateFilter::Open).await;
    assert_eq!(open.len(), 1);
    let name = [ids.group(group), ids.device(device), ids.journal(journal)].join("/");
    assert_eq!(open[0].device.as_str(), name);
}

#[tokio::test]
async fn events_of_chargers_are_judged() {
    let world = World::new().await;
    let mut terms = DefinitionTerms {
        source: SystemName::new("chargers"),
        ..low_battery()
    };
    if let homeport_systems::alerts::Condition::Threshold(threshold) = &mut terms.condition {
        threshold.attribute = "data.volts".parse().expect("a path");
    }
    world.create(terms).await;
    // In the order of their times, the last event is the low one.
    for (key, at_ms, volts) in [
        ("2027-01-15 01:00:01.000", NOW_MS + 1000, 11),
        ("2027-01-15 01:00:00.000", NOW_MS, 13),
    ] {
        let data = homeport_item::Map::from([("volts".to_owned(), volts.into())]);
        let event = homeport_item::Item::new()
            .with("device_id", "SC-A1B2C3D4")
            .with("timestamp_mt", key)
            .with("timestamp_utc_ms", at_ms)
            .with("event_type", "telemetry")
            .with("data", homeport_item::Value::M(data));
        let put = homeport_store::Put::new(chargers::schema::EVENTS, event);
        world.fixture.store.put(put).await.expect("stored");
    }
    world.judge("chargers").await;
    let open = world.list(StateFilter::Open).await;
    assert_eq!(open.len(), 1);
    assert_eq!(open[0].device.as_str(), "SC-A1B2C3D4");
    assert_eq!(open[0].reason, "data.volts is 11, below 12");
}

/// How many changes a table has kept behind where its log ended before a reading was stored; none
/// where it keeps no log.
async fn changes_of_a_reading(world: &World, batch_id: &str) -> usize {
    let feed = world.fixture.feed();
    let table = sensors::schema::DEVICE_READINGS;
    let end = feed.end(table).await;
    let stored = sensors_of(world)
        .ingest(vec![reading(batch_id, NOW_MS, "13")])
        .await;
    stored.expect("stored");
    match end {
        Ok(end) => {
            let page = feed.changes(table, &end, 10, Duration::ZERO).await;
            page.map_or(0, |page| page.changes.len())
        }
        Err(_) => 0,
    }
}

#[tokio::test]
async fn stream_is_enabled_by_the_first_definition() {
    let world = World::new().await;
    world.create(low_battery()).await;
    assert_eq!(changes_of_a_reading(&world, "a").await, 0);
    let off = DefinitionTerms {
        is_enabled: false,
        ..of_sensors()
    };
    let definition = world.create(off).await;
    assert_eq!(changes_of_a_reading(&world, "b").await, 0);
    let on = world.alerts.replace(&definition.id, of_sensors()).await;
    on.expect("on");
    assert_eq!(changes_of_a_reading(&world, "c").await, 1);
}

#[tokio::test]
async fn missed_changes_are_recovered_from_the_table() {
    let world = World::new().await;
    world.create(of_sensors()).await;
    let sensors = sensors_of(&world);
    let stored = sensors.ingest(vec![reading("a", NOW_MS, "13")]).await;
    stored.expect("stored");
    world.judge("sensors").await;
    let stored = sensors
        .ingest(vec![reading("b", NOW_MS + 1000, "11")])
        .await;
    stored.expect("stored");
    // The position is lost, as when more has happened than the log keeps.
    let position = homeport_item::Item::new()
        .with("reaction", "alerts-sensors")
        .with("position", "of another store");
    let put = homeport_store::Put::new("homeport-reactions", position);
    world.fixture.store.put(put).await.expect("put");
    world.judge("sensors").await;
    assert_eq!(world.counts().await, (1, 0));
}
