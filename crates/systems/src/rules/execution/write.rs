//! The writes of a message: in one transaction if possible, and one by one if one of them is refused.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::time::Duration;

use homeport_item::expression::Condition;
use homeport_store::{
    Action, CancelReason, StoreError, TRANSACTION_ACTIONS_MAX, TRANSACTION_SIZE_MAX_BYTES,
    TransactError, Transaction, WriteError,
};

use super::plan::{ActionRef, Write};
use super::stats::Counted;
use crate::rules::requests::outbox::REQUESTS_MAX;
use crate::rules::{RuleEngine, schema};
use crate::telemetry;

/// How often a write is moved because another message has its millisecond.
const MOVES_MAX: usize = 100;
/// Retries of a write that conflicts with others.
const CONFLICTS_MAX: usize = 6;
/// The pause after the first conflict. Each further one is twice as long.
const CONFLICT_PAUSE: Duration = Duration::from_millis(20);

/// The outcome of one attempt to commit a group of writes.
enum Attempt {
    Committed,
    /// It fails permanently.
    Refused(String),
    /// Nothing was written; for each write, whether another message has its key.
    Cancelled(Vec<bool>),
}

impl RuleEngine {
    /// Commits all writes; returns permanent failures with their reasons.
    ///
    /// # Errors
    /// When the store fails.
    pub(in crate::rules) async fn write_all(
        &self,
        writes: Vec<Write>,
    ) -> Result<Vec<(ActionRef, String)>, StoreError> {
        let mut failed = Vec::new();
        let mut ready = Vec::with_capacity(writes.len());
        for mut write in writes {
            let is_request = write.request.table() == schema::REQUESTS;
            if is_request && self.inner.requests_open.load(Ordering::Relaxed) >= REQUESTS_MAX {
                let reason = format!("the outbox is full: {REQUESTS_MAX} requests are open");
                failed.push((write.by, reason));
                continue;
            }
            self.stamp(&mut write, 0)?;
            ready.push(write);
        }
        let mut groups = VecDeque::from(groups(ready));
        while let Some(mut group) = groups.pop_front() {
            match self.commit(&mut group).await? {
                Ok(()) => group.iter().for_each(|write| self.note_done(write)),
                // The transaction does not tell which of its writes are valid.
                Err(_) if group.len() > 1 => {
                    group
                        .into_iter()
                        .rev()
                        .for_each(|write| groups.push_front(vec![write]));
                }
                Err(reason) => {
                    failed.extend(group.into_iter().map(|write| (write.by, reason.clone())));
                }
            }
        }
        Ok(failed)
    }

    /// Gives a message of telemetry a millisecond of its own, at least `later` after its current one.
    fn stamp(&self, write: &mut Write, later: i64) -> Result<(), StoreError> {
        let Some(moving) = &mut write.moving else {
            return Ok(());
        };
        let wanted = moving.at.saturating_add(later);
        let moments = &self.inner.moments;
        let at = moments
            .take(&moving.thing, wanted, moving.received)
            .map_err(|_| StoreError::Throttled)?;
        if let Action::Put(put) = &mut write.request {
            if at != moving.at {
                put.item.insert(telemetry::schema::TIMESTAMP, at);
                if let Some(key) = &mut write.key {
                    key.insert(telemetry::schema::TIMESTAMP, at);
                }
            }
            if put.condition.is_none() {
                put.condition = Some(Condition::not_exists(telemetry::schema::THING_NAME));
            }
        }
        moving.at = at;
        Ok(())
    }

    fn note_done(&self, write: &Write) {
        write.by.rule.stats.count(Counted::ActionsDone);
        if write.request.table() == schema::REQUESTS {
            self.inner.requests_open.fetch_add(1, Ordering::Relaxed);
            self.inner.work.notify_one();
        }
    }

    /// Commits a group, after conflicts again. The inner error is the reason of a permanent failure.
    async fn commit(&self, group: &mut [Write]) -> Result<Result<(), String>, StoreError> {
        let mut pause = CONFLICT_PAUSE;
        let (mut moves, mut conflicts) = (0, 0);
        while moves <= MOVES_MAX && conflicts <= CONFLICTS_MAX {
            let taken = match self.try_commit(group).await? {
                Attempt::Committed => return Ok(Ok(())),
                Attempt::Refused(reason) => return Ok(Err(reason)),
                Attempt::Cancelled(taken) => taken,
            };
            if taken.contains(&true) {
                let all = group.iter_mut().zip(taken);
                for (write, _) in all.filter(|(_, is_taken)| *is_taken) {
                    self.stamp(write, 1)?;
                }
                moves += 1;
            } else {
                tokio::time::sleep(pause).await;
                pause *= 2;
                conflicts += 1;
            }
        }
        Err(StoreError::Throttled)
    }

    async fn try_commit(&self, group: &[Write]) -> Result<Attempt, StoreError> {
        let store = &self.inner.store;
        let outcome = if let [write] = group {
            let written = match write.request.clone() {
                Action::Put(put) => store.put(put).await,
                Action::Update(update) => store.update(update).await,
                Action::Delete(delete) => store.delete(delete).await,
                // No action of a rule is a mere condition.
                Action::Check(_) => Ok(None),
            };
            written.map(drop).map_err(|error| match error {
                WriteError::ConditionFailed { old } => {
                    TransactError::Cancelled(vec![CancelReason::ConditionFailed { old }])
                }
                WriteError::Store(error) => error.into(),
            })
        } else {
            let actions = group.iter().map(|write| write.request.clone()).collect();
            store.transact(Transaction::new(actions)).await
        };
        let reasons = match outcome {
            Ok(()) => return Ok(Attempt::Committed),
            Err(TransactError::Cancelled(reasons)) => reasons,
            Err(TransactError::TokenMismatch) => return Err(StoreError::Throttled),
            Err(TransactError::Store(error)) if error.is_transient() => return Err(error),
            Err(TransactError::Store(error)) => return Ok(Attempt::Refused(error.to_string())),
        };
        let mut taken = Vec::with_capacity(group.len());
        for (write, reason) in group.iter().zip(reasons) {
            if let CancelReason::Invalid(reason) = reason {
                return Ok(Attempt::Refused(reason.to_string()));
            }
            let is_failed = matches!(reason, CancelReason::ConditionFailed { .. });
            taken.push(is_failed && write.moving.is_some());
        }
        Ok(Attempt::Cancelled(taken))
    }
}

/// Splits writes into transactions, in order: no key twice, and within the limits of a transaction. A
/// write with unknown keys is a group of its own.
fn groups(writes: Vec<Write>) -> Vec<Vec<Write>> {
    let mut groups: Vec<Vec<Write>> = Vec::new();
    let mut size = 0;
    for write in writes {
        let write_size = size_of(&write.request);
        let fits = groups.last().is_some_and(|group| {
            let is_same = |other: &Write| {
                other.request.table() == write.request.table() && other.key == write.key
            };
            let is_known = |write: &Write| write.key.is_some();
            is_known(&write)
                && group.iter().all(|other| is_known(other) && !is_same(other))
                && group.len() < TRANSACTION_ACTIONS_MAX
                && size + write_size <= TRANSACTION_SIZE_MAX_BYTES
        });
        match groups.last_mut() {
            Some(group) if fits => {
                size += write_size;
                group.push(write);
            }
            _ => {
                size = write_size;
                groups.push(vec![write]);
            }
        }
    }
    groups
}

fn size_of(request: &Action) -> usize {
    match request {
        Action::Put(put) => put.item.size(),
        // Neither the item nor the update is larger than an item may be.
        Action::Update(_) => homeport_item::item::ITEM_SIZE_MAX_BYTES,
        Action::Delete(delete) => delete.key.size(),
        Action::Check(check) => check.key.size(),
    }
}
