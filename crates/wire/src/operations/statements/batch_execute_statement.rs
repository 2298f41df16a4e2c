//! BatchExecuteStatement: several independent PartiQL statements, either all reads or all writes.

use std::collections::HashSet;

use homeport_item::{Item, json};
use homeport_partiql::{Select, Statement};
use homeport_store::{Action, Get};
use serde::Deserialize;
use tokio::task::JoinSet;

use super::execute_statement::failure;
use crate::access::{Permission, Request, Resources};
use crate::capacity::{self, Consumed, ConsumedByTable, Split, Wanted};
use crate::constraints::{Constraints, RETURN_CAPACITY};
use crate::failure::Failure;
use crate::input::{Element, List, Text};
use crate::output::{self, Object};
use crate::partiql::{self, AddressError, StatementInput};
use crate::service::Service;

const STATEMENTS_MAX: usize = 25;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Input<'a> {
    #[serde(borrow)]
    statements: Option<List<Element<StatementInput<'a>>>>,
    #[serde(borrow)]
    return_consumed_capacity: Option<Text<'a>>,
}

/// A statement that passed its checks.
enum Ready {
    Get { get: Get, select: Select },
    Write { action: Action, is_insert: bool },
}

/// The outcome of a statement.
struct Outcome {
    table: Option<String>,
    item: Option<Item>,
    consumed: Option<Consumed>,
    failure: Option<Failure>,
}

impl<'a> Request<'a> for Input<'a> {
    fn permissions(&self, resources: &Resources<'_>) -> Vec<Permission> {
        let statements = self.statements.iter();
        statements
            .flat_map(|list| list.first(STATEMENTS_MAX))
            .map(|Element(given)| given.permission(resources))
            .collect()
    }
}

pub(crate) async fn run(service: &Service, input: Input<'_>) -> Result<Vec<u8>, Failure> {
    check(&input)?;
    let wanted = Wanted::of(input.return_consumed_capacity.as_ref());
    let given = input.statements.map_or(Vec::new(), |list| list.0);
    let parsed: Vec<Result<Statement, Failure>> = given
        .iter()
        .map(|Element(given)| {
            let parameters = partiql::parameters(given.parameters.as_ref())?;
            partiql::parse(given.statement.as_ref(), &parameters)
        })
        .collect();
    let mut statements = parsed.iter().flatten();
    let reads = statements.clone().filter(|statement| statement.is_read());
    if reads.count() > 0 && !statements.all(Statement::is_read) {
        return Err(Failure::validation(
            "Read and write requests together in the same batch is not supported.",
        ));
    }
    let mut ready = Vec::with_capacity(parsed.len());
    for (statement, Element(given)) in parsed.into_iter().zip(&given) {
        ready.push(statement.and_then(|statement| prepare(service, statement, given)));
    }
    refuse_repeats(service, &ready)?;
    let outcomes = run_all(service, ready, wanted.anything()).await?;
    Ok(respond(&outcomes, wanted))
}

fn check(input: &Input<'_>) -> Result<(), Failure> {
    let mut constraints = Constraints::new();
    constraints.one_of(
        "returnConsumedCapacity",
        input.return_consumed_capacity.as_ref(),
        RETURN_CAPACITY,
    );
    let statements = input.statements.as_ref();
    partiql::constrain_list(&mut constraints, "statements", statements, STATEMENTS_MAX);
    constraints.finish()
}

fn prepare(
    service: &Service,
    statement: Statement,
    given: &StatementInput<'_>,
) -> Result<Ready, Failure> {
    let is_insert = partiql::is_insert(&statement);
    match statement {
        Statement::Select(select) => {
            let unkeyed = || {
                Failure::validation(
                    "Select statements within BatchExecuteStatement must specify the primary key in the where clause.",
                )
            };
            let get = by_key(service, &select, unkeyed)?;
            let consistent = given.consistent_read.is_some_and(|flag| flag.0);
            Ok(Ready::Get {
                get: Get { consistent, ..get },
                select,
            })
        }
        Statement::Exists(_) => Err(Failure::validation(
            "EXISTS can only be used in ExecuteTransaction write requests.",
        )),
        statement => {
            let engine = service.engine();
            partiql::check_inserted_key(engine, &statement)?;
            let action = partiql::action(engine, statement, partiql::old_on_failure(given))?;
            Ok(Ready::Write { action, is_insert })
        }
    }
}

/// The read of a SELECT of one item. Any other SELECT is rejected.
pub(crate) fn by_key(
    service: &Service,
    select: &Select,
    unkeyed: impl Fn() -> Failure,
) -> Result<Get, Failure> {
    let view = service.engine().table(&select.target.table)?;
    let index = select.target.index.as_deref();
    if let Some(index) = index.and_then(|name| view.schema().index(name)) {
        partiql::refuse_several(index)?;
    }
    if index.is_some() || !select.order.is_empty() {
        return Err(unkeyed());
    }
    let named = partiql::addressed(&view.schema().key, select.condition.clone());
    match named {
        Ok(partiql::Addressed { key, rest: None }) => {
            Ok(Get::new(select.target.table.as_str(), key))
        }
        Ok(_) => Err(unkeyed()),
        Err(error @ (AddressError::OtherType { .. } | AddressError::NotKeyType { .. })) => {
            Err(error.into())
        }
        Err(AddressError::Ambiguous(_) | AddressError::Incomplete) => Err(unkeyed()),
    }
}

/// Rejects two statements on the same item.
fn refuse_repeats(service: &Service, ready: &[Result<Ready, Failure>]) -> Result<(), Failure> {
    let mut seen = HashSet::new();
    for statement in ready.iter().flatten() {
        let target = match statement {
            Ready::Get { get, .. } => (get.table.clone(), get.key.clone()),
            Ready::Write { action, .. } => partiql::target(service.engine(), action)?,
        };
        if !seen.insert(target) {
            return Err(Failure::validation(
                "Provided list of item keys contains duplicates",
            ));
        }
    }
    Ok(())
}

/// Runs all statements concurrently, so that writes share their syncs.
async fn run_all(
    service: &Service,
    ready: Vec<Result<Ready, Failure>>,
    measure: bool,
) -> Result<Vec<Outcome>, Failure> {
    let mut running = JoinSet::new();
    let mut outcomes: Vec<Option<Outcome>> = Vec::with_capacity(ready.len());
    for (at, statement) in ready.into_iter().enumerate() {
        let service = service.clone();
        match statement {
            Err(failure) => outcomes.push(Some(Outcome::failed(None, failure))),
            Ok(ready) => {
                outcomes.push(None);
                running.spawn(async move { (at, run_one(&service, ready, measure).await) });
            }
        }
    }
    while let Some(finished) = running.join_next().await {
        let (at, outcome) = finished.map_err(|error| Failure::internal(&error))?;
        outcomes[at] = Some(outcome);
    }
    Ok(outcomes.into_iter().flatten().collect())
}

async fn run_one(service: &Service, ready: Ready, measure: bool) -> Outcome {
    match ready {
        Ready::Get { get, select } => {
            let read = || -> Result<(Option<Item>, usize), Failure> {
                match service.engine().get_stored(&get)? {
                    None => Ok((None, 0)),
                    Some(item) => {
                        let size = item.size()?;
                        Ok((Some(partiql::labelled(item, &select.projection)?), size))
                    }
                }
            };
            match read() {
                Ok((item, size)) => Outcome {
                    table: Some(get.table.clone()),
                    item,
                    consumed: Some(Consumed::of_table(capacity::read_units(
                        size,
                        get.consistent,
                    ))),
                    failure: None,
                },
                Err(failure) => Outcome::failed(Some(get.table.clone()), failure),
            }
        }
        Ready::Write { action, is_insert } => {
            let table = action.table().to_owned();
            match service.engine().write(action, measure).await {
                Ok(written) => Outcome {
                    table: Some(table),
                    item: written.attributes,
                    consumed: written.cost.as_ref().map(Consumed::of_write),
                    failure: None,
                },
                Err(error) => Outcome::failed(Some(table), failure(error, is_insert)),
            }
        }
    }
}

impl Outcome {
    /// The table is only named if the statement was run.
    fn failed(table: Option<String>, failure: Failure) -> Self {
        Self {
            table: table.filter(|_| !failure.is_validation()),
            item: None,
            consumed: None,
            failure: Some(failure),
        }
    }
}

fn respond(outcomes: &[Outcome], wanted: Wanted) -> Vec<u8> {
    let mut out = Vec::with_capacity(256);
    let mut object = Object::new(&mut out);
    output::list(object.member("Responses"), outcomes, |outcome, out| {
        let mut response = Object::new(out);
        if let Some(failure) = &outcome.failure {
            failure.write_of_statement(response.member("Error"));
        }
        if let Some(table) = &outcome.table {
            response.text("TableName", table);
        }
        if let Some(item) = &outcome.item {
            json::write_item(item, response.member("Item"));
        }
        response.end();
    });
    let mut tables = ConsumedByTable::default();
    for outcome in outcomes {
        if let (Some(table), Some(consumed)) = (&outcome.table, &outcome.consumed) {
            tables.of(table).add(consumed);
        }
    }
    tables.write(&mut object, wanted, Split::None);
    object.end();
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input;

    #[test]
    fn invalid_batches_get_dynamodb_errors() {
        let many = vec![r#"{"Statement":"SELECT"}"#; 26].join(",");
        let too_many = format!(r#"{{"Statements":[{many}]}}"#);
        for (body, text) in [
            (
                r#"{"Statements":[]}"#,
                "1 validation error detected: Value '[]' at 'statements' failed to satisfy constraint: Member must have length greater than or equal to 1",
            ),
            (
                &too_many,
                "1 validation error detected: Value '[...]' at 'statements' failed to satisfy constraint: Member must have length less than or equal to 25",
            ),
            (
                r#"{"Statements":[{},{"Statement":"x","Parameters":[]}]}"#,
                "2 validation errors detected: Value null at 'statements.1.member.statement' failed to satisfy constraint: Member must not be null; Value '[]' at 'statements.2.member.parameters' failed to satisfy constraint: Member must have length greater than or equal to 1",
            ),
        ] {
            let input: Input<'_> = input::read(body.as_bytes()).expect("well-formed");
            let failure = check(&input).expect_err("refused");
            assert_eq!(failure.text(), Some(text), "{body}");
        }
    }
}
