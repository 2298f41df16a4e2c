//! ExecuteTransaction: several PartiQL statements in one transaction, either all reads or all writes.

use std::collections::HashSet;

use homeport_item::json;
use homeport_item::schema::KeyError;
use homeport_partiql::Statement;
use homeport_store::{
    Action, CancelReason, Get, TRANSACTION_ACTIONS_MAX, TransactError, Transaction,
};
use serde::Deserialize;

use super::batch_execute_statement::by_key;
use crate::access::{Permission, Request, Resources};
use crate::capacity::Wanted;
use crate::constraints::{Constraints, RETURN_CAPACITY};
use crate::failure::Failure;
use crate::input::{Element, List, Text};
use crate::operations::items::transact_get_items;
use crate::operations::items::transact_write_items::{self, TOKEN_MAX};
use crate::output::Object;
use crate::partiql::{self, ActionError, AddressError, StatementInput};
use crate::service::Service;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Input<'a> {
    #[serde(borrow)]
    transact_statements: Option<List<Element<StatementInput<'a>>>>,
    #[serde(borrow)]
    client_request_token: Option<Text<'a>>,
    #[serde(borrow)]
    return_consumed_capacity: Option<Text<'a>>,
}

impl<'a> Request<'a> for Input<'a> {
    fn permissions(&self, resources: &Resources<'_>) -> Vec<Permission> {
        let statements = self.transact_statements.iter();
        statements
            .flat_map(|list| list.first(TRANSACTION_ACTIONS_MAX))
            .map(|Element(given)| given.permission(resources))
            .collect()
    }
}

pub(crate) async fn run(service: &Service, input: Input<'_>) -> Result<Vec<u8>, Failure> {
    check(&input)?;
    let wanted = Wanted::of(input.return_consumed_capacity.as_ref());
    let given = input.transact_statements.map_or(Vec::new(), |list| list.0);
    // DynamoDB checks all parameters before the first statement.
    let parameters = given
        .iter()
        .map(|Element(given)| partiql::parameters(given.parameters.as_ref()))
        .collect::<Result<Vec<_>, _>>()?;
    let statements = given
        .iter()
        .zip(&parameters)
        .enumerate()
        .map(|(at, (Element(given), parameters))| {
            parse(given, parameters).map_err(|failure| failure.in_statement(at))
        })
        .collect::<Result<Vec<_>, _>>()?;
    let reads = statements.iter().filter(|statement| statement.is_read());
    match reads.count() {
        0 => {
            let token = input.client_request_token.map(|token| token.0.into_owned());
            let old_on_failure: Vec<bool> = given
                .iter()
                .map(|Element(given)| partiql::old_on_failure(given))
                .collect();
            write(service, statements, &old_on_failure, token, wanted).await
        }
        count if count == statements.len() => {
            service
                .run_blocking(move |service| read(service, &statements, wanted))
                .await
        }
        _ => Err(Failure::validation(
            "ExecuteTransaction API does not support both read and write operations in the same request.",
        )),
    }
}

fn check(input: &Input<'_>) -> Result<(), Failure> {
    let mut constraints = Constraints::new();
    constraints.text_length(
        "clientRequestToken",
        input.client_request_token.as_ref(),
        1,
        TOKEN_MAX,
    );
    let statements = input.transact_statements.as_ref();
    partiql::constrain_list(
        &mut constraints,
        "transactStatements",
        statements,
        TRANSACTION_ACTIONS_MAX,
    );
    constraints.one_of(
        "returnConsumedCapacity",
        input.return_consumed_capacity.as_ref(),
        RETURN_CAPACITY,
    );
    constraints.finish()
}

fn parse(
    given: &StatementInput<'_>,
    parameters: &[homeport_item::Value],
) -> Result<Statement, Failure> {
    let statement = partiql::parse(given.statement.as_ref(), parameters)?;
    if statement.returning().is_some() {
        return Err(Failure::validation(
            "RETURNING clause is not supported in ExecuteTransaction.",
        ));
    }
    if let Statement::Select(select) = &statement
        && select.target.index.is_some()
    {
        return Err(Failure::validation(
            "Reads on indices are not supported within transactions.",
        ));
    }
    Ok(statement)
}

fn read(service: &Service, statements: &[Statement], wanted: Wanted) -> Result<Vec<u8>, Failure> {
    let unkeyed = || {
        Failure::validation(
            "Select statements within ExecuteTransaction must specify the primary key in the where clause.",
        )
    };
    let mut gets: Vec<Get> = Vec::with_capacity(statements.len());
    let mut projections = Vec::with_capacity(statements.len());
    let mut seen = HashSet::new();
    for (at, statement) in statements.iter().enumerate() {
        let Statement::Select(select) = statement else {
            continue;
        };
        let get = by_key(service, select, unkeyed)
            .map_err(|failure| failure.cancelling(at, statements.len()))?;
        if !seen.insert((get.table.clone(), get.key.clone())) {
            return Err(Failure::validation(
                "Transaction request cannot include multiple operations on one item",
            ));
        }
        projections.push(&select.projection);
        gets.push(get);
    }
    transact_get_items::respond_with(service, &gets, wanted, |at, item, response| {
        let shown = partiql::labelled(item, projections[at])?;
        json::write_item(&shown, response.member("Item"));
        Ok(())
    })
}

async fn write(
    service: &Service,
    statements: Vec<Statement>,
    old_on_failure: &[bool],
    token: Option<String>,
    wanted: Wanted,
) -> Result<Vec<u8>, Failure> {
    let is_insert: Vec<bool> = statements.iter().map(partiql::is_insert).collect();
    let count = statements.len();
    let mut actions: Vec<Action> = Vec::with_capacity(count);
    for (at, (statement, old)) in statements.into_iter().zip(old_on_failure).enumerate() {
        match partiql::action(service.engine(), statement, *old) {
            Ok(action) => actions.push(action),
            // A key of another type cancels the transaction, as a key that does not match its table does in TransactWriteItems.
            Err(ActionError::Address(AddressError::OtherType { .. })) => {
                let mut reasons = vec![CancelReason::None; count];
                reasons[at] = CancelReason::invalid(KeyError::DoesNotMatchSchema);
                return Err(TransactError::Cancelled(reasons).into());
            }
            Err(error) => return Err(Failure::from(error).cancelling(at, count)),
        }
    }
    let tables: Vec<String> = actions
        .iter()
        .map(|action| action.table().to_owned())
        .collect();
    let transaction = Transaction { actions, token };
    let done = service
        .engine()
        .write_together(transaction, wanted.anything())
        .await
        .map_err(|error| Failure::of_statements(error, &is_insert))?;
    let mut out = Vec::with_capacity(64);
    let mut object = Object::new(&mut out);
    object.member("Responses").extend_from_slice(b"[]");
    transact_write_items::write_capacity(&mut object, &done, &tables, wanted);
    object.end();
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input;

    #[test]
    fn invalid_transactions_get_dynamodb_errors() {
        for (body, text) in [
            (
                r#"{"TransactStatements":[],"ClientRequestToken":""}"#,
                "2 validation errors detected: Value '' at 'clientRequestToken' failed to satisfy constraint: Member must have length greater than or equal to 1; Value '[]' at 'transactStatements' failed to satisfy constraint: Member must have length greater than or equal to 1",
            ),
            (
                r#"{"TransactStatements":[{"Statement":""}]}"#,
                "1 validation error detected: Value '' at 'transactStatements.1.member.statement' failed to satisfy constraint: Member must have length greater than or equal to 1",
            ),
        ] {
            let input: Input<'_> = input::read(body.as_bytes()).expect("well-formed");
            let failure = check(&input).expect_err("refused");
            assert_eq!(failure.text(), Some(text), "{body}");
        }
    }
}
