//! UpdateItem: changes attributes of an item, or creates it.

use homeport_item::expression;
use homeport_store::{Returning, Update};
use serde::Deserialize;

use super::writing;
use crate::access::{self, Expressions, Permission, Request, RequestContext, Resources, Values};
use crate::capacity::Wanted;
use crate::constraints::{
    CONDITIONAL_OPERATORS, Constraints, RETURN_CAPACITY, RETURN_METRICS, RETURN_VALUES,
};
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
    update_expression: Option<Text<'a>>,
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
    attribute_updates: Option<legacy::AttributeUpdates<'a>>,
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
            update: self.update_expression.as_ref(),
            ..Expressions::default()
        };
        let on_failure = self.return_values_on_condition_check_failure.as_ref();
        let context = RequestContext {
            leading_keys: resources.leading_key(table, self.key.as_ref()),
            attributes: access::attributes_of(self.key.as_ref())
                .with(Values::keys(self.attribute_updates.as_ref()))
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
    let is_legacy = input.attribute_updates.is_some();
    writing::check_very_deep(
        input.body,
        input.return_values.as_ref(),
        input.conditional_operator.as_ref(),
        false,
    )?;
    let update = check(input)?;
    let view = service.engine().table(&update.table)?;
    let condition = update
        .condition
        .iter()
        .flat_map(|condition| condition.paths());
    expressions::check_key_paths(view.schema(), update.update.paths().chain(condition))?;
    let collection = writing::collection_key(service, &update.table, &update.key, metrics)?;
    let table = update.table.clone();
    let written = service.engine().write(update, capacity.anything()).await;
    let written = written.map_err(|error| match Failure::from(error) {
        failure if is_legacy => legacy::worded(failure),
        failure => failure,
    })?;
    Ok(writing::answer(
        &table,
        &written,
        capacity,
        collection.as_ref(),
    ))
}

fn check(input: Input<'_>) -> Result<Update, Failure> {
    check_in_order(input).map_err(Failure::counted)
}

/// A request without a key is told what else is wrong with its members, each named with its value.
fn check_without_key(input: &Input<'_>) -> Result<(), Failure> {
    let mut constraints = Constraints::new();
    constraints.one_of(
        "returnConsumedCapacity",
        input.return_consumed_capacity.as_ref(),
        RETURN_CAPACITY,
    );
    constraints.not_null("tableName", input.table_name.as_ref());
    constraints.text_length("tableName", input.table_name.as_ref(), 1, usize::MAX);
    constraints.one_of(
        "returnItemCollectionMetrics",
        input.return_item_collection_metrics.as_ref(),
        RETURN_METRICS,
    );
    constraints.one_of("returnValues", input.return_values.as_ref(), RETURN_VALUES);
    constraints.one_of(
        "conditionalOperator",
        input.conditional_operator.as_ref(),
        CONDITIONAL_OPERATORS,
    );
    constraints.not_null("key", input.key.as_ref());
    constraints.finish()
}

fn check_in_order(input: Input<'_>) -> Result<Update, Failure> {
    if input.key.is_none() {
        check_without_key(&input)?;
    }
    let mut constraints = Constraints::new();
    let table = table_name::of_items(input.table_name.as_ref(), &mut constraints)?.to_owned();
    // An unknown choice of what to return ends the checks of this operation alone.
    if let Some(given) = &input.return_values
        && !RETURN_VALUES.contains(&given.as_str())
    {
        let mut first = Constraints::new();
        first.return_values(Some(given));
        first.finish()?;
    }
    writing::constrain_answer(
        &mut constraints,
        input.return_consumed_capacity.as_ref(),
        input.return_values.as_ref(),
        input.return_item_collection_metrics.as_ref(),
        input.return_values_on_condition_check_failure.as_ref(),
    );
    constraints.finish()?;
    expressions::check_parameters(
        &[
            ("UpdateExpression", input.update_expression.is_some()),
            ("ConditionExpression", input.condition_expression.is_some()),
        ],
        &[],
        &[
            ("AttributeUpdates", input.attribute_updates.is_some()),
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
    let updates = legacy::update(input.attribute_updates.as_ref())?;
    let expected = legacy::condition(input.expected.as_ref(), join)?;
    let mut placeholders = expressions::placeholders(
        input.expression_attribute_names.as_ref(),
        input.expression_attribute_values.as_ref(),
        expressions::Values::Newer,
    )?;
    let update = match &input.update_expression {
        Some(text) => expression::Update::parse(text.as_str(), &mut placeholders)?,
        None => updates,
    };
    let condition = expressions::condition(input.condition_expression.as_ref(), &mut placeholders)?;
    placeholders.check_all_used()?;
    let returning = match input.return_values.as_ref().map(Text::as_str) {
        Some("ALL_OLD") => Returning::AllOld,
        Some("ALL_NEW") => Returning::AllNew,
        Some("UPDATED_OLD") => Returning::UpdatedOld,
        Some("UPDATED_NEW") => Returning::UpdatedNew,
        _ => Returning::Nothing,
    };
    Ok(Update {
        table,
        key,
        update,
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
                r#"{"TableName":"abc","Key":{},"ExpressionAttributeValues":{":a":{"S":"x"}}}"#,
                "1 validation error detected: ExpressionAttributeValues can only be specified when using expressions",
            ),
            (
                r#"{"TableName":"abc","Key":{},"UpdateExpression":"SET a = :b"}"#,
                "1 validation error detected: Invalid UpdateExpression: An expression attribute value used in expression is not defined; attribute value: :b",
            ),
            (
                r#"{"TableName":"abc","Key":{},"UpdateExpression":"SET a = :b","AttributeUpdates":{}}"#,
                "1 validation error detected: Can not use both expression and non-expression parameters in the same request: Non-expression parameters: {AttributeUpdates} Expression parameters: {UpdateExpression}",
            ),
            (
                r#"{"TableName":"abc","Key":{},"AttributeUpdates":{"a":{"Action":"ADD","Value":{"S":"x"}}}}"#,
                "1 validation error detected: One or more parameter values were invalid: ADD action is not supported for the type S",
            ),
            (
                r#"{"TableName":"abc","Key":{},"AttributeUpdates":{"a":{"Action":"SET","Value":{"S":"x"}}},"Expected":{"a":{}}}"#,
                "1 validation error detected: Member must satisfy enum value set: [ADD, DELETE, PUT]' for Action",
            ),
            (
                r#"{"TableName":"abc","Key":{},"ConditionalOperator":"OR","AttributeUpdates":{"a":{}}}"#,
                "1 validation error detected: ConditionalOperator cannot be used without Filter or Expected",
            ),
            (
                r#"{"TableName":"abc","Key":{},"UpdateExpression":"REMOVE a","ExpressionAttributeValues":{":a":{"S":"x"}}}"#,
                "1 validation error detected: Value provided in ExpressionAttributeValues unused in expressions: keys: {:a}",
            ),
        ] {
            let input = input::read(body.as_bytes()).expect("well-formed");
            let failure = check(input).expect_err("refused");
            assert_eq!(failure.text(), Some(text), "{body}");
        }
    }

    #[test]
    fn an_update_without_expressions_touches_nothing() {
        let body = br#"{"TableName":"abc","Key":{"a":{"S":"x"}}}"#;
        let update = check(input::read(body).expect("well-formed")).expect("valid");
        assert!(update.update.is_empty());
    }
}
