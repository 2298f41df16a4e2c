//! HTTP requests: stored with the message, sent once, retried, given up.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use homeport_systems::outbox::SendError;
use homeport_systems::rules::{
    OutgoingRequest, REQUEST_ATTEMPTS_MAX, RequestService, RequestWorker,
};
use serde_json::{Value, json};

use crate::support::NOW_MS;
use crate::world::{SNS_TOPIC, World, new, world};

const REQUESTS: &str = "homeport-rule-requests";
const HOUR_MS: i64 = 60 * 60 * 1000;

/// Answers as scripted, and records its requests.
#[derive(Default)]
struct Receiver {
    asked: Mutex<Vec<OutgoingRequest>>,
    answer: Mutex<Option<SendError>>,
}

#[async_trait]
impl RequestService for Receiver {
    async fn post(&self, request: &OutgoingRequest) -> Result<(), SendError> {
        self.asked
            .lock()
            .expect("not poisoned")
            .push(request.clone());
        let answer = self.answer.lock().expect("not poisoned").clone();
        answer.map_or(Ok(()), Err)
    }
}

impl Receiver {
    fn asked(&self) -> Vec<OutgoingRequest> {
        std::mem::take(&mut self.asked.lock().expect("not poisoned"))
    }

    fn answer(&self, answer: Option<SendError>) {
        *self.answer.lock().expect("not poisoned") = answer;
    }
}

fn busy() -> SendError {
    SendError::Busy {
        reason: "busy".to_owned(),
        retry_after: None,
    }
}

fn worker_on(world: &World, receiver: &Arc<Receiver>) -> RequestWorker {
    let publish = Arc::clone(&world.broker) as _;
    RequestWorker::new(world.engine.clone(), Arc::clone(receiver) as _, publish)
}

async fn with_rule() -> (World, Arc<Receiver>, RequestWorker) {
    let world = world().await;
    let document = json!({
        "sql": "SELECT volts FROM 'van/+/low'",
        "actions": [{"http": {
            "url": "https://example.com/${topic(2)}",
            "headers": [{"key": "X-Thing", "value": "${topic(2)}"}],
        }}],
        "errorAction": {"republish": {"topic": "errors"}},
    });
    world.create("hook", document).await;
    let receiver = Arc::new(Receiver::default());
    let worker = worker_on(&world, &receiver);
    (world, receiver, worker)
}

#[tokio::test]
async fn request_is_stored_with_message_and_sent_once() {
    let (world, receiver, worker) = with_rule().await;
    world.send("van/a/low", r#"{"volts": 11.50}"#).await;
    assert_eq!(world.items(REQUESTS).await.len(), 1);
    assert_eq!(worker.turn().await, Ok(1));
    let asked = receiver.asked();
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].url, "https://example.com/a");
    assert_eq!(asked[0].body, r#"{"volts":11.5}"#);
    assert_eq!(asked[0].headers, [("X-Thing".to_owned(), "a".to_owned())]);
    assert_eq!(asked[0].timestamp_secs, NOW_MS / 1000);
    assert_eq!(world.items(REQUESTS).await, Vec::<Value>::new());
    assert_eq!(worker.turn().await, Ok(0));
}

#[tokio::test]
async fn retried_request_keeps_its_id_across_restarts() {
    let (world, receiver, worker) = with_rule().await;
    world.send("van/a/low", "{}").await;
    receiver.answer(Some(busy()));
    assert_eq!(worker.turn().await, Ok(1));
    let first = receiver.asked();
    assert_eq!(worker.turn().await, Ok(0), "not due yet");
    drop(worker);
    let world = world.restart(Vec::new()).await;
    let worker = worker_on(&world, &receiver);
    world.fixture.clock.advance_ms(5_000);
    receiver.answer(None);
    assert_eq!(worker.turn().await, Ok(1));
    let second = receiver.asked();
    assert_eq!(first[0].id, second[0].id);
    assert_eq!(world.items(REQUESTS).await, Vec::<Value>::new());
}

#[tokio::test]
async fn retry_after_of_a_receiver_is_honored() {
    let (world, receiver, worker) = with_rule().await;
    world.send("van/a/low", "{}").await;
    receiver.answer(Some(SendError::Busy {
        reason: "slow down".to_owned(),
        retry_after: Some(Duration::from_secs(60)),
    }));
    worker.turn().await.expect("a turn");
    world.fixture.clock.advance_ms(59_000);
    assert_eq!(worker.turn().await, Ok(0));
    world.fixture.clock.advance_ms(1_000);
    assert_eq!(worker.turn().await, Ok(1));
}

#[tokio::test]
async fn undelivered_request_is_reported_to_the_rule() {
    let (world, receiver, worker) = with_rule().await;
    world.send("van/a/low", r#"{"volts": 1}"#).await;
    receiver.answer(Some(busy()));
    let mut attempts = 0;
    while worker.turn().await == Ok(1) {
        attempts += 1;
        world.fixture.clock.advance_ms(HOUR_MS);
    }
    assert_eq!(attempts, REQUEST_ATTEMPTS_MAX);
    assert_eq!(world.items(REQUESTS).await, Vec::<Value>::new());
    assert!(
        world.reasons("hook")[0].contains("34 attempts"),
        "{:?}",
        world.reasons("hook")
    );
    let published = world.broker.take();
    assert_eq!(published.len(), 1);
    let error: Value = serde_json::from_slice(&published[0].payload).expect("JSON");
    assert_eq!(error["failures"][0]["failedAction"], "HttpAction");
    assert_eq!(
        error["failures"][0]["failedResource"],
        "https://example.com/a"
    );
    assert_eq!(error["topic"], "van/a/low");
}

#[tokio::test]
async fn refused_request_is_not_retried() {
    let (world, receiver, worker) = with_rule().await;
    world.send("van/a/low", r#"{"volts": 1}"#).await;
    receiver.answer(Some(SendError::Refused("a private address".to_owned())));
    assert_eq!(worker.turn().await, Ok(1));
    assert_eq!(world.items(REQUESTS).await, Vec::<Value>::new());
    assert!(world.reasons("hook")[0].contains("a private address"));
}

#[tokio::test]
async fn two_workers_send_each_request_once() {
    let (world, receiver, worker) = with_rule().await;
    for n in 0..10 {
        world.send(&format!("van/{n}/low"), "{}").await;
    }
    let other = worker_on(&world, &receiver);
    let (one, two) = tokio::join!(worker.turn(), other.turn());
    one.and(two).expect("turns");
    let mut ids: Vec<_> = receiver.asked().into_iter().map(|one| one.id).collect();
    assert_eq!(ids.len(), 10);
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 10);
}

#[tokio::test]
async fn sns_notification_is_posted_to_its_url() {
    let world = world().await;
    let rule = |arn: &str| {
        json!({
            "sql": "SELECT volts FROM 'van/+/low'",
            "actions": [{"sns": {"targetArn": arn, "roleArn": "arn:aws:iam::1:role/r", "messageFormat": "RAW"}}],
        })
    };
    let unknown = "arn:aws:sns:eu-central-1:123456789012:nobody";
    let refused = world.engine.create(new("unknown", rule(unknown))).await;
    let refused = refused.expect_err("nobody receives it").to_string();
    assert!(refused.contains("actions[0].sns.targetArn"), "{refused}");
    assert!(
        refused.contains(unknown) && refused.contains("rules.sns_topics"),
        "{refused}"
    );
    let view = world.create("low", rule(SNS_TOPIC)).await;
    assert!(
        view.notes.iter().any(|note| note.contains("sns.roleArn")),
        "{:?}",
        view.notes
    );
    let receiver = Arc::new(Receiver::default());
    let worker = worker_on(&world, &receiver);
    world.send("van/a/low", r#"{"volts": 11.50}"#).await;
    assert_eq!(worker.turn().await, Ok(1));
    let asked = receiver.asked();
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].url, "https://hooks.example/sns");
    let header = (
        "x-amz-sns-message-type".to_owned(),
        "Notification".to_owned(),
    );
    assert!(asked[0].headers.contains(&header), "{:?}", asked[0].headers);
    let body: Value = serde_json::from_slice(&asked[0].body).expect("JSON");
    assert_eq!(body["TopicArn"], SNS_TOPIC);
    assert_eq!(body["Message"], r#"{"volts":11.5}"#);
}
