//! Deciding a transaction against the state that the writes before it make.

use homeport_item::binary::DecodeError;
use homeport_item::expression::{Projection, Update, UpdateOperand};
use homeport_item::item::{ITEM_SIZE_MAX_BYTES, ItemError, NAME_SIZE_MAX_BYTES};
use homeport_item::{Item, Value};
use homeport_store::{CancelReason, Returning, StoreError, TransactError};

use crate::catalogue::Catalogue;
use crate::cost::WriteCost;
use crate::error::unavailable;
use crate::group::{Group, Mutation};
use crate::prepare::{Prepared, PreparedAction, Write};
use crate::record::{self, Record};
use crate::table::{KeyFrom, Table};
use crate::tokens::{self, Repeat};
use crate::vault::{UserKey, UserValue};

const TOO_LARGE: &str = "Item size to update has exceeded the maximum allowed size";

/// What a transaction came to.
pub(crate) type Outcome = Result<Done, TransactError>;

/// A transaction that happened.
#[derive(Debug, Clone, Default)]
pub(crate) struct Done {
    /// The attributes that its only action asked for.
    pub(crate) returned: Option<Item>,
    /// What its actions cost, where that was asked for.
    pub(crate) costs: Vec<WriteCost>,
    /// Its token was seen before: it had happened already.
    pub(crate) repeated: bool,
}

/// Evaluates a transaction and, if all of it holds, adds its writes to the group. Where something cannot be read or
/// decoded, this transaction alone fails: nothing of it is in the group then.
pub(crate) fn transaction(
    group: &mut Group<'_>,
    catalogue: &Catalogue,
    prepared: Prepared,
) -> Outcome {
    if let Some(token) = &prepared.token {
        match tokens::seen(group, token)? {
            Repeat::Same => {
                return Ok(Done {
                    repeated: true,
                    ..Done::default()
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
        match decide(group, catalogue, action)? {
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
    let mut done = Done::default();
    let mut plans = Vec::with_capacity(count);
    for change in decided {
        done.returned = change.returned.or(done.returned);
        done.costs.extend(change.cost);
        if let Some(write) = change.write {
            let table = catalogue.by_id(write.table).ok_or_else(|| {
                StoreError::Unavailable("a table vanished while it was written".to_owned())
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
    // IMPORTANT: from here on nothing can fail, so that a transaction is in the group as a whole or not at all.
    for plan in plans {
        group.apply_plan(plan);
    }
    if let Some(token) = &prepared.token {
        tokens::remember(group, token);
    }
    Ok(done)
}

/// Why an action does not happen.
enum Refusal {
    /// It cancels its transaction for this reason.
    Reason(CancelReason),
    /// The whole transaction fails.
    Store(StoreError),
}

/// An action that holds.
struct Decided {
    write: Option<DecidedWrite>,
    returned: Option<Item>,
    cost: Option<WriteCost>,
}

struct DecidedWrite {
    table: crate::layout::TableId,
    key: UserKey,
    old: Option<UserValue>,
    old_expired: bool,
    new: Option<UserValue>,
}

fn decide(
    group: &mut Group<'_>,
    catalogue: &Catalogue,
    action: PreparedAction,
) -> Result<Result<Decided, Refusal>, StoreError> {
    // The table may have changed or gone since the action was prepared.
    let Some(table) = catalogue.by_id(action.table.id()) else {
        let missing = StoreError::TableMissing(action.table.name().to_owned());
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
        if action.returning == Returning::AllOld {
            visible
                .map(|record| record.to_item().map_err(unavailable))
                .transpose()
        } else {
            Ok(None)
        }
    };
    let (new, returned) = match &action.write {
        Write::Check => {
            return Ok(Ok(Decided {
                write: None,
                returned: None,
                cost: cost(&action, table, visible_value, visible_value)?,
            }));
        }
        Write::Put(value) => (Some(value.clone()), all_old(visible)?),
        Write::Delete => {
            let returned = all_old(visible)?;
            if old.is_none() || old_expired {
                // Nothing that anyone can see changes; an expired item is left to the sweeper.
                return Ok(Ok(Decided {
                    write: None,
                    returned,
                    cost: cost(&action, table, None, None)?,
                }));
            }
            (None, returned)
        }
        Write::Update(_, update) if visible.is_none() && !update.creates_item() => {
            return Ok(Ok(Decided {
                write: None,
                returned: None,
                cost: cost(&action, table, None, None)?,
            }));
        }
        Write::Update(key, update) => {
            match updated(table, action.returning, visible, key, update)? {
                Ok((value, returned)) => (Some(value), returned),
                Err(refused) => {
                    return Ok(Err(Refusal::Reason(CancelReason::Invalid(refused))));
                }
            }
        }
    };
    let cost = cost(&action, table, visible_value, new.as_ref())?;
    Ok(Ok(Decided {
        cost,
        write: Some(DecidedWrite {
            table: table.id(),
            key: action.key,
            old,
            old_expired,
            new,
        }),
        returned,
    }))
}

/// What a write costs, if that was asked for.
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

/// The stored value after an update and what the update answers with, or why it cannot be.
fn updated(
    table: &Table,
    returning: Returning,
    visible: Option<Record<'_>>,
    key: &Item,
    update: &Update,
) -> Result<Result<(UserValue, Option<Item>), String>, StoreError> {
    if returning == Returning::Nothing
        && let Some(record) = &visible
        && let Some(changes) = plain_changes(update)
    {
        let changed = set_attributes(table, record, &changes).map_err(unavailable)?;
        return Ok(changed.map(|value| (value, None)));
    }
    let mut item = match visible {
        Some(record) => record.to_item().map_err(unavailable)?,
        None => key.clone(),
    };
    let before = match returning {
        Returning::AllOld | Returning::UpdatedOld if visible.is_some() => Some(item.clone()),
        _ => None,
    };
    if let Err(refused) = apply_update(table, update, &mut item) {
        return Ok(Err(refused));
    }
    let value = record::encode(&item, &table.key);
    let touched = || Projection::new(update.paths().cloned());
    let returned = match returning {
        Returning::Nothing => None,
        Returning::AllOld => before,
        Returning::AllNew => Some(item),
        Returning::UpdatedOld => before.map(|item| touched().apply(&item)),
        Returning::UpdatedNew => Some(touched().apply(&item)),
    };
    Ok(Ok((value, returned.filter(|item| !item.is_empty()))))
}

/// The attributes that an update sets, in order, where it does nothing but set whole attributes to
/// scalar values: the common update, which needs no decoding.
fn plain_changes(update: &Update) -> Option<Vec<(&str, &Value)>> {
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
) -> Result<Result<UserValue, String>, DecodeError> {
    let (value, size) = record::encode_changed(record, changes)?;
    if size > ITEM_SIZE_MAX_BYTES {
        return Ok(Err(TOO_LARGE.to_owned()));
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

fn apply_update(table: &Table, update: &Update, item: &mut Item) -> Result<(), String> {
    update.apply(item).map_err(|error| error.to_string())?;
    item.check().map_err(|error| match error {
        ItemError::TooLarge => TOO_LARGE.to_owned(),
        other => other.to_string(),
    })?;
    table.check_index_keys(item, KeyFrom::Update)
}

/// Whether the outcome or the upkeep of the table depends on what is stored now. A plain put into
/// a plain table does not, and so costs no read.
fn needs_old(table: &Table, action: &PreparedAction) -> bool {
    let upkeep = !table.indexes.is_empty()
        || table.schema().ttl_attribute.is_some()
        || table.record.expiry_job.is_some()
        || table.schema().stream.is_some()
        || table.record.history.is_some();
    upkeep
        || action.condition.is_some()
        || action.measure
        || action.returning != Returning::Nothing
        || !matches!(action.write, Write::Put(_))
}

#[cfg(test)]
mod tests {
    use super::*;

    use homeport_item::schema::{IndexSchema, KeyAttribute, TableSchema};
    use homeport_item::{Item, KeyKind};
    use homeport_store::{Get, Put, Store as _, Transaction};

    use crate::engine::Engine;
    use crate::layout;
    use crate::options::Options;

    #[tokio::test]
    async fn undecodable_item_fails_no_other_writes() {
        let directory = tempfile::tempdir().unwrap();
        let options = Options {
            background_sweep: false,
            ..Options::default()
        };
        let engine = Engine::open(directory.path(), options).unwrap();
        let mut schema = TableSchema::new("things", "id", KeyKind::S);
        let key = KeyAttribute::new("n", KeyKind::N);
        schema.indexes.push(IndexSchema::global("by-n", key, None));
        engine.create_table(schema).await.unwrap();
        let table = engine.shared().catalogue.table("things").unwrap();
        // Its size and version can be read, its attributes cannot.
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
        // They are decided in one group.
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
