//! TransactGetItems: reads several items in one consistent snapshot.

use homeport_engine::StoredItem;
use homeport_item::json;
use homeport_store::{CancelReason, Get, TRANSACTION_ACTIONS_MAX, TransactError};
use serde::Deserialize;

use super::{reading, writing};
use crate::access::{self, Expressions, Permission, Request, RequestContext, Resources, Values};
use crate::capacity::{self, ConsumedByTable, Split, TRANSACTION_FACTOR, Wanted};
use crate::constraints::{Constraints, RETURN_CAPACITY};
use crate::expressions;
use crate::failure::Failure;
use crate::input::{Attributes, Element, Field, List, Mapping, Named, Text, Wording};
use crate::output::{self, Object};
use crate::service::Service;
use crate::table_name;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Input<'a> {
    #[serde(borrow)]
    transact_items: Option<List<Element<TransactGetItem<'a>>>>,
    #[serde(borrow)]
    return_consumed_capacity: Option<Text<'a>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct TransactGetItem<'a> {
    #[serde(borrow)]
    get: Option<Field<GetInput<'a>>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct GetInput<'a> {
    #[serde(borrow)]
    table_name: Option<Text<'a>>,
    key: Option<Attributes>,
    #[serde(borrow)]
    projection_expression: Option<Text<'a>>,
    #[serde(borrow)]
    expression_attribute_names: Option<Mapping<'a, Text<'a>>>,
}

impl Named for TransactGetItem<'_> {
    const NAME: &'static str = "TransactGetItem";
}

impl Named for GetInput<'_> {
    const NAME: &'static str = "Get";
}

impl<'a> Request<'a> for Input<'a> {
    fn permissions(&self, resources: &Resources<'_>) -> Vec<Permission> {
        let items = self.transact_items.iter();
        let items = items.flat_map(|items| items.first(TRANSACTION_ACTIONS_MAX));
        let gets = items.filter_map(|Element(item)| item.get.as_ref());
        gets.map(|Field(get)| {
            let table = get.table_name.as_ref();
            let expressions = Expressions {
                names: get.expression_attribute_names.as_ref(),
                projection: get.projection_expression.as_ref(),
                ..Expressions::default()
            };
            let context = RequestContext {
                leading_keys: resources.leading_key(table, get.key.as_ref()),
                attributes: access::attributes_of(get.key.as_ref()).with(expressions.attributes()),
                select: Values::select(None, get.projection_expression.is_some(), false),
                return_consumed_capacity: Values::given(self.return_consumed_capacity.as_ref()),
                enclosing_operation: Values::one(resources.operation()),
                ..RequestContext::default()
            };
            resources.included_action("GetItem", table).with(context)
        })
        .collect()
    }
}

pub(crate) async fn run(service: &Service, input: Input<'_>) -> Result<Vec<u8>, Failure> {
    let wanted = Wanted::of(input.return_consumed_capacity.as_ref());
    let gets = check(input)?;
    check_keys(service, &gets)?;
    service
        .run_blocking(move |service| respond(service, &gets, wanted))
        .await
}

fn respond(service: &Service, gets: &[Get], wanted: Wanted) -> Result<Vec<u8>, Failure> {
    respond_with(service, gets, wanted, |at, item, response| {
        match &gets[at].projection {
            None => item.write_json(response.member("Item"))?,
            // An item without any of the projected attributes counts as missing here.
            Some(projection) => {
                let projected = item.project(projection)?;
                if !projected.is_empty() {
                    json::write_item(&projected, response.member("Item"));
                }
            }
        }
        Ok(())
    })
}

/// Reads items in one snapshot and responds with them; `write` writes the item at a position.
pub(crate) fn respond_with(
    service: &Service,
    gets: &[Get],
    wanted: Wanted,
    mut write: impl FnMut(usize, StoredItem, &mut Object<'_>) -> Result<(), Failure>,
) -> Result<Vec<u8>, Failure> {
    let found = service.engine().get_stored_together(gets)?;
    let mut out = Vec::with_capacity(1024);
    let mut object = Object::new(&mut out);
    let mut consumed = ConsumedByTable::default();
    let entries = found.into_iter().zip(gets).enumerate();
    output::try_list(object.member("Responses"), entries, |entry, out| {
        let (at, (item, get)) = entry;
        let mut size = 0;
        let mut response = Object::new(out);
        if let Some(item) = item {
            size = item.size()?;
            write(at, item, &mut response)?;
        }
        response.end();
        consumed.of(&get.table).table += capacity::read_units(size, true) * TRANSACTION_FACTOR;
        Ok::<_, Failure>(())
    })?;
    consumed.write(&mut object, wanted, Split::Read);
    object.end();
    Ok(out)
}

/// Checks the keys: one that does not match its table cancels the transaction, as in TransactWriteItems.
fn check_keys(service: &Service, gets: &[Get]) -> Result<(), Failure> {
    let mut reasons = Vec::new();
    for (at, get) in gets.iter().enumerate() {
        let view = service.engine().table(&get.table)?;
        if let Some(projection) = &get.projection {
            expressions::check_key_paths(view.schema(), &projection.paths)?;
        }
        if let Err(error) = view.schema().key.exact_values(&get.key) {
            reasons.resize(gets.len(), CancelReason::None);
            reasons[at] = CancelReason::invalid(error);
        }
    }
    if reasons.is_empty() {
        Ok(())
    } else {
        Err(TransactError::Cancelled(reasons).into())
    }
}

fn check(input: Input<'_>) -> Result<Vec<Get>, Failure> {
    let mut constraints = Constraints::new();
    let items = input.transact_items.as_ref();
    constraints.not_null("transactItems", items);
    constraints.list_length("transactItems", items, 1, TRANSACTION_ACTIONS_MAX);
    constraints.one_of(
        "returnConsumedCapacity",
        input.return_consumed_capacity.as_ref(),
        RETURN_CAPACITY,
    );
    for (at, Element(item)) in items.iter().flat_map(|items| items.0.iter().enumerate()) {
        let path = format!("transactItems.{}.member.get", at + 1);
        constraints.not_null(&path, item.get.as_ref());
        if let Some(Field(get)) = &item.get {
            let name = get.table_name.as_ref();
            table_name::of_items_at(&format!("{path}.tableName"), name, &mut constraints)?;
            constraints.not_null(&format!("{path}.key"), get.key.as_ref());
        }
    }
    constraints.finish()?;
    let items = input.transact_items.map_or(Vec::new(), |items| items.0);
    let gets = items.into_iter().filter_map(|Element(item)| item.get);
    let gets = gets
        .map(|Field(get)| {
            let expression = get.projection_expression.as_ref();
            let names = get.expression_attribute_names.as_ref();
            reading::check_projection(expression, names, None)?;
            let projection = reading::projection(expression, names)?;
            let name = get.table_name.as_ref();
            Ok(Get {
                table: table_name::of_items(name, &mut Constraints::new())?.to_owned(),
                key: writing::attributes(get.key, Wording::Older)?,
                projection,
                consistent: true,
            })
        })
        .collect::<Result<Vec<Get>, Failure>>()?;
    for (at, get) in gets.iter().enumerate() {
        let repeated = |other: &Get| other.table == get.table && other.key == get.key;
        if gets[..at].iter().any(repeated) {
            return Err(Failure::validation(
                "Transaction request cannot include multiple operations on one item",
            ));
        }
    }
    Ok(gets)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input;

    #[test]
    fn invalid_transactions_get_dynamodb_errors() {
        for (body, text) in [
            (
                "{}",
                "1 validation error detected: Value null at 'transactItems' failed to satisfy constraint: Member must not be null",
            ),
            (
                r#"{"TransactItems":[]}"#,
                "1 validation error detected: Value '[]' at 'transactItems' failed to satisfy constraint: Member must have length greater than or equal to 1",
            ),
            (
                r#"{"TransactItems":[{}]}"#,
                "1 validation error detected: Value null at 'transactItems.1.member.get' failed to satisfy constraint: Member must not be null",
            ),
            (
                r#"{"TransactItems":[{"Get":{"TableName":"abc"}}]}"#,
                "1 validation error detected: Value null at 'transactItems.1.member.get.key' failed to satisfy constraint: Member must not be null",
            ),
            (
                r#"{"TransactItems":[{"Get":{"TableName":"abc","Key":{"a":{"S":"x"}}}},{"Get":{"TableName":"abc","Key":{"a":{"S":"x"}}}}]}"#,
                "Transaction request cannot include multiple operations on one item",
            ),
        ] {
            let input = input::read(body.as_bytes()).expect("well-formed");
            let failure = check(input).expect_err("refused");
            assert_eq!(failure.text(), Some(text), "{body}");
        }
    }
}
