//! From the outbox to Expo and back: the real worker, the real client over HTTP, the strict stand-in,
//! and a store that is closed and opened again from its disk at the worst moments.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use homeport_engine::{Engine, Options};
use homeport_server::Expo;
use homeport_simulate::expo_stand_in::{ExpoStandIn, Fault, FaultKind, Outcome};
use homeport_store::{Clock, ManualClock, Store, SystemClock};
use homeport_systems::outbox::{DeliveryState, SendError};
use homeport_systems::push::{
    Accepted, DeviceDelivery, Envelope, IdempotencyKey, Message, NewDevice, NewMessage,
    Notification, Platform, Push, PushService, Receipt, Settings, Ticket, Turn, UserId, Worker,
    schema,
};
use serde_json::{Map, json};
use tokio::sync::Notify;

use crate::support::{NOW_MS, serve_stand_in};

/// Longer than anything here takes, unless it never ends.
const WITHIN: Duration = Duration::from_secs(60);
/// How long the client waits for an answer that does not come.
const ANSWER_WITHIN: Duration = Duration::from_millis(300);
/// Turns that a notification may take to its end.
const TURNS_MAX: usize = 2000;
const RECEIPT_DELAY_MS: i64 = 15 * 60 * 1000;
const CLAIM_MS: i64 = 2 * 60 * 1000;

/// Where a process ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cut {
    /// The message is claimed, and its request has not left.
    BeforeSend,
    /// Expo has answered, and nobody has written it down.
    AfterSend,
    BeforeReceipts,
    AfterReceipts,
}

/// The client, with a place where the process can end.
struct Gate {
    expo: Expo,
    next: Mutex<Option<Cut>>,
    reached: Notify,
}

impl Gate {
    async fn pass(&self, here: Cut) {
        let is_here = {
            let mut next = self.next.lock().expect("no panic");
            next.take_if(|next| *next == here).is_some()
        };
        if !is_here {
            return;
        }
        self.reached.notify_one();
        std::future::pending().await
    }
}

#[async_trait]
impl PushService for Gate {
    async fn send(&self, messages: &[Envelope]) -> Result<Vec<Ticket>, SendError> {
        self.pass(Cut::BeforeSend).await;
        let tickets = self.expo.send(messages).await;
        self.pass(Cut::AfterSend).await;
        tickets
    }

    async fn receipts(&self, tickets: &[String]) -> Result<BTreeMap<String, Receipt>, SendError> {
        self.pass(Cut::BeforeReceipts).await;
        let receipts = self.expo.receipts(tickets).await;
        self.pass(Cut::AfterReceipts).await;
        receipts
    }
}

/// What a process has: all of it is gone when it ends.
struct Process {
    // Dropped first: the store is closed with its last user.
    worker: Worker,
    push: Push,
}

struct World {
    process: Option<Process>,
    gate: Arc<Gate>,
    stand_in: ExpoStandIn,
    clock: Arc<ManualClock>,
    directory: tempfile::TempDir,
}

fn open(directory: &tempfile::TempDir, clock: &Arc<dyn Clock>) -> Arc<dyn Store> {
    let options = Options {
        clock: Arc::clone(clock),
        background_sweep: false,
        ..Options::default()
    };
    Arc::new(Engine::open(directory.path(), options).expect("opens"))
}

fn user(number: usize) -> UserId {
    format!("user-{number:03}").parse().expect("a user")
}

fn token(number: usize, device: &str) -> String {
    format!("ExpoPushToken[{number}-{device}]")
}

fn message(number: usize) -> Message {
    let message = Message::new(NewMessage {
        title: Some("Done".to_owned()),
        body: Some("Ready".to_owned()),
        data: Some(Map::from_iter([("number".to_owned(), json!(number))])),
        ..NewMessage::default()
    });
    message.expect("a message")
}

async fn register(push: &Push, number: usize, device: &str) {
    let new = NewDevice {
        user_id: user(number),
        device_id: device.parse().expect("a device"),
        expo_push_token: token(number, device).parse().expect("a token"),
        platform: Platform::Ios,
    };
    push.register(new).await.expect("registered");
}

fn steps(fate: &DeviceDelivery) -> Vec<&str> {
    fate.delivery
        .steps
        .iter()
        .map(|step| step.what.as_str())
        .collect()
}

fn says(fate: &DeviceDelivery, text: &str) -> bool {
    fate.delivery
        .steps
        .iter()
        .any(|step| step.what.contains(text))
}

impl World {
    async fn new() -> Self {
        let clock = Arc::new(ManualClock::at_ms(NOW_MS));
        let stand_in = ExpoStandIn::new(Arc::clone(&clock) as _, None);
        let url = serve_stand_in(&stand_in).await;
        let gate = Gate {
            expo: Expo::new(url, None).with_timeout(ANSWER_WITHIN),
            next: Mutex::default(),
            reached: Notify::new(),
        };
        let mut world = Self {
            process: None,
            gate: Arc::new(gate),
            stand_in,
            clock,
            directory: tempfile::tempdir().expect("a directory"),
        };
        world.restart().await;
        world
    }

    /// Ends the process, closes its store, and starts another on what is on the disk.
    async fn restart(&mut self) {
        self.process = None;
        let clock: Arc<dyn Clock> = Arc::clone(&self.clock) as _;
        let store = open(&self.directory, &clock);
        let settings = Settings::default();
        let tables = schema::tables(&settings.table);
        store.ensure_tables(&tables).await.expect("tables");
        let push = Push::new(store, clock, settings);
        let worker = Worker::new(push.clone(), Arc::clone(&self.gate) as _);
        self.process = Some(Process { worker, push });
        // In its first second a worker sends nothing.
        self.clock.advance_ms(1000);
    }

    fn push(&self) -> &Push {
        &self.process.as_ref().expect("it runs").push
    }

    fn cut(&self, at: Cut) {
        *self.gate.next.lock().expect("no panic") = Some(at);
    }

    /// A turn of the worker; `None` when the process ended in the middle of it.
    async fn turn(&mut self) -> Option<Turn> {
        let worker = &mut self.process.as_mut().expect("it runs").worker;
        let taking = async {
            tokio::select! {
                turn = worker.turn() => Some(turn.expect("the store works")),
                () = self.gate.reached.notified() => None,
            }
        };
        tokio::time::timeout(WITHIN, taking).await.expect("in time")
    }

    /// Lets the process end at this place, and starts another.
    async fn end_at(&mut self, at: Cut) {
        self.cut(at);
        assert_eq!(self.turn().await, None, "{at:?} was not reached");
        self.restart().await;
    }

    /// Goes on, from one time that something is due to the next, until nothing is.
    async fn finish(&mut self) {
        for _ in 0..TURNS_MAX {
            let turn = self.turn().await.expect("nothing ends it");
            let Some(next) = turn.next_at else {
                return;
            };
            self.clock.advance_ms((next.0 - self.clock.now_ms()).max(1));
        }
        panic!("it does not come to an end");
    }

    /// Registers a device for a new user and notifies it.
    async fn notify(&self, number: usize) -> Notification {
        register(self.push(), number, "phone").await;
        self.notify_registered(number).await
    }

    async fn notify_registered(&self, number: usize) -> Notification {
        let user = user(number);
        let accepted = self.push().notify(&user, message(number), None).await;
        match accepted.expect("accepted") {
            Accepted::New(notification) => notification,
            Accepted::Before(_) => panic!("there was no key"),
        }
    }

    async fn fate(&self, notification: &Notification) -> DeviceDelivery {
        let read = self
            .push()
            .notification(&notification.user_id, &notification.id);
        let mut devices = read.await.expect("a notification").devices;
        assert_eq!(devices.len(), 1);
        devices.remove(0)
    }

    /// How often a user's phone was told.
    fn arrived(&self, number: usize) -> usize {
        self.stand_in.accepted_for(&token(number, "phone")).len()
    }

    async fn open_count(&self) -> i64 {
        self.push()
            .check_table()
            .await
            .expect("counted")
            .outbox_open
    }

    async fn is_active(&self, number: usize) -> bool {
        let device = "phone".parse().expect("a device");
        let device = self.push().device(&user(number), &device).await;
        device.expect("a device").is_active
    }
}

#[tokio::test]
async fn accepted_message_is_sent_once_after_restart() {
    let mut world = World::new().await;
    let key: IdempotencyKey = "job-7".parse().expect("a key");
    register(world.push(), 1, "phone").await;
    let first = world.push().notify(&user(1), message(1), Some(&key)).await;
    let Ok(Accepted::New(notification)) = first else {
        panic!("{first:?}");
    };
    world.restart().await;
    let again = world.push().notify(&user(1), message(1), Some(&key)).await;
    assert!(
        matches!(&again, Ok(Accepted::Before(same)) if same.id == notification.id),
        "{again:?}"
    );
    world.finish().await;
    world.restart().await;
    world.finish().await;
    assert_eq!(world.arrived(1), 1);
    let fate = world.fate(&notification).await;
    assert_eq!(fate.delivery.state, DeliveryState::Delivered);
    assert_eq!(world.open_count().await, 0);
}

#[tokio::test]
async fn crash_before_request_loses_and_sends_nothing() {
    let mut world = World::new().await;
    let notification = world.notify(1).await;
    world.end_at(Cut::BeforeSend).await;
    assert_eq!(world.turn().await.expect("a turn").messages, 0, "claimed");
    assert_eq!(world.arrived(1), 0);
    world.clock.advance_ms(CLAIM_MS);
    world.finish().await;
    assert_eq!(world.arrived(1), 1);
    let fate = world.fate(&notification).await;
    assert_eq!(
        (
            fate.delivery.state,
            fate.delivery.attempts,
            fate.delivery.unanswered
        ),
        (DeliveryState::Delivered, 2, 1)
    );
    assert!(says(&fate, "it may have arrived"), "{:?}", steps(&fate));
}

#[tokio::test]
async fn crash_before_recording_resends_with_trace() {
    let mut world = World::new().await;
    let notification = world.notify(1).await;
    world.end_at(Cut::AfterSend).await;
    assert_eq!(world.arrived(1), 1);
    world.clock.advance_ms(CLAIM_MS);
    world.finish().await;
    // Nobody can know better: Expo has no key that would make the second one the first.
    assert_eq!(world.arrived(1), 2);
    let fate = world.fate(&notification).await;
    assert_eq!(
        (
            fate.delivery.state,
            fate.delivery.attempts,
            fate.delivery.unanswered
        ),
        (DeliveryState::Delivered, 2, 1)
    );
    let tickets = world.stand_in.accepted_for(&token(1, "phone"));
    assert_eq!(
        fate.ticket_id.as_deref(),
        Some(tickets[1].ticket_id.as_str())
    );
}

#[tokio::test]
async fn restart_between_ticket_and_receipt_resends_nothing() {
    let mut world = World::new().await;
    let notification = world.notify(1).await;
    assert_eq!(world.turn().await.expect("a turn").messages, 1);
    world.restart().await;
    assert_eq!(
        world.fate(&notification).await.delivery.state,
        DeliveryState::Sent
    );
    for cut in [Cut::BeforeReceipts, Cut::AfterReceipts] {
        world.clock.advance_ms(RECEIPT_DELAY_MS);
        world.end_at(cut).await;
        assert_eq!(
            world.fate(&notification).await.delivery.state,
            DeliveryState::Sent
        );
    }
    world.finish().await;
    let fate = world.fate(&notification).await;
    assert_eq!(
        (
            fate.delivery.state,
            fate.delivery.attempts,
            fate.delivery.unanswered
        ),
        (DeliveryState::Delivered, 1, 0)
    );
    assert_eq!(world.arrived(1), 1);
}

#[tokio::test]
async fn unregistered_token_is_deactivated_after_restart() {
    let mut world = World::new().await;
    let gone = Outcome::ReceiptError("DeviceNotRegistered".to_owned());
    world.stand_in.set_outcome(&token(1, "phone"), gone);
    let notification = world.notify(1).await;
    world.turn().await.expect("a turn");
    world.clock.advance_ms(RECEIPT_DELAY_MS);
    assert_eq!(world.turn().await.expect("a turn").receipts, 1);
    assert!(world.is_active(1).await, "that is the next turn's");
    world.restart().await;
    assert_eq!(world.turn().await.expect("a turn").deactivated, 1);
    assert!(!world.is_active(1).await);
    let fate = world.fate(&notification).await;
    assert_eq!(fate.delivery.state, DeliveryState::Failed);
    assert!(
        says(&fate, "the token was deactivated"),
        "{:?}",
        steps(&fate)
    );
    assert_eq!(world.open_count().await, 0);
}

#[tokio::test]
async fn rejected_messages_are_retried_until_delivered() {
    let mut world = World::new().await;
    let notification = world.notify(1).await;
    let faults = [
        FaultKind::Status(429, Some(7)),
        FaultKind::Status(500, None),
        FaultKind::Status(503, Some(1)),
        FaultKind::Status(401, None),
    ];
    for then in faults {
        world.stand_in.fail_next(Fault {
            accepts: false,
            kind: then,
        });
    }
    let begun_ms = world.clock.now_ms();
    let turn = world.turn().await.expect("a turn");
    let waits_until = turn.next_at.expect("it goes on").0;
    assert_eq!(waits_until - begun_ms, 7000, "as long as Expo says");
    world.finish().await;
    let fate = world.fate(&notification).await;
    assert_eq!(
        (
            fate.delivery.state,
            fate.delivery.attempts,
            fate.delivery.unanswered
        ),
        (DeliveryState::Delivered, 5, 0)
    );
    assert_eq!(world.arrived(1), 1);
    for status in ["429", "500", "503", "401"] {
        assert!(says(&fate, status), "{status}: {:?}", steps(&fate));
    }
}

#[tokio::test]
async fn unanswered_messages_fail_after_three_attempts() {
    let mut world = World::new().await;
    let silences = [
        (true, FaultKind::NoResponse),
        (false, FaultKind::Disconnect),
        (true, FaultKind::InvalidBody),
        (false, FaultKind::Status(504, None)),
    ];
    // Two of them are survived, the third is the end.
    let survived = world.notify(1).await;
    for (accepts, kind) in &silences[..2] {
        let (accepts, kind) = (*accepts, *kind);
        world.stand_in.fail_next(Fault { accepts, kind });
    }
    world.finish().await;
    let fate = world.fate(&survived).await;
    assert_eq!(
        (fate.delivery.state, fate.delivery.unanswered),
        (DeliveryState::Delivered, 2)
    );
    assert_eq!(world.arrived(1), 2);
    let given_up = world.notify(2).await;
    for (accepts, kind) in &silences[1..] {
        let (accepts, kind) = (*accepts, *kind);
        world.stand_in.fail_next(Fault { accepts, kind });
    }
    world.finish().await;
    let fate = world.fate(&given_up).await;
    assert_eq!(
        (fate.delivery.state, fate.delivery.unanswered),
        (DeliveryState::Failed, 3)
    );
    assert_eq!(world.arrived(2), 1);
    let reason = fate.delivery.reason.unwrap_or_default();
    assert!(reason.contains("it may have arrived"), "{reason}");
}

#[tokio::test]
async fn ticket_error_affects_only_its_device() {
    let mut world = World::new().await;
    for device in ["fine", "gone", "unlucky", "big"] {
        register(world.push(), 1, device).await;
    }
    let errors = [
        ("gone", "DeviceNotRegistered"),
        ("unlucky", "MessageRateExceeded"),
        ("big", "MessageTooBig"),
    ];
    for (device, code) in errors {
        let wrong = Outcome::TicketError(code.to_owned());
        world.stand_in.set_outcome(&token(1, device), wrong);
    }
    let notification = world.notify_registered(1).await;
    assert_eq!(world.turn().await.expect("a turn").messages, 4);
    // Not so fast that Expo would refuse it again.
    world
        .stand_in
        .set_outcome(&token(1, "unlucky"), Outcome::Delivered);
    world.finish().await;
    let one = user(1);
    let read = world.push().notification(&one, &notification.id).await;
    let read = read.expect("a notification");
    let states: BTreeMap<&str, (DeliveryState, u32)> = read
        .devices
        .iter()
        .map(|fate| {
            (
                fate.device_id.as_str(),
                (fate.delivery.state, fate.delivery.attempts),
            )
        })
        .collect();
    let expected = [
        ("big", (DeliveryState::Failed, 1)),
        ("fine", (DeliveryState::Delivered, 1)),
        ("gone", (DeliveryState::Failed, 1)),
        ("unlucky", (DeliveryState::Delivered, 2)),
    ];
    assert_eq!(states, BTreeMap::from(expected));
    let active = world.push().active_devices(&user(1), 10, None).await;
    let active = active.expect("devices").items;
    let active: Vec<_> = active.iter().map(|one| one.device_id.as_str()).collect();
    assert_eq!(active, ["big", "fine", "unlucky"]);
}

#[tokio::test]
async fn missing_receipts_are_requested_again() {
    let mut world = World::new().await;
    let notification = world.notify(1).await;
    let unlucky = world.notify(2).await;
    let wrong = Outcome::ReceiptError("MismatchSenderId".to_owned());
    world.stand_in.set_outcome(&token(2, "phone"), wrong);
    for then in [
        FaultKind::Status(429, None),
        FaultKind::Status(500, None),
        FaultKind::Disconnect,
        FaultKind::NoResponse,
    ] {
        let accepts = false;
        world.stand_in.fail_next_receipts(Fault {
            accepts,
            kind: then,
        });
    }
    world.finish().await;
    let fate = world.fate(&notification).await;
    assert_eq!(
        (fate.delivery.state, fate.delivery.attempts),
        (DeliveryState::Delivered, 1)
    );
    let fate = world.fate(&unlucky).await;
    assert_eq!(fate.delivery.state, DeliveryState::Failed);
    let reason = fate.delivery.reason.unwrap_or_default();
    assert!(reason.starts_with("MismatchSenderId"), "{reason}");
    assert!(world.is_active(2).await, "the token is not at fault");
}

#[tokio::test]
async fn mixed_projects_are_sent_one_by_one() {
    let mut world = World::new().await;
    for number in 0..6 {
        world.notify(number).await;
        let project = if number % 2 == 0 { "@a/one" } else { "@a/two" };
        let token = token(number, "phone");
        world.stand_in.set_project(&token, project);
    }
    world.finish().await;
    for number in 0..6 {
        assert_eq!(world.arrived(number), 1, "{number}");
    }
    assert_eq!(world.open_count().await, 0);
}

#[tokio::test]
async fn large_audience_is_paced() {
    let mut world = World::new().await;
    for device in 0..100 {
        register(world.push(), 1, &device.to_string()).await;
    }
    let mut notifications = Vec::new();
    for _ in 0..13 {
        notifications.push(world.notify_registered(1).await);
    }
    for _ in 0..TURNS_MAX {
        world.turn().await.expect("a turn");
        if world.stand_in.accepted_count() == 1300 {
            break;
        }
        world.clock.advance_ms(20);
    }
    assert_eq!(world.stand_in.accepted_count(), 1300);
    let one = user(1);
    for notification in notifications {
        let read = world.push().notification(&one, &notification.id).await;
        let devices = read.expect("a notification").devices;
        // More would mean that the stand-in has refused a request.
        assert!(devices.iter().all(|fate| fate.delivery.attempts == 1));
    }
}

/// Numbers that look random and are the same in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = self.0.wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

#[tokio::test]
async fn failures_and_restarts_lose_nothing() {
    const NOTIFICATIONS: usize = 60;
    for seed in 1..=3 {
        let mut dice = Dice(seed);
        let mut world = World::new().await;
        let mut notifications = Vec::new();
        for round in 0..NOTIFICATIONS {
            notifications.push(world.notify(round).await);
            let thens = [
                FaultKind::Status(429, Some(2)),
                FaultKind::Status(502, None),
                FaultKind::Status(503, None),
                FaultKind::Disconnect,
                FaultKind::InvalidBody,
            ];
            let then = thens[usize::try_from(dice.below(5)).expect("small")];
            match dice.below(8) {
                0 => world.stand_in.fail_next(Fault {
                    accepts: false,
                    kind: then,
                }),
                // What Expo says that it did not take, it did not take.
                1 if !matches!(then, FaultKind::Status(429 | 503, _)) => {
                    world.stand_in.fail_next(Fault {
                        accepts: true,
                        kind: then,
                    });
                }
                2 => world.stand_in.fail_next_receipts(Fault {
                    accepts: false,
                    kind: then,
                }),
                _ => {}
            }
            let cuts = [
                Cut::BeforeSend,
                Cut::AfterSend,
                Cut::BeforeReceipts,
                Cut::AfterReceipts,
            ];
            if dice.below(6) == 0 {
                world.cut(cuts[usize::try_from(dice.below(4)).expect("small")]);
            }
            if world.turn().await.is_none() {
                world.restart().await;
            }
            let hours = [1_000, 5_000, CLAIM_MS, RECEIPT_DELAY_MS];
            let pause = hours[usize::try_from(dice.below(4)).expect("small")];
            world.clock.advance_ms(pause);
        }
        *world.gate.next.lock().expect("no panic") = None;
        world.finish().await;
        assert_eq!(world.open_count().await, 0, "seed {seed}");
        let mut repeated = 0;
        for (number, notification) in notifications.iter().enumerate() {
            let fate = world.fate(notification).await;
            let arrived = world.arrived(number);
            let most = usize::try_from(fate.delivery.unanswered).expect("small") + 1;
            let context = || format!("seed {seed}, {number}, {arrived}: {:?}", steps(&fate));
            match fate.delivery.state {
                DeliveryState::Delivered => assert!((1..=most).contains(&arrived), "{}", context()),
                // Given up, and it is said that it may have arrived.
                DeliveryState::Failed => {
                    assert_eq!(fate.delivery.unanswered, 3, "{}", context());
                    assert!(arrived < most, "{}", context());
                }
                _ => panic!("it is not finished: {}", context()),
            }
            repeated += arrived.saturating_sub(1);
        }
        assert!(repeated > 0, "seed {seed} never tells twice");
    }
}

#[tokio::test]
async fn worker_runs_and_stops() {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let stand_in = ExpoStandIn::new(Arc::clone(&clock), None);
    let url = serve_stand_in(&stand_in).await;
    let directory = tempfile::tempdir().expect("a directory");
    let store = open(&directory, &clock);
    let settings = Settings::default();
    let tables = schema::tables(&settings.table);
    store.ensure_tables(&tables).await.expect("tables");
    let push = Push::new(store, clock, settings);
    register(&push, 1, "phone").await;
    let worker = Worker::new(push.clone(), Arc::new(Expo::new(url, None)));
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let working = tokio::spawn(worker.run_until(async {
        let _ = stopped.await;
    }));
    let accepted = push.notify(&user(1), message(1), None).await;
    assert!(matches!(accepted, Ok(Accepted::New(_))), "{accepted:?}");
    let arrived = async {
        while stand_in.accepted_for(&token(1, "phone")).is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(WITHIN, arrived)
        .await
        .expect("it arrives");
    stop.send(()).expect("it runs");
    let ended = tokio::time::timeout(WITHIN, working).await;
    ended.expect("it stops").expect("no panic");
    let page = push.notifications(&user(1), 1, None).await.expect("a page");
    assert_eq!(page.items[0].devices[0].delivery.state, DeliveryState::Sent);
    assert_eq!(stand_in.accepted_count(), 1);
}
