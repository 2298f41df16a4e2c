//! What people do with alerts: snoozes, assignments, comments, and acknowledging many at once.

use homeport_systems::alerts::{
    ACKNOWLEDGED_AT_ONCE_MAX, Alert, AlertFilter, AlertId, AlertsError, COMMENTS_MAX, PersonName,
    SNOOZES_MAX, Selection, StateFilter,
};
use homeport_systems::outbox::{DeliveryState, SendError};
use homeport_systems::time::EpochMillis;

use crate::support::NOW_MS;
use crate::world::{VAN, World, low_battery};

fn name(name: &str) -> PersonName {
    name.parse().expect("a name")
}

/// A world with an open alert of whose raising nobody was notified yet.
async fn with_alert() -> (World, AlertId) {
    let world = World::new().await;
    world.create(low_battery()).await;
    world.judged_volts(VAN, 1, "11").await;
    let id = world.list(StateFilter::Open).await[0].id.clone();
    (world, id)
}

fn after_secs(world: &World, secs: i64) -> EpochMillis {
    use homeport_store::Clock as _;
    EpochMillis(world.fixture.clock.now_ms() + secs * 1000)
}

async fn snooze(world: &World, id: &AlertId, secs: i64) -> Alert {
    let until = after_secs(world, secs);
    let snoozed = world.alerts.snooze(id, name("anna"), until).await;
    snoozed.expect("snoozed")
}

#[tokio::test]
async fn snoozed_alert_wakes_with_a_notification() {
    let (world, id) = with_alert().await;
    world.turn().await;
    assert_eq!(world.outside.told(), ["alert.raised"]);
    let alert = snooze(&world, &id, 3600).await;
    let until = EpochMillis(NOW_MS + 3_600_000);
    let snoozed = alert.snoozed(EpochMillis(NOW_MS)).expect("snoozed");
    assert_eq!((snoozed.until, &snoozed.by), (until, &name("anna")));
    assert!(alert.is_open());
    let world = world.reopen().await;
    world.advance_secs(3599);
    world.turn().await;
    assert_eq!(world.outside.told().len(), 1);
    world.advance_secs(1);
    world.turn().await;
    assert_eq!(world.outside.told(), ["alert.raised", "alert.snooze_ended"]);
    let alert = world.alerts.alert(&id).await.expect("an alert");
    assert!(alert.snoozed(until).is_none());
    world.judged_volts(VAN, 5000, "13").await;
    world.turn().await;
    assert_eq!(world.outside.told()[2..], ["alert.cleared"]);
}

#[tokio::test]
async fn snoozed_alert_that_clears_does_not_wake() {
    let (world, id) = with_alert().await;
    world.turn().await;
    snooze(&world, &id, 3600).await;
    world.judged_volts(VAN, 2, "13").await;
    world.turn().await;
    assert_eq!(world.counts().await, (0, 1));
    assert_eq!(world.outside.told(), ["alert.raised"]);
    world.advance_secs(3600);
    world.turn().await;
    assert_eq!(world.outside.told(), ["alert.raised", "alert.cleared"]);
    assert_eq!(world.alerts_waiting().await, 0);
}

#[tokio::test]
async fn snooze_holds_back_the_first_notification() {
    let (world, id) = with_alert().await;
    snooze(&world, &id, 600).await;
    world.turn().await;
    assert!(world.outside.told().is_empty());
    world.advance_secs(600);
    world.turn().await;
    assert_eq!(world.outside.told(), ["alert.raised"]);
}

#[tokio::test]
async fn later_snooze_replaces_the_one_before() {
    let (world, id) = with_alert().await;
    world.turn().await;
    snooze(&world, &id, 600).await;
    snooze(&world, &id, 1200).await;
    world.advance_secs(600);
    world.turn().await;
    assert_eq!(world.outside.told().len(), 1);
    world.advance_secs(600);
    world.turn().await;
    assert_eq!(world.outside.told(), ["alert.raised", "alert.snooze_ended"]);
    let fates = world.fates(&id).await;
    let dropped = ("snooze_ended webhook".to_owned(), DeliveryState::Dropped);
    assert!(fates.contains(&dropped), "{fates:?}");
}

#[tokio::test]
async fn ended_snooze_releases_held_notifications() {
    let (world, id) = with_alert().await;
    snooze(&world, &id, 600).await;
    world.turn().await;
    world.advance_secs(60);
    let alert = world
        .alerts
        .end_snooze(&id, name("bob"))
        .await
        .expect("ended");
    assert!(alert.snoozed(after_secs(&world, 0)).is_none());
    world.turn().await;
    assert_eq!(world.outside.told(), ["alert.raised"]);
    world.advance_secs(600);
    world.turn().await;
    assert_eq!(world.outside.told(), ["alert.raised"]);
    assert_eq!(world.alerts_waiting().await, 0);
}

#[tokio::test]
async fn only_open_alerts_are_snoozed_within_limits() {
    let (world, id) = with_alert().await;
    for wrong in [0, -1, 31 * 24 * 3600 + 1] {
        let until = after_secs(&world, wrong);
        let refused = world.alerts.snooze(&id, name("anna"), until).await;
        assert!(
            matches!(refused, Err(AlertsError::Invalid(_))),
            "{refused:?}"
        );
    }
    for _ in 0..SNOOZES_MAX {
        snooze(&world, &id, 60).await;
    }
    let until = after_secs(&world, 60);
    let refused = world.alerts.snooze(&id, name("anna"), until).await;
    assert_eq!(refused, Err(AlertsError::TooManySnoozes));
    world.judged_volts(VAN, 2, "13").await;
    let refused = world.alerts.snooze(&id, name("anna"), until).await;
    assert_eq!(refused, Err(AlertsError::AlertCleared));
}

#[tokio::test]
async fn comments_and_assignment_survive_a_restart() {
    let (world, id) = with_alert().await;
    let text = |text: &str| text.parse().expect("a comment");
    for number in 0..COMMENTS_MAX {
        world.advance_secs(1);
        let said = text(&format!("comment {number}"));
        world
            .alerts
            .comment(&id, name("anna"), said)
            .await
            .expect("stored");
    }
    let refused = world.alerts.comment(&id, name("anna"), text("more")).await;
    assert_eq!(refused, Err(AlertsError::TooManyComments));
    let to = Some(name("bob"));
    world
        .alerts
        .assign(&id, name("anna"), to.clone())
        .await
        .expect("assigned");
    let world = world.reopen().await;
    let alert = world.alerts.alert(&id).await.expect("an alert");
    assert_eq!(alert.comments.len(), COMMENTS_MAX);
    let first = &alert.comments[0];
    assert_eq!(
        (first.by.as_str(), first.text.as_str()),
        ("anna", "comment 0")
    );
    assert_eq!(first.at, EpochMillis(NOW_MS + 1000));
    assert_eq!(alert.assignment.expect("assigned").to, to);
    let nobody = world
        .alerts
        .assign(&id, name("bob"), None)
        .await
        .expect("stored");
    assert_eq!(nobody.assignment.expect("a record").to, None);
    let missing: AlertId = "1800000000000-7c9e6679-7425-40de-944b-e07fc1f90ae7"
        .parse()
        .expect("an id");
    let missing_comment = world
        .alerts
        .comment(&missing, name("anna"), text("x"))
        .await;
    assert_eq!(missing_comment, Err(AlertsError::AlertMissing));
    let missing = world.alerts.assign(&missing, name("anna"), None).await;
    assert_eq!(missing, Err(AlertsError::AlertMissing));
}

#[tokio::test]
async fn each_of_many_alerts_has_its_own_result() {
    let (world, id) = with_alert().await;
    world.judged_volts("van-2", 1, "11").await;
    let other = world.list(StateFilter::Open).await;
    let other = other
        .into_iter()
        .find(|alert| alert.id != id)
        .expect("one")
        .id;
    world
        .alerts
        .acknowledge(&other, name("bob"), None)
        .await
        .expect("first");
    let missing: AlertId = "1800000000000-7c9e6679-7425-40de-944b-e07fc1f90ae7"
        .parse()
        .expect("an id");
    let ids = vec![id.clone(), other.clone(), missing];
    let done = world
        .alerts
        .acknowledge_many(Selection::Listed(ids), name("anna"), None)
        .await
        .expect("results");
    let errors: Vec<_> = done
        .results
        .iter()
        .map(|(_, result)| result.as_ref().err())
        .collect();
    assert_eq!(
        errors,
        [
            None,
            Some(&AlertsError::AlreadyAcknowledged),
            Some(&AlertsError::AlertMissing)
        ]
    );
    assert!(!done.has_more);
}

#[tokio::test]
async fn filter_acknowledges_up_to_the_limit() {
    let (world, _) = with_alert().await;
    for number in 0..ACKNOWLEDGED_AT_ONCE_MAX + 4 {
        world.volts(&format!("bus-{number}"), 1, "11").await;
    }
    world.judge_telemetry().await;
    let matching = || Selection::Matching(AlertFilter::default());
    let first = world
        .alerts
        .acknowledge_many(matching(), name("anna"), None);
    let first = first.await.expect("results");
    assert_eq!(
        (first.results.len(), first.has_more),
        (ACKNOWLEDGED_AT_ONCE_MAX, true)
    );
    let rest = world
        .alerts
        .acknowledge_many(matching(), name("anna"), None);
    let rest = rest.await.expect("results");
    assert_eq!((rest.results.len(), rest.has_more), (5, false));
    let open = world.list(StateFilter::Open).await;
    assert!(open.iter().all(|alert| alert.acknowledged.is_some()));
}

#[tokio::test]
async fn snoozed_receiver_that_is_down_is_not_called() {
    let (world, id) = with_alert().await;
    let busy = SendError::Busy {
        retry_after: None,
        reason: "503".to_owned(),
    };
    world.outside.answer([Some(busy)]);
    world.turn().await;
    snooze(&world, &id, 600).await;
    world.advance_secs(599);
    world.turn().await;
    assert_eq!(world.outside.told().len(), 1);
}
