//! Query: reads a page of one partition of a table or index.

use homeport_item::expression::{KeyCondition, SortCondition};
use homeport_item::schema::KeySchema;
use homeport_item::{Item, Value};
use homeport_store as store;

use super::page_input::{CheckedPage, PageInput, QueryInput};
use super::reading::{self, PageResponse, Select};
use crate::expressions;
use crate::failure::Failure;
use crate::legacy;
use crate::service::Service;

pub(crate) async fn run(
    service: &Service,
    QueryInput(input): QueryInput<'_>,
) -> Result<Vec<u8>, Failure> {
    let checked = input.check(PageInput::require_key_condition)?;
    service
        .run_page(checked.limit, move |service| read(service, checked))
        .await
}

fn read(service: &Service, checked: CheckedPage) -> Result<Vec<u8>, Failure> {
    let view = service.engine().table(&checked.table)?;
    let schema = view.schema();
    let index = reading::index(schema, checked.index.as_deref(), checked.consistent)?;
    let keys = index.map_or(&schema.key, |index| &index.key);
    let key_condition = checked.keys.bind(keys)?;
    let names = checked.legacy_filter_names.iter();
    legacy::check_filter_keys(keys, names.map(String::as_str))?;
    let finds_one = index.is_none() && fixes_whole_key(keys, &key_condition);
    if let Some(start) = &checked.start {
        let fits_table = index.is_some() || keys.exact_values(start).is_ok();
        if fits_table {
            check_start(keys, &key_condition, start, finds_one)?;
        }
    }
    if let Some(projection) = &checked.projection {
        expressions::check_key_paths(schema, &projection.paths)?;
    }
    let attributes = checked.select.attributes();
    let query = store::Query {
        table: checked.table,
        index: checked.index,
        key_condition,
        filter: checked.filter,
        projection: checked.projection,
        limit: checked.limit,
        start: checked.start,
        descending: checked.descending,
        consistent: checked.consistent,
        count_only: checked.select == Select::Count,
    };
    let mut page = service.engine().query_stored_with(&query, attributes)?;
    if finds_one {
        page.next = None;
    }
    PageResponse {
        table: &query.table,
        index,
        projection: query.projection.as_ref(),
        select: checked.select,
        consistent: checked.consistent,
        capacity: checked.capacity,
    }
    .write(&page)
}

/// Whether a condition on a table's key matches one item at most.
fn fixes_whole_key(keys: &KeySchema, condition: &KeyCondition) -> bool {
    match &condition.sort {
        Some((_, sort)) => matches!(sort, SortCondition::Equal(_)),
        None => keys.sort.is_none(),
    }
}

/// Checks that a start key lies within the range of the query. The engine rejects one in another partition; it is checked here
/// only with a condition on the sort key, for which DynamoDB has another message.
fn check_start(
    keys: &KeySchema,
    condition: &KeyCondition,
    start: &Item,
    finds_one: bool,
) -> Result<(), Failure> {
    let fits = |name: &str| {
        start
            .get(name)
            .is_some_and(|value| keys.check_attribute(name, value).is_ok())
    };
    if !keys.attributes().all(|attribute| fits(&attribute.name)) {
        return Ok(());
    }
    let is_at = |name: &str, value: &Value| start.get(name) == Some(value);
    let in_partition = is_at(&condition.partition_name, &condition.partition)
        && condition
            .rest
            .iter()
            .all(|(name, value)| is_at(name, value));
    let in_range = condition
        .sort
        .as_ref()
        .map(|(name, sort)| start.get(name).is_some_and(|value| sort.matches(value)));
    match in_range {
        Some(false) => Err(Failure::validation(
            "The provided starting key does not match the range key predicate",
        )),
        Some(true) if finds_one || !in_partition => Err(Failure::not_restartable()),
        None if finds_one && in_partition => Err(Failure::not_restartable()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input;

    #[test]
    fn invalid_queries_get_dynamodb_errors_in_order() {
        for (body, text) in [
            (
                r#"{"TableName":"abc","Limit":0,"Select":"X","IndexName":"a!"}"#,
                "4 validation errors detected: Value at 'Limit' failed to satisfy constraint: Member must have value greater than or equal to 1; Value 'X' at 'select' failed to satisfy constraint: Member must satisfy enum value set: [SPECIFIC_ATTRIBUTES, COUNT, ALL_ATTRIBUTES, ALL_PROJECTED_ATTRIBUTES]; Value 'a!' at 'indexName' failed to satisfy constraint: Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+; Value 'a!' at 'indexName' failed to satisfy constraint: Member must have length greater than or equal to 3",
            ),
            (
                r#"{"TableName":"abc"}"#,
                "Either the KeyConditions or KeyConditionExpression parameter must be specified in the request.",
            ),
            (
                r#"{"TableName":"abc","KeyConditions":{"a":{}},"QueryFilter":{"b":{}}}"#,
                "2 validation errors detected: Value null at 'keyConditions.a.member.comparisonOperator' failed to satisfy constraint: Member must not be null; Value null at 'queryFilter.b.member.comparisonOperator' failed to satisfy constraint: Member must not be null",
            ),
            (
                r#"{"TableName":"abc","KeyConditions":{}}"#,
                "Conditions can be of length 1 or 2 only",
            ),
            (
                r#"{"TableName":"abc","KeyConditions":{},"Select":"COUNT","AttributesToGet":["a"]}"#,
                "1 validation error detected: Cannot specify the AttributesToGet when choosing to get only the Count",
            ),
            (
                r#"{"TableName":"abc","QueryFilter":{"a":{"ComparisonOperator":"NULL"}},"ConditionalOperator":"OR"}"#,
                "ConditionalOperator can only be used when Filter or Expected has two or more elements",
            ),
            (
                r#"{"TableName":"abc","QueryFilter":{"a":{"ComparisonOperator":"NULL"}},"FilterExpression":"a = b"}"#,
                "Can not use both expression and non-expression parameters in the same request: Non-expression parameters: {QueryFilter} Expression parameters: {FilterExpression}",
            ),
            (
                r#"{"TableName":"abc","ExclusiveStartKey":{"a":{}}}"#,
                "The provided starting key is invalid: Supplied AttributeValue is empty, must contain exactly one of the supported datatypes",
            ),
            (
                r#"{"TableName":"abc","KeyConditionExpression":"a = :a","Select":"COUNT","ProjectionExpression":"a"}"#,
                "1 validation error detected: Cannot specify the ProjectionExpression when choosing to get only the Count",
            ),
            (
                r#"{"TableName":"abc","KeyConditionExpression":""}"#,
                "Invalid KeyConditionExpression: The expression can not be empty;",
            ),
            (
                r#"{"TableName":"abc","KeyConditionExpression":"a IN (:a)","ExpressionAttributeValues":{":a":{"S":"x"}}}"#,
                "Invalid operator used in KeyConditionExpression: IN",
            ),
            (
                r#"{"TableName":"abc","KeyConditionExpression":"a = :a","KeyConditions":{}}"#,
                "Can not use both expression and non-expression parameters in the same request: Non-expression parameters: {KeyConditions} Expression parameters: {KeyConditionExpression}",
            ),
        ] {
            let QueryInput(input) = input::read(body.as_bytes()).expect("well-formed");
            let checked = input.check(PageInput::require_key_condition);
            let failure = checked.expect_err("refused");
            assert_eq!(failure.text(), Some(text), "{body}");
        }
    }
}
