//! The outbox of push: an accepted notification is sent once, through refusals, missing answers and
//! restarts.

#[path = "../support/mod.rs"]
mod support;

mod broadcast_index;
mod broadcasts;
mod erase_race;
mod tokens;
mod world;

use std::sync::Arc;
use std::time::Duration;

use homeport_item::{Item, Value};
use homeport_store::Put;
use homeport_systems::outbox::{DeliveryState, SendError};
use homeport_systems::push::{
    Accepted, DeviceVerdict, IdempotencyKey, PushError, Receipt, Settings, Worker,
};
use world::{Answer, message, steps, user, world, world_with};

#[tokio::test]
async fn receipts_finish_a_notification_to_active_devices() {
    let world = world().await;
    for device in ["a", "b", "off"] {
        world.register("user-1", device, device).await;
    }
    let off = "off".parse().expect("a device");
    let deactivated = world.push.deactivate(&user("user-1"), &off).await;
    deactivated.expect("off");
    let accepted = world.notify("user-1").await;
    assert_eq!(accepted.devices.len(), 2);
    assert_eq!(world.open().await, 1);
    let mut worker = world.worker();
    assert_eq!(worker.turn().await.expect("a turn").messages, 2);
    assert_eq!(world.sent(), [2]);
    let fate = world.fate(&accepted).await;
    assert!(
        fate.devices
            .iter()
            .all(|one| one.delivery.state == DeliveryState::Sent)
    );
    assert_eq!(
        worker.turn().await.expect("a turn").receipts,
        0,
        "too early"
    );
    for token in ["a", "b"] {
        let id = format!("ticket of ExpoPushToken[{token}]");
        let mut receipts = world.service.receipts.lock().expect("no panic");
        receipts.insert(id, Receipt::Ok);
    }
    world.fixture.clock.advance_ms(15 * 60 * 1000);
    let turn = worker.turn().await.expect("a turn");
    assert_eq!((turn.messages, turn.receipts, turn.next_at), (0, 2, None));
    let fate = world.fate(&accepted).await;
    assert!(
        fate.devices
            .iter()
            .all(|one| one.delivery.state == DeliveryState::Delivered)
    );
    assert_eq!(
        steps(&fate),
        [
            "accepted",
            "sending, attempt 1",
            "sent: ticket ticket of ExpoPushToken[a]",
            "delivered: the receipt is ok"
        ]
    );
    assert!(fate.finished_at.is_some());
    assert_eq!(world.open().await, 0);
}

#[tokio::test]
async fn idempotency_key_is_one_notification() {
    let world = world().await;
    world.register("user-1", "a", "a").await;
    let key: IdempotencyKey = "job-7".parse().expect("a key");
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let (push, key) = (world.push.clone(), key.clone());
        tasks.spawn(async move {
            push.notify(&user("user-1"), message("Ready"), Some(&key))
                .await
        });
    }
    let mut ids = Vec::new();
    let mut new = 0;
    for accepted in tasks.join_all().await {
        match accepted.expect("accepted") {
            Accepted::New(one) => {
                new += 1;
                ids.push(one.id);
            }
            Accepted::Before(one) => ids.push(one.id),
        }
    }
    ids.dedup();
    assert_eq!((new, ids.len()), (1, 1));
    let one = user("user-1");
    let other = world.push.notify(&one, message("Other"), Some(&key));
    assert_eq!(other.await, Err(PushError::KeyReused));
    let two = user("user-2");
    let stranger = world.push.notify(&two, message("Other"), Some(&key));
    assert!(stranger.await.is_ok(), "keys are each user's own");
    world.worker().turn().await.expect("a turn");
    assert_eq!(world.sent(), [1]);
}

#[tokio::test]
async fn notification_without_devices_is_finished_at_once() {
    let world = world().await;
    let accepted = world.notify("user-1").await;
    assert!(accepted.finished_at.is_some() && accepted.devices.is_empty());
    assert_eq!(world.open().await, 0);
    let page = world.push.notifications(&user("user-1"), 10, None).await;
    assert_eq!(page.expect("a page").items, [accepted]);
}

#[tokio::test]
async fn full_outbox_refuses_until_something_finishes() {
    let world = world_with(Settings {
        outbox_max: 2,
        ..Settings::default()
    })
    .await;
    world.register("user-1", "a", "a").await;
    let first = world.notify("user-1").await;
    world.notify("user-1").await;
    let full = world
        .push
        .notify(&user("user-1"), message("Ready"), None)
        .await;
    assert_eq!(full, Err(PushError::OutboxFull));
    world.script([Answer::Ticket("a", "MessageTooBig")]);
    world.worker().turn().await.expect("a turn");
    let fate = world.fate(&first).await;
    assert_eq!(fate.devices[0].delivery.state, DeliveryState::Failed);
    assert_eq!(world.open().await, 0);
    world.notify("user-1").await;
}

#[tokio::test]
async fn busy_expo_is_retried_after_its_retry_after() {
    let world = world().await;
    world.register("user-1", "a", "a").await;
    let accepted = world.notify("user-1").await;
    let busy = |secs: Option<u64>| {
        Answer::Fail(SendError::Busy {
            retry_after: secs.map(Duration::from_secs),
            reason: "429".to_owned(),
        })
    };
    world.script([busy(Some(60)), busy(None)]);
    let mut worker = world.worker();
    let turn = worker.turn().await.expect("a turn");
    let now = world.now();
    assert_eq!(turn.next_at.map(|at| at.0), Some(now + 60_000));
    world.fixture.clock.advance_ms(59_999);
    assert_eq!(worker.turn().await.expect("a turn").messages, 0);
    world.fixture.clock.advance_ms(1);
    assert_eq!(worker.turn().await.expect("a turn").messages, 1);
    // Twice as long as after the first failure, since nothing else is said.
    world.fixture.clock.advance_ms(1999);
    assert_eq!(worker.turn().await.expect("a turn").messages, 0);
    world.fixture.clock.advance_ms(1);
    assert_eq!(worker.turn().await.expect("a turn").messages, 1);
    let fate = world.fate(&accepted).await;
    assert_eq!(fate.devices[0].delivery.state, DeliveryState::Sent);
    assert_eq!(
        (
            fate.devices[0].delivery.attempts,
            fate.devices[0].delivery.unanswered
        ),
        (3, 0)
    );
}

#[tokio::test]
async fn permanently_busy_expo_is_given_up() {
    let world = world().await;
    world.register("user-1", "a", "a").await;
    let accepted = world.notify("user-1").await;
    let mut worker = world.worker();
    for _ in 0..60 {
        world.script([Answer::Fail(SendError::Busy {
            retry_after: None,
            reason: "503".to_owned(),
        })]);
        assert_eq!(worker.turn().await.expect("a turn").messages, 1);
        world.fixture.clock.advance_ms(30 * 60 * 1000);
    }
    assert_eq!(worker.turn().await.expect("a turn").messages, 0);
    let fate = world.fate(&accepted).await;
    assert_eq!(fate.devices[0].delivery.state, DeliveryState::Failed);
    assert_eq!(world.open().await, 0);
}

#[tokio::test]
async fn unregistered_device_is_deactivated() {
    let world = world().await;
    world.register("user-1", "a", "a").await;
    world.register("user-1", "b", "b").await;
    world.register("user-1", "c", "c").await;
    world.notify("user-1").await;
    world.script([Answer::Ticket("a", "DeviceNotRegistered")]);
    let mut worker = world.worker();
    assert_eq!(worker.turn().await.expect("a turn").deactivated, 1);
    // Registered again with another token before its receipt arrives: that one is fine.
    world.register("user-1", "c", "c2").await;
    for token in ["b", "c"] {
        let gone = Receipt::Error {
            code: "DeviceNotRegistered".to_owned(),
            message: "gone".to_owned(),
        };
        let id = format!("ticket of ExpoPushToken[{token}]");
        let mut receipts = world.service.receipts.lock().expect("no panic");
        receipts.insert(id, gone);
    }
    world.fixture.clock.advance_ms(15 * 60 * 1000);
    let fetched = worker.turn().await.expect("a turn");
    let turned_off = worker.turn().await.expect("a turn");
    assert_eq!((fetched.receipts, turned_off.deactivated), (2, 1));
    let page = world.push.active_devices(&user("user-1"), 10, None).await;
    let active = page.expect("devices").items;
    let active: Vec<_> = active.iter().map(|one| one.device_id.as_str()).collect();
    assert_eq!(active, ["c"]);
    assert_eq!(world.open().await, 0);
}

#[tokio::test]
async fn notification_to_many_devices_is_sent_in_parts() {
    let world = world().await;
    for device in 0..250 {
        let id = format!("{device:03}");
        world.register("user-1", &id, &id).await;
    }
    let key: IdempotencyKey = "job-7".parse().expect("a key");
    let one = user("user-1");
    let accepted = world.push.notify(&one, message("Ready"), Some(&key)).await;
    let Ok(Accepted::New(accepted)) = accepted else {
        panic!("{accepted:?}");
    };
    assert_eq!(accepted.devices.len(), 250);
    assert_eq!(world.open().await, 3);
    let mut worker = world.worker();
    for expected in [100, 100, 50, 0] {
        let turn = worker.turn().await.expect("a turn");
        assert_eq!(turn.messages, expected);
        world.fixture.clock.advance_ms(1000);
    }
    let fate = world.fate(&accepted).await;
    let sent = fate.devices.iter().map(|one| one.device_id.as_str());
    let expected: Vec<String> = (0..250).map(|device| format!("{device:03}")).collect();
    assert_eq!(sent.collect::<Vec<_>>(), expected);
    assert!(
        fate.devices
            .iter()
            .all(|one| one.delivery.state == DeliveryState::Sent)
    );
    assert_eq!(fate.finished_at, None);
    // One notification in the list and for the idempotency key, whatever the number of parts.
    let page = world.push.notifications(&one, 10, None).await;
    let listed = page.expect("a page").items;
    assert_eq!(listed, std::slice::from_ref(&fate));
    let again = world.push.notify(&one, message("Ready"), Some(&key)).await;
    assert_eq!(again, Ok(Accepted::Before(fate)));
    world.add_receipts(expected.iter().map(|device| {
        let id = format!("ticket of ExpoPushToken[{device}]");
        (id, Receipt::Ok)
    }));
    world.fixture.clock.advance_ms(15 * 60 * 1000);
    assert_eq!(worker.turn().await.expect("a turn").receipts, 250);
    let fate = world.fate(&accepted).await;
    assert!(fate.finished_at.is_some());
    assert_eq!(world.open().await, 0);
}

#[tokio::test]
async fn rate_exceeded_receipt_is_retried() {
    let world = world().await;
    world.register("user-1", "a", "a").await;
    let accepted = world.notify("user-1").await;
    let mut worker = world.worker();
    assert_eq!(worker.turn().await.expect("a turn").messages, 1);
    let busy = Receipt::Error {
        code: "MessageRateExceeded".to_owned(),
        message: "too many messages".to_owned(),
    };
    let id = "ticket of ExpoPushToken[a]".to_owned();
    let set = |receipt| {
        let mut receipts = world.service.receipts.lock().expect("no panic");
        receipts.insert(id.clone(), receipt);
    };
    set(busy);
    world.fixture.clock.advance_ms(15 * 60 * 1000);
    assert_eq!(worker.turn().await.expect("a turn").receipts, 1);
    let fate = world.fate(&accepted).await;
    assert_eq!(fate.devices[0].delivery.state, DeliveryState::Queued);
    assert_eq!(fate.devices[0].ticket_id, None);
    set(Receipt::Ok);
    world.fixture.clock.advance_ms(2000);
    assert_eq!(worker.turn().await.expect("a turn").messages, 1);
    world.fixture.clock.advance_ms(15 * 60 * 1000);
    worker.turn().await.expect("a turn");
    let fate = world.fate(&accepted).await;
    assert_eq!(fate.devices[0].delivery.state, DeliveryState::Delivered);
    assert_eq!(fate.devices[0].delivery.attempts, 2);
}

#[tokio::test]
async fn verdict_shows_the_last_delivery() {
    let world = world().await;
    world.register("user-1", "a", "a").await;
    world.register("user-1", "b", "b").await;
    world.notify("user-1").await;
    world.script([Answer::Ticket("a", "MessageTooBig")]);
    world.worker().turn().await.expect("a turn");
    world.register("user-1", "c", "c").await;
    let checked = world.push.check_user(&user("user-1")).await;
    let shown: Vec<_> = checked
        .expect("checked")
        .into_iter()
        .map(|one| (one.verdict, one.last_notification.map(|last| last.state)))
        .collect();
    assert_eq!(
        shown,
        [
            (DeviceVerdict::LastFailed, Some(DeliveryState::Failed)),
            (DeviceVerdict::Reachable, Some(DeliveryState::Sent)),
            (DeviceVerdict::Reachable, None),
        ]
    );
}

#[tokio::test]
async fn one_bad_message_does_not_fail_others() {
    let world = world().await;
    for number in ["1", "2", "3"] {
        world.register(number, "a", number).await;
        world.notify(number).await;
    }
    let refuse = || Answer::RefuseTogether;
    world.script([refuse(), refuse()]);
    let mut worker = world.worker();
    for _ in 0..4 {
        worker.turn().await.expect("a turn");
    }
    assert_eq!(world.sent(), [3, 1, 1, 1]);
    for number in ["1", "2", "3"] {
        let page = world.push.notifications(&user(number), 1, None).await;
        let fate = &page.expect("a page").items[0];
        assert_eq!(fate.devices[0].delivery.state, DeliveryState::Sent);
    }
}

#[tokio::test]
async fn restart_repeats_only_unanswered_messages() {
    let world = world().await;
    for number in 0..150 {
        let id = format!("user-{number:03}");
        world.register(&id, "a", &number.to_string()).await;
        world.notify(&id).await;
    }
    let mut first = world.worker();
    assert_eq!(first.turn().await.expect("a turn").messages, 100);
    // The second request is taken and never answered: the worker is dropped in the middle of it.
    world.script([Answer::Hang]);
    tokio::select! {
        turn = first.turn() => panic!("there is no answer to end it: {turn:?}"),
        () = world.requested(2) => {}
    }
    drop(first);
    let mut second = world.worker();
    assert_eq!(second.turn().await.expect("a turn").messages, 0, "claimed");
    world.fixture.clock.advance_ms(2 * 60 * 1000);
    assert_eq!(second.turn().await.expect("a turn").messages, 50);
    assert_eq!(second.turn().await.expect("a turn").messages, 0);
    let requests = world.service.requests.lock().expect("no panic").clone();
    assert_eq!(
        requests.iter().map(Vec::len).collect::<Vec<_>>(),
        [100, 50, 50]
    );
    let sorted = |tokens: &Vec<String>| {
        let mut tokens = tokens.clone();
        tokens.sort();
        tokens
    };
    assert_eq!(sorted(&requests[1]), sorted(&requests[2]));
    assert!(requests[0].iter().all(|one| !requests[1].contains(one)));
    let repeated = requests[2][0].trim_start_matches("ExpoPushToken[");
    let number: usize = repeated.trim_end_matches(']').parse().expect("a number");
    let of = user(&format!("user-{number:03}"));
    let page = world
        .push
        .notifications(&of, 1, None)
        .await
        .expect("a page");
    let fate = &page.items[0].devices[0];
    assert_eq!((fate.delivery.attempts, fate.delivery.unanswered), (2, 1));
    assert!(
        fate.delivery
            .steps
            .iter()
            .any(|step| step.what.contains("it may have arrived"))
    );
}

#[tokio::test]
async fn unanswered_message_is_given_up_after_five_attempts() {
    let world = world().await;
    world.register("user-1", "a", "a").await;
    let accepted = world.notify("user-1").await;
    let mut worker = world.worker();
    for _ in 0..6 {
        let silence = SendError::Unanswered("timeout".to_owned());
        world.script([Answer::Fail(silence)]);
        worker.turn().await.expect("a turn");
        world.fixture.clock.advance_ms(3 * 60 * 60 * 1000);
    }
    assert_eq!(world.sent(), [1, 1, 1, 1, 1]);
    let fate = world.fate(&accepted).await;
    assert_eq!(fate.devices[0].delivery.state, DeliveryState::Failed);
    assert!(
        fate.devices[0]
            .delivery
            .reason
            .as_ref()
            .is_some_and(|why| why.contains("may have arrived"))
    );
}

#[tokio::test]
async fn rate_limit_holds_across_a_restart() {
    let world = world().await;
    for device in 0..100 {
        let id = device.to_string();
        world.register("user-1", &id, &id).await;
    }
    for _ in 0..12 {
        world.notify("user-1").await;
    }
    let mut sent: Vec<(i64, usize)> = Vec::new();
    let mut worker = world.worker();
    for round in 0..200 {
        if round == 60 {
            worker = Worker::new(world.push.clone(), Arc::clone(&world.service) as _);
        }
        let messages = worker.turn().await.expect("a turn").messages;
        sent.push((world.now(), messages));
        world.fixture.clock.advance_ms(17);
    }
    assert_eq!(sent.iter().map(|(_, count)| count).sum::<usize>(), 1200);
    for (index, (start, _)) in sent.iter().enumerate() {
        let second = sent[index..].iter().take_while(|(at, _)| at - start < 1000);
        let count: usize = second.map(|(_, count)| count).sum();
        assert!(count <= 500, "{count}");
    }
}

#[tokio::test]
async fn deleted_device_gets_nothing() {
    let world = world().await;
    world.register("user-1", "a", "a").await;
    let accepted = world.notify("user-1").await;
    let device = "a".parse().expect("a device");
    world
        .push
        .delete(&user("user-1"), &device)
        .await
        .expect("deleted");
    assert_eq!(world.worker().turn().await.expect("a turn").messages, 0);
    let fate = world.fate(&accepted).await;
    assert_eq!(fate.devices[0].delivery.state, DeliveryState::Failed);
    assert!(world.sent().is_empty());
}

#[tokio::test]
async fn missing_receipt_is_given_up_after_a_day() {
    let world = world().await;
    world.register("user-1", "a", "a").await;
    let accepted = world.notify("user-1").await;
    let mut worker = world.worker();
    worker.turn().await.expect("a turn");
    for _ in 0..(25 * 4) {
        world.fixture.clock.advance_ms(15 * 60 * 1000);
        worker.turn().await.expect("a turn");
    }
    let fate = world.fate(&accepted).await;
    assert_eq!(fate.devices[0].delivery.state, DeliveryState::Sent);
    assert_eq!(
        fate.devices[0].delivery.reason.as_deref(),
        Some("no receipt within a day")
    );
    assert!(fate.finished_at.is_some());
    let asked = world
        .service
        .receipt_requests
        .lock()
        .expect("no panic")
        .len();
    assert!(asked < 12, "asked for {asked} times");
}

#[tokio::test]
async fn stored_entry_of_earlier_version_is_delivered() {
    let world = world().await;
    world.register("user-1", "a", "a").await;
    let id = "1800000000000-550e8400-e29b-41d4-a716-446655440000";
    let map = |members: Vec<(&str, Value)>| {
        let members = members.into_iter();
        Value::M(
            members
                .map(|(name, value)| (name.to_owned(), value))
                .collect(),
        )
    };
    let step = map(vec![
        ("at", "2027-01-15T08:00:00.000Z".into()),
        ("step", "accepted".into()),
    ]);
    let device = map(vec![
        ("device_id", "a".into()),
        ("state", "queued".into()),
        ("attempts", 0.into()),
        ("unanswered", 0.into()),
        ("next_at_ms", world.now().into()),
        ("steps", Value::L(vec![step])),
    ]);
    let notification = Item::new()
        .with("pk", "user#user-1")
        .with("sk", format!("notification#{id}"))
        .with("notification_id", id)
        .with("user_id", "user-1")
        .with("created_at", world.now())
        .with("message", r#"{"title":"Done","body":"Ready"}"#)
        .with("version", 1)
        .with("devices", Value::L(vec![device]))
        .with("work", "due")
        .with("due_at_ms", world.now());
    let counter = Item::new()
        .with("pk", "outbox")
        .with("sk", "outbox")
        .with("open", 1);
    for item in [notification, counter] {
        let put = Put::new("homeport-notifications", item);
        world.fixture.store.put(put).await.expect("stored");
    }
    let mut worker = world.worker();
    assert_eq!(worker.turn().await.expect("a turn").messages, 1);
    let id = id.parse().expect("an id");
    let read = world.push.notification(&user("user-1"), &id).await;
    let read = read.expect("a notification");
    assert_eq!(read.devices[0].delivery.state, DeliveryState::Sent);
    assert_eq!(steps(&read)[..2], ["accepted", "sending, attempt 1"]);
    assert_eq!(world.open().await, 1, "its receipt is due later");
}
