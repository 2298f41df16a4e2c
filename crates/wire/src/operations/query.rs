//! Query: a page of one partition of a table or index.

use homeport_item::expression::{
    Condition, ExpressionError, KeyCondition, KeyConditions, Projection, SortCondition,
};
use homeport_item::schema::KeySchema;
use homeport_item::{Item, Value};
use homeport_store as store;
use serde::Deserialize;

use super::reading::{self, INLINE_ITEMS_MAX, PageAnswer, Select};
use crate::access::{self, Expressions, Permission, Request, RequestContext, Resources, Values};
use crate::capacity::Wanted;
use crate::constraints::{Constraints, RETURN_CAPACITY, SELECT};
use crate::expressions;
use crate::failure::Failure;
use crate::input::{Attribute, Attributes, Flag, Integer, Mapping, Text};
use crate::legacy;
use crate::service::Service;
use crate::table_name;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Input<'a> {
    #[serde(borrow)]
    table_name: Option<Text<'a>>,
    #[serde(borrow)]
    index_name: Option<Text<'a>>,
    #[serde(borrow)]
    key_condition_expression: Option<Text<'a>>,
    #[serde(borrow)]
    filter_expression: Option<Text<'a>>,
    #[serde(borrow)]
    projection_expression: Option<Text<'a>>,
    #[serde(borrow)]
    expression_attribute_names: Option<Mapping<'a, Text<'a>>>,
    #[serde(borrow)]
    expression_attribute_values: Option<Mapping<'a, Attribute>>,
    #[serde(borrow)]
    select: Option<Text<'a>>,
    limit: Option<Integer>,
    consistent_read: Option<Flag>,
    scan_index_forward: Option<Flag>,
    exclusive_start_key: Option<Attributes>,
    #[serde(borrow)]
    return_consumed_capacity: Option<Text<'a>>,
    #[serde(borrow)]
    attributes_to_get: Option<legacy::AttributesToGet<'a>>,
    #[serde(borrow)]
    query_filter: Option<legacy::Conditions<'a>>,
    #[serde(borrow)]
    conditional_operator: Option<Text<'a>>,
    #[serde(borrow)]
    key_conditions: Option<legacy::Conditions<'a>>,
}

/// What is asked of the keys, in either form.
#[derive(Debug)]
enum Asked {
    Expression(KeyConditions),
    Legacy(legacy::KeyConditions),
}

impl Asked {
    fn bind(self, keys: &KeySchema) -> Result<KeyCondition, Failure> {
        match self {
            Self::Expression(conditions) => Ok(conditions.bind(keys)?),
            Self::Legacy(conditions) => conditions.bind(keys),
        }
    }
}

/// A request as far as it can be checked without its table.
#[derive(Debug)]
struct Checked {
    table: String,
    index: Option<String>,
    key_conditions: Asked,
    filter: Option<Condition>,
    /// What the filter looks at, where it is one from before expressions.
    legacy_filter_names: Vec<String>,
    projection: Option<Projection>,
    select: Select,
    limit: Option<usize>,
    start: Option<Item>,
    descending: bool,
    consistent: bool,
    capacity: Wanted,
}

impl<'a> Request<'a> for Input<'a> {
    fn permissions(&self, resources: &Resources<'_>) -> Vec<Permission> {
        let (table, index) = (self.table_name.as_ref(), self.index_name.as_ref());
        let named = self.projection_expression.is_some() || self.attributes_to_get.is_some();
        let expressions = Expressions {
            names: self.expression_attribute_names.as_ref(),
            values: self.expression_attribute_values.as_ref(),
            filter: self.filter_expression.as_ref(),
            key_condition: self.key_condition_expression.as_ref(),
            projection: self.projection_expression.as_ref(),
            ..Expressions::default()
        };
        let partition =
            resources.partition_name(table.map_or("", Text::as_str), index.map(Text::as_str));
        let leading_keys = match (partition, &self.key_condition_expression) {
            (None, _) => Values::Unknown,
            (Some(name), Some(_)) => expressions.partition(&name),
            (Some(name), None) => legacy::partition(self.key_conditions.as_ref(), &name),
        };
        let context = RequestContext {
            leading_keys,
            attributes: Values::keys(self.key_conditions.as_ref())
                .with(Values::keys(self.query_filter.as_ref()))
                .with(access::listed(self.attributes_to_get.as_ref()))
                .with(expressions.attributes()),
            select: Values::select(self.select.as_ref(), named, index.is_some()),
            return_consumed_capacity: Values::given(self.return_consumed_capacity.as_ref()),
            ..RequestContext::default()
        };
        vec![resources.index(table, index).with(context)]
    }
}

pub(super) async fn run(service: &Service, input: Input<'_>) -> Result<Vec<u8>, Failure> {
    let checked = check(input)?;
    if checked.limit.is_some_and(|limit| limit <= INLINE_ITEMS_MAX) {
        return answer(service, checked);
    }
    let service = service.clone();
    tokio::task::spawn_blocking(move || answer(&service, checked))
        .await
        .map_err(|error| Failure::internal(&error))?
}

fn answer(service: &Service, checked: Checked) -> Result<Vec<u8>, Failure> {
    let view = service.engine().table(&checked.table)?;
    let schema = view.schema();
    let index = reading::index(schema, checked.index.as_deref(), checked.consistent)?;
    let keys = index.map_or(&schema.key, |index| &index.key);
    let key_condition = checked.key_conditions.bind(keys)?;
    let names = checked.legacy_filter_names.iter();
    legacy::check_filter_keys(keys, names.map(String::as_str))?;
    let finds_one = index.is_none() && pins_whole_key(keys, &key_condition);
    if let Some(start) = &checked.start {
        let fits_table = index.is_some() || keys.exact_values(start).is_ok();
        if fits_table {
            check_start(keys, &key_condition, start, finds_one)?;
        }
    }
    if let Some(projection) = &checked.projection {
        expressions::check_key_paths(schema, &projection.paths)?;
    }
    let attributes = reading::attributes(index, checked.select)?;
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
    PageAnswer {
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
fn pins_whole_key(keys: &KeySchema, condition: &KeyCondition) -> bool {
    match &condition.sort {
        Some((_, sort)) => matches!(sort, SortCondition::Equal(_)),
        None => keys.sort.is_none(),
    }
}

/// Checks that a start key lies within the query's range. The engine refuses one in another partition; here that is only
/// checked with a condition on the sort key, for which DynamoDB has another message.
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
        .map(|(name, sort)| start.get(name).is_some_and(|value| sort.holds(value)));
    match in_range {
        Some(false) => Err(Failure::validation(
            "The provided starting key does not match the range key predicate",
        )),
        Some(true) if finds_one || !in_partition => Err(Failure::not_restartable()),
        None if finds_one && in_partition => Err(Failure::not_restartable()),
        _ => Ok(()),
    }
}

fn check(input: Input<'_>) -> Result<Checked, Failure> {
    let mut constraints = Constraints::new();
    let table = table_name::of_items(input.table_name.as_ref(), &mut constraints)?.to_owned();
    if input.limit.is_some_and(|Integer(limit)| limit < 1) {
        // Named as the request spells it and without its value, unlike in a scan.
        constraints.unnamed(
            "Value at 'Limit' failed to satisfy constraint: Member must have value greater than or equal to 1",
        );
    }
    constraints.one_of(
        "returnConsumedCapacity",
        input.return_consumed_capacity.as_ref(),
        RETURN_CAPACITY,
    );
    constraints.one_of("select", input.select.as_ref(), SELECT);
    constraints.index_name("indexName", input.index_name.as_ref());
    legacy::constrain_names(
        &mut constraints,
        "attributesToGet",
        input.attributes_to_get.as_ref(),
    );
    legacy::constrain(
        &mut constraints,
        "keyConditions",
        input.key_conditions.as_ref(),
    );
    legacy::constrain(&mut constraints, "queryFilter", input.query_filter.as_ref());
    let filters = input
        .query_filter
        .as_ref()
        .map_or(0, |filter| filter.0.len());
    let join = legacy::join(input.conditional_operator.as_ref(), filters);
    if filters > 1 {
        // An operator that is none is reported before the constraints, and alone.
        join.clone()?;
    }
    constraints.finish()?;
    expressions::check_parameters(
        &[
            ("FilterExpression", input.filter_expression.is_some()),
            (
                "KeyConditionExpression",
                input.key_condition_expression.is_some(),
            ),
        ],
        &[(
            "ProjectionExpression",
            input.projection_expression.is_some(),
        )],
        &[
            ("AttributesToGet", input.attributes_to_get.is_some()),
            ("QueryFilter", input.query_filter.is_some()),
            ("ConditionalOperator", input.conditional_operator.is_some()),
            // Key conditions may stand beside expressions, as long as none is about the keys too.
            (
                "KeyConditions",
                input.key_conditions.is_some() && input.key_condition_expression.is_some(),
            ),
        ],
        input.expression_attribute_names.is_some(),
        input.expression_attribute_values.is_some(),
    )?;
    let join = join?;
    legacy::check_values(input.query_filter.as_ref(), expressions::Values::Newer)?;
    legacy::check_values(input.key_conditions.as_ref(), expressions::Values::Newer)?;
    let legacy_filter = legacy::filter(input.query_filter.as_ref(), join)?;
    let whole = legacy::projection(input.attributes_to_get.as_ref())?;
    let start = reading::start_key(input.exclusive_start_key, expressions::Values::Newer)?;
    if input.key_condition_expression.is_none() && input.key_conditions.is_none() {
        return Err(Failure::validation(
            "Either the KeyConditions or KeyConditionExpression parameter must be specified in the request.",
        ));
    }
    let select = Select::of(
        input.select.as_ref(),
        reading::projecting(
            input.projection_expression.is_some(),
            input.attributes_to_get.is_some(),
        ),
        input.index_name.is_some(),
    )
    .map_err(|text| Failure::validation(format!("1 validation error detected: {text}")))?;
    let mut placeholders = expressions::placeholders(
        input.expression_attribute_names.as_ref(),
        input.expression_attribute_values.as_ref(),
        expressions::Values::Newer,
    )?;
    // Syntax errors are reported at once; operators that no key condition can have, only after errors in the other
    // expressions.
    let expression = match &input.key_condition_expression {
        Some(text) => match KeyConditions::parse(text.as_str(), &mut placeholders) {
            Err(error @ ExpressionError::Invalid { .. }) => return Err(error.into()),
            parsed => Some(parsed),
        },
        None => None,
    };
    let filter = expressions::filter(input.filter_expression.as_ref(), &mut placeholders)?;
    let projection =
        expressions::projection(input.projection_expression.as_ref(), &mut placeholders)?;
    let expression = expression.transpose()?;
    placeholders.check_all_used()?;
    let key_conditions = match (expression, &input.key_conditions) {
        (Some(expression), _) => Asked::Expression(expression),
        (None, Some(given)) => Asked::Legacy(legacy::KeyConditions::read(given)?),
        // One of them has been seen to be there.
        (None, None) => Asked::Expression(KeyConditions::new(Vec::new())),
    };
    let legacy_filter_names = match &input.query_filter {
        Some(filter) => filter.0.iter().map(|(name, _)| name.to_string()).collect(),
        None => Vec::new(),
    };
    Ok(Checked {
        table,
        index: input.index_name.map(|name| name.0.into_owned()),
        key_conditions,
        filter: filter.or(legacy_filter),
        legacy_filter_names,
        projection: projection.or(whole),
        select,
        limit: input.limit.and_then(|limit| usize::try_from(limit.0).ok()),
        start,
        descending: input.scan_index_forward.is_some_and(|flag| !flag.0),
        consistent: input.consistent_read.is_some_and(|flag| flag.0),
        capacity: Wanted::of(input.return_consumed_capacity.as_ref()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input;

    #[test]
    fn bad_requests_are_refused_in_dynamodb_s_order() {
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
            let input = input::read(body.as_bytes()).expect("well-formed");
            let failure = check(input).expect_err("refused");
            assert_eq!(failure.text(), Some(text), "{body}");
        }
    }
}
