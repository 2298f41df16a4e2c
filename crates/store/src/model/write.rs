//! Writes: each is an action, alone or in a transaction on a copy of all tables.

use std::collections::BTreeSet;

use homeport_item::Item;
use homeport_item::expression::{Condition, Path, Projection};

use super::table::{Key, Table, exact_key, item_key};
use super::{State, Tables, TokenRecord, invalid, table};
use crate::{
    Action, BATCH_WRITE_MAX, BatchWrite, BatchWriteOutput, CancelReason, ReturnValues, StoreError,
    TOKEN_LIFETIME_SECS, TRANSACTION_ACTIONS_MAX, TRANSACTION_SIZE_MAX_BYTES, TransactError,
    Transaction, WriteError,
};

/// The effect of an action on an item.
pub(super) struct Change {
    old: Option<Item>,
    new: Option<Item>,
    updated: Projection,
}

/// Why an action failed on the current item.
enum ActionFailure {
    Condition { old: Option<Box<Item>> },
    Invalid(String),
}

impl Change {
    pub(super) fn answer(self, returning: ReturnValues) -> Option<Item> {
        let updated = |item: Option<Item>| {
            let part = self.updated.apply(&item?);
            (!part.is_empty()).then_some(part)
        };
        match returning {
            ReturnValues::None => None,
            ReturnValues::AllOld => self.old,
            ReturnValues::AllNew => self.new,
            ReturnValues::UpdatedOld => updated(self.old),
            ReturnValues::UpdatedNew => updated(self.new),
        }
    }
}

pub(super) fn one(
    tables: &mut Tables,
    action: &Action,
    now_secs: i64,
) -> Result<Change, WriteError> {
    check(tables, action)?;
    apply(tables, action, now_secs).map_err(|failure| match failure {
        ActionFailure::Condition { old } => WriteError::ConditionFailed { old },
        ActionFailure::Invalid(reason) => StoreError::invalid(reason).into(),
    })
}

pub(super) fn batch(
    tables: &mut Tables,
    batch: BatchWrite,
    now_secs: i64,
) -> Result<BatchWriteOutput, StoreError> {
    if batch.writes.is_empty() || batch.writes.len() > BATCH_WRITE_MAX {
        return Err(invalid("a batch must have 1 to 25 writes"));
    }
    let actions: Vec<Action> = batch.writes.into_iter().map(Action::from).collect();
    check_all(tables, &actions)?;
    for action in &actions {
        // Without a condition or an update nothing can fail here.
        let _ = apply(tables, action, now_secs);
    }
    Ok(BatchWriteOutput::default())
}

pub(super) fn transact(
    state: &mut State,
    transaction: Transaction,
    now_secs: i64,
) -> Result<(), TransactError> {
    let Transaction { actions, token } = transaction;
    if actions.is_empty() || actions.len() > TRANSACTION_ACTIONS_MAX {
        return Err(invalid("a transaction must have 1 to 100 actions").into());
    }
    check_all(&state.tables, &actions)?;
    state
        .tokens
        .retain(|_, record| record.at_secs + TOKEN_LIFETIME_SECS > now_secs);
    if let Some(record) = token.as_ref().and_then(|token| state.tokens.get(token)) {
        return if record.actions == actions {
            Ok(())
        } else {
            Err(TransactError::TokenMismatch)
        };
    }
    let mut tables = state.tables.clone();
    let mut bytes = 0;
    let mut reasons = Vec::new();
    for action in &actions {
        reasons.push(match apply(&mut tables, action, now_secs) {
            Ok(change) => {
                bytes += change.new.or(change.old).map_or(0, |item| item.size());
                CancelReason::None
            }
            Err(ActionFailure::Condition { old }) => CancelReason::ConditionFailed { old },
            Err(ActionFailure::Invalid(reason)) => CancelReason::invalid(reason),
        });
    }
    if reasons.iter().any(|reason| *reason != CancelReason::None) {
        return Err(TransactError::Cancelled(reasons));
    }
    if bytes > TRANSACTION_SIZE_MAX_BYTES {
        return Err(invalid("the items of the transaction exceed 4 MiB in total").into());
    }
    state.tables = tables;
    if let Some(token) = token {
        let at_secs = now_secs;
        state.tokens.insert(token, TokenRecord { actions, at_secs });
    }
    Ok(())
}

/// Validates actions, which must all be on different items.
fn check_all(tables: &Tables, actions: &[Action]) -> Result<(), StoreError> {
    let mut seen = BTreeSet::new();
    for action in actions {
        let key = check(tables, action)?;
        if !seen.insert((action.table(), key)) {
            return Err(invalid("two actions use the same item"));
        }
    }
    Ok(())
}

/// Validates everything that does not depend on the current item. Returns the key.
fn check(tables: &Tables, action: &Action) -> Result<Key, StoreError> {
    let table = table(tables, action.table())?;
    match action {
        Action::Put(put) => {
            check_returning(put.returning)?;
            check_item(table, &put.item).map_err(StoreError::invalid)?;
        }
        Action::Delete(delete) => check_returning(delete.returning)?,
        Action::Update(update) => {
            update.update.check().map_err(invalid)?;
            let is_key = |path: &Path| table.schema.key.has(path.name());
            if update.update.paths().any(is_key) {
                return Err(invalid("an update cannot change the key"));
            }
        }
        Action::Check(_) => {}
    }
    key_of(table, action)
}

fn check_returning(returning: ReturnValues) -> Result<(), StoreError> {
    match returning {
        ReturnValues::None | ReturnValues::AllOld => Ok(()),
        _ => Err(invalid("only updates support these return values")),
    }
}

fn key_of(table: &Table, action: &Action) -> Result<Key, StoreError> {
    let schema = &table.schema.key;
    match action {
        Action::Put(put) => item_key(schema, &put.item),
        Action::Update(update) => exact_key(schema, &update.key),
        Action::Delete(delete) => exact_key(schema, &delete.key),
        Action::Check(check) => exact_key(schema, &check.key),
    }
}

/// Applies an action that has passed `check`.
fn apply(tables: &mut Tables, action: &Action, now_secs: i64) -> Result<Change, ActionFailure> {
    let table = tables
        .get_mut(action.table())
        .ok_or_else(|| ActionFailure::Invalid("the table is missing".to_owned()))?;
    let key = key_of(table, action).map_err(|error| ActionFailure::Invalid(error.to_string()))?;
    let old = table.get(&key, now_secs).cloned();
    check_condition(action, old.as_ref())?;
    let mut updated = Projection::default();
    let new = match action {
        Action::Put(put) => Some(put.item.clone()),
        Action::Delete(_) => None,
        Action::Check(_) => old.clone(),
        Action::Update(update) if old.is_none() && !update.update.creates_item() => None,
        Action::Update(update) => {
            updated.paths = update.update.paths().cloned().collect();
            let mut item = old.clone().unwrap_or_else(|| update.key.clone());
            update
                .update
                .apply(&mut item)
                .map_err(|error| ActionFailure::Invalid(error.to_string()))?;
            check_item(table, &item).map_err(ActionFailure::Invalid)?;
            Some(item)
        }
    };
    if !matches!(action, Action::Check(_)) {
        table.set(key, new.clone());
    }
    Ok(Change { old, new, updated })
}

fn check_condition(action: &Action, old: Option<&Item>) -> Result<(), ActionFailure> {
    let (condition, old_on_failure): (Option<&Condition>, bool) = match action {
        Action::Put(put) => (put.condition.as_ref(), put.old_on_failure),
        Action::Update(update) => (update.condition.as_ref(), update.old_on_failure),
        Action::Delete(delete) => (delete.condition.as_ref(), delete.old_on_failure),
        Action::Check(check) => (Some(&check.condition), check.old_on_failure),
    };
    let Some(condition) = condition else {
        return Ok(());
    };
    let absent = Item::new();
    match condition.matches(old.unwrap_or(&absent)) {
        Ok(true) => Ok(()),
        Ok(false) => Err(ActionFailure::Condition {
            old: old.filter(|_| old_on_failure).cloned().map(Box::new),
        }),
        Err(error) => Err(ActionFailure::Invalid(error.to_string())),
    }
}

/// Validates an item's limits and its index keys.
fn check_item(table: &Table, item: &Item) -> Result<(), String> {
    item.check().map_err(|error| error.to_string())?;
    for index in &table.schema.indexes {
        for attribute in index.key.attributes() {
            if let Some(value) = item.get(&attribute.name) {
                let checked = index.key.check_attribute(&attribute.name, value);
                checked.map_err(|error| error.to_string())?;
            }
        }
    }
    Ok(())
}
