//! Scan: reads a page of all items of a table or index.

use homeport_item::schema::KeyError;
use homeport_store::{self as store, Segment};

use super::page_input::{CheckedPage, PageInput, ScanInput};
use super::reading::{self, PageResponse, Select};
use crate::expressions;
use crate::failure::Failure;
use crate::input::Integer;
use crate::service::Service;

pub(crate) async fn run(
    service: &Service,
    ScanInput(input): ScanInput<'_>,
) -> Result<Vec<u8>, Failure> {
    let (checked, segment) = check(input)?;
    service
        .run_page(checked.limit, move |service| {
            read(service, checked, segment)
        })
        .await
}

fn check(input: PageInput<'_>) -> Result<(CheckedPage, Option<Segment>), Failure> {
    let mut found = None;
    let checked = input.check(|input| {
        found = segment(input.segment, input.total_segments)?;
        Ok(())
    })?;
    Ok((checked, found))
}

fn read(
    service: &Service,
    checked: CheckedPage,
    segment: Option<Segment>,
) -> Result<Vec<u8>, Failure> {
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
    let attributes = checked.select.attributes();
    let scan = store::Scan {
        table: checked.table,
        index: checked.index,
        filter: checked.filter,
        projection: checked.projection,
        limit: checked.limit,
        start: checked.start,
        segment,
        consistent: checked.consistent,
        count_only: checked.select == Select::Count,
    };
    let page = service.engine().scan_stored_with(&scan, attributes)?;
    PageResponse {
        table: &scan.table,
        index,
        projection: scan.projection.as_ref(),
        select: checked.select,
        consistent: checked.consistent,
        capacity: checked.capacity,
    }
    .write(&page)
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
    fn invalid_scans_get_dynamodb_errors() {
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
            let ScanInput(input) = input::read(body.as_bytes()).expect("well-formed");
            let failure = check(input).expect_err("refused");
            assert_eq!(failure.text(), Some(text), "{body}");
        }
    }
}
