//! Requests that rules make over HTTP. They are written together with whatever else a message leads
//! to, and sent from the store: a restart loses none, and a receiver that is down holds nothing up.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use homeport_item::expression::{KeyCondition, Path, SortCondition, Update};
use homeport_item::{Item, Value};
use homeport_store::{Delete, Query, StoreError, Update as UpdateRequest, WriteError};
use tokio::task::JoinSet;

use super::failure::Failure;
use super::plan::{By, Plan};
use super::service::{OutgoingRequest, RequestError, RequestService};
use super::stats::Counted;
use super::{RuleEngine, schema};
use crate::ids::UuidV4;
use crate::messages::{Delivery, Message, Properties, Publisher};
use crate::time::EpochMillis;

/// Requests that may wait at one time; a rule that wants more fails.
pub const REQUESTS_MAX: usize = 10_000;
/// How often a request is tried before it is given up.
pub const REQUEST_ATTEMPTS_MAX: i64 = 12;

/// How long a request is kept at most, in seconds: three days.
const KEPT_SECS: i64 = 3 * 24 * 60 * 60;
/// Requests that are sent at one time.
const AT_ONCE: usize = 16;
/// How long an attempt has a request to itself. It is longer than any attempt takes.
const CLAIM_MS: i64 = 60_000;
/// The pause after the first attempt; every further one is twice as long, up to the longest.
const RETRY_FIRST_MS: i64 = 5_000;
const RETRY_LONGEST_MS: i64 = 60 * 60 * 1000;
/// How often the outbox is looked at when nothing is known to be due.
const LOOK_EVERY: Duration = Duration::from_secs(10);
/// The pause after a failure of the store.
const FAILURE_PAUSE: Duration = Duration::from_secs(5);

/// The action's name in failures.
const ACTION: &str = "HttpAction";

/// Sends what the outbox holds. Several may run on one store.
#[derive(Clone)]
pub struct RequestWorker {
    engine: RuleEngine,
    service: Arc<dyn RequestService>,
}

/// A request as it was read.
struct Stored {
    request: OutgoingRequest,
    rule: String,
    due_at_ms: i64,
    attempts: i64,
    /// The message that it was made for, for the rule's error action.
    message: Message,
}

/// The item of a new request.
pub(super) fn to_item(
    now: EpochMillis,
    by: &By,
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
        .with(schema::FORGET_AT, now.seconds().plus_secs(KEPT_SECS).0)
        .with(schema::RULE, by.rule.name.as_str())
        .with(schema::URL, url)
        .with(schema::HEADERS, headers)
        .with(schema::BODY, Value::B(body.to_vec()))
        .with(schema::TOPIC, message.topic.as_str())
        .with(schema::ATTEMPTS, 0);
    // An error action has none of its own, so that nobody asks for its message.
    if !by.is_error_action {
        item.insert(schema::PAYLOAD, Value::B(message.payload.to_vec()));
        if let Some(client_id) = &message.publisher.client_id {
            item.insert(schema::CLIENT_ID, client_id.as_str());
        }
    }
    item.check().map_err(|error| error.to_string())?;
    Ok(item)
}

pub(super) fn key_of(item: &Item) -> Item {
    let id = item.get(schema::REQUEST_ID).cloned();
    Item::new().with(schema::REQUEST_ID, id.unwrap_or(Value::Null))
}

fn parse(item: &Item) -> Option<Stored> {
    let text = |name| item.get(name).and_then(Value::as_str);
    let whole = |name| item.get(name)?.as_number()?.to_i64();
    let bytes = |name| match item.get(name) {
        Some(Value::B(bytes)) => Some(Bytes::copy_from_slice(bytes)),
        _ => None,
    };
    let id = text(schema::REQUEST_ID)?;
    let created = id.split_once('-')?.0.parse().ok()?;
    Some(Stored {
        request: OutgoingRequest {
            id: id.to_owned(),
            timestamp_secs: 0,
            url: text(schema::URL)?.to_owned(),
            headers: serde_json::from_str(text(schema::HEADERS)?).ok()?,
            body: bytes(schema::BODY)?,
        },
        rule: text(schema::RULE)?.to_owned(),
        due_at_ms: whole(schema::DUE_AT_MS)?,
        attempts: whole(schema::ATTEMPTS)?,
        message: Message {
            topic: text(schema::TOPIC)?.to_owned(),
            payload: bytes(schema::PAYLOAD).unwrap_or_default(),
            delivery: Delivery::AtLeastOnce,
            retain: false,
            publisher: Publisher {
                client_id: text(schema::CLIENT_ID).map(str::to_owned),
                principal: None,
            },
            received_at: EpochMillis(created),
            properties: Properties::default(),
            hops: 0,
        },
    })
}

impl RequestWorker {
    #[must_use]
    pub fn new(engine: RuleEngine, service: Arc<dyn RequestService>) -> Self {
        Self { engine, service }
    }

    /// Works until told to stop. A turn that has begun comes to its end first.
    pub async fn run_until(self, stop: impl Future<Output = ()>) {
        let mut stop = pin!(stop);
        loop {
            let pause = match self.turn().await {
                Ok(0) => self.pause().await,
                Ok(_) => Duration::ZERO,
                Err(error) => {
                    tracing::warn!(%error, "requests of rules could not be sent; they will be");
                    FAILURE_PAUSE
                }
            };
            tokio::select! {
                () = &mut stop => return,
                () = self.engine.inner.work.notified() => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// How long nothing is due.
    async fn pause(&self) -> Duration {
        let first = self.engine.inner.store.query(work(None).limit(1)).await;
        let due = first.ok().and_then(|page| {
            let item = page.items.into_iter().next()?;
            item.get(schema::DUE_AT_MS)?.as_number()?.to_i64()
        });
        let wait = due.and_then(|due| u64::try_from(due - self.engine.now().0).ok());
        wait.map_or(LOOK_EVERY, |millis| {
            Duration::from_millis(millis.max(1)).min(LOOK_EVERY)
        })
    }

    /// Sends what is due, at most [`AT_ONCE`] requests, and answers how many there were.
    ///
    /// # Errors
    /// When the store fails. What was due stays due.
    pub async fn turn(&self) -> Result<usize, StoreError> {
        let now = self.engine.now();
        let until = SortCondition::LessOrEqual(now.0.into());
        let page = self
            .engine
            .inner
            .store
            .query(work(Some(until)).limit(AT_ONCE))
            .await?;
        if page.items.is_empty() {
            self.recount().await?;
            return Ok(0);
        }
        let mut sending = JoinSet::new();
        let mut sent = 0;
        for item in &page.items {
            let Some(stored) = parse(item) else {
                tracing::warn!("a request of a rule that something else wrote is dropped");
                self.forget(key_of(item)).await?;
                continue;
            };
            let worker = self.clone();
            sending.spawn(async move { worker.attempt(stored).await });
        }
        let mut outcome = Ok(());
        while let Some(attempt) = sending.join_next().await {
            match attempt {
                Ok(Ok(())) => sent += 1,
                Ok(Err(error)) => outcome = Err(error),
                Err(error) => {
                    outcome = Err(StoreError::Unavailable(format!(
                        "an attempt ended: {error}"
                    )));
                }
            }
        }
        outcome.map(|()| sent)
    }

    async fn attempt(&self, mut stored: Stored) -> Result<(), StoreError> {
        let now = self.engine.now();
        let key = Item::new().with(schema::REQUEST_ID, stored.request.id.as_str());
        stored.attempts += 1;
        // IMPORTANT: claimed before it leaves, so that nobody else sends it meanwhile.
        let claim = Update::new()
            .set(schema::DUE_AT_MS, now.0 + CLAIM_MS)
            .set(schema::ATTEMPTS, stored.attempts);
        let claim = UpdateRequest::new(schema::REQUESTS, key.clone(), claim)
            .when(Path::from(schema::DUE_AT_MS).equals(stored.due_at_ms));
        match self.engine.inner.store.update(claim).await {
            Ok(_) => {}
            Err(WriteError::ConditionFailed { .. }) => return Ok(()),
            Err(WriteError::Store(error)) => return Err(error),
        }
        stored.request.timestamp_secs = now.seconds().0;
        let outcome = self.service.post(&stored.request).await;
        let (reason, retry_after) = match outcome {
            Ok(()) => {
                count("sent");
                return self.forget(key).await;
            }
            Err(RequestError::Later {
                reason,
                retry_after,
            }) if stored.attempts < REQUEST_ATTEMPTS_MAX => (reason, retry_after),
            Err(error) => {
                count("given_up");
                self.give_up(&stored, &error.to_string()).await?;
                return self.forget(key).await;
            }
        };
        count("put_off");
        let asked_ms = retry_after.and_then(|wait| i64::try_from(wait.as_millis()).ok());
        let wait_ms = retry_ms(stored.attempts).max(asked_ms.unwrap_or(0));
        let due_at_ms = self.engine.now().0 + wait_ms.min(RETRY_LONGEST_MS);
        tracing::debug!(rule = stored.rule, reason, "a request of a rule is put off");
        let update = Update::new().set(schema::DUE_AT_MS, due_at_ms);
        let update = UpdateRequest::new(schema::REQUESTS, key, update)
            .when(Path::from(schema::DUE_AT_MS).equals(now.0 + CLAIM_MS));
        match self.engine.inner.store.update(update).await {
            Ok(_) | Err(WriteError::ConditionFailed { .. }) => Ok(()),
            Err(WriteError::Store(error)) => Err(error),
        }
    }

    /// Tells the rule that a request will not arrive.
    async fn give_up(&self, stored: &Stored, reason: &str) -> Result<(), StoreError> {
        let reason = format!("given up after {} attempts: {reason}", stored.attempts);
        let registry = self.engine.registry();
        let name = stored.rule.parse().ok();
        let Some(rule) = name.and_then(|name| registry.running(&name)) else {
            return Ok(());
        };
        let failure =
            Failure::of_action(&stored.message, ACTION, stored.request.url.as_str(), reason);
        if stored.message.payload.is_empty() {
            rule.stats.count(Counted::ActionsFailed);
            rule.stats.keep(failure);
            return Ok(());
        }
        let mut errors = Plan::default();
        self.engine
            .fail(rule, &stored.message, failure, &mut errors);
        self.engine.carry_out_errors(&stored.message, errors).await
    }

    async fn forget(&self, key: Item) -> Result<(), StoreError> {
        let delete = Delete::new(schema::REQUESTS, key);
        match self.engine.inner.store.delete(delete).await {
            Ok(_) | Err(WriteError::ConditionFailed { .. }) => {
                let open = &self.engine.inner.requests_open;
                let one_less = |open: usize| open.checked_sub(1);
                // Another process may have added it: then the next count is right again.
                let _ = open.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less);
                Ok(())
            }
            Err(WriteError::Store(error)) => Err(error),
        }
    }

    /// Counts what waits, whoever added it.
    async fn recount(&self) -> Result<(), StoreError> {
        let mut query = work(None);
        query.count_only = true;
        let mut open = 0;
        while open < REQUESTS_MAX {
            let page = self.engine.inner.store.query(query.clone()).await?;
            open += page.count;
            query.start = page.next;
            if query.start.is_none() {
                break;
            }
        }
        self.engine
            .inner
            .requests_open
            .store(open, Ordering::Relaxed);
        metrics::gauge!("homeport_rule_requests_open").set(open as f64);
        Ok(())
    }
}

impl std::fmt::Debug for RequestWorker {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("RequestWorker")
            .finish_non_exhaustive()
    }
}

fn count(outcome: &'static str) {
    metrics::counter!("homeport_rule_requests_total", "outcome" => outcome).increment(1);
}

/// How long to wait after so many attempts.
fn retry_ms(attempts: i64) -> i64 {
    let doublings = u32::try_from(attempts.clamp(1, 30) - 1).unwrap_or(0);
    RETRY_FIRST_MS
        .saturating_mul(1 << doublings)
        .min(RETRY_LONGEST_MS)
}

/// What waits, by when it is due.
fn work(due: Option<SortCondition>) -> Query {
    let mut condition = KeyCondition::new(schema::WORK, Value::from(schema::WORK_PARTITION));
    if let Some(due) = due {
        condition = condition.with_sort(schema::DUE_AT_MS, due);
    }
    Query::new(schema::REQUESTS, condition).on_index(schema::WORK_INDEX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_an_hour() {
        assert_eq!(retry_ms(1), 5_000);
        assert_eq!(retry_ms(2), 10_000);
        assert_eq!(retry_ms(10), 2_560_000);
        assert_eq!(retry_ms(11), RETRY_LONGEST_MS);
        assert_eq!(retry_ms(i64::MAX), RETRY_LONGEST_MS);
    }
}
