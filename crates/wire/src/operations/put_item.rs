//! PutItem: creates or replaces an item.

use homeport_store::Put;
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
    item: Option<Attributes>,
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
            leading_keys: resources.leading_key(table, self.item.as_ref()),
            attributes: access::attributes_of(self.item.as_ref())
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
    let put = check(input)?;
    if let Some(condition) = &put.condition {
        let table = service.engine().table(&put.table)?;
        expressions::check_key_paths(table.schema(), condition.paths())?;
    }
    let collection = writing::collection_key(service, &put.table, &put.item, metrics)?;
    let table = put.table.clone();
    let written = service.engine().write(put, capacity.anything()).await?;
    Ok(writing::answer(
        &table,
        &written,
        capacity,
        collection.as_ref(),
    ))
}

fn check(input: Input<'_>) -> Result<Put, Failure> {
    check_in_order(input).map_err(Failure::counted)
}

fn check_in_order(input: Input<'_>) -> Result<Put, Failure> {
    let mut constraints = Constraints::new();
    let table = table_name::of_items(input.table_name.as_ref(), &mut constraints)?.to_owned();
    constraints.not_null("item", input.item.as_ref());
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
    let item = writing::attributes(input.item)?;
    let returning = writing::returning_old(input.return_values.as_ref())?;
    let expected = legacy::condition(input.expected.as_ref(), join)?;
    item.check()?;
    let mut placeholders = expressions::placeholders(
        input.expression_attribute_names.as_ref(),
        input.expression_attribute_values.as_ref(),
        expressions::Values::Newer,
    )?;
    let condition = expressions::condition(input.condition_expression.as_ref(), &mut placeholders)?;
    placeholders.check_all_used()?;
    Ok(Put {
        table,
        item,
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

    #[track_caller]
    fn refused(body: &str) -> String {
        let input = input::read(body.as_bytes()).expect("well-formed");
        let failure = check(input).expect_err("refused");
        failure.text().unwrap_or_default().to_owned()
    }

    #[test]
    fn bad_requests_are_refused_in_dynamodb_s_order() {
        for (body, text) in [
            (
                "{}",
                "2 validation errors detected: Value null at 'tableName' failed to satisfy constraint: Member must not be null; Value null at 'item' failed to satisfy constraint: Member must not be null",
            ),
            (
                r#"{"TableName":"","ReturnValues":"X"}"#,
                "1 validation error detected: Value at 'TableName' failed to satisfy constraint: Member must have length greater than or equal to 1",
            ),
            (
                r#"{"TableName":"abc","Item":{"a":{}},"ReturnValues":"X"}"#,
                "1 validation error detected: Failed to satisfy constraint: Member must satisfy enum value set: [ALL_OLD, UPDATED_OLD, ALL_NEW, UPDATE_NEW, NONE]",
            ),
            (
                r#"{"TableName":"abc","Item":{"a":{}},"ConditionExpression":"a","Expected":{}}"#,
                "1 validation error detected: Can not use both expression and non-expression parameters in the same request: Non-expression parameters: {Expected} Expression parameters: {ConditionExpression}",
            ),
            (
                r##"{"TableName":"abc","Item":{"a":{}},"ExpressionAttributeNames":{"#a":"b"}}"##,
                "1 validation error detected: ExpressionAttributeNames can only be specified when using expressions",
            ),
            (
                r#"{"TableName":"abc","Item":{"a":{}},"ReturnValues":"ALL_NEW"}"#,
                "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes",
            ),
            (
                r#"{"TableName":"abc","Item":{},"ReturnValues":"ALL_NEW"}"#,
                "1 validation error detected: ReturnValues can only be ALL_OLD or NONE",
            ),
            (
                r#"{"TableName":"abc","Item":{},"ConditionExpression":"","ExpressionAttributeValues":{}}"#,
                "1 validation error detected: ExpressionAttributeValues must not be empty",
            ),
            (
                r#"{"TableName":"abc","Item":{},"ConditionExpression":""}"#,
                "1 validation error detected: Invalid ConditionExpression: The expression can not be empty;",
            ),
            (
                r##"{"TableName":"abc","Item":{},"ConditionExpression":"attribute_exists(a)","ExpressionAttributeNames":{"#x":"b"}}"##,
                "1 validation error detected: Value provided in ExpressionAttributeNames unused in expressions: keys: {#x}",
            ),
            (
                r#"{"TableName":"abc","Item":{},"Expected":{"a":{}}}"#,
                "1 validation error detected: One or more parameter values were invalid: Value must be provided when Exists is null for Attribute: a",
            ),
            (
                r#"{"TableName":"abc","Item":{},"Expected":{"a":{}},"ConditionalOperator":"OR"}"#,
                "1 validation error detected: ConditionalOperator can only be used when Filter or Expected has two or more elements",
            ),
        ] {
            assert_eq!(refused(body), text, "{body}");
        }
    }

    #[test]
    fn a_whole_request_is_understood() {
        let body = r#"{"TableName":"abc","Item":{"a":{"S":"x"}},"ConditionExpression":"attribute_not_exists(a)","ReturnValues":"ALL_OLD","ReturnValuesOnConditionCheckFailure":"ALL_OLD"}"#;
        let put = check(input::read(body.as_bytes()).expect("well-formed")).expect("valid");
        assert_eq!(put.table, "abc");
        assert!(put.old_on_failure);
        assert!(put.condition.is_some());
        assert_eq!(put.returning, homeport_store::Returning::AllOld);
    }
}
