//! Previews: a definition over stored history.

use std::time::Duration;

use homeport_item::Item;
use homeport_store::{BatchWrite, WriteRequest};
use homeport_systems::alerts::{
    Absence, Condition, DefinitionTerms, Devices, Preview, PreviewLimit, PreviewLimits,
    PreviewRange, Settings,
};
use homeport_systems::time::EpochMillis;

use crate::support::NOW_MS;
use crate::world::{TELEMETRY, VAN, World, low_battery, settings, terms};

const WEEK_MS: i64 = 7 * 24 * 60 * 60 * 1000;

async fn preview(world: &World, terms: DefinitionTerms) -> Preview {
    let range = PreviewRange {
        from: EpochMillis(NOW_MS - WEEK_MS),
        to: EpochMillis(NOW_MS),
    };
    world.alerts.preview(terms, range).await.expect("a preview")
}

#[tokio::test]
async fn preview_counts_what_would_have_been_raised() {
    let world = World::new().await;
    for (secs, volts) in [(-300, "11.9"), (-200, "12.5"), (-100, "11"), (-50, "10")] {
        world.volts(VAN, secs, volts).await;
    }
    world.volts("van-2", -10, "13").await;
    // Before the range.
    world.volts(VAN, -8 * 24 * 60 * 60, "11").await;
    let found = preview(&world, low_battery()).await;
    assert_eq!(
        (found.raised, found.devices_judged, found.items_read),
        (2, 2, 5)
    );
    assert!(found.limits_reached.is_empty());
    let [device] = found.devices.as_slice() else {
        panic!("{found:?}");
    };
    assert_eq!((device.device.as_str(), device.raised), (VAN, 2));
    let [first, second] = device.alerts.as_slice() else {
        panic!("{device:?}");
    };
    assert_eq!(first.raised_at.0, NOW_MS - 300_000);
    assert_eq!(first.reason, "volts is 11.9, below 12");
    let cleared = "volts is 12.5, back at 12.4 or better".to_owned();
    assert_eq!(
        first.cleared,
        Some((EpochMillis(NOW_MS - 200_000), cleared))
    );
    assert_eq!(
        (second.raised_at.0, &second.cleared),
        (NOW_MS - 100_000, &None)
    );
    // Nothing was raised, and nobody was told.
    assert_eq!(world.counts().await, (0, 0));
}

#[tokio::test]
async fn preview_begins_at_any_time() {
    let world = World::new().await;
    world.volts(VAN, -50, "11").await;
    for from in [i64::MIN, NOW_MS - WEEK_MS, NOW_MS] {
        let range = PreviewRange {
            from: EpochMillis(from),
            to: EpochMillis(i64::MAX),
        };
        let found = world.alerts.preview(low_battery(), range).await;
        let expected = usize::from(from < NOW_MS);
        assert_eq!(found.expect("a preview").raised, expected, "{from}");
    }
}

#[tokio::test]
async fn preview_finds_silences_between_values() {
    let world = World::new().await;
    for secs in [-3600, -3000, -1000, -900] {
        world.volts(VAN, secs, "13").await;
    }
    let silent = Condition::Absence(Absence { after_secs: 600 });
    let listed = ["van-1", "van-3"].map(|van| van.parse().expect("a device"));
    let found = preview(
        &world,
        DefinitionTerms {
            devices: Devices::Listed(listed.into_iter().collect()),
            ..terms(silent.clone())
        },
    )
    .await;
    let raised: Vec<_> = found
        .devices
        .iter()
        .map(|device| (device.device.as_str(), device.raised))
        .collect();
    // The listed devices were silent from the start of the range; the other one always.
    assert_eq!(raised, [("van-1", 3), ("van-3", 1)]);
    let [_, between, last] = found.devices[0].alerts.as_slice() else {
        panic!("{found:?}");
    };
    // 600 seconds and a step of 10 after the last value.
    assert_eq!(between.raised_at.0, NOW_MS - 2_390_000);
    let again = between.cleared.as_ref().map(|(at, _)| at.0);
    assert_eq!(again, Some(NOW_MS - 1_000_000));
    assert_eq!((last.raised_at.0, &last.cleared), (NOW_MS - 290_000, &None));
    let found = preview(&world, terms(silent)).await;
    assert_eq!((found.raised, found.devices_judged), (2, 1));
}

async fn store_low_volts(world: &World, van: &str, count: i64) {
    let secs: Vec<i64> = (1..=count).collect();
    for secs in secs.chunks(25) {
        let writes = secs.iter().map(|secs| WriteRequest::Put {
            table: TELEMETRY.to_owned(),
            item: Item::new()
                .with("thing_name", van)
                .with("timestamp", NOW_MS - secs * 1000)
                .with("volts", 11),
        });
        let batch = BatchWrite {
            writes: writes.collect(),
        };
        world
            .fixture
            .store
            .batch_write(batch)
            .await
            .expect("stored");
    }
}

#[tokio::test]
async fn preview_says_at_which_limit_it_ended() {
    use PreviewLimit::{Alerts, Devices, Items, Time};
    let limits = |devices_max, items_max, secs, alerts_max| PreviewLimits {
        devices_max,
        items_max,
        time_max: Duration::from_secs(secs),
        alerts_max,
    };
    for (limits, reached, raised, judged) in [
        (limits(2, 1001, 60, 2), vec![], 2, 2),
        (limits(1, 1001, 60, 2), vec![Devices], 1, 1),
        (limits(2, 1001, 60, 1), vec![Alerts], 2, 2),
        (limits(2, 500, 60, 2), vec![Items], 1, 0),
        (limits(2, 1001, 0, 2), vec![Time], 0, 0),
    ] {
        let world = World::with(Settings {
            preview: limits.clone(),
            ..settings()
        })
        .await;
        for van in ["van-1", "van-2"] {
            store_low_volts(&world, van, 500).await;
        }
        let found = preview(&world, low_battery()).await;
        assert_eq!(
            found.limits_reached,
            reached.into_iter().collect(),
            "{limits:?}"
        );
        assert_eq!(
            (found.raised, found.devices_judged),
            (raised, judged),
            "{limits:?}"
        );
        let listed: usize = found.devices.iter().map(|device| device.alerts.len()).sum();
        assert_eq!(listed, raised.min(limits.alerts_max), "{limits:?}");
    }
}
