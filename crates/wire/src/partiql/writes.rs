//! INSERT, UPDATE, DELETE and EXISTS as the engine's actions.

use homeport_engine::Engine;
use homeport_item::Item;
use homeport_item::expression::Condition;
use homeport_item::schema::TableSchema;
use homeport_partiql::{Delete, Insert, Returning, Select, Statement, Target, Update};
use homeport_store::{self as store, Action, Check};

use super::keys::{self, addressed};
use crate::expressions;
use crate::failure::Failure;

/// What a statement that writes does. `old_on_failure` asks for the item where a condition does not hold.
pub(crate) fn action(
    engine: &Engine,
    statement: Statement,
    old_on_failure: bool,
) -> Result<Action, Failure> {
    let view = engine.table(statement.table())?;
    let schema = view.schema();
    match statement {
        Statement::Insert(insert) => Ok(self::insert(schema, insert)),
        Statement::Update(update) => self::update(schema, update, old_on_failure),
        Statement::Delete(delete) => self::delete(schema, delete, old_on_failure),
        Statement::Exists(select) => self::check(schema, select, old_on_failure),
        Statement::Select(_) => Err(Failure::validation("Unsupported operation: Select")),
    }
}

/// An item that is there already is a reason of its own for an insertion.
pub(crate) fn is_insert(statement: &Statement) -> bool {
    matches!(statement, Statement::Insert(_))
}

/// Outside transactions, which leave it to the engine, an inserted item's key is refused in words of its own.
pub(crate) fn check_inserted_key(engine: &Engine, statement: &Statement) -> Result<(), Failure> {
    let Statement::Insert(insert) = statement else {
        return Ok(());
    };
    let view = engine.table(&insert.table)?;
    for attribute in view.schema().key.attributes() {
        if let Some(value) = insert.item.get(&attribute.name) {
            keys::check_kind(attribute, value)?;
        }
    }
    Ok(())
}

/// The table and the key of the item that an action is for.
pub(crate) fn target(engine: &Engine, action: &Action) -> Result<(String, Item), Failure> {
    let key = match action {
        Action::Put(put) => {
            let view = engine.table(&put.table)?;
            let mut key = Item::new();
            for attribute in view.schema().key.attributes() {
                if let Some(value) = put.item.get(&attribute.name) {
                    key.insert(attribute.name.as_str(), value.clone());
                }
            }
            key
        }
        Action::Update(update) => update.key.clone(),
        Action::Delete(delete) => delete.key.clone(),
        Action::Check(check) => check.key.clone(),
    };
    Ok((action.table().to_owned(), key))
}

fn insert(schema: &TableSchema, insert: Insert) -> Action {
    let condition = Condition::not_exists(schema.key.partition.name.as_str());
    store::Put::new(insert.table, insert.item)
        .when(condition)
        .into()
}

fn update(schema: &TableSchema, update: Update, old_on_failure: bool) -> Result<Action, Failure> {
    refuse_index(&update.target)?;
    let item = addressed(&schema.key, update.condition)?;
    // An update makes no item: the one that it names has to be there.
    let exists = Condition::exists(schema.key.partition.name.as_str());
    let condition = match item.rest {
        Some(rest) => exists.and(rest),
        None => exists,
    };
    expressions::check_key_paths(schema, update.update.paths().chain(condition.paths()))?;
    let returning = match update.returning {
        None => store::Returning::Nothing,
        Some(Returning::AllOld) => store::Returning::AllOld,
        Some(Returning::AllNew) => store::Returning::AllNew,
        Some(Returning::ModifiedOld) => store::Returning::UpdatedOld,
        Some(Returning::ModifiedNew) => store::Returning::UpdatedNew,
    };
    Ok(Action::Update(store::Update {
        condition: Some(condition),
        returning,
        old_on_failure,
        ..store::Update::new(update.target.table, item.key, update.update)
    }))
}

fn delete(schema: &TableSchema, delete: Delete, old_on_failure: bool) -> Result<Action, Failure> {
    refuse_index(&delete.target)?;
    let returning = match delete.returning {
        None => store::Returning::Nothing,
        Some(Returning::AllOld) => store::Returning::AllOld,
        Some(other) => {
            return Err(Failure::validation(format!(
                "Invalid returning clause: RETURNING {} *. Only RETURNING ALL OLD * is allowed in DELETE statements.",
                other.words()
            )));
        }
    };
    let item = addressed(&schema.key, delete.condition)?;
    // An item that is not there is deleted already, whatever is asked of it.
    let missing = Condition::not_exists(schema.key.partition.name.as_str());
    let condition = item.rest.map(|rest| missing.or(rest));
    if let Some(condition) = &condition {
        expressions::check_key_paths(schema, condition.paths())?;
    }
    Ok(Action::Delete(store::Delete {
        condition,
        returning,
        old_on_failure,
        ..store::Delete::new(delete.target.table, item.key)
    }))
}

fn check(schema: &TableSchema, select: Select, old_on_failure: bool) -> Result<Action, Failure> {
    refuse_index(&select.target)?;
    let item = addressed(&schema.key, select.condition)?;
    let Some(rest) = item.rest else {
        return Err(Failure::validation(
            "EXISTS() must contain a single item read with additional condition",
        ));
    };
    let condition = Condition::exists(schema.key.partition.name.as_str()).and(rest);
    expressions::check_key_paths(schema, condition.paths())?;
    Ok(Action::Check(Check {
        old_on_failure,
        ..Check::new(select.target.table, item.key, condition)
    }))
}

fn refuse_index(target: &Target) -> Result<(), Failure> {
    match target.index {
        None => Ok(()),
        Some(_) => Err(Failure::validation(
            "This operation is not supported on an index",
        )),
    }
}
