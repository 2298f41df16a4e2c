//! Values that are old when they are stored, such as imported history.

use homeport_item::Item;
use homeport_store::{BatchWrite, WriteRequest};
use homeport_systems::alerts::{Absence, Condition, DefinitionTerms, Devices, Settings};

use crate::support::NOW_MS;
use crate::world::{TELEMETRY, VAN, World, low_battery, settings, terms};

const DAY_SECS: i64 = 24 * 60 * 60;

/// Imports a year of low voltages, one a day, up to two days ago.
async fn import_year(world: &World) {
    let days: Vec<i64> = (2..=365).rev().collect();
    for days in days.chunks(25) {
        let puts = days.iter().map(|day| {
            let item = Item::new()
                .with("thing_name", VAN)
                .with("timestamp", NOW_MS - day * DAY_SECS * 1000)
                .with("volts", if day % 7 == 0 { 13 } else { 11 });
            WriteRequest::Put {
                table: TELEMETRY.to_owned(),
                item,
            }
        });
        let batch = BatchWrite {
            writes: puts.collect(),
        };
        world
            .fixture
            .store
            .batch_write(batch)
            .await
            .expect("stored");
    }
    world.judge_telemetry().await;
}

#[tokio::test]
async fn importing_a_year_of_history_notifies_nobody() {
    let world = World::new().await;
    world.create(low_battery()).await;
    world
        .create(terms(Condition::Absence(Absence { after_secs: 600 })))
        .await;
    import_year(&world).await;
    world.advance_secs(3600);
    world.turn().await;
    assert_eq!(world.counts().await, (0, 0));
    assert_eq!(world.outside.told(), Vec::<String>::new());
    // The newest value is current, and still wrong.
    world.judged_volts(VAN, 3600, "11").await;
    world.turn().await;
    assert_eq!(world.counts().await, (1, 0));
    assert_eq!(world.outside.told(), ["alert.raised"]);
}

#[tokio::test]
async fn imported_history_does_not_end_a_silence() {
    let world = World::new().await;
    let silent = DefinitionTerms {
        devices: Devices::Listed([VAN.parse().expect("a device")].into_iter().collect()),
        ..terms(Condition::Absence(Absence { after_secs: 600 }))
    };
    world.create(silent).await;
    world.advance_secs(700);
    world.judge_telemetry().await;
    world.turn().await;
    assert_eq!(world.counts().await, (1, 0));
    import_year(&world).await;
    assert_eq!(world.counts().await, (1, 0));
    world.judged_volts(VAN, 700, "13").await;
    assert_eq!(world.counts().await, (0, 1));
}

#[tokio::test]
async fn age_limit_is_a_setting() {
    for (announce_max_age_secs, counts) in [(Some(3600), (0, 0)), (None, (1, 0))] {
        let world = World::with(Settings {
            announce_max_age_secs,
            ..settings()
        })
        .await;
        world.create(low_battery()).await;
        world.judged_volts(VAN, -3601, "11").await;
        assert_eq!(world.counts().await, counts, "{announce_max_age_secs:?}");
        world.judged_volts(VAN, -3600, "11").await;
        assert_eq!(world.counts().await, (1, 0), "{announce_max_age_secs:?}");
    }
}
