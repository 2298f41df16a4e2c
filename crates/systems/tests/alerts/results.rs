//! Results of notifications: what is shown about a delivery is what became of it, in push too.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use homeport_systems::alerts::{
    AlertFilter, AlertId, DefinitionTerms, NotificationResult, StateFilter, Target,
};
use homeport_systems::outbox::{DeliveryState, SendError};
use homeport_systems::push::{Envelope, NewDevice, Platform, PushService, Receipt, Ticket, Worker};

use crate::world::{VAN, World, low_battery};

const RECEIPT_DELAY_SECS: i64 = 15 * 60;

/// A push service with an answer for the next requests, and the same receipt for every ticket.
#[derive(Default)]
struct Phones {
    answers: Mutex<VecDeque<Result<Ticket, SendError>>>,
    receipt: Mutex<Option<Receipt>>,
}

#[async_trait]
impl PushService for Phones {
    async fn send(&self, messages: &[Envelope]) -> Result<Vec<Ticket>, SendError> {
        let mut tickets = Vec::new();
        for message in messages {
            let answer = self.answers.lock().expect("no panic").pop_front();
            tickets.push(match answer {
                Some(answer) => answer?,
                None => Ticket::Ok {
                    id: format!("ticket of {}", message.to.as_str()),
                },
            });
        }
        Ok(tickets)
    }

    async fn receipts(&self, tickets: &[String]) -> Result<BTreeMap<String, Receipt>, SendError> {
        let receipt = self.receipt.lock().expect("no panic").clone();
        let known = tickets
            .iter()
            .filter_map(|id| Some((id.clone(), receipt.clone()?)));
        Ok(known.collect())
    }
}

fn error(code: &str) -> Ticket {
    Ticket::Error {
        code: code.to_owned(),
        message: "ExpoPushToken[a] is wrong".to_owned(),
    }
}

fn push_target() -> Vec<Target> {
    vec![Target::Push {
        user_id: "anna".to_owned(),
    }]
}

async fn register(world: &World, device: &str) {
    let new = NewDevice {
        user_id: "anna".parse().expect("a user"),
        device_id: device.parse().expect("a device"),
        expo_push_token: format!("ExpoPushToken[{device}]").parse().expect("a token"),
        platform: Platform::Ios,
    };
    world.push().register(new).await.expect("registered");
}

/// A world with a definition that notifies Anna, whose alert is raised and handed over.
async fn with_alert(devices: &[&str]) -> (World, Arc<Phones>, AlertId) {
    let world = World::new().await;
    for device in devices {
        register(&world, device).await;
    }
    let terms = DefinitionTerms {
        targets: push_target(),
        ..low_battery()
    };
    world.create(terms).await;
    world.judged_volts(VAN, 1, "11").await;
    world.turn().await;
    let id = world.list(StateFilter::Open).await[0].id.clone();
    (world, Arc::default(), id)
}

async fn push_turn(world: &World, phones: &Arc<Phones>) {
    let mut worker = Worker::new(world.push(), Arc::clone(phones) as _);
    // A worker sends nothing in its first second.
    world.advance_secs(1);
    worker.turn().await.expect("a turn");
}

async fn result(world: &World, id: &AlertId) -> NotificationResult {
    let results = world.alerts.notification_results(id).await;
    results.expect("results").remove(0)
}

async fn undelivered(world: &World) -> usize {
    let filter = AlertFilter {
        is_undelivered: true,
        ..AlertFilter::default()
    };
    let page = world.alerts.alerts(&filter, 100, None).await;
    page.expect("a page").items.len()
}

#[tokio::test]
async fn push_is_queued_until_the_service_takes_it() {
    let (world, phones, id) = with_alert(&["a"]).await;
    let queued = result(&world, &id).await;
    assert_eq!(queued.state, DeliveryState::Queued);
    assert_eq!(queued.devices.len(), 1);
    push_turn(&world, &phones).await;
    let sent = result(&world, &id).await;
    assert_eq!((sent.state, sent.attempts), (DeliveryState::Sent, 1));
    *phones.receipt.lock().expect("no panic") = Some(Receipt::Ok);
    world.advance_secs(RECEIPT_DELAY_SECS);
    push_turn(&world, &phones).await;
    assert_eq!(result(&world, &id).await.state, DeliveryState::Delivered);
    // The result is recorded, and nothing is left to do.
    assert_eq!(world.alerts_waiting().await, 1);
    world.advance_secs(RECEIPT_DELAY_SECS);
    world.turn().await;
    assert_eq!(world.alerts_waiting().await, 0);
    let stored = world
        .alerts
        .notifications(&id)
        .await
        .expect("one")
        .remove(0);
    assert_eq!(stored.delivery.state, DeliveryState::Delivered);
    assert_eq!(undelivered(&world).await, 0);
}

#[tokio::test]
async fn push_that_every_device_refused_is_failed() {
    let (world, phones, id) = with_alert(&["a", "b"]).await;
    let refusals = ["DeviceNotRegistered", "MismatchSenderId"]
        .map(error)
        .map(Ok);
    phones.answers.lock().expect("no panic").extend(refusals);
    push_turn(&world, &phones).await;
    let failed = result(&world, &id).await;
    assert_eq!(failed.state, DeliveryState::Failed);
    let reason = failed.reason.expect("a reason");
    assert!(
        reason.starts_with("2 of 2 devices failed: DeviceNotRegistered"),
        "{reason}"
    );
    assert!(reason.contains("MismatchSenderId"), "{reason}");
    assert!(!reason.contains("ExpoPushToken"), "{reason}");
    world.advance_secs(60);
    world.turn().await;
    assert_eq!(undelivered(&world).await, 1);
    let world = world.reopen().await;
    let alert = world.alerts.alert(&id).await.expect("an alert");
    assert!(alert.delivery_failed_at.is_some());
    assert_eq!(result(&world, &id).await.devices.len(), 2);
}

#[tokio::test]
async fn failed_receipt_fails_the_notification() {
    let (world, phones, id) = with_alert(&["a"]).await;
    push_turn(&world, &phones).await;
    let receipt = Receipt::Error {
        code: "InvalidCredentials".to_owned(),
        message: "no key".to_owned(),
    };
    *phones.receipt.lock().expect("no panic") = Some(receipt);
    world.advance_secs(RECEIPT_DELAY_SECS);
    push_turn(&world, &phones).await;
    let failed = result(&world, &id).await;
    assert_eq!(failed.state, DeliveryState::Failed);
    assert_eq!(failed.reason.as_deref(), Some("InvalidCredentials: no key"));
}

#[tokio::test]
async fn push_to_user_without_devices_is_failed() {
    let (world, _, id) = with_alert(&[]).await;
    let failed = result(&world, &id).await;
    assert_eq!(failed.state, DeliveryState::Failed);
    assert_eq!(
        failed.reason.as_deref(),
        Some("the user has no active device")
    );
    world.advance_secs(1);
    world.turn().await;
    assert_eq!(undelivered(&world).await, 1);
    assert_eq!(world.alerts_waiting().await, 0);
}

#[tokio::test]
async fn one_device_that_got_it_is_enough() {
    let (world, phones, id) = with_alert(&["a", "b"]).await;
    phones
        .answers
        .lock()
        .expect("no panic")
        .push_back(Ok(error("DeviceNotRegistered")));
    *phones.receipt.lock().expect("no panic") = Some(Receipt::Ok);
    push_turn(&world, &phones).await;
    world.advance_secs(RECEIPT_DELAY_SECS);
    push_turn(&world, &phones).await;
    let delivered = result(&world, &id).await;
    assert_eq!(delivered.state, DeliveryState::Delivered);
    let reason = delivered.reason.expect("a reason");
    assert!(reason.starts_with("1 of 2 devices failed"), "{reason}");
    world.advance_secs(3600);
    world.turn().await;
    assert_eq!(undelivered(&world).await, 0);
}

#[tokio::test]
async fn push_service_may_be_down_for_hours() {
    let (world, phones, id) = with_alert(&["a"]).await;
    let busy = SendError::Busy {
        retry_after: None,
        reason: "502".to_owned(),
    };
    let down = std::iter::repeat_n(Err(busy), 20);
    phones.answers.lock().expect("no panic").extend(down);
    let mut worker = Worker::new(world.push(), Arc::clone(&phones) as _);
    let mut secs = 0;
    while result(&world, &id).await.state != DeliveryState::Sent {
        worker.turn().await.expect("a turn");
        world.advance_secs(10);
        secs += 10;
        assert!(secs < 24 * 60 * 60, "never sent");
    }
    assert!(secs > 3 * 60 * 60, "{secs}");
    let devices = result(&world, &id).await.devices;
    assert!(
        devices[0].delivery.steps.len() <= 16,
        "the trace is bounded"
    );
}

#[tokio::test]
async fn webhook_receiver_may_be_down_for_hours() {
    let world = World::new().await;
    world.create(low_battery()).await;
    let silence = SendError::Unanswered("timeout".to_owned());
    let busy = SendError::Busy {
        retry_after: None,
        reason: "no connection".to_owned(),
    };
    // A webhook without an answer is repeated, because receivers recognize repeats.
    let down = std::iter::repeat_n([Some(silence), Some(busy)], 8).flatten();
    world.outside.answer(down);
    world.judged_volts(VAN, 1, "11").await;
    let id = world.list(StateFilter::Open).await[0].id.clone();
    let mut secs = 0;
    while result(&world, &id).await.state != DeliveryState::Sent {
        world.turn().await;
        world.advance_secs(10);
        secs += 10;
        assert!(secs < 24 * 60 * 60, "never sent");
    }
    assert!(secs > 3 * 60 * 60, "{secs}");
    assert_eq!(undelivered(&world).await, 0);
}

#[tokio::test]
async fn refused_notification_marks_its_alert() {
    let world = World::new().await;
    world.create(low_battery()).await;
    let refused = SendError::Refused("410".to_owned());
    world.outside.answer([Some(refused)]);
    world.judged_volts(VAN, 1, "11").await;
    world.judged_volts("van-2", 1, "11").await;
    world.turn().await;
    assert_eq!(world.counts().await.0, 2);
    assert_eq!(undelivered(&world).await, 1);
}

#[tokio::test]
async fn test_notification_reaches_every_target() {
    let world = World::new().await;
    register(&world, "a").await;
    let mut targets = push_target();
    targets.push(crate::world::webhook());
    targets.push(Target::Mqtt { topic: None });
    let definition = world
        .create(DefinitionTerms {
            targets,
            is_enabled: false,
            ..low_battery()
        })
        .await;
    let test_id = world
        .alerts
        .test_targets(&definition.id)
        .await
        .expect("a test");
    world.turn().await;
    let results = world.alerts.test_results(&definition.id, &test_id).await;
    let states: Vec<_> = results
        .expect("results")
        .iter()
        .map(|one| (one.notification.target.kind(), one.state))
        .collect();
    assert_eq!(
        states,
        [
            ("push", DeliveryState::Queued),
            ("webhook", DeliveryState::Sent),
            ("mqtt", DeliveryState::Sent),
        ]
    );
    assert_eq!(world.outside.told(), ["alert.test"]);
    let topic = world.topics.0.lock().expect("no panic")[0].topic.clone();
    assert_eq!(topic, "alerts/test");
    assert_eq!(world.counts().await, (0, 0));
    let user = "anna".parse().expect("a user");
    let pushed = world
        .push()
        .notifications(&user, 10, None)
        .await
        .expect("a page");
    let message = pushed.items[0].message.members();
    assert_eq!(message["title"], "Test: Battery");
    assert_eq!(message["data"]["test_id"], test_id.as_str());
}

#[tokio::test]
async fn failed_test_notification_has_its_reason() {
    let world = World::new().await;
    let definition = world.create(low_battery()).await;
    world
        .outside
        .answer([Some(SendError::Refused("410".to_owned()))]);
    let test_id = world
        .alerts
        .test_targets(&definition.id)
        .await
        .expect("a test");
    world.turn().await;
    let results = world.alerts.test_results(&definition.id, &test_id).await;
    let failed = results.expect("results").remove(0);
    assert_eq!(failed.state, DeliveryState::Failed);
    assert_eq!(failed.reason.as_deref(), Some("refused: 410"));
    let other = world.create(low_battery()).await;
    let unknown = world.alerts.test_results(&other.id, &test_id).await;
    assert!(unknown.is_err(), "{unknown:?}");
}
