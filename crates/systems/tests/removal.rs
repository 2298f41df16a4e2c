//! Deleting single items, and decommissioning sensors and chargers with all of their data.

mod failing;
mod support;

use std::collections::BTreeSet;
use std::sync::Arc;

use failing::FailingStore;
use homeport_item::{Item, Map};
use homeport_store::{Scan, Store};
use homeport_systems::chargers::{
    self, Chargers, ChargersError, DailyReaction, DeviceName, EventData, EventDevice, EventOutcome,
    EventRange, NewEvent, Rejection, ScId, WirelessDeviceId, affected_days,
};
use homeport_systems::reactions::{self, Reactions};
use homeport_systems::removal::{OPEN_MS_MIN, Removals};
use homeport_systems::sensors::{
    self, HardwareId, IngestOutcome, NameChange, Named, Reading, ReadingRange, Sensors,
    SensorsError, Settings,
};
use homeport_systems::time::EpochMillis;
use support::{Fixture, NOW_MS};

const BATCHES_MAX: usize = 1000;

struct World {
    fixture: Fixture,
    sensors: Sensors,
    chargers: Chargers,
    removals: Removals,
}

async fn world() -> World {
    let tables = [
        sensors::schema::tables(),
        chargers::schema::tables(),
        reactions::schema::tables(),
    ];
    let fixture = support::fixture(&tables.concat()).await;
    World {
        sensors: sensors_on(&fixture.store, &fixture),
        chargers: Chargers::new(Arc::clone(&fixture.store), Arc::clone(&fixture.clock) as _),
        removals: removals_on(&fixture.store, &fixture),
        fixture,
    }
}

fn sensors_on(store: &Arc<dyn Store>, fixture: &Fixture) -> Sensors {
    let clock = Arc::clone(&fixture.clock) as _;
    Sensors::new(Arc::clone(store), clock, Settings::default())
}

fn removals_on(store: &Arc<dyn Store>, fixture: &Fixture) -> Removals {
    Removals::new(Arc::clone(store), Arc::clone(&fixture.clock) as _)
}

fn sensor(number: u8) -> HardwareId {
    format!("AA:BB:CC:DD:EE:{number:02X}")
        .parse()
        .expect("an id")
}

fn reading(number: u8, minutes_ago: i64) -> Reading {
    let timestamp = NOW_MS - minutes_ago * 60_000;
    Reading {
        hardware_id: sensor(number),
        batch_id: format!("{number}-{timestamp}").parse().expect("a batch id"),
        boot_id: "7c9e6679-7425-40de-944b-e07fc1f90ae7"
            .parse()
            .expect("a UUID"),
        firmware_version: "1.0.16".parse().expect("a version"),
        timestamp: EpochMillis(timestamp),
        sensors: Named::default(),
        sensor_status: Named::default(),
        friendly_name: None,
    }
}

fn wireless(number: u8) -> WirelessDeviceId {
    let text = format!("b319d001-6b08-4d88-b4ca-4d2d98a6d4{number:02x}");
    text.parse().expect("a UUID")
}

fn charger(number: u8) -> DeviceName {
    DeviceName::Wireless(wireless(number))
}

fn sc_id(number: u8) -> ScId {
    ScId::of(wireless(number))
}

fn event(number: u8, minutes_ago: i64) -> NewEvent {
    NewEvent {
        device: EventDevice::Wireless(wireless(number)),
        event_type: "telemetry".parse().expect("a type"),
        occurred_at: Some(EpochMillis(NOW_MS - minutes_ago * 60_000)),
        sequence: None,
        data: EventData::new(Map::from([("a".to_owned(), 1.into())])).expect("data"),
        uplink: None,
    }
}

impl World {
    /// Two sensors and two chargers with data.
    async fn fill(&self) {
        for number in [1, 2] {
            let readings = (0..60).map(|at| reading(number, at)).collect();
            self.sensors.ingest(readings).await.expect("ingests");
            let events = (0..60).map(|at| event(number, at)).collect();
            self.chargers.ingest(events).await.expect("ingests");
        }
        let events = self.items("evse-events").await;
        let days: BTreeSet<_> = events.iter().flat_map(affected_days).collect();
        self.chargers.recount(&days).await.expect("counts");
    }

    async fn items(&self, table: &str) -> Vec<Item> {
        let page = self.fixture.store.scan(Scan::new(table)).await;
        page.expect("a scan").items
    }

    /// The number of items that name a sensor or a charger.
    async fn items_of(&self, number: u8) -> usize {
        let ids = [sensor(number).to_string(), sc_id(number).to_string()];
        let mut count = 0;
        for table in [
            "devices",
            "device_readings",
            "processed_batches",
            "evse-events",
            "evse-device-state",
            "evse-devices",
            "evse-daily-stats",
            "homeport-removals",
        ] {
            let items = self.items(table).await.into_iter();
            let text = |item: Item| serde_json::to_string(&item).expect("JSON");
            count += items
                .map(text)
                .filter(|item| ids.iter().any(|id| item.contains(id)))
                .count();
        }
        count
    }

    async fn assert_invisible(&self, number: u8) {
        let missing = self.sensors.device(&sensor(number)).await;
        assert!(
            matches!(missing, Err(SensorsError::DeviceMissing(_))),
            "{missing:?}"
        );
        let listed = self.sensors.list_devices(10, None).await.expect("a page");
        assert!(
            listed
                .items
                .iter()
                .all(|device| device.hardware_id != sensor(number))
        );
        let range = ReadingRange::default();
        let page = self
            .sensors
            .readings(&sensor(number), range, 10, None)
            .await;
        assert_eq!(page.expect("a page").items, []);
        let latest = self.sensors.latest_reading(&sensor(number)).await;
        assert!(
            matches!(latest, Err(SensorsError::NoReadings(_))),
            "{latest:?}"
        );

        let missing = self.chargers.charger(&sc_id(number)).await;
        assert!(
            matches!(missing, Err(ChargersError::DeviceMissing(_))),
            "{missing:?}"
        );
        let fleet = self.chargers.fleet(10, None).await.expect("a page");
        assert!(
            fleet
                .items
                .iter()
                .all(|known| known.device_id != sc_id(number))
        );
        let range = EventRange::default();
        let page = self
            .chargers
            .events(&sc_id(number), None, range, 10, None)
            .await;
        assert_eq!(page.expect("a page").items, []);
        let days = self
            .chargers
            .daily(&sc_id(number), None, None, 10, None)
            .await;
        assert_eq!(days.expect("a page").items, []);
        let event_type = "telemetry".parse().expect("a type");
        let mut cursor = None;
        loop {
            let page = self
                .chargers
                .fleet_events(&event_type, range, 7, cursor)
                .await;
            let page = page.expect("a page");
            assert!(
                page.items
                    .iter()
                    .all(|event| event.device_id != sc_id(number))
            );
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
    }

    async fn finish(&self) {
        self.fixture.clock.advance_ms(OPEN_MS_MIN);
        let swept = self.removals.continue_all(BATCHES_MAX).await;
        assert!(swept.expect("sweeps").is_finished);
    }
}

#[tokio::test]
async fn decommissioned_devices_are_invisible_at_once() {
    let world = world().await;
    world.fill().await;
    let before = world.items_of(2).await;
    for _ in 0..2 {
        world
            .sensors
            .decommission(&sensor(1))
            .await
            .expect("begins");
        world
            .chargers
            .decommission(&charger(1))
            .await
            .expect("begins");
        world.assert_invisible(1).await;
    }
    assert!(world.items_of(1).await > 100);
    world.finish().await;
    assert_eq!(world.items_of(1).await, 0);
    assert_eq!(world.items_of(2).await, before);
    world.assert_invisible(1).await;
    let missing = world.sensors.decommission(&sensor(1)).await;
    assert!(
        matches!(missing, Err(SensorsError::DeviceMissing(_))),
        "{missing:?}"
    );
    let missing = world.chargers.decommission(&charger(1)).await;
    assert!(
        matches!(missing, Err(ChargersError::DeviceMissing(_))),
        "{missing:?}"
    );
}

#[tokio::test]
async fn removal_continues_after_any_failed_write() {
    let whole = world().await;
    whole.fill().await;
    let mut failed = 0;
    for writes in 0.. {
        whole
            .sensors
            .ingest(vec![reading(1, 1), reading(1, 2)])
            .await
            .expect("ingests");
        whole
            .chargers
            .ingest(vec![event(1, 1)])
            .await
            .expect("ingests");
        whole
            .sensors
            .decommission(&sensor(1))
            .await
            .expect("begins");
        whole
            .chargers
            .decommission(&charger(1))
            .await
            .expect("begins");
        whole.fixture.clock.advance_ms(OPEN_MS_MIN);
        // Every second time the write takes effect and only its answer is lost.
        let store = Arc::clone(&whole.fixture.store);
        let failing: Arc<dyn Store> = Arc::new(FailingStore::new(store, writes, writes % 2 == 1));
        let swept = removals_on(&failing, &whole.fixture)
            .continue_all(BATCHES_MAX)
            .await;
        whole.finish().await;
        assert_eq!(whole.items_of(1).await, 0, "{writes}");
        if swept.is_ok() {
            break;
        }
        failed += 1;
    }
    assert!(failed > 3, "{failed}");
}

#[tokio::test]
async fn large_removals_continue_within_their_budget() {
    let world = world().await;
    world.fill().await;
    world
        .sensors
        .decommission(&sensor(1))
        .await
        .expect("begins");
    world.fixture.clock.advance_ms(OPEN_MS_MIN);
    let mut turns = 0;
    while !world
        .removals
        .continue_all(1)
        .await
        .expect("sweeps")
        .is_finished
    {
        turns += 1;
        world.assert_sensor_hidden().await;
    }
    assert!(turns >= 4, "{turns}");
    assert_eq!(world.items("homeport-removals").await, []);
}

impl World {
    async fn assert_sensor_hidden(&self) {
        let range = ReadingRange::default();
        let page = self.sensors.readings(&sensor(1), range, 10, None).await;
        assert_eq!(page.expect("a page").items, []);
    }
}

#[tokio::test]
async fn device_registers_again_after_its_removal() {
    let world = world().await;
    world.fill().await;
    world
        .sensors
        .decommission(&sensor(1))
        .await
        .expect("begins");
    world
        .chargers
        .decommission(&charger(1))
        .await
        .expect("begins");
    let sent = vec![reading(1, 0), reading(2, 100)];
    let outcomes = world.sensors.ingest(sent).await.expect("ingests");
    let rejection = sensors::Rejection::DeviceBeingDecommissioned;
    assert_eq!(
        outcomes,
        [IngestOutcome::Rejected(rejection), IngestOutcome::Stored]
    );
    let outcomes = world
        .chargers
        .ingest(vec![event(1, 0)])
        .await
        .expect("ingests");
    let rejection = Rejection::BeingDecommissioned(sc_id(1));
    assert_eq!(outcomes, [EventOutcome::Rejected(rejection)]);
    world.finish().await;
    let outcomes = world
        .sensors
        .ingest(vec![reading(1, 0)])
        .await
        .expect("ingests");
    assert_eq!(outcomes, [IngestOutcome::Stored]);
    let outcomes = world
        .chargers
        .ingest(vec![event(1, 0)])
        .await
        .expect("ingests");
    assert!(
        matches!(outcomes[0], EventOutcome::Stored { .. }),
        "{outcomes:?}"
    );
    let range = ReadingRange::default();
    let page = world.sensors.readings(&sensor(1), range, 10, None).await;
    assert_eq!(page.expect("a page").items.len(), 1);
}

#[tokio::test]
async fn deleted_reading_is_never_stored_again() {
    let world = world().await;
    let sent = vec![reading(1, 0), reading(1, 1)];
    world.sensors.ingest(sent.clone()).await.expect("ingests");
    let (hardware_id, deleted) = (sensor(1), &sent[0]);
    let delete = || {
        let batch_id = &deleted.batch_id;
        world
            .sensors
            .delete_reading(&hardware_id, deleted.timestamp, batch_id)
    };
    delete().await.expect("deletes");
    assert_eq!(delete().await, Err(SensorsError::ReadingMissing));
    let outcomes = world.sensors.ingest(sent).await.expect("ingests");
    assert!(
        outcomes
            .iter()
            .all(|outcome| *outcome == IngestOutcome::Duplicate)
    );
    let range = ReadingRange::default();
    let page = world.sensors.readings(&hardware_id, range, 10, None).await;
    assert_eq!(page.expect("a page").items.len(), 1);
}

#[tokio::test]
async fn deleted_event_leaves_the_daily_statistics() {
    let world = world().await;
    let events = vec![event(1, 0), event(1, 30)];
    let outcomes = world.chargers.ingest(events).await.expect("ingests");
    let keys = outcomes.into_iter().map(|outcome| match outcome {
        EventOutcome::Stored { timestamp_mt, .. } => timestamp_mt,
        other => panic!("{other:?}"),
    });
    let reaction = DailyReaction::new(world.chargers.clone());
    let clock = Arc::clone(&world.fixture.clock) as _;
    let reactions = Reactions::new(
        Arc::clone(&world.fixture.store),
        world.fixture.feed(),
        clock,
    );
    let mut counts = Vec::new();
    for key in keys {
        reactions.catch_up(&reaction).await.expect("follows");
        let days = world.chargers.daily(&sc_id(1), None, None, 10, None).await;
        counts.push(
            days.expect("a page")
                .items
                .first()
                .and_then(|day| day.get("event_count").cloned()),
        );
        world
            .chargers
            .delete_event(&charger(1), key)
            .await
            .expect("deletes");
        let again = world.chargers.delete_event(&charger(1), key).await;
        assert_eq!(again, Err(ChargersError::EventMissing(sc_id(1), key)));
    }
    reactions.catch_up(&reaction).await.expect("follows");
    assert_eq!(counts, [Some(2.into()), Some(1.into())]);
    let days = world.chargers.daily(&sc_id(1), None, None, 10, None).await;
    assert_eq!(days.expect("a page").items, []);
}

#[tokio::test]
async fn charger_keeps_its_friendly_name() {
    let world = world().await;
    world.fill().await;
    let device = charger(1);
    let named = |change| world.chargers.rename(&device, change);
    let name = |charger: &chargers::Charger| charger.registration.get("friendly_name").cloned();
    let set = named(NameChange::Set("garage".parse().expect("a name"))).await;
    assert_eq!(name(&set.expect("renames")), Some("garage".into()));
    world
        .chargers
        .ingest(vec![event(1, -1)])
        .await
        .expect("ingests");
    let kept = named(NameChange::Keep).await.expect("a charger");
    assert_eq!(name(&kept), Some("garage".into()));
    let removed = named(NameChange::Remove).await.expect("renames");
    assert_eq!(name(&removed), None);
    let missing = world.chargers.rename(&charger(9), NameChange::Remove).await;
    assert_eq!(missing, Err(ChargersError::DeviceMissing(sc_id(9).into())));
}
