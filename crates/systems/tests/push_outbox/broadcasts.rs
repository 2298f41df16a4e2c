//! Broadcasts: every active device gets one message, and progress is counted.

use homeport_systems::outbox::{DeliveryState, SendError};
use homeport_systems::push::{
    Accepted, Broadcast, BroadcastState, DeviceCounts, OPEN_BROADCASTS_MAX, Platform, PushError,
    Settings,
};

use crate::world::{Answer, World, message, user, world, world_with};

impl World {
    pub(crate) async fn broadcast(&self, platform: Option<Platform>) -> Broadcast {
        let accepted = self.push.broadcast(platform, message("Update"), None).await;
        match accepted.expect("accepted") {
            Accepted::New(broadcast) => broadcast,
            Accepted::Before(_) => panic!("there was no key"),
        }
    }

    pub(crate) async fn progress(&self, broadcast: &Broadcast) -> Broadcast {
        let read = self.push.broadcast_with_id(&broadcast.id).await;
        read.expect("a broadcast")
    }

    /// Users with two devices each, one of each platform.
    pub(crate) async fn register_pairs(&self, users: usize) {
        for number in 0..users {
            let user = format!("user-{number:03}");
            for (platform, device) in [(Platform::Ios, "ios"), (Platform::Android, "android")] {
                let token = format!("{device}-{number:03}");
                self.register_on(platform, &user, device, &token).await;
            }
        }
    }

    /// The tokens that got a message, sorted, without what is around them.
    pub(crate) fn reached(&self) -> Vec<String> {
        let tokens = self.tokens().into_iter();
        let mut names: Vec<_> = tokens
            .map(|token| token.replace("ExpoPushToken[", "").replace(']', ""))
            .collect();
        names.sort();
        names
    }
}

fn expected(devices: &[&str], users: usize) -> Vec<String> {
    let names = devices.iter().map(|device| {
        let names = (0..users).map(move |number| format!("{device}-{number:03}"));
        names.collect::<Vec<_>>()
    });
    let mut names: Vec<_> = names.flatten().collect();
    names.sort();
    names
}

fn trace(broadcast: &Broadcast) -> Vec<&str> {
    let steps = broadcast.steps.iter();
    steps.map(|step| step.what.as_str()).collect()
}

fn indexed() -> Settings {
    Settings {
        broadcast_index: true,
        ..Settings::default()
    }
}

#[tokio::test]
async fn every_active_device_gets_one_message() {
    for settings in [Settings::default(), indexed()] {
        for (platform, devices) in [
            (None, &["android", "ios"][..]),
            (Some(Platform::Ios), &["ios"]),
            (Some(Platform::Android), &["android"]),
        ] {
            let world = world_with(settings.clone()).await;
            world.register_pairs(90).await;
            world.register("off", "off", "off").await;
            let off = "off".parse().expect("a device");
            let deactivated = world.push.deactivate(&user("off"), &off).await;
            deactivated.expect("off");
            let broadcast = world.broadcast(platform).await;
            assert_eq!(broadcast.state, BroadcastState::Queued);
            world.run(&mut world.worker()).await;
            assert_eq!(world.reached(), expected(devices, 90));
            let progress = world.progress(&broadcast).await;
            let found = i64::try_from(90 * devices.len()).expect("few");
            let counts = DeviceCounts {
                found,
                delivered: found,
                ..DeviceCounts::default()
            };
            assert_eq!(
                (progress.state, progress.devices),
                (BroadcastState::Finished, counts)
            );
            assert!(progress.started_at <= progress.finished_at);
            assert_eq!(
                trace(&progress),
                [
                    "accepted",
                    "started",
                    &format!("found all devices: {found}"),
                    "finished"
                ]
            );
            assert_eq!(world.open().await, 0);
        }
    }
}

#[tokio::test]
async fn user_with_many_devices_is_reached_in_parts() {
    let world = world().await;
    for number in 0..230 {
        let name = format!("many-{number:03}");
        world.register("user-1", &name, &name).await;
    }
    world.register("user-2", "a", "a").await;
    let broadcast = world.broadcast(None).await;
    world.run(&mut world.worker()).await;
    let mut all = expected(&["many"], 230);
    all.insert(0, "a".to_owned());
    assert_eq!(world.reached(), all);
    assert_eq!(world.progress(&broadcast).await.devices.delivered, 231);
}

#[tokio::test]
async fn expired_and_late_devices_get_nothing() {
    let world = world().await;
    world.register("user-1", "old", "old").await;
    let ninety_days_ms = 90 * 24 * 60 * 60 * 1000;
    world.fixture.clock.advance_ms(ninety_days_ms + 1000);
    world.register("user-2", "new", "new").await;
    let broadcast = world.broadcast(None).await;
    let mut worker = world.worker();
    // The phone has a new owner while the broadcast looks for devices.
    world.register("user-3", "new", "new").await;
    world.register("user-4", "late", "late").await;
    world.run(&mut worker).await;
    assert!(world.reached().is_empty(), "{:?}", world.reached());
    let progress = world.progress(&broadcast).await;
    assert_eq!(
        (progress.state, progress.devices.found),
        (BroadcastState::Finished, 0)
    );
}

#[tokio::test]
async fn users_see_broadcasts_among_their_notifications() {
    let world = world().await;
    world.register_pairs(1).await;
    let broadcast = world.broadcast(None).await;
    world.run(&mut world.worker()).await;
    let page = world.push.notifications(&user("user-000"), 10, None).await;
    let [notification] = &page.expect("a page").items[..] else {
        panic!("there is one notification");
    };
    assert_eq!(notification.broadcast_id(), Some(broadcast.id));
    assert_eq!(notification.devices.len(), 2);
}

#[tokio::test]
async fn repeat_with_key_is_the_same_broadcast() {
    let world = world().await;
    world.register_pairs(3).await;
    let key = "release-7".parse().expect("a key");
    let mut ids = Vec::new();
    for _ in 0..2 {
        let accepted = world
            .push
            .broadcast(None, message("Update"), Some(&key))
            .await;
        let (Accepted::New(one) | Accepted::Before(one)) = accepted.expect("accepted");
        ids.push(one.id);
        world.run(&mut world.worker()).await;
    }
    assert_eq!(ids[0], ids[1]);
    assert_eq!(world.reached().len(), 6);
    let ios = Some(Platform::Ios);
    for (platform, body) in [(None, "Other"), (ios, "Update")] {
        let other = world
            .push
            .broadcast(platform, message(body), Some(&key))
            .await;
        assert_eq!(other, Err(PushError::KeyReused));
    }
}

#[tokio::test]
async fn cancelled_broadcast_sends_nothing_more() {
    let world = world().await;
    world.register_pairs(300).await;
    let broadcast = world.broadcast(None).await;
    let mut worker = world.worker();
    while world.sent().is_empty() {
        worker.turn().await.expect("a turn");
    }
    let cancelled = world.push.cancel_broadcast(&broadcast.id).await;
    assert_eq!(
        cancelled.expect("cancelled").state,
        BroadcastState::Cancelled
    );
    world.run(&mut worker).await;
    assert_eq!(world.sent(), [100]);
    let again = world
        .push
        .cancel_broadcast(&broadcast.id)
        .await
        .expect("again");
    assert_eq!(again.state, BroadcastState::Cancelled);
    assert!(again.finished_at.is_some());
    let DeviceCounts {
        found,
        queued,
        delivered,
        dropped,
        ..
    } = again.devices;
    assert_eq!((queued, delivered, dropped), (0, 100, found - 100));
    assert!(dropped > 0 && found < 600, "{found}");
    assert_eq!(
        trace(&again),
        ["accepted", "started", "cancelled", "finished"]
    );
    assert_eq!(world.open().await, 0);
}

#[tokio::test]
async fn finished_broadcast_cannot_be_cancelled() {
    let world = world().await;
    let broadcast = world.broadcast(None).await;
    world.run(&mut world.worker()).await;
    let cancelled = world.push.cancel_broadcast(&broadcast.id).await;
    assert_eq!(cancelled, Err(PushError::BroadcastFinished));
}

#[tokio::test]
async fn failures_are_counted_by_reason() {
    let world = world().await;
    world.register_pairs(2).await;
    world.register("user-9", "off", "off").await;
    let broadcast = world.broadcast(None).await;
    let mut worker = world.worker();
    while world.progress(&broadcast).await.devices.found == 0 {
        worker.turn().await.expect("a turn");
    }
    assert!(world.sent().is_empty(), "found in the turn before");
    let off = "off".parse().expect("a device");
    world
        .push
        .deactivate(&user("user-9"), &off)
        .await
        .expect("off");
    world.script([Answer::Ticket("ios-001", "DeviceNotRegistered")]);
    world.run(&mut worker).await;
    let progress = world.progress(&broadcast).await;
    let reasons: Vec<_> = progress.failures.into_iter().collect();
    assert_eq!(reasons, [("DeviceNotRegistered", 1), ("NotActive", 1)]);
    assert_eq!(
        (progress.devices.delivered, progress.devices.failed),
        (3, 2)
    );
    let shown = format!("{:?}", progress.steps);
    assert!(!shown.contains("PushToken"), "{shown}");
}

#[tokio::test]
async fn erased_user_leaves_a_running_broadcast() {
    let world = world().await;
    world.register_pairs(200).await;
    let broadcast = world.broadcast(None).await;
    let mut worker = world.worker();
    while world.sent().is_empty() {
        worker.turn().await.expect("a turn");
    }
    // One user who was reached, some who are queued, and some who were not found yet.
    for number in (0..200).step_by(10) {
        let user = user(&format!("user-{number:03}"));
        world.push.erase_user(&user).await.expect("erased");
    }
    let before: Vec<_> = world.tokens();
    world.run(&mut worker).await;
    let later = &world.tokens()[before.len()..];
    let is_erased = |token: &String| token.ends_with("0]");
    assert!(!later.iter().any(is_erased), "{later:?}");
    for number in (0..200).step_by(10) {
        let page = world
            .push
            .notifications(&user(&format!("user-{number:03}")), 10, None)
            .await;
        assert!(page.expect("a page").items.is_empty());
    }
    let progress = world.progress(&broadcast).await;
    assert_eq!(progress.state, BroadcastState::Finished);
    let DeviceCounts {
        found,
        queued,
        sent,
        delivered,
        failed,
        dropped,
    } = progress.devices;
    assert_eq!((queued, failed), (0, 0));
    assert_eq!(found, sent + delivered + dropped);
    assert_eq!(world.open().await, 0);
}

#[tokio::test]
async fn notification_overtakes_a_broadcast() {
    let world = world().await;
    world.register_pairs(500).await;
    world.broadcast(None).await;
    let mut worker = world.worker();
    while world.sent().is_empty() {
        worker.turn().await.expect("a turn");
    }
    world.register("user-x", "x", "urgent").await;
    world.notify("user-x").await;
    while !world.tokens().contains(&"ExpoPushToken[urgent]".to_owned()) {
        let turn = worker.turn().await.expect("a turn");
        let next = turn.next_at.expect("there is more");
        world
            .fixture
            .clock
            .advance_ms((next.0 - world.now()).max(1));
    }
    let before = world.tokens().len();
    assert!(before <= 500, "{before} messages were sent first");
}

#[tokio::test]
async fn missing_receipts_do_not_delay_messages() {
    let world = world().await;
    world.register_pairs(250).await;
    world.broadcast(None).await;
    let mut worker = world.worker();
    while world.tokens().len() < 500 {
        let turn = worker.turn().await.expect("a turn");
        let next = turn.next_at.expect("there is more");
        world
            .fixture
            .clock
            .advance_ms((next.0 - world.now()).max(1));
    }
    // All receipts are due now, and Expo has none.
    world.fixture.clock.advance_ms(16 * 60 * 1000);
    world.register("user-x", "x", "urgent").await;
    world.notify("user-x").await;
    worker.turn().await.expect("a turn");
    assert_eq!(world.tokens().len(), 501);
}

#[tokio::test]
async fn broadcast_leaves_half_of_the_outbox() {
    let world = world_with(Settings {
        outbox_max: 20,
        ..Settings::default()
    })
    .await;
    world.register_pairs(50).await;
    let broadcast = world.broadcast(None).await;
    let mut worker = world.worker();
    for _ in 0..20 {
        worker.turn().await.expect("a turn");
        assert!(world.open().await <= 10);
        world.fixture.clock.advance_ms(1000);
    }
    assert_eq!(world.open().await, 10, "receipts are missing");
    world.notify("user-000").await;
    world.run(&mut worker).await;
    assert_eq!(world.progress(&broadcast).await.devices.delivered, 100);
}

#[tokio::test]
async fn smallest_outbox_does_not_stop_a_broadcast() {
    let world = world_with(Settings {
        outbox_max: 1,
        ..Settings::default()
    })
    .await;
    for number in 0..150 {
        let name = format!("many-{number:03}");
        world.register("user-1", &name, &name).await;
    }
    world.register("user-2", "a", "a").await;
    let broadcast = world.broadcast(None).await;
    world.run(&mut world.worker()).await;
    assert_eq!(world.progress(&broadcast).await.devices.delivered, 151);
}

#[tokio::test]
async fn broadcast_survives_failures_of_the_service() {
    let world = world().await;
    world.register_pairs(100).await;
    let broadcast = world.broadcast(None).await;
    let busy = || {
        Answer::Fail(SendError::Busy {
            retry_after: None,
            reason: "503".to_owned(),
        })
    };
    world.script([busy(), Answer::RefuseTogether, busy()]);
    world.run(&mut world.worker()).await;
    assert_eq!(world.progress(&broadcast).await.devices.delivered, 200);
}

#[tokio::test]
async fn open_broadcasts_are_limited() {
    let world = world().await;
    for _ in 0..OPEN_BROADCASTS_MAX {
        world.broadcast(None).await;
    }
    let refused = world.push.broadcast(None, message("Update"), None).await;
    assert_eq!(refused, Err(PushError::TooManyBroadcasts));
    world.run(&mut world.worker()).await;
    world.broadcast(None).await;
    let page = world.push.broadcasts(OPEN_BROADCASTS_MAX, None).await;
    let page = page.expect("a page");
    assert!(page.items.is_sorted_by(|one, next| one.id > next.id));
    let rest = world.push.broadcasts(10, page.next).await.expect("a page");
    assert_eq!((rest.items.len(), rest.next), (1, None));
}

#[tokio::test]
async fn two_workers_send_one_message() {
    let world = world().await;
    world.register_pairs(60).await;
    let broadcast = world.broadcast(None).await;
    let (mut one, mut other) = (world.worker(), world.worker());
    for _ in 0..200 {
        let (a, b) = tokio::join!(one.turn(), other.turn());
        a.and(b).expect("turns");
        world.confirm_sent();
        world.fixture.clock.advance_ms(20_000);
    }
    assert_eq!(world.reached(), expected(&["android", "ios"], 60));
    let page = world.push.notifications(&user("user-000"), 10, None).await;
    let delivered = &page.expect("a page").items[0].devices[0].delivery;
    assert_eq!(delivered.state, DeliveryState::Delivered);
    assert_eq!(
        world.progress(&broadcast).await.state,
        BroadcastState::Finished
    );
}
