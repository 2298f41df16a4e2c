//! Quiet times and pauses between notifications: what is raised is shown at once and told later, if
//! it is still of interest then.

use homeport_systems::alerts::{DefinitionTerms, Quiet, StateFilter};
use homeport_systems::outbox::DeliveryState;

use crate::world::{VAN, World, low_battery};

/// The tests begin at 08:00 in UTC; this ends at 09:00.
fn quiet_morning() -> DefinitionTerms {
    DefinitionTerms {
        quiet: Some(Quiet {
            from: "07:30".to_owned().try_into().expect("a time"),
            to: "10:00".to_owned().try_into().expect("a time"),
            zone: "Europe/Berlin".to_owned().try_into().expect("a zone"),
        }),
        ..low_battery()
    }
}

#[tokio::test]
async fn alert_in_quiet_hours_is_notified_afterwards() {
    let world = World::new().await;
    world.create(quiet_morning()).await;
    world.judged_volts(VAN, 1, "11").await;
    let turn = world.turn().await;
    assert_eq!(world.counts().await, (1, 0));
    assert!(world.outside.told().is_empty());
    let end_ms = crate::support::NOW_MS + 3_600_000;
    assert_eq!(turn.next_at.map(|at| at.0), Some(end_ms));
    let id = world.list(StateFilter::Open).await[0].id.clone();
    let trace = world.alerts.notifications(&id).await.expect("a trace");
    assert_eq!(
        trace[0].delivery.steps[0].what,
        "webhook https://example.com/hook, held back until 2027-01-15T09:00:00.000Z"
    );
    let world = world.reopen().await;
    world.advance_secs(3600);
    world.turn().await;
    assert_eq!(world.outside.told(), ["alert.raised"]);
    world.judged_volts(VAN, 4000, "13").await;
    world.turn().await;
    assert_eq!(world.outside.told(), ["alert.raised", "alert.cleared"]);
}

#[tokio::test]
async fn alert_cleared_in_quiet_hours_is_not_notified() {
    let world = World::new().await;
    world.create(quiet_morning()).await;
    world.judged_volts(VAN, 1, "11").await;
    world.turn().await;
    world.judged_volts(VAN, 2, "13").await;
    world.advance_secs(3600);
    world.turn().await;
    world.advance_secs(10);
    world.turn().await;
    assert!(world.outside.told().is_empty());
    let id = world.list(StateFilter::Cleared).await[0].id.clone();
    let dropped = |name: &str| (name.to_owned(), DeliveryState::Dropped);
    assert_eq!(
        world.fates(&id).await,
        [dropped("cleared webhook"), dropped("raised webhook")]
    );
}

#[tokio::test]
async fn alert_acknowledged_in_quiet_hours_is_not_notified() {
    let world = World::new().await;
    world.create(quiet_morning()).await;
    world.judged_volts(VAN, 1, "11").await;
    let id = world.list(StateFilter::Open).await[0].id.clone();
    world.turn().await;
    let by = "anna".parse().expect("a name");
    world.alerts.acknowledge(&id, by, None).await.expect("seen");
    world.advance_secs(3600);
    world.turn().await;
    assert!(world.outside.told().is_empty());
}

#[tokio::test]
async fn flapping_value_respects_the_notification_interval() {
    let world = World::new().await;
    let terms = DefinitionTerms {
        min_interval_secs: 600,
        ..low_battery()
    };
    world.create(terms).await;
    for secs in 0..5 {
        world.judged_volts(VAN, secs * 60, "11").await;
        world.turn().await;
        world.advance_secs(30);
        world.judged_volts(VAN, secs * 60 + 30, "13").await;
        world.turn().await;
        world.advance_secs(30);
    }
    assert_eq!(world.counts().await, (0, 5));
    assert_eq!(world.outside.told(), ["alert.raised", "alert.cleared"]);
    // The last alert stays open and is notified after the pause.
    world.judged_volts(VAN, 300, "11").await;
    world.turn().await;
    assert_eq!(world.outside.told().len(), 2);
    world.advance_secs(300);
    world.turn().await;
    assert_eq!(world.outside.told()[2..], ["alert.raised"]);
    assert_eq!(world.counts().await, (1, 5));
}
