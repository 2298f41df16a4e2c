//! Decommissioned devices have no watches and no open alerts.

use std::sync::Arc;

use homeport_store::Scan;
use homeport_systems::alerts::{
    Absence, Alerts, Condition, DefinitionTerms, Parts, StateFilter, schema,
};
use homeport_systems::removal::{OPEN_MS_MIN, Removals};

use crate::failing::FailingStore;
use crate::sources::{SENSOR, of_sensors, reading, sensors_of};
use crate::support::NOW_MS;
use crate::world::{World, parts};

const BATCHES_MAX: usize = 100;
const AFTER_SECS: u32 = 600;

/// A sensor with an alert of its battery and a silence that is due later, which is being removed.
async fn decommissioned() -> World {
    let world = World::new().await;
    world.create(of_sensors()).await;
    let silence = DefinitionTerms {
        condition: Condition::Absence(Absence {
            after_secs: AFTER_SECS,
        }),
        ..of_sensors()
    };
    world.create(silence).await;
    let sensors = sensors_of(&world);
    let sent = sensors.ingest(vec![reading("a", NOW_MS, "11")]).await;
    sent.expect("stored");
    world.judge("sensors").await;
    assert_eq!(world.counts().await, (1, 0));
    let hardware_id = SENSOR.parse().expect("an id");
    sensors.decommission(&hardware_id).await.expect("begun");
    world
}

fn removals(world: &World, alerts: Alerts) -> Removals {
    let (store, clock) = (&world.fixture.store, &world.fixture.clock);
    Removals::new(Arc::clone(store), Arc::clone(clock) as _).with_alerts(alerts)
}

async fn count(world: &World, table: &str) -> usize {
    let page = world.fixture.store.scan(Scan::new(table)).await;
    page.expect("a page").count
}

#[tokio::test]
async fn decommissioned_device_has_no_alerts() {
    let world = decommissioned().await;
    let removals = removals(&world, world.alerts.clone());
    // It can be repeated.
    for _ in 0..2 {
        let swept = removals.continue_all(BATCHES_MAX).await.expect("sweeps");
        assert!(!swept.is_finished, "requests may still be under way");
        assert_eq!(world.counts().await, (0, 1));
        assert_eq!(count(&world, schema::WATCHES).await, 0);
    }
    let cleared = world.list(StateFilter::Cleared).await;
    let cleared = cleared[0].cleared.as_ref().expect("cleared");
    assert_eq!(cleared.reason, "the device was decommissioned");
    world.advance_secs(i64::from(2 * AFTER_SECS));
    world.judge("sensors").await;
    assert_eq!(world.turn().await.silent, 0);
    let swept = removals.continue_all(BATCHES_MAX).await.expect("sweeps");
    assert!(swept.is_finished);
}

#[tokio::test]
async fn removal_stays_open_until_alerts_are_cleared() {
    let world = decommissioned().await;
    world.fixture.clock.advance_ms(OPEN_MS_MIN);
    world.judge("sensors").await;
    let store = Arc::clone(&world.fixture.store);
    let failing = Alerts::new(
        Parts {
            store: Arc::new(FailingStore::new(store, 0, false)),
            ..parts(&world.fixture, &world.topics)
        },
        crate::world::settings(),
    );
    let failed = removals(&world, failing).continue_all(BATCHES_MAX).await;
    assert!(failed.is_err());
    assert_eq!(world.counts().await, (1, 0));
    assert_eq!(count(&world, "homeport-removals").await, 1);
    let removals = removals(&world, world.alerts.clone());
    let swept = removals.continue_all(BATCHES_MAX).await.expect("sweeps");
    assert!(swept.is_finished);
    assert_eq!(world.counts().await, (0, 1));
    assert_eq!(count(&world, "homeport-removals").await, 0);
}
