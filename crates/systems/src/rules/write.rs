//! The writes of a message: in one transaction if possible, and one by one if one of them is refused.

use std::sync::atomic::Ordering;
use std::time::Duration;

use homeport_item::expression::Condition;
use homeport_store::{
    Action, CancelReason, StoreError, TRANSACTION_ACTIONS_MAX, TRANSACTION_SIZE_MAX_BYTES,
    TransactError, Transaction, WriteError,
};

use super::plan::{ActionRef, Write};
use super::requests::REQUESTS_MAX;
use super::stats::Counted;
use super::{RuleEngine, schema};
use crate::messages::Message;
use crate::telemetry;

/// How often a write is moved because another message has its millisecond.
const MOVES_MAX: usize = 100;
/// Retries of a write that conflicts with others.
const CONFLICTS_MAX: usize = 6;
/// The pause after the first conflict. Each further one is twice as long.
const CONFLICT_PAUSE: Duration = Duration::from_millis(20);

enum Written {
    Yes,
    /// Another message has its key.
    KeyTaken,
    /// A concurrent transaction was in the way.
    Conflict,
    /// It fails permanently.
    Refused(String),
}

impl RuleEngine {
    /// Commits all writes. Permanent failures are added to `failed`.
    ///
    /// # Errors
    /// When the store fails.
    pub(super) async fn write_all(
        &self,
        message: &Message,
        writes: Vec<Write>,
        failed: &mut Vec<(ActionRef, String)>,
    ) -> Result<(), StoreError> {
        let mut ready = Vec::with_capacity(writes.len());
        for mut write in writes {
            if write.request.table() == schema::REQUESTS && !self.has_room_for_request() {
                let reason = format!("the outbox is full: {REQUESTS_MAX} requests are open");
                failed.push((write.by, reason));
                continue;
            }
            self.stamp(&mut write, 0)?;
            ready.push(write);
        }
        for group in groups(ready) {
            self.write_group(message, group, failed).await?;
        }
        Ok(())
    }

    fn has_room_for_request(&self) -> bool {
        self.inner.requests_open.load(Ordering::Relaxed) < REQUESTS_MAX
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

    /// Commits a group with different keys: together, or one by one if that fails.
    async fn write_group(
        &self,
        message: &Message,
        mut group: Vec<Write>,
        failed: &mut Vec<(ActionRef, String)>,
    ) -> Result<(), StoreError> {
        if group.len() > 1 && self.write_together(&mut group).await? {
            for write in &group {
                self.note_done(write);
            }
            return Ok(());
        }
        for mut write in group {
            match self.write_alone(&mut write).await? {
                None => self.note_done(&write),
                Some(reason) => {
                    tracing::debug!(
                        rule = %write.by.rule.name,
                        topic = message.topic,
                        reason,
                        "a rule's write was refused"
                    );
                    failed.push((write.by, reason));
                }
            }
        }
        Ok(())
    }

    fn note_done(&self, write: &Write) {
        write.by.rule.stats.count(Counted::ActionsDone);
        if write.request.table() == schema::REQUESTS {
            self.inner.requests_open.fetch_add(1, Ordering::Relaxed);
            self.inner.work.notify_one();
        }
    }

    /// Commits a group in one transaction; false when one of its writes fails permanently.
    async fn write_together(&self, group: &mut [Write]) -> Result<bool, StoreError> {
        let mut pause = CONFLICT_PAUSE;
        let (mut moves, mut conflicts) = (0, 0);
        loop {
            let actions = group.iter().map(|write| write.request.clone()).collect();
            let transaction = Transaction::new(actions);
            let reasons = match self.inner.store.transact(transaction).await {
                Ok(()) => return Ok(true),
                Err(TransactError::Cancelled(reasons)) => reasons,
                Err(TransactError::TokenMismatch) => return Err(StoreError::Throttled),
                Err(TransactError::Store(error)) if error.is_transient() => return Err(error),
                Err(TransactError::Store(_)) => return Ok(false),
            };
            if reasons
                .iter()
                .any(|reason| matches!(reason, CancelReason::Invalid(_)))
            {
                return Ok(false);
            }
            let mut has_moved = false;
            for (write, reason) in group.iter_mut().zip(&reasons) {
                if matches!(reason, CancelReason::ConditionFailed { .. }) {
                    self.stamp(write, 1)?;
                    has_moved = true;
                }
            }
            if has_moved {
                moves += 1;
            } else {
                conflicts += 1;
                tokio::time::sleep(pause).await;
                pause *= 2;
            }
            if moves > MOVES_MAX || conflicts > CONFLICTS_MAX {
                return Err(StoreError::Throttled);
            }
        }
    }

    /// Commits one write; returns the reason of a permanent failure.
    async fn write_alone(&self, write: &mut Write) -> Result<Option<String>, StoreError> {
        let mut pause = CONFLICT_PAUSE;
        let (mut moves, mut conflicts) = (0, 0);
        loop {
            match self.try_alone(write).await? {
                Written::Yes => return Ok(None),
                Written::Refused(reason) => return Ok(Some(reason)),
                Written::KeyTaken => {
                    self.stamp(write, 1)?;
                    moves += 1;
                }
                Written::Conflict => {
                    conflicts += 1;
                    tokio::time::sleep(pause).await;
                    pause *= 2;
                }
            }
            if moves > MOVES_MAX || conflicts > CONFLICTS_MAX {
                return Err(StoreError::Throttled);
            }
        }
    }

    async fn try_alone(&self, write: &Write) -> Result<Written, StoreError> {
        let store = &self.inner.store;
        let outcome = match write.request.clone() {
            Action::Put(put) => store.put(put).await,
            Action::Update(update) => store.update(update).await,
            Action::Delete(delete) => store.delete(delete).await,
            // No action of a rule is a mere condition.
            Action::Check(_) => Ok(None),
        };
        match outcome {
            Ok(_) => Ok(Written::Yes),
            Err(WriteError::ConditionFailed { .. }) if write.moving.is_some() => {
                Ok(Written::KeyTaken)
            }
            Err(WriteError::ConditionFailed { .. }) => Ok(Written::Conflict),
            Err(WriteError::Store(error)) if error.is_transient() => Err(error),
            Err(WriteError::Store(error)) => Ok(Written::Refused(error.to_string())),
        }
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
