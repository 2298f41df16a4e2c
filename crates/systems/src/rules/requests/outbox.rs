//! HTTP requests of rules as a kind of outbox entry. They are stored together with the other writes of
//! a message and sent from the store: a restart loses none, and a slow receiver blocks nothing.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use homeport_item::expression::{Path, Update};
use homeport_item::{Item, Value};
use homeport_store::{Action, Delete, StoreError, Update as UpdateRequest, WriteError};
use tokio::sync::Notify;

use super::service::{OutgoingRequest, RequestService};
use crate::ids::UuidV4;
use crate::messages::{Delivery as DeliveryMode, Message, Properties, Publish, Publisher};
use crate::outbox::{
    Decision, Delivery, DeliveryEvent, Entry, OutboxKind, OutboxWorker, Place, Queue, RetryPolicy,
    SendError, due_entries, next_turn_at, run_until, send_each,
};
use crate::rules::execution::failure::Failure;
use crate::rules::execution::plan::{ActionRef, Plan};
use crate::rules::execution::stats::Counted;
use crate::rules::{RuleEngine, schema};
use crate::time::EpochMillis;

/// Open requests; a rule that wants more fails.
pub const REQUESTS_MAX: usize = 10_000;
/// Attempts before a request is given up, after a day.
pub const REQUEST_ATTEMPTS_MAX: u32 = 34;

/// How long a request is kept at most: three days.
const RETENTION_SECS: i64 = 3 * 24 * 60 * 60;
/// Requests that one turn sends, all at the same time.
const PARALLEL_MAX: usize = 16;

/// The action's name in failures.
const ACTION: &str = "HttpAction";

static RETRIES: RetryPolicy = RetryPolicy {
    claim_ms: 60_000,
    send_timeout: Duration::from_secs(30),
    attempts_max: REQUEST_ATTEMPTS_MAX,
    // By the id of the request, as the Standard Webhooks specification recommends.
    recognizes_repeats: true,
    backoff_first_ms: 5_000,
    backoff_max_ms: 60 * 60 * 1000,
    count,
};

/// Sends what the outbox holds. Several workers may run on one store.
#[derive(Clone)]
pub struct RequestWorker(RequestOutbox);

#[derive(Clone)]
struct RequestOutbox {
    engine: RuleEngine,
    service: Arc<dyn RequestService>,
    /// Publishes what error actions republish.
    publish: Arc<dyn Publish>,
}

/// A stored request.
#[derive(Clone)]
struct StoredRequest {
    request: OutgoingRequest,
    rule: String,
    /// The message that it was made for, for the rule's error action.
    message: Message,
    delivery: Delivery,
    /// The stored time, which changes with every write.
    read_due_at: EpochMillis,
}

/// The item of a new request.
pub(in crate::rules) fn to_item(
    now: EpochMillis,
    by: &ActionRef,
    url: &str,
    headers: Vec<(String, String)>,
    body: &[u8],
    message: &Message,
) -> Result<Item, String> {
    let headers = serde_json::to_string(&headers).map_err(|error| error.to_string())?;
    let mut item = Item::new()
        .with(
            schema::REQUEST_ID,
            format!("{:013}-{}", now.0.max(0), UuidV4::random()),
        )
        .with(schema::WORK, schema::WORK_PARTITION)
        .with(schema::DUE_AT_MS, now.0)
        .with(schema::FORGET_AT, now.seconds().plus_secs(RETENTION_SECS).0)
        .with(schema::RULE, by.rule.name.as_str())
        .with(schema::URL, url)
        .with(schema::HEADERS, headers)
        .with(schema::BODY, Value::B(body.to_vec()))
        .with(schema::TOPIC, message.topic.as_str())
        .with(schema::ATTEMPTS, 0);
    // The message is kept for the error action. A request of an error action has none.
    if !by.is_error_action {
        item.insert(schema::PAYLOAD, Value::B(message.payload.to_vec()));
        if let Some(client_id) = &message.publisher.client_id {
            item.insert(schema::CLIENT_ID, client_id.as_str());
        }
    }
    item.check().map_err(|error| error.to_string())?;
    Ok(item)
}

pub(in crate::rules) fn key_of(item: &Item) -> Item {
    let id = item.get(schema::REQUEST_ID).cloned();
    Item::new().with(schema::REQUEST_ID, id.unwrap_or(Value::Null))
}

fn parse(item: &Item) -> Option<StoredRequest> {
    let text = |name| item.get(name).and_then(Value::as_str);
    let whole = |name| item.get(name)?.as_number()?.to_i64();
    let bytes = |name| match item.get(name) {
        Some(Value::B(bytes)) => Some(Bytes::copy_from_slice(bytes)),
        _ => None,
    };
    let id = text(schema::REQUEST_ID)?;
    let created = id.split_once('-')?.0.parse().ok()?;
    let due_at = EpochMillis(whole(schema::DUE_AT_MS)?);
    Some(StoredRequest {
        request: OutgoingRequest {
            id: id.to_owned(),
            timestamp_secs: 0,
            url: text(schema::URL)?.to_owned(),
            headers: serde_json::from_str(text(schema::HEADERS)?).ok()?,
            body: bytes(schema::BODY)?,
        },
        rule: text(schema::RULE)?.to_owned(),
        message: Message {
            topic: text(schema::TOPIC)?.to_owned(),
            payload: bytes(schema::PAYLOAD).unwrap_or_default(),
            delivery: DeliveryMode::AtLeastOnce,
            retain: false,
            publisher: Publisher {
                client_id: text(schema::CLIENT_ID).map(str::to_owned),
                principal: None,
            },
            received_at: EpochMillis(created),
            properties: Properties::default(),
            hops: 0,
        },
        delivery: Delivery {
            attempts: u32::try_from(whole(schema::ATTEMPTS)?).ok()?,
            ..Delivery::queued(due_at)
        },
        read_due_at: due_at,
    })
}

impl Entry for StoredRequest {
    fn delivery(&self, _: usize) -> &Delivery {
        &self.delivery
    }

    fn delivery_mut(&mut self, _: usize) -> &mut Delivery {
        &mut self.delivery
    }
}

#[async_trait]
impl OutboxKind for RequestOutbox {
    type Entry = StoredRequest;
    type Message = OutgoingRequest;
    type Answer = ();
    type Error = StoreError;

    fn queue(&self) -> &Queue {
        &self.engine.inner.outbox
    }

    fn policy(&self) -> &'static RetryPolicy {
        &RETRIES
    }

    fn now(&self) -> EpochMillis {
        self.engine.now()
    }

    fn parse(&self, item: &Item) -> Result<StoredRequest, StoreError> {
        let malformed = || StoreError::invalid("a request has an unknown form");
        parse(item).ok_or_else(malformed)
    }

    async fn skip_malformed(&self, item: &Item, _: StoreError) -> Result<(), StoreError> {
        tracing::warn!("deleted a malformed request of a rule");
        let delete = Delete::new(schema::REQUESTS, key_of(item));
        match self.queue().store.delete(delete).await {
            Ok(_) | Err(WriteError::ConditionFailed { .. }) => {
                self.one_less_open();
                Ok(())
            }
            Err(WriteError::Store(error)) => Err(error),
        }
    }

    fn write(&self, stored: &mut StoredRequest) -> Result<Action, StoreError> {
        let key = Item::new().with(schema::REQUEST_ID, stored.request.id.as_str());
        let is_unchanged = Path::from(schema::DUE_AT_MS).equals(stored.read_due_at.0);
        let Some(due_at) = stored.due_at() else {
            let delete = Delete::new(schema::REQUESTS, key);
            return Ok(delete.when(is_unchanged).into());
        };
        stored.read_due_at = due_at;
        let update = Update::new()
            .set(schema::DUE_AT_MS, due_at.0)
            .set(schema::ATTEMPTS, i64::from(stored.delivery.attempts));
        let update = UpdateRequest::new(schema::REQUESTS, key, update);
        Ok(update.when(is_unchanged).into())
    }

    async fn prepare(
        &self,
        requests: &mut [StoredRequest],
        places: &[Place],
    ) -> Result<Vec<Decision<OutgoingRequest>>, StoreError> {
        let timestamp_secs = self.now().seconds().0;
        let requests = places.iter().map(|place| {
            Decision::Send(OutgoingRequest {
                timestamp_secs,
                ..requests[place.entry].request.clone()
            })
        });
        Ok(requests.collect())
    }

    async fn send(&self, requests: Vec<OutgoingRequest>) -> Result<Vec<()>, SendError> {
        let mut answers = Vec::with_capacity(requests.len());
        for request in &requests {
            answers.push(self.service.post(request).await?);
        }
        Ok(answers)
    }

    fn apply_answer(&self, stored: &mut StoredRequest, _: usize, (): ()) {
        stored.delivery.sent(&RETRIES, self.now(), "sent", None);
    }

    /// Reports to the rule that a request will not arrive.
    async fn before_failure(&self, stored: &StoredRequest) -> Result<(), StoreError> {
        let registry = self.engine.registry();
        let name = stored.rule.parse().ok();
        let Some(rule) = name.and_then(|name| registry.running(&name)) else {
            return Ok(());
        };
        let reason = stored.delivery.reason.as_deref().unwrap_or_default();
        let url = stored.request.url.as_str();
        let failure = Failure::of_action(&stored.message, ACTION, url, reason);
        if stored.message.payload.is_empty() {
            rule.stats.count(Counted::ActionsFailed);
            rule.stats.keep(failure);
            return Ok(());
        }
        let mut errors = Plan::default();
        self.engine
            .fail(rule, &stored.message, failure, &mut errors);
        for message in self.engine.carry_out(&stored.message, errors).await? {
            match self.publish.publish(message).await {
                // Repeating it would not help.
                Err(error) if !error.is_transient() => {
                    tracing::warn!(%error, "dropped a republished message");
                }
                outcome => outcome?,
            }
        }
        Ok(())
    }

    fn after_finish(&self, _: &StoredRequest) {
        self.one_less_open();
    }
}

impl RequestOutbox {
    fn one_less_open(&self) {
        let open = &self.engine.inner.requests_open;
        // Another process may have added the request: then the next recount corrects the number.
        let _ = open.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |open| {
            open.checked_sub(1)
        });
    }
}

impl RequestWorker {
    #[must_use]
    pub fn new(
        engine: RuleEngine,
        service: Arc<dyn RequestService>,
        publish: Arc<dyn Publish>,
    ) -> Self {
        Self(RequestOutbox {
            engine,
            service,
            publish,
        })
    }

    /// Runs until `stop` completes. A turn that has begun is finished first.
    pub async fn run_until(self, stop: impl Future<Output = ()>) {
        run_until(self, stop).await;
    }

    /// Sends what is due, at most [`PARALLEL_MAX`] requests; returns how many there were.
    ///
    /// # Errors
    /// When the store fails. What was due stays due.
    pub async fn turn(&self) -> Result<usize, StoreError> {
        let due = due_entries(&self.0, PARALLEL_MAX).await?;
        if due.is_empty() {
            self.recount().await?;
            return Ok(0);
        }
        send_each(&self.0, due, PARALLEL_MAX).await
    }

    /// Counts the open requests of all processes.
    async fn recount(&self) -> Result<(), StoreError> {
        let open = self.0.queue().count_entries(REQUESTS_MAX).await?;
        let known = &self.0.engine.inner.requests_open;
        known.store(open, Ordering::Relaxed);
        metrics::gauge!("homeport_rule_requests_open").set(open as f64);
        Ok(())
    }
}

#[async_trait]
impl OutboxWorker for RequestWorker {
    type Error = StoreError;

    const NAME: &'static str = "requests of rules";
    const FAILURES: &'static str = "homeport_rule_request_worker_failures_total";

    fn work(&self) -> Arc<Notify> {
        Arc::clone(&self.0.engine.inner.work)
    }

    fn now(&self) -> EpochMillis {
        self.0.now()
    }

    async fn next_turn(&mut self) -> Result<Option<EpochMillis>, StoreError> {
        let sent = self.turn().await?;
        let due_at = self.0.queue().first_due_at().await?;
        let now = self.0.now();
        Ok(due_at.map(|due_at| next_turn_at(due_at, now, sent > 0)))
    }
}

impl std::fmt::Debug for RequestWorker {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("RequestWorker")
            .finish_non_exhaustive()
    }
}

fn count(event: DeliveryEvent) {
    let outcome = match event {
        DeliveryEvent::Sent | DeliveryEvent::Delivered => "sent",
        DeliveryEvent::Retried => "put_off",
        DeliveryEvent::Failed | DeliveryEvent::Dropped => "given_up",
    };
    metrics::counter!("homeport_rule_requests_total", "outcome" => outcome).increment(1);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn receiver_may_be_down_for_a_day() {
        assert!(RETRIES.patience() > Duration::from_secs(24 * 60 * 60));
    }
}
