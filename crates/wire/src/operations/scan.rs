//! Scan: a page of all items of a table or index.

use homeport_item::Item;
use homeport_item::expression::{Condition, Projection};
use homeport_item::schema::KeyError;
use homeport_store::{self as store, Segment};
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

const SEGMENTS_MAX: i64 = 1_000_000;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Input<'a> {
    #[serde(borrow)]
    table_name: Option<Text<'a>>,
    #[serde(borrow)]
    index_name: Option<Text<'a>>,
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
    segment: Option<Integer>,
    total_segments: Option<Integer>,
    consistent_read: Option<Flag>,
    exclusive_start_key: Option<Attributes>,
    #[serde(borrow)]
    return_consumed_capacity: Option<Text<'a>>,
    #[serde(borrow)]
    attributes_to_get: Option<legacy::AttributesToGet<'a>>,
    #[serde(borrow)]
    scan_filter: Option<legacy::Conditions<'a>>,
    #[serde(borrow)]
    conditional_operator: Option<Text<'a>>,
}

#[derive(Debug)]
struct Checked {
    table: String,
    index: Option<String>,
    filter: Option<Condition>,
    projection: Option<Projection>,
    select: Select,
    limit: Option<usize>,
    start: Option<Item>,
    segment: Option<Segment>,
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
            projection: self.projection_expression.as_ref(),
            ..Expressions::default()
        };
        let context = RequestContext {
            attributes: Values::keys(self.scan_filter.as_ref())
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
    if let Some(projection) = &checked.projection {
        expressions::check_key_paths(schema, &projection.paths)?;
    }
    if let Some(filter) = &checked.filter {
        expressions::check_key_paths(schema, filter.paths())?;
    }
    if let Some(start) = &checked.start
        && index.is_none()
        && let Err(KeyError::DoesNotMatchSchema | KeyError::Missing(_)) =
            schema.key.exact_values(start)
    {
        return Err(Failure::validation(
            "The provided starting key is invalid: The provided key element does not match the schema",
        ));
    }
    let attributes = reading::attributes(index, checked.select)?;
    let scan = store::Scan {
        table: checked.table,
        index: checked.index,
        filter: checked.filter,
        projection: checked.projection,
        limit: checked.limit,
        start: checked.start,
        segment: checked.segment,
        consistent: checked.consistent,
        count_only: checked.select == Select::Count,
    };
    let page = service.engine().scan_stored_with(&scan, attributes)?;
    PageAnswer {
        table: &scan.table,
        index,
        projection: scan.projection.as_ref(),
        select: checked.select,
        consistent: checked.consistent,
        capacity: checked.capacity,
    }
    .write(&page)
}

fn check(input: Input<'_>) -> Result<Checked, Failure> {
    let mut constraints = Constraints::new();
    let table = table_name::of_items(input.table_name.as_ref(), &mut constraints)?.to_owned();
    constraints.at_least("limit", input.limit, 1);
    constraints.one_of(
        "returnConsumedCapacity",
        input.return_consumed_capacity.as_ref(),
        RETURN_CAPACITY,
    );
    constraints.at_least("segment", input.segment, 0);
    constraints.at_most("segment", input.segment, SEGMENTS_MAX - 1);
    constraints.one_of("select", input.select.as_ref(), SELECT);
    constraints.at_least("totalSegments", input.total_segments, 1);
    constraints.at_most("totalSegments", input.total_segments, SEGMENTS_MAX);
    constraints.index_name("indexName", input.index_name.as_ref());
    legacy::constrain_names(
        &mut constraints,
        "attributesToGet",
        input.attributes_to_get.as_ref(),
    );
    legacy::constrain(&mut constraints, "scanFilter", input.scan_filter.as_ref());
    constraints.finish()?;
    expressions::check_parameters(
        &[("FilterExpression", input.filter_expression.is_some())],
        &[(
            "ProjectionExpression",
            input.projection_expression.is_some(),
        )],
        &[
            ("AttributesToGet", input.attributes_to_get.is_some()),
            ("ScanFilter", input.scan_filter.is_some()),
            ("ConditionalOperator", input.conditional_operator.is_some()),
        ],
        input.expression_attribute_names.is_some(),
        input.expression_attribute_values.is_some(),
    )?;
    let join = legacy::join(
        input.conditional_operator.as_ref(),
        input
            .scan_filter
            .as_ref()
            .map_or(0, |filter| filter.0.len()),
    )?;
    legacy::check_values(input.scan_filter.as_ref(), expressions::Values::Older)?;
    let legacy_filter = legacy::filter(input.scan_filter.as_ref(), join)?;
    let whole = legacy::projection(input.attributes_to_get.as_ref())?;
    let start = reading::start_key(input.exclusive_start_key, expressions::Values::Older)?;
    let segment = segment(input.segment, input.total_segments)?;
    let select = Select::of(
        input.select.as_ref(),
        reading::projecting(
            input.projection_expression.is_some(),
            input.attributes_to_get.is_some(),
        ),
        input.index_name.is_some(),
    )
    .map_err(Failure::validation)?;
    let mut placeholders = expressions::placeholders(
        input.expression_attribute_names.as_ref(),
        input.expression_attribute_values.as_ref(),
        expressions::Values::Older,
    )?;
    let filter = expressions::filter(input.filter_expression.as_ref(), &mut placeholders)?;
    let projection =
        expressions::projection(input.projection_expression.as_ref(), &mut placeholders)?;
    placeholders.check_all_used()?;
    Ok(Checked {
        table,
        index: input.index_name.map(|name| name.0.into_owned()),
        filter: filter.or(legacy_filter),
        projection: projection.or(whole),
        select,
        limit: input.limit.and_then(|limit| usize::try_from(limit.0).ok()),
        start,
        segment,
        consistent: input.consistent_read.is_some_and(|flag| flag.0),
        capacity: Wanted::of(input.return_consumed_capacity.as_ref()),
    })
}

fn segment(segment: Option<Integer>, total: Option<Integer>) -> Result<Option<Segment>, Failure> {
    let (segment, total) = match (segment, total) {
        (None, None) => return Ok(None),
        (Some(_), None) => {
            return Err(Failure::validation(
                "The TotalSegments parameter is required but was not present in the request when Segment parameter is present",
            ));
        }
        (None, Some(_)) => {
            return Err(Failure::validation(
                "The Segment parameter is required but was not present in the request when parameter TotalSegments is present",
            ));
        }
        (Some(Integer(segment)), Some(Integer(total))) => (segment, total),
    };
    if segment >= total {
        return Err(Failure::validation(format!(
            "The Segment parameter is zero-based and must be less than parameter TotalSegments: Segment: {segment} is not less than TotalSegments: {total}"
        )));
    }
    match (u32::try_from(segment), u32::try_from(total)) {
        (Ok(index), Ok(total)) => Ok(Some(Segment { index, total })),
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input;

    #[test]
    fn bad_requests_are_refused() {
        for (body, text) in [
            (
                r#"{"TableName":"abc","Segment":0}"#,
                "The TotalSegments parameter is required but was not present in the request when Segment parameter is present",
            ),
            (
                r#"{"TableName":"abc","TotalSegments":4}"#,
                "The Segment parameter is required but was not present in the request when parameter TotalSegments is present",
            ),
            (
                r#"{"TableName":"abc","Segment":5,"TotalSegments":5}"#,
                "The Segment parameter is zero-based and must be less than parameter TotalSegments: Segment: 5 is not less than TotalSegments: 5",
            ),
            (
                r#"{"TableName":"abc","Limit":0}"#,
                "1 validation error detected: Value '0' at 'limit' failed to satisfy constraint: Member must have value greater than or equal to 1",
            ),
            (
                r#"{"TableName":"abc","TotalSegments":1000001,"Segment":0}"#,
                "1 validation error detected: Value '1000001' at 'totalSegments' failed to satisfy constraint: Member must have value less than or equal to 1000000",
            ),
            (
                r#"{"TableName":"abc","Select":"COUNT","ProjectionExpression":"a"}"#,
                "Cannot specify the ProjectionExpression when choosing to get only the Count",
            ),
            (
                r#"{"TableName":"abc","ExpressionAttributeValues":{":a":{"S":"a"}}}"#,
                "ExpressionAttributeValues can only be specified when using expressions: FilterExpression is null",
            ),
        ] {
            let input = input::read(body.as_bytes()).expect("well-formed");
            let failure = check(input).expect_err("refused");
            assert_eq!(failure.text(), Some(text), "{body}");
        }
    }
}
