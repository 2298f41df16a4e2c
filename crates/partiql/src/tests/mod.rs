//! The meaning of statements, error messages, and robustness of the parser.

mod conditions;
mod errors;
mod hostile;
mod statements;

use homeport_item::Value;

use crate::statement::Statement;

fn parse(text: &str) -> Statement {
    with(text, &[])
}

#[track_caller]
fn with(text: &str, parameters: &[Value]) -> Statement {
    Statement::parse(text, parameters).unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[track_caller]
fn refused(text: &str) -> String {
    match Statement::parse(text, &[]) {
        Ok(statement) => panic!("{text} was read as {statement:?}"),
        Err(error) => error.to_string(),
    }
}
