//! Evaluates a transaction against the stored state and the pending writes before it.

use homeport_item::binary::DecodeError;
use homeport_item::expression::{Projection, Update, UpdateOperand};
use homeport_item::item::{ITEM_SIZE_MAX_BYTES, ItemError, NAME_SIZE_MAX_BYTES};
use homeport_item::{Item, Value};
use homeport_store::{CancelReason, InvalidRequest, ReturnValues, StoreError, TransactError};

use crate::catalogue::Catalogue;
use crate::catalogue::table::{KeyFrom, Table};
use crate::commit::cost::WriteCost;
use crate::commit::group::{Group, Mutation};
use crate::commit::prepare::{PreparedAction, PreparedTransaction, PreparedWrite};
use crate::commit::tokens::{self, Repeat};
use crate::error::unavailable;
use crate::storage::record::{self, Record};
use crate::storage::vault::{UserKey, UserValue};

/// The result of a transaction.
pub(crate) type Outcome = Result<CompletedTransaction, TransactError>;

/// A transaction that was carried out.
#[derive(Debug, Clone, Default)]
pub(crate) struct CompletedTransaction {
    /// The attributes that its only action requested.
    pub(crate) returned: Option<Item>,
    /// The costs of its actions, if requested.
    pub(crate) costs: Vec<WriteCost>,
    /// Its token was seen before, so it had already been carried out.
    pub(crate) repeated: bool,
}

/// Evaluates a transaction and adds its writes to the group if all its conditions hold. If an item cannot be
/// read or decoded, only this transaction fails, and none of its writes are in the group.
pub(crate) fn transaction(
    group: &mut Group<'_>,
    catalogue: &Catalogue,
    prepared: PreparedTransaction,
) -> Outcome {
    if let Some(token) = &prepared.token {
        match tokens::seen(group, token)? {
            Repeat::Same => {
                return Ok(CompletedTransaction {
                    repeated: true,
                    ..CompletedTransaction::default()
                });
            }
            Repeat::Different => return Err(TransactError::TokenMismatch),
            Repeat::No => {}
        }
    }
    let count = prepared.actions.len();
    let mut decided = Vec::with_capacity(count);
    let mut reasons: Vec<CancelReason> = Vec::new();
    for (at, action) in prepared.actions.into_iter().enumerate() {
        match evaluate_action(group, catalogue, action)? {
            Ok(change) => decided.push(change),
            Err(Refusal::Store(error)) => return Err(error.into()),
            Err(Refusal::Reason(reason)) => {
                reasons.resize(count, CancelReason::None);
                reasons[at] = reason;
            }
        }
    }
    if !reasons.is_empty() {
        return Err(TransactError::Cancelled(reasons));
    }
    let mut done = CompletedTransaction::default();
    let mut plans = Vec::with_capacity(count);
    for change in decided {
        done.returned = change.returned.or(done.returned);
        done.costs.extend(change.cost);
        if let Some(write) = change.write {
            let table = catalogue.by_id(write.table).ok_or_else(|| {
                StoreError::Unavailable("a table was deleted while it was written".to_owned())
            })?;
            plans.extend(group.plan(Mutation {
                table,
                key: write.key,
                old: write.old,
                old_expired: write.old_expired,
                new: write.new,
            })?);
        }
    }
    // IMPORTANT: nothing below can fail, so the group gets all of a transaction or none of it.
    for plan in plans {
        group.apply_plan(plan);
    }
    if let Some(token) = &prepared.token {
        tokens::remember(group, token);
    }
    Ok(done)
}

/// Why an action is not carried out.
enum Refusal {
    /// It cancels its transaction for this reason.
    Reason(CancelReason),
    /// The whole transaction fails.
    Store(StoreError),
}

/// An action whose condition holds.
struct DecidedAction {
    write: Option<ActionWrite>,
    returned: Option<Item>,
    cost: Option<WriteCost>,
}

struct ActionWrite {
    table: crate::storage::layout::TableId,
    key: UserKey,
    old: Option<UserValue>,
    old_expired: bool,
    new: Option<UserValue>,
}

fn evaluate_action(
    group: &mut Group<'_>,
    catalogue: &Catalogue,
    action: PreparedAction,
) -> Result<Result<DecidedAction, Refusal>, StoreError> {
    // The table may have changed or been deleted since the action was prepared.
    let Some(table) = catalogue.by_id(action.table.id()) else {
        let missing = StoreError::TableNotFound(action.table.name().to_owned());
        return Ok(Err(Refusal::Store(missing)));
    };
    let old = if needs_old(table, &action) || group.is_copied(table, &action.key) {
        group.load(table, &action.key)?
    } else {
        None
    };
    let stored = match &old {
        Some(value) => Some(Record::new(&table.key, &action.key, value).map_err(unavailable)?),
        None => None,
    };
    let old_expired = match &stored {
        Some(record) => table
            .is_expired(record, group.now_secs())
            .map_err(unavailable)?,
        None => false,
    };
    let visible = stored.filter(|_| !old_expired);
    let visible_value = old.as_ref().filter(|_| !old_expired);
    if let Some(condition) = &action.condition {
        let holds = match &visible {
            Some(record) => condition.matches(record),
            None => condition.matches(&Item::new()),
        };
        if !holds.map_err(unavailable)? {
            let old = match visible {
                Some(record) if action.old_on_failure => {
                    Some(Box::new(record.to_item().map_err(unavailable)?))
                }
                _ => None,
            };
            return Ok(Err(Refusal::Reason(CancelReason::ConditionFailed { old })));
        }
    }
    let all_old = |visible: Option<Record<'_>>| {
        if action.returning == ReturnValues::AllOld {
            visible
                .map(|record| record.to_item().map_err(unavailable))
                .transpose()
        } else {
            Ok(None)
        }
    };
    let (new, returned) = match &action.write {
        PreparedWrite::Check => {
            return Ok(Ok(DecidedAction {
                write: None,
                returned: None,
                cost: cost(&action, table, visible_value, visible_value)?,
            }));
        }
        PreparedWrite::Put(value) => (Some(value.clone()), all_old(visible)?),
        PreparedWrite::Delete => {
            let returned = all_old(visible)?;
            if old.is_none() || old_expired {
                // No visible change; the sweeper deletes the expired item.
                return Ok(Ok(DecidedAction {
                    write: None,
                    returned,
                    cost: cost(&action, table, None, None)?,
                }));
            }
            (None, returned)
        }
        PreparedWrite::Update(_, update) if visible.is_none() && !update.creates_item() => {
            return Ok(Ok(DecidedAction {
                write: None,
                returned: None,
                cost: cost(&action, table, None, None)?,
            }));
        }
        PreparedWrite::Update(key, update) => {
            match updated_value(table, action.returning, visible, key, update)? {
                Ok((value, returned)) => (Some(value), returned),
                Err(refused) => {
                    return Ok(Err(Refusal::Reason(CancelReason::Invalid(refused))));
                }
            }
        }
    };
    let cost = cost(&action, table, visible_value, new.as_ref())?;
    Ok(Ok(DecidedAction {
        cost,
        write: Some(ActionWrite {
            table: table.id(),
            key: action.key,
            old,
            old_expired,
            new,
        }),
        returned,
    }))
}

/// The cost of a write, if it was requested.
fn cost(
    action: &PreparedAction,
    table: &Table,
    old: Option<&UserValue>,
    new: Option<&UserValue>,
) -> Result<Option<WriteCost>, StoreError> {
    if !action.measure {
        return Ok(None);
    }
    WriteCost::of(table, &action.key, old, new)
        .map(Some)
        .map_err(unavailable)
}

/// The stored value after an update and the attributes to return, or why the update is invalid.
fn updated_value(
    table: &Table,
    returning: ReturnValues,
    visible: Option<Record<'_>>,
    key: &Item,
    update: &Update,
) -> Result<Result<(UserValue, Option<Item>), InvalidRequest>, StoreError> {
    if returning == ReturnValues::None
        && let Some(record) = &visible
        && let Some(changes) = scalar_assignments(update)
    {
        let changed = set_attributes(table, record, &changes).map_err(unavailable)?;
        return Ok(changed.map(|value| (value, None)));
    }
    let mut item = match visible {
        Some(record) => record.to_item().map_err(unavailable)?,
        None => key.clone(),
    };
    let before = match returning {
        ReturnValues::AllOld | ReturnValues::UpdatedOld if visible.is_some() => Some(item.clone()),
        _ => None,
    };
    if let Err(refused) = apply_update(table, update, &mut item) {
        return Ok(Err(refused));
    }
    let value = record::encode(&item, &table.key);
    let touched = || Projection::new(update.paths().cloned());
    let returned = match returning {
        ReturnValues::None => None,
        ReturnValues::AllOld => before,
        ReturnValues::AllNew => Some(item),
        ReturnValues::UpdatedOld => before.map(|item| touched().apply(&item)),
        ReturnValues::UpdatedNew => Some(touched().apply(&item)),
    };
    Ok(Ok((value, returned.filter(|item| !item.is_empty()))))
}

/// The attributes that an update sets, sorted by name, if it only assigns scalar values to top-level
/// attributes. This is the common update, and it needs no decoding.
fn scalar_assignments(update: &Update) -> Option<Vec<(&str, &Value)>> {
    if !(update.remove.is_empty() && update.add.is_empty() && update.delete.is_empty()) {
        return None;
    }
    let mut changes = Vec::with_capacity(update.set.len());
    for (path, operand) in &update.set {
        let is_plain_name = path.nested().is_empty()
            && !path.name().is_empty()
            && path.name().len() <= NAME_SIZE_MAX_BYTES;
        match operand {
            UpdateOperand::Value(value) if is_plain_name && value.depth() == 0 => {
                changes.push((path.name(), value));
            }
            _ => return None,
        }
    }
    changes.sort_unstable_by_key(|(name, _)| *name);
    Some(changes)
}

/// Sets attributes of a stored item, with the same checks as any update.
fn set_attributes(
    table: &Table,
    record: &Record<'_>,
    changes: &[(&str, &Value)],
) -> Result<Result<UserValue, InvalidRequest>, DecodeError> {
    let (value, size) = record::encode_with_changes(record, changes)?;
    if size > ITEM_SIZE_MAX_BYTES {
        return Ok(Err(InvalidRequest::UpdatedItemTooLarge));
    }
    for index in &table.indexes {
        for attribute in index.schema.key.attributes() {
            let set = changes.iter().find(|(name, _)| *name == attribute.name);
            let checked = match set {
                Some((name, value)) => index.check_key(name, value, KeyFrom::Update),
                None => match record.attribute(&attribute.name)? {
                    Some(value) => index.check_key(&attribute.name, &value, KeyFrom::Update),
                    None => Ok(()),
                },
            };
            if checked.is_err() {
                return Ok(checked.map(|()| value));
            }
        }
    }
    Ok(Ok(value))
}

fn apply_update(table: &Table, update: &Update, item: &mut Item) -> Result<(), InvalidRequest> {
    update.apply(item)?;
    item.check().map_err(|error| match error {
        ItemError::TooLarge => InvalidRequest::UpdatedItemTooLarge,
        other => other.into(),
    })?;
    table.check_index_keys(item, KeyFrom::Update)
}

/// Whether the outcome or the table's upkeep depends on the stored item. A plain put into a plain table does
/// not, and so needs no read.
fn needs_old(table: &Table, action: &PreparedAction) -> bool {
    let upkeep = !table.indexes.is_empty()
        || table.schema().ttl_attribute.is_some()
        || table.record.expiry_job.is_some()
        || table.schema().stream.is_some()
        || table.record.history.is_some();
    upkeep
        || action.condition.is_some()
        || action.measure
        || action.returning != ReturnValues::None
        || !matches!(action.write, PreparedWrite::Put(_))
}

#[cfg(test)]
mod tests {
    use super::*;

    use homeport_item::schema::{IndexSchema, KeyAttribute, TableSchema};
    use homeport_item::{Item, KeyKind};
    use homeport_store::{Get, Put, Store as _, Transaction};

    use crate::engine::Engine;
    use crate::options::Options;
    use crate::storage::layout;

    #[tokio::test]
    async fn undecodable_item_fails_no_other_writes() {
        let directory = tempfile::tempdir().unwrap();
        let engine = Engine::open(directory.path(), Options::for_tests()).unwrap();
        let mut schema = TableSchema::new("things", "id", KeyKind::S);
        let key = KeyAttribute::new("n", KeyKind::N);
        schema.indexes.push(IndexSchema::global("by-n", key, None));
        engine.create_table(schema).await.unwrap();
        let table = engine.shared().catalogue.table("things").unwrap();
        // Its size and version are readable, its attributes are not.
        let damage = engine.shared().exclusive(move |committer| {
            committer.write(|group| {
                let key = layout::item_key(&Value::from("damaged"), None);
                group.insert(&table.items, key, UserValue::from(&b"\x08\x01\x7fxx"[..]));
                Ok(())
            })
        });
        damage.await.unwrap().unwrap();
        let put = |id: &str| {
            let item = Item::new().with("id", id).with("n", 1);
            Transaction::new(vec![Put::new("things", item).into()])
        };
        // All three are decided in one group.
        let written = engine
            .transact_each(vec![put("a"), put("damaged"), put("b")])
            .await;
        assert!(written[0].is_ok(), "{written:?}");
        assert!(written[1].is_err(), "{written:?}");
        assert!(written[2].is_ok(), "{written:?}");
        for id in ["a", "b"] {
            let get = Get::new("things", Item::new().with("id", id));
            assert!(engine.get(get).await.unwrap().is_some());
        }
    }
}
