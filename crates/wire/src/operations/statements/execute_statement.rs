//! ExecuteStatement: one PartiQL statement.

use homeport_item::json;
use homeport_partiql::Statement;
use homeport_store::WriteError;
use serde::Deserialize;

use crate::access::{self, Permission, Request, Resources};
use crate::capacity::{Consumed, Wanted};
use crate::constraints::{Constraints, RETURN_CAPACITY};
use crate::failure::Failure;
use crate::input::{Attribute, Flag, Integer, List, Text};
use crate::output::{self, Object};
use crate::partiql::{self, Reading, Resume, StatementInput};
use crate::service::Service;

const TOKEN_MAX: usize = 32_768;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Input<'a> {
    #[serde(borrow)]
    statement: Option<Text<'a>>,
    parameters: Option<List<Attribute>>,
    consistent_read: Option<Flag>,
    #[serde(borrow)]
    next_token: Option<Text<'a>>,
    limit: Option<Integer>,
    #[serde(borrow)]
    return_consumed_capacity: Option<Text<'a>>,
    #[serde(borrow)]
    return_values_on_condition_check_failure: Option<Text<'a>>,
}

/// A request that passed every check that needs no table.
#[derive(Debug)]
struct Checked {
    statement: Statement,
    /// Identifies the statement in tokens.
    fingerprint: String,
    resume: Option<Resume>,
    limit: Option<usize>,
    consistent: bool,
    old_on_failure: bool,
    capacity: Wanted,
}

impl<'a> Request<'a> for Input<'a> {
    fn permissions(&self, resources: &Resources<'_>) -> Vec<Permission> {
        vec![access::statement_permission(
            resources,
            self.statement.as_ref(),
            self.parameters.as_ref(),
            self.return_values_on_condition_check_failure.as_ref(),
        )]
    }
}

pub(crate) async fn run(service: &Service, input: Input<'_>) -> Result<Vec<u8>, Failure> {
    let checked = check(input)?;
    match checked.statement {
        Statement::Select(select) => {
            let response = SelectResponse {
                table: select.target.table.clone(),
                fingerprint: checked.fingerprint,
                capacity: checked.capacity,
            };
            let reading = Reading {
                select,
                limit: checked.limit,
                consistent: checked.consistent,
                resume: checked.resume.unwrap_or_default(),
            };
            service
                .run_page(reading.limit, move |service| {
                    self::select(service, reading, &response)
                })
                .await
        }
        statement => write(service, statement, checked.old_on_failure, checked.capacity).await,
    }
}

/// The parameters of the response to a SELECT.
struct SelectResponse {
    table: String,
    fingerprint: String,
    capacity: Wanted,
}

fn select(
    service: &Service,
    reading: Reading,
    response: &SelectResponse,
) -> Result<Vec<u8>, Failure> {
    let page = reading.run(service.engine())?;
    let mut out = Vec::with_capacity(256);
    let mut object = Object::new(&mut out);
    output::list(object.member("Items"), &page.items, json::write_item);
    if let Some(next) = &page.next {
        object.text("NextToken", &next.token(&response.fingerprint)?);
        if let Some(start) = &next.start {
            json::write_item(start, object.member("LastEvaluatedKey"));
        }
    }
    page.consumed
        .write_member(&mut object, &response.table, response.capacity);
    object.end();
    Ok(out)
}

async fn write(
    service: &Service,
    statement: Statement,
    old_on_failure: bool,
    capacity: Wanted,
) -> Result<Vec<u8>, Failure> {
    if matches!(statement, Statement::Exists(_)) {
        return Err(Failure::validation(
            "EXISTS can only be used in ExecuteTransaction write requests.",
        ));
    }
    let table = statement.table().to_owned();
    let is_insert = partiql::is_insert(&statement);
    partiql::check_inserted_key(service.engine(), &statement)?;
    let action = partiql::action(service.engine(), statement, old_on_failure)?;
    let written = service.engine().write(action, capacity.anything()).await;
    let written = written.map_err(|error| failure(error, is_insert))?;
    let mut out = Vec::with_capacity(128);
    let mut object = Object::new(&mut out);
    output::list(
        object.member("Items"),
        &written.attributes,
        json::write_item,
    );
    if let Some(cost) = &written.cost {
        Consumed::of_write(cost).write_member(&mut object, &table, capacity);
    }
    object.end();
    Ok(out)
}

/// The failure of a statement that writes.
pub(crate) fn failure(error: WriteError, is_insert: bool) -> Failure {
    match error {
        WriteError::ConditionFailed { .. } if is_insert => Failure::duplicate_item(),
        other => other.into(),
    }
}

fn check(input: Input<'_>) -> Result<Checked, Failure> {
    let given = StatementInput {
        statement: input.statement,
        parameters: input.parameters,
        consistent_read: input.consistent_read,
        return_values_on_condition_check_failure: input.return_values_on_condition_check_failure,
    };
    let mut constraints = Constraints::new();
    constraints.at_least("limit", input.limit, 1);
    constraints.text_length("nextToken", input.next_token.as_ref(), 1, TOKEN_MAX);
    partiql::constrain(&mut constraints, "", &given, |constraints| {
        constraints.one_of(
            "returnConsumedCapacity",
            input.return_consumed_capacity.as_ref(),
            RETURN_CAPACITY,
        );
    });
    constraints.finish()?;
    let parameters = partiql::parameters(given.parameters.as_ref())?;
    let statement = partiql::parse(given.statement.as_ref(), &parameters)?;
    let text = given.statement.as_ref().map_or("", Text::as_str);
    let fingerprint = partiql::fingerprint(text, &parameters);
    let resume = match &input.next_token {
        None => None,
        Some(_) if !statement.is_read() => {
            return Err(Failure::validation(
                "NextToken is only valid on a SELECT statement",
            ));
        }
        Some(token) => Some(Resume::from_token(token.as_str(), &fingerprint)?),
    };
    Ok(Checked {
        statement,
        fingerprint,
        resume,
        limit: input.limit.and_then(|limit| usize::try_from(limit.0).ok()),
        consistent: given.consistent_read.is_some_and(|flag| flag.0),
        old_on_failure: partiql::old_on_failure(&given),
        capacity: Wanted::of(input.return_consumed_capacity.as_ref()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input;

    #[test]
    fn invalid_statements_get_dynamodb_errors_in_order() {
        for (body, text) in [
            (
                "{}",
                "1 validation error detected: Value null at 'statement' failed to satisfy constraint: Member must not be null",
            ),
            (
                r#"{"Statement":"","Limit":0,"Parameters":[],"ReturnConsumedCapacity":"X"}"#,
                "4 validation errors detected: Value '0' at 'limit' failed to satisfy constraint: Member must have value greater than or equal to 1; Value '' at 'statement' failed to satisfy constraint: Member must have length greater than or equal to 1; Value 'X' at 'returnConsumedCapacity' failed to satisfy constraint: Member must satisfy enum value set: [INDEXES, TOTAL, NONE]; Value '[]' at 'parameters' failed to satisfy constraint: Member must have length greater than or equal to 1",
            ),
            (
                r#"{"Statement":"nonsense here","Parameters":[{"N":"x"}]}"#,
                "The parameter cannot be converted to a numeric value: x",
            ),
            (
                r#"{"Statement":"SELECT"}"#,
                "Statement wasn't well formed, can't be processed: Unexpected term",
            ),
            (
                r#"{"Statement":"SELECT * FROM t","NextToken":"x"}"#,
                "Invalid NextToken",
            ),
            (
                r#"{"Statement":"DELETE FROM t WHERE a = 1","NextToken":"x"}"#,
                "NextToken is only valid on a SELECT statement",
            ),
        ] {
            let input = input::read(body.as_bytes()).expect("well-formed");
            let failure = check(input).expect_err("refused");
            assert_eq!(failure.text(), Some(text), "{body}");
        }
    }
}
