//! What the operations that write single items have in common.

use homeport_engine::Written;
use homeport_item::{Item, json};
use homeport_store::Returning;

use crate::capacity::{Consumed, Split, Wanted};
use crate::constraints::{
    CONDITIONAL_OPERATORS, Constraints, RETURN_CAPACITY, RETURN_METRICS, RETURN_ON_FAILURE,
    RETURN_VALUES,
};
use crate::failure::Failure;
use crate::input::{self, Attributes, Problem, Text};
use crate::output::Object;
use crate::service::Service;

/// The attributes of an item or key that the constraints have seen to be there.
pub(crate) fn attributes(given: Option<Attributes>) -> Result<Item, Failure> {
    read(given).map_err(|problem| Failure::validation(problem.newer()))
}

/// The same where values are read in the older way.
pub(crate) fn attributes_of_many(given: Option<Attributes>) -> Result<Item, Failure> {
    read(given).map_err(|problem| Failure::validation(problem.older()))
}

/// The attributes, or what is wrong with them.
pub(crate) fn read(given: Option<Attributes>) -> Result<Item, Problem> {
    given.map_or(Ok(Item::new()), |attributes| attributes.0)
}

/// The constraints on what a write shall answer, in the order in which they are reported.
pub(crate) fn constrain_answer(
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

/// Checks what a very deep request asks for, which comes before its depth and is worded in the older way. `only_old` is for the
/// operations that have nothing new to return.
pub(crate) fn check_very_deep(
    body: &[u8],
    values: Option<&Text<'_>>,
    operator: Option<&Text<'_>>,
    only_old: bool,
) -> Result<(), Failure> {
    let is_one_of = |given: Option<&Text<'_>>, allowed: &[&str]| {
        given.is_none_or(|given| allowed.contains(&given.as_str()))
    };
    let returnable = !only_old || returning_old(values).is_ok();
    let usual = is_one_of(values, RETURN_VALUES) && is_one_of(operator, CONDITIONAL_OPERATORS);
    if (usual && returnable) || !input::is_very_deep(body) {
        return Ok(());
    }
    let mut constraints = Constraints::new();
    constraints.one_of("returnValues", values, RETURN_VALUES);
    constraints.one_of("conditionalOperator", operator, CONDITIONAL_OPERATORS);
    constraints.finish()?;
    returning_old(values).map(|_| ())
}

/// Whether the item is wanted when its condition fails.
pub(crate) fn old_on_failure(given: Option<&Text<'_>>) -> bool {
    given.is_some_and(|given| given.as_str() == "ALL_OLD")
}

/// What a put or a delete may answer with.
pub(crate) fn returning_old(given: Option<&Text<'_>>) -> Result<Returning, Failure> {
    match given.map(Text::as_str) {
        None | Some("NONE") => Ok(Returning::Nothing),
        Some("ALL_OLD") => Ok(Returning::AllOld),
        Some(_) => Err(Failure::validation(
            "ReturnValues can only be ALL_OLD or NONE",
        )),
    }
}

/// The metrics of an item's collection are wanted.
pub(crate) fn wants_metrics(given: Option<&Text<'_>>) -> bool {
    given.is_some_and(|given| given.as_str() == "SIZE")
}

/// The key of a collection of items: one partition of a table with local indexes.
pub(crate) fn collection_key(
    service: &Service,
    table: &str,
    item: &Item,
    wanted: bool,
) -> Result<Option<Item>, Failure> {
    if !wanted {
        return Ok(None);
    }
    let view = service.engine().table(table)?;
    let schema = view.schema();
    if !schema.indexes.iter().any(|index| index.local) {
        return Ok(None);
    }
    let name = &schema.key.partition.name;
    Ok(item
        .get(name)
        .map(|value| Item::new().with(name.as_str(), value.clone())))
}

/// Writes what is known about a collection.
// DIFFERENCE: collections are not limited to 10 GB here, and so their sizes are not kept; the
// estimate is always the lowest one.
pub(crate) fn write_metrics(key: &Item, out: &mut Vec<u8>) {
    let mut object = Object::new(out);
    json::write_item(key, object.member("ItemCollectionKey"));
    object
        .member("SizeEstimateRangeGB")
        .extend_from_slice(b"[0.0,1.0]");
    object.end();
}

/// The answer to a write of one item.
pub(crate) fn answer(
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
        let mut consumed = Consumed::default();
        consumed.add_write(cost, 1.0);
        consumed.write(
            table,
            capacity,
            Split::None,
            object.member("ConsumedCapacity"),
        );
    }
    if let Some(key) = collection {
        write_metrics(key, object.member("ItemCollectionMetrics"));
    }
    object.end();
    out
}
