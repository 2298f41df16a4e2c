//! Parts that the operations that write items share.

use homeport_engine::Written;
use homeport_item::{Item, json};
use homeport_store::{Action, ReturnValues};

use crate::capacity::{Consumed, Wanted};
use crate::constraints::{Constraints, RETURN_CAPACITY, RETURN_METRICS, RETURN_ON_FAILURE};
use crate::expressions;
use crate::failure::Failure;
use crate::input::{Attributes, Problem, Text, Wording};
use crate::output::{self, Object};
use crate::service::Service;

/// The attributes of an item or a key. The constraints have checked that they are there.
pub(crate) fn attributes(given: Option<Attributes>, wording: Wording) -> Result<Item, Failure> {
    read(given).map_err(|problem| problem.failure(wording))
}

/// The attributes, or the first problem with them.
pub(crate) fn read(given: Option<Attributes>) -> Result<Item, Problem> {
    given.map_or(Ok(Item::new()), |attributes| attributes.0)
}

/// The constraints on what a write returns, in the order in which they are reported.
pub(crate) fn constrain_response(
    constraints: &mut Constraints,
    capacity: Option<&Text<'_>>,
    values: Option<&Text<'_>>,
    metrics: Option<&Text<'_>>,
    on_failure: Option<&Text<'_>>,
) {
    constraints.one_of("returnConsumedCapacity", capacity, RETURN_CAPACITY);
    constraints.return_values(values);
    constraints.one_of("returnItemCollectionMetrics", metrics, RETURN_METRICS);
    constraints.one_of(
        "returnValuesOnConditionCheckFailure",
        on_failure,
        RETURN_ON_FAILURE,
    );
}

/// Whether a failed condition returns the old item.
pub(crate) fn old_on_failure(given: Option<&Text<'_>>) -> bool {
    given.is_some_and(|given| given.as_str() == "ALL_OLD")
}

/// The value of `ReturnValues` of a put or delete.
pub(crate) fn returning_old(given: Option<&Text<'_>>) -> Result<ReturnValues, Failure> {
    match given.map(Text::as_str) {
        None | Some("NONE") => Ok(ReturnValues::None),
        Some("ALL_OLD") => Ok(ReturnValues::AllOld),
        Some(_) => Err(Failure::validation(
            "ReturnValues can only be ALL_OLD or NONE",
        )),
    }
}

/// Whether the response has metrics of item collections.
pub(crate) fn wants_metrics(given: Option<&Text<'_>>) -> bool {
    given.is_some_and(|given| given.as_str() == "SIZE")
}

/// Checks the paths of an action's expressions against the keys of its table. The first invalid path is reported, so callers
/// choose whether the update or the condition comes first.
pub(crate) fn check_paths(
    service: &Service,
    action: &Action,
    first: FirstChecked,
) -> Result<(), Failure> {
    let (condition, update) = match action {
        Action::Put(put) => (put.condition.as_ref(), None),
        Action::Delete(delete) => (delete.condition.as_ref(), None),
        Action::Check(check) => (Some(&check.condition), None),
        Action::Update(update) => (update.condition.as_ref(), Some(&update.update)),
    };
    if condition.is_none() && update.is_none() {
        return Ok(());
    }
    let view = service.engine().table(action.table())?;
    let condition = condition
        .into_iter()
        .flat_map(|condition| condition.paths());
    let update = update.into_iter().flat_map(|update| update.paths());
    match first {
        FirstChecked::Condition => {
            expressions::check_key_paths(view.schema(), condition.chain(update))
        }
        FirstChecked::Update => {
            expressions::check_key_paths(view.schema(), update.chain(condition))
        }
    }
}

/// The expression of an update whose paths are checked first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FirstChecked {
    Condition,
    Update,
}

/// The key of the item collection that an action writes to: one partition of a table with local indexes.
pub(crate) fn collection_key(service: &Service, action: &Action) -> Result<Option<Item>, Failure> {
    let attributes = match action {
        Action::Put(put) => &put.item,
        Action::Update(update) => &update.key,
        Action::Delete(delete) => &delete.key,
        Action::Check(_) => return Ok(None),
    };
    let view = service.engine().table(action.table())?;
    let schema = view.schema();
    if !schema.indexes.iter().any(|index| index.local) {
        return Ok(None);
    }
    let name = &schema.key.partition.name;
    Ok(attributes
        .get(name)
        .map(|value| Item::new().with(name.as_str(), value.clone())))
}

/// The item collections that the actions of a request write to, by table.
#[derive(Debug, Default)]
pub(crate) struct Collections(Vec<(String, Vec<Item>)>);

impl Collections {
    /// Adds the collection of an action; `table` is the name in the response.
    pub(crate) fn add(
        &mut self,
        service: &Service,
        table: &str,
        action: &Action,
    ) -> Result<(), Failure> {
        let Some(key) = collection_key(service, action)? else {
            return Ok(());
        };
        match self.0.iter_mut().find(|(known, _)| known == table) {
            Some((_, keys)) if keys.contains(&key) => {}
            Some((_, keys)) => keys.push(key),
            None => self.0.push((table.to_owned(), vec![key])),
        }
        Ok(())
    }

    /// Writes the member `ItemCollectionMetrics` if there are collections.
    pub(crate) fn write(&self, object: &mut Object<'_>) {
        if self.0.is_empty() {
            return;
        }
        object.object("ItemCollectionMetrics", |tables| {
            for (table, keys) in &self.0 {
                output::list(tables.member(table), keys, write_metrics);
            }
        });
    }
}

/// Writes the metrics of an item collection.
// DIFFERENCE: item collections are not limited to 10 GB, so their sizes are not stored. The estimate is always the lowest.
fn write_metrics(key: &Item, out: &mut Vec<u8>) {
    let mut object = Object::new(out);
    json::write_item(key, object.member("ItemCollectionKey"));
    object
        .member("SizeEstimateRangeGB")
        .extend_from_slice(b"[0.0,1.0]");
    object.end();
}

/// The response to a write of one item.
pub(crate) fn respond(
    table: &str,
    written: &Written,
    capacity: Wanted,
    collection: Option<&Item>,
) -> Vec<u8> {
    let mut out = Vec::with_capacity(128);
    let mut object = Object::new(&mut out);
    if let Some(attributes) = &written.attributes {
        json::write_item(attributes, object.member("Attributes"));
    }
    if let Some(cost) = &written.cost {
        Consumed::of_write(cost).write_member(&mut object, table, capacity);
    }
    if let Some(key) = collection {
        write_metrics(key, object.member("ItemCollectionMetrics"));
    }
    object.end();
    out
}
