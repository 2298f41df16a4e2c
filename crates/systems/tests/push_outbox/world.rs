//! A user's devices, and a push service that follows a script.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::support::Fixture;
use async_trait::async_trait;
use homeport_store::Clock as _;
use homeport_systems::outbox::SendError;
use homeport_systems::push::{
    Accepted, Envelope, Message, NewDevice, NewMessage, Notification, Platform, Push, PushService,
    Receipt, Settings, Ticket, UserId, Worker, schema,
};

/// A push service that follows a script; without one it takes everything.
#[derive(Default)]
pub(crate) struct Scripted {
    /// What to say to the next requests that send.
    pub(crate) answers: Mutex<VecDeque<Answer>>,
    pub(crate) receipts: Mutex<BTreeMap<String, Receipt>>,
    /// The tokens of each request.
    pub(crate) requests: Mutex<Vec<Vec<String>>>,
    pub(crate) receipt_requests: Mutex<Vec<usize>>,
}

pub(crate) enum Answer {
    Fail(SendError),
    /// The error of the ticket for one token, with a text that names it; the others are fine.
    Ticket(&'static str, &'static str),
    /// Fails unless the request has one message.
    RefuseTogether,
    /// Takes everything and never answers.
    Hang,
}

#[async_trait]
impl PushService for Scripted {
    async fn send(&self, messages: &[Envelope]) -> Result<Vec<Ticket>, SendError> {
        assert!((1..=100).contains(&messages.len()), "{}", messages.len());
        let tokens: Vec<_> = messages
            .iter()
            .map(|one| one.to.as_str().to_owned())
            .collect();
        self.requests.lock().expect("no panic").push(tokens.clone());
        let answer = self.answers.lock().expect("no panic").pop_front();
        let mut wrong = None;
        match answer {
            Some(Answer::Fail(error)) => return Err(error),
            Some(Answer::RefuseTogether) if messages.len() > 1 => {
                return Err(SendError::Refused("400 VALIDATION_ERROR".to_owned()));
            }
            Some(Answer::Hang) => std::future::pending().await,
            Some(Answer::Ticket(token, code)) => wrong = Some((token, code)),
            Some(Answer::RefuseTogether) | None => {}
        }
        let tickets = tokens.into_iter().map(|token| match wrong {
            Some((of, code)) if token == format!("ExpoPushToken[{of}]") => Ticket::Error {
                code: code.to_owned(),
                message: format!("\"{token}\" is not a registered recipient"),
            },
            _ => Ticket::Ok {
                id: format!("ticket of {token}"),
            },
        });
        Ok(tickets.collect())
    }

    async fn receipts(&self, tickets: &[String]) -> Result<BTreeMap<String, Receipt>, SendError> {
        assert!((1..=1000).contains(&tickets.len()));
        let mut asked = self.receipt_requests.lock().expect("no panic");
        asked.push(tickets.len());
        let receipts = self.receipts.lock().expect("no panic");
        let known = tickets.iter().filter_map(|id| {
            let receipt = receipts.get(id)?;
            Some((id.clone(), receipt.clone()))
        });
        Ok(known.collect())
    }
}

/// Turns that anything here may take to its end.
const TURNS_MAX: usize = 3000;

pub(crate) struct World {
    pub(crate) push: Push,
    pub(crate) service: Arc<Scripted>,
    pub(crate) fixture: Fixture,
}

pub(crate) async fn world_with(settings: Settings) -> World {
    let fixture =
        crate::support::fixture(&schema::tables(&settings.table, settings.broadcast_index)).await;
    let push = Push::new(
        Arc::clone(&fixture.store),
        Arc::clone(&fixture.clock) as _,
        settings,
    );
    World {
        push,
        service: Arc::default(),
        fixture,
    }
}

pub(crate) async fn world() -> World {
    world_with(Settings::default()).await
}

pub(crate) fn user(id: &str) -> UserId {
    id.parse().expect("a user")
}

pub(crate) fn message(body: &str) -> Message {
    let message = Message::new(NewMessage {
        title: Some("Done".to_owned()),
        body: Some(body.to_owned()),
        ..NewMessage::default()
    });
    message.expect("a message")
}

impl World {
    /// Waits until the service has got so many requests.
    pub(crate) async fn requested(&self, count: usize) {
        while self.service.requests.lock().expect("no panic").len() < count {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    pub(crate) async fn register(&self, user_id: &str, device: &str, token: &str) {
        self.register_on(Platform::Android, user_id, device, token)
            .await;
    }

    pub(crate) async fn register_on(
        &self,
        platform: Platform,
        user_id: &str,
        device: &str,
        token: &str,
    ) {
        let new = NewDevice {
            user_id: user(user_id),
            device_id: device.parse().expect("a device"),
            expo_push_token: format!("ExpoPushToken[{token}]").parse().expect("a token"),
            platform,
        };
        self.push.register(new).await.expect("registered");
    }

    pub(crate) async fn notify(&self, user_id: &str) -> Notification {
        let user = user(user_id);
        let accepted = self.push.notify(&user, message("Ready"), None);
        match accepted.await.expect("accepted") {
            Accepted::New(notification) => notification,
            Accepted::Before(_) => panic!("there was no key"),
        }
    }

    /// A worker, a second after its start: in its first one it sends nothing.
    pub(crate) fn worker(&self) -> Worker {
        let worker = Worker::new(self.push.clone(), Arc::clone(&self.service) as _);
        self.fixture.clock.advance_ms(1000);
        worker
    }

    pub(crate) fn script(&self, answers: impl IntoIterator<Item = Answer>) {
        let mut script = self.service.answers.lock().expect("no panic");
        script.extend(answers);
    }

    pub(crate) fn add_receipts(&self, receipts: impl IntoIterator<Item = (String, Receipt)>) {
        let mut known = self.service.receipts.lock().expect("no panic");
        known.extend(receipts);
    }

    /// Confirms everything that was sent.
    pub(crate) fn confirm_sent(&self) {
        let tokens: Vec<String> = self.tokens();
        let receipts = tokens.iter().map(|token| format!("ticket of {token}"));
        self.add_receipts(receipts.map(|ticket| (ticket, Receipt::Ok)));
    }

    /// The tokens that messages were sent to, in order.
    pub(crate) fn tokens(&self) -> Vec<String> {
        let requests = self.service.requests.lock().expect("no panic");
        requests.concat()
    }

    /// Runs turns, from one time at which something is due to the next, until nothing is.
    pub(crate) async fn run(&self, worker: &mut Worker) {
        for _ in 0..TURNS_MAX {
            let turn = worker.turn().await.expect("a turn");
            self.confirm_sent();
            let Some(next) = turn.next_at else {
                return;
            };
            self.fixture.clock.advance_ms((next.0 - self.now()).max(1));
        }
        panic!("it does not come to an end");
    }

    pub(crate) fn now(&self) -> i64 {
        self.fixture.clock.now_ms()
    }

    pub(crate) fn sent(&self) -> Vec<usize> {
        let requests = self.service.requests.lock().expect("no panic");
        requests.iter().map(Vec::len).collect()
    }

    pub(crate) async fn fate(&self, notification: &Notification) -> Notification {
        let read = self
            .push
            .notification(&notification.user_id, &notification.id);
        read.await.expect("a notification")
    }

    pub(crate) async fn open(&self) -> i64 {
        self.push.check_table().await.expect("counted").outbox_open
    }
}

pub(crate) fn steps(notification: &Notification) -> Vec<&str> {
    let steps = notification.devices[0].delivery.steps.iter();
    steps.map(|step| step.what.as_str()).collect()
}
