//! INSERT, UPDATE, DELETE and EXISTS as the engine's actions.

use homeport_engine::Engine;
use homeport_item::Item;
use homeport_item::expression::Condition;
use homeport_item::schema::TableSchema;
use homeport_partiql::{Delete, Insert, ReturnValues, Select, Statement, Target, Update};
use homeport_store::{self as store, Action, ConditionCheck};

use super::keys::{self, AddressError, addressed};
use crate::expressions;
use crate::failure::Failure;

/// Why a statement cannot become an action.
#[derive(Debug)]
pub(crate) enum ActionError {
    /// Its condition does not address one item.
    Address(AddressError),
    Other(Failure),
}

impl From<AddressError> for ActionError {
    fn from(error: AddressError) -> Self {
        Self::Address(error)
    }
}

impl From<Failure> for ActionError {
    fn from(failure: Failure) -> Self {
        Self::Other(failure)
    }
}

impl From<ActionError> for Failure {
    fn from(error: ActionError) -> Self {
        match error {
            ActionError::Address(error) => error.into(),
            ActionError::Other(failure) => failure,
        }
    }
}

/// The action of a statement that writes. With `old_on_failure`, a failed condition returns the item.
pub(crate) fn action(
    engine: &Engine,
    statement: Statement,
    old_on_failure: bool,
) -> Result<Action, ActionError> {
    let view = engine.table(statement.table()).map_err(Failure::from)?;
    let schema = view.schema();
    match statement {
        Statement::Insert(insert) => Ok(self::insert(schema, insert)),
        Statement::Update(update) => self::update(schema, update, old_on_failure),
        Statement::Delete(delete) => self::delete(schema, delete, old_on_failure),
        Statement::Exists(select) => self::check(schema, select, old_on_failure),
        Statement::Select(_) => Err(Failure::validation("Unsupported operation: Select").into()),
    }
}

/// Whether a statement inserts an item. If the item exists, it fails with an error of its own.
pub(crate) fn is_insert(statement: &Statement) -> bool {
    matches!(statement, Statement::Insert(_))
}

/// Checks the key of an item to insert, for which DynamoDB has its own texts. In transactions the engine checks it.
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

/// The table and the key of the item that an action writes or checks.
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

fn update(
    schema: &TableSchema,
    update: Update,
    old_on_failure: bool,
) -> Result<Action, ActionError> {
    refuse_index(&update.target)?;
    let item = addressed(&schema.key, update.condition)?;
    // An UPDATE does not create an item: the addressed one must exist.
    let exists = Condition::exists(schema.key.partition.name.as_str());
    let condition = match item.rest {
        Some(rest) => exists.and(rest),
        None => exists,
    };
    expressions::check_key_paths(schema, update.update.paths().chain(condition.paths()))?;
    let returning = match update.returning {
        None => store::ReturnValues::None,
        Some(ReturnValues::AllOld) => store::ReturnValues::AllOld,
        Some(ReturnValues::AllNew) => store::ReturnValues::AllNew,
        Some(ReturnValues::ModifiedOld) => store::ReturnValues::UpdatedOld,
        Some(ReturnValues::ModifiedNew) => store::ReturnValues::UpdatedNew,
    };
    Ok(Action::Update(store::Update {
        condition: Some(condition),
        returning,
        old_on_failure,
        ..store::Update::new(update.target.table, item.key, update.update)
    }))
}

fn delete(
    schema: &TableSchema,
    delete: Delete,
    old_on_failure: bool,
) -> Result<Action, ActionError> {
    refuse_index(&delete.target)?;
    let returning = match delete.returning {
        None => store::ReturnValues::None,
        Some(ReturnValues::AllOld) => store::ReturnValues::AllOld,
        Some(other) => {
            return Err(Failure::validation(format!(
                "Invalid returning clause: RETURNING {} *. Only RETURNING ALL OLD * is allowed in DELETE statements.",
                other.as_str()
            ))
            .into());
        }
    };
    let item = addressed(&schema.key, delete.condition)?;
    // A missing item counts as deleted, whatever the condition says.
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

fn check(
    schema: &TableSchema,
    select: Select,
    old_on_failure: bool,
) -> Result<Action, ActionError> {
    refuse_index(&select.target)?;
    let item = addressed(&schema.key, select.condition)?;
    let Some(rest) = item.rest else {
        return Err(Failure::validation(
            "EXISTS() must contain a single item read with additional condition",
        )
        .into());
    };
    let condition = Condition::exists(schema.key.partition.name.as_str()).and(rest);
    expressions::check_key_paths(schema, condition.paths())?;
    Ok(Action::Check(ConditionCheck {
        old_on_failure,
        ..ConditionCheck::new(select.target.table, item.key, condition)
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
