//! Silences: by the times in the store, across restarts, for devices that were seen or are listed.

use homeport_systems::alerts::{
    Absence, Condition, DefinitionTerms, Devices, Settings, StateFilter,
};

use crate::world::{VAN, World, settings, terms};

/// "No telemetry for 10 minutes", and how much later that is noticed at most.
const AFTER_SECS: i64 = 600;
const STEP_SECS: i64 = 10;

fn silent() -> DefinitionTerms {
    terms(Condition::Absence(Absence { after_secs: 600 }))
}

#[tokio::test]
async fn silent_device_raises_and_new_data_clears() {
    let world = World::new().await;
    world.create(silent()).await;
    world.judged_volts(VAN, 0, "12").await;
    world.advance_secs(AFTER_SECS - 1);
    assert_eq!(world.turn().await.silent, 0);
    world.judged_volts(VAN, 599, "12").await;
    world.advance_secs(AFTER_SECS - 1);
    assert_eq!(world.turn().await.silent, 0);
    world.advance_secs(1 + STEP_SECS);
    assert_eq!(world.turn().await.silent, 1);
    // Once, however often it is looked at.
    assert_eq!(world.turn().await.silent, 0);
    let open = world.list(StateFilter::Open).await;
    assert_eq!(open.len(), 1);
    assert_eq!(
        open[0].reason,
        "no data for 600 seconds, since 2027-01-15T08:09:59.000Z"
    );
    world.judged_volts(VAN, 1300, "12").await;
    assert_eq!(world.counts().await, (0, 1));
    assert_eq!(world.turn().await.silent, 0);
}

#[tokio::test]
async fn silence_continues_across_a_restart() {
    let world = World::new().await;
    world.create(silent()).await;
    world.judged_volts(VAN, 0, "12").await;
    world.advance_secs(AFTER_SECS / 2);
    let world = world.reopen().await;
    world.judge_telemetry().await;
    world.advance_secs(AFTER_SECS / 2 - 1);
    assert_eq!(world.turn().await.silent, 0);
    world.advance_secs(1 + STEP_SECS);
    assert_eq!(world.turn().await.silent, 1);
    let world = world.reopen().await;
    world.judge_telemetry().await;
    assert_eq!(world.turn().await.silent, 0);
    assert_eq!(world.counts().await, (1, 0));
}

#[tokio::test]
async fn unseen_device_is_silent_only_if_listed() {
    let world = World::new().await;
    world.create(silent()).await;
    let listed = ["van-8", "van-9"].map(|van| van.parse().expect("a device"));
    let devices = Devices::Listed(listed.into_iter().collect());
    world
        .create(DefinitionTerms {
            devices,
            ..silent()
        })
        .await;
    world.advance_secs(AFTER_SECS / 2);
    world.judged_volts("van-9", 300, "12").await;
    world.advance_secs(AFTER_SECS / 2 + STEP_SECS);
    assert_eq!(world.turn().await.silent, 1);
    let open = world.list(StateFilter::Open).await;
    assert_eq!(open[0].device.as_str(), "van-8");
}

#[tokio::test]
async fn late_data_is_a_sign_of_life() {
    let world = World::new().await;
    world.create(silent()).await;
    world.judged_volts(VAN, 0, "12").await;
    world.advance_secs(AFTER_SECS - 1);
    // Measured long ago, sent now.
    world.judged_volts(VAN, -5000, "12").await;
    world.advance_secs(1 + STEP_SECS);
    assert_eq!(world.turn().await.silent, 0);
}

#[tokio::test]
async fn unjudged_data_delays_a_silence() {
    let world = World::new().await;
    world.create(silent()).await;
    world.judged_volts(VAN, 0, "12").await;
    world.advance_secs(AFTER_SECS + STEP_SECS);
    let world = world.reopen().await;
    // Nothing has been followed in this process: whether the device was heard is not known.
    assert_eq!(world.turn().await.silent, 0);
    world.judge_telemetry().await;
    assert_eq!(world.turn().await.silent, 1);
}

#[tokio::test]
async fn silences_are_not_judged_right_after_a_start() {
    let world = World::with(Settings {
        silence_grace_secs: 60,
        ..settings()
    })
    .await;
    world.create(silent()).await;
    world.judged_volts(VAN, 0, "12").await;
    world.advance_secs(AFTER_SECS + STEP_SECS);
    let mut worker = world.worker();
    let turn = worker.turn().await.expect("a turn");
    assert_eq!(turn.silent, 0);
    let next_at = turn.next_at.expect("a silence waits");
    world.advance_secs(60);
    assert_eq!(worker.turn().await.expect("a turn").silent, 1);
    assert_eq!(
        next_at.0,
        crate::support::NOW_MS + (AFTER_SECS + STEP_SECS + 60) * 1000
    );
}
