//! Values that are judged as they are stored: once each, in the order of their own times.

use homeport_item::{Item, Number};
use homeport_store::Put;
use homeport_systems::alerts::{
    AlertFilter, Condition, Definition, DefinitionTerms, Devices, Direction, Filter, Rate,
    StateFilter,
};
use homeport_systems::fleet::SystemName;
use homeport_systems::reactions::Reaction as _;

use crate::support::NOW_MS;
use crate::world::{TELEMETRY, VAN, World, low_battery, terms};

#[tokio::test]
async fn low_battery_is_raised_once_and_cleared_once() {
    let world = World::new().await;
    let definition = world.create(low_battery()).await;
    for (secs, volts, counts) in [
        (1, "12.6", (0, 0)),
        (2, "11.9", (1, 0)),
        (3, "11.5", (1, 0)),
        (4, "12.2", (1, 0)),
        (5, "12.4", (0, 1)),
        (6, "12.1", (0, 1)),
        (7, "11.99", (1, 1)),
    ] {
        world.judged_volts(VAN, secs, volts).await;
        assert_eq!(world.counts().await, counts, "{volts}");
        world.advance_secs(1);
    }
    let all = world.list(StateFilter::All).await;
    let [newest, first] = all.as_slice() else {
        panic!("{all:?}");
    };
    assert!(newest.is_open());
    assert_eq!(first.definition_id, definition.id);
    assert_eq!(first.device.as_str(), VAN);
    assert_eq!(first.reason, "volts is 11.9, below 12");
    assert_eq!(first.value, Some("11.9".parse().expect("a number")));
    assert_eq!(first.observed_at.0, NOW_MS + 2000);
    let cleared = first.cleared.as_ref().expect("cleared");
    assert_eq!(cleared.reason, "volts is 12.4, back at 12.4 or better");
}

#[tokio::test]
async fn repeated_changes_change_nothing() {
    let world = World::new().await;
    world.create(low_battery()).await;
    let start = world
        .fixture
        .feed()
        .end(TELEMETRY)
        .await
        .expect("a position");
    for (secs, volts) in [
        (1, "11.9"),
        (2, "12.5"),
        (3, "11.8"),
        (4, "12.6"),
        (5, "11.7"),
    ] {
        world.volts(VAN, secs, volts).await;
    }
    let changes = world.changes(&start).await;
    assert_eq!(changes.len(), 5);
    let reaction = world.alerts.reaction(&SystemName::new("telemetry"));
    let reaction = reaction.expect("a watched system");
    reaction.apply(&changes).await.expect("judged");
    let before = world.list(StateFilter::All).await;
    assert_eq!(world.counts().await, (1, 2));
    // All of them again, some of them again, and once more through the feed.
    reaction.apply(&changes).await.expect("judged");
    reaction.apply(&changes[1..3]).await.expect("judged");
    world.judge_telemetry().await;
    assert_eq!(world.list(StateFilter::All).await, before);
}

#[tokio::test]
async fn crash_before_storing_the_position_repeats_nothing() {
    let world = World::new().await;
    world.create(low_battery()).await;
    let start = world
        .fixture
        .feed()
        .end(TELEMETRY)
        .await
        .expect("a position");
    for (secs, volts) in [(1, "11.9"), (2, "13"), (3, "11.8")] {
        world.volts(VAN, secs, volts).await;
    }
    let changes = world.changes(&start).await;
    // The changes are applied, and the process ends before its position is written.
    let reaction = world.alerts.reaction(&SystemName::new("telemetry"));
    let reaction = reaction.expect("a watched system");
    reaction.apply(&changes).await.expect("judged");
    let before = world.list(StateFilter::All).await;
    assert_eq!(world.counts().await, (1, 1));
    drop(reaction);
    let world = world.reopen().await;
    world.volts(VAN, 4, "11.7").await;
    world.judge_telemetry().await;
    assert_eq!(world.list(StateFilter::All).await, before);
    world.turn().await;
    // The first of the two was over before anyone could be told.
    assert_eq!(world.outside.told(), ["alert.raised"]);
    world.judged_volts(VAN, 5, "13").await;
    assert_eq!(world.counts().await, (0, 2));
}

#[tokio::test]
async fn late_values_neither_raise_nor_clear() {
    let world = World::new().await;
    world.create(low_battery()).await;
    world.judged_volts(VAN, 100, "12.6").await;
    world.judged_volts(VAN, 50, "11.0").await;
    assert_eq!(world.counts().await, (0, 0));
    world.judged_volts(VAN, 110, "11.0").await;
    world.judged_volts(VAN, 105, "13.0").await;
    assert_eq!(world.counts().await, (1, 0));
}

#[tokio::test]
async fn device_clock_far_ahead_does_not_stop_judging() {
    let world = World::new().await;
    world.create(low_battery()).await;
    let year_secs = 365 * 24 * 60 * 60;
    world.judged_volts(VAN, year_secs, "12.6").await;
    world.advance_secs(60);
    world.judged_volts(VAN, 59, "12.6").await;
    world.judged_volts(VAN, 61, "11.0").await;
    assert_eq!(world.counts().await, (1, 0));
}

#[tokio::test]
async fn each_device_has_its_own_alert() {
    let world = World::new().await;
    let all = world.create(low_battery()).await;
    let prefix = world
        .create(DefinitionTerms {
            devices: Devices::Prefix("van-2".parse().expect("a prefix")),
            ..low_battery()
        })
        .await;
    let listed = ["van-1".parse().expect("a device")].into_iter().collect();
    let listed = world
        .create(DefinitionTerms {
            devices: Devices::Listed(listed),
            ..low_battery()
        })
        .await;
    world
        .create(DefinitionTerms {
            filter: Some(Filter {
                attribute: "message_type".parse().expect("a path"),
                equals: "status".parse().expect("a text"),
            }),
            ..low_battery()
        })
        .await;
    for van in ["van-1", "van-2", "van-21"] {
        world.volts(van, 1, "11").await;
    }
    world.judge_telemetry().await;
    let devices = async |definition: &Definition| {
        let filter = AlertFilter {
            definition: Some(definition.id.clone()),
            ..AlertFilter::default()
        };
        let page = world
            .alerts
            .alerts(&filter, 10, None)
            .await
            .expect("a page");
        let mut devices: Vec<_> = page
            .items
            .iter()
            .map(|alert| alert.device.to_string())
            .collect();
        devices.sort_unstable();
        devices
    };
    assert_eq!(devices(&all).await, ["van-1", "van-2", "van-21"]);
    assert_eq!(devices(&prefix).await, ["van-2", "van-21"]);
    assert_eq!(devices(&listed).await, ["van-1"]);
    assert_eq!(world.counts().await, (6, 0));
    // By device, and in pages.
    let filter = AlertFilter {
        state: StateFilter::Open,
        device: Some("van-2".to_owned()),
        definition: None,
        ..AlertFilter::default()
    };
    let first = world.alerts.alerts(&filter, 1, None).await.expect("a page");
    assert_eq!(first.items.len(), 1);
    let second = world.alerts.alerts(&filter, 1, first.next.clone()).await;
    let second = second.expect("a page");
    assert_eq!((second.items.len(), &second.next), (1, &None));
    assert!(first.items[0].id > second.items[0].id);
    let other = AlertFilter::default();
    assert!(world.alerts.alerts(&other, 1, first.next).await.is_err());
}

#[tokio::test]
async fn fast_rising_temperature_is_raised() {
    let world = World::new().await;
    let rate = Rate {
        attribute: "glycol.temp_c".parse().expect("a path"),
        direction: Direction::Rise,
        per_minute: 5.into(),
        clear_per_minute: 2.into(),
        window_secs: 60,
    };
    world.create(terms(Condition::Rate(rate))).await;
    for (secs, degrees, counts) in [
        (0, "20", (0, 0)),
        (60, "24", (0, 0)),
        (120, "30", (1, 0)),
        (180, "33", (1, 0)),
        (240, "34.5", (0, 1)),
    ] {
        let degrees: Number = degrees.parse().expect("a number");
        let glycol = [("temp_c".to_owned(), degrees.into())];
        let item = Item::new()
            .with("thing_name", VAN)
            .with("timestamp", NOW_MS + secs * 1000)
            .with(
                "glycol",
                homeport_item::Value::M(glycol.into_iter().collect()),
            );
        let put = Put::new(TELEMETRY, item);
        world.fixture.store.put(put).await.expect("stored");
        world.judge_telemetry().await;
        assert_eq!(world.counts().await, counts, "{degrees}");
    }
}
