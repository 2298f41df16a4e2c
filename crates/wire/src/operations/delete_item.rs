//! DeleteItem: removes an item.

use homeport_store::Delete;
use serde::Deserialize;

use super::writing;
use crate::access::{self, Expressions, Permission, Request, RequestContext, Resources, Values};
use crate::capacity::Wanted;
use crate::constraints::Constraints;
use crate::expressions;
use crate::failure::Failure;
use crate::input::{self, Attribute, Attributes, Mapping, Text};
use crate::legacy;
use crate::service::Service;
use crate::table_name;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Input<'a> {
    #[serde(borrow)]
    table_name: Option<Text<'a>>,
    key: Option<Attributes>,
    #[serde(borrow)]
    condition_expression: Option<Text<'a>>,
    #[serde(borrow)]
    expression_attribute_names: Option<Mapping<'a, Text<'a>>>,
    #[serde(borrow)]
    expression_attribute_values: Option<Mapping<'a, Attribute>>,
    #[serde(borrow)]
    return_values: Option<Text<'a>>,
    #[serde(borrow)]
    return_values_on_condition_check_failure: Option<Text<'a>>,
    #[serde(borrow)]
    return_consumed_capacity: Option<Text<'a>>,
    #[serde(borrow)]
    return_item_collection_metrics: Option<Text<'a>>,
    #[serde(borrow)]
    expected: Option<legacy::Expected<'a>>,
    #[serde(borrow)]
    conditional_operator: Option<Text<'a>>,
    /// Read again where something is wrong with the request: its depth then counts.
    #[serde(skip)]
    body: &'a [u8],
}

impl<'a> Request<'a> for Input<'a> {
    fn read(body: &'a [u8]) -> Result<Self, Failure> {
        let input: Self = input::read(body)?;
        Ok(Self { body, ..input })
    }

    fn permissions(&self, resources: &Resources<'_>) -> Vec<Permission> {
        let table = self.table_name.as_ref();
        let expressions = Expressions {
            names: self.expression_attribute_names.as_ref(),
            values: self.expression_attribute_values.as_ref(),
            condition: self.condition_expression.as_ref(),
            ..Expressions::default()
        };
        let on_failure = self.return_values_on_condition_check_failure.as_ref();
        let context = RequestContext {
            leading_keys: resources.leading_key(table, self.key.as_ref()),
            attributes: access::attributes_of(self.key.as_ref())
                .with(Values::keys(self.expected.as_ref()))
                .with(expressions.attributes()),
            return_values: Values::given(self.return_values.as_ref())
                .with(Values::returned_on_failure(on_failure)),
            return_consumed_capacity: Values::given(self.return_consumed_capacity.as_ref()),
            ..RequestContext::default()
        };
        vec![resources.table(table).with(context)]
    }
}

pub(super) async fn run(service: &Service, input: Input<'_>) -> Result<Vec<u8>, Failure> {
    let capacity = Wanted::of(input.return_consumed_capacity.as_ref());
    let metrics = writing::wants_metrics(input.return_item_collection_metrics.as_ref());
    writing::check_very_deep(
        input.body,
        input.return_values.as_ref(),
        input.conditional_operator.as_ref(),
        true,
    )?;
    let delete = check(input)?;
    if let Some(condition) = &delete.condition {
        let table = service.engine().table(&delete.table)?;
        expressions::check_key_paths(table.schema(), condition.paths())?;
    }
    let collection = writing::collection_key(service, &delete.table, &delete.key, metrics)?;
    let table = delete.table.clone();
    let written = service.engine().write(delete, capacity.anything()).await?;
    Ok(writing::answer(
        &table,
        &written,
        capacity,
        collection.as_ref(),
    ))
}

fn check(input: Input<'_>) -> Result<Delete, Failure> {
    check_in_order(input).map_err(Failure::counted)
}

fn check_in_order(input: Input<'_>) -> Result<Delete, Failure> {
    let mut constraints = Constraints::new();
    let table = table_name::of_items(input.table_name.as_ref(), &mut constraints)?.to_owned();
    constraints.not_null("key", input.key.as_ref());
    writing::constrain_answer(
        &mut constraints,
        input.return_consumed_capacity.as_ref(),
        input.return_values.as_ref(),
        input.return_item_collection_metrics.as_ref(),
        input.return_values_on_condition_check_failure.as_ref(),
    );
    constraints.finish()?;
    expressions::check_parameters(
        &[("ConditionExpression", input.condition_expression.is_some())],
        &[],
        &[
            ("Expected", input.expected.is_some()),
            ("ConditionalOperator", input.conditional_operator.is_some()),
        ],
        input.expression_attribute_names.is_some(),
        input.expression_attribute_values.is_some(),
    )?;
    let join = legacy::join(
        input.conditional_operator.as_ref(),
        input
            .expected
            .as_ref()
            .map_or(0, |expected| expected.0.len()),
    )?;
    let key = writing::attributes(input.key)?;
    let returning = writing::returning_old(input.return_values.as_ref())?;
    let expected = legacy::condition(input.expected.as_ref(), join)?;
    let mut placeholders = expressions::placeholders(
        input.expression_attribute_names.as_ref(),
        input.expression_attribute_values.as_ref(),
        expressions::Values::Newer,
    )?;
    let condition = expressions::condition(input.condition_expression.as_ref(), &mut placeholders)?;
    placeholders.check_all_used()?;
    Ok(Delete {
        table,
        key,
        condition: condition.or(expected),
        returning,
        old_on_failure: writing::old_on_failure(
            input.return_values_on_condition_check_failure.as_ref(),
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_requests_are_refused() {
        for (body, text) in [
            (
                r#"{"TableName":"abc"}"#,
                "1 validation error detected: Value null at 'key' failed to satisfy constraint: Member must not be null",
            ),
            (
                r#"{"TableName":"abc","Key":{"a":{"N":"x"}}}"#,
                "1 validation error detected: The parameter cannot be converted to a numeric value: x",
            ),
            (
                r#"{"TableName":"abc","Key":{},"Expected":{"a":{"ComparisonOperator":"EQ"}}}"#,
                "1 validation error detected: One or more parameter values were invalid: Value or AttributeValueList must be used with ComparisonOperator: EQ for Attribute: a",
            ),
            (
                r#"{"TableName":"abc","Key":{},"ReturnValues":"UPDATED_NEW"}"#,
                "1 validation error detected: ReturnValues can only be ALL_OLD or NONE",
            ),
        ] {
            let input = input::read(body.as_bytes()).expect("well-formed");
            let failure = check(input).expect_err("refused");
            assert_eq!(failure.text(), Some(text), "{body}");
        }
    }
}
