//! DynamoDB's PartiQL: parses a statement and its parameters to a tree whose conditions and updates
//! are trees of the expression language.
//!
//! Pure code: it knows no table schema and does no I/O. No text makes it panic, and length, nesting
//! and the number of operators are limited.

mod error;
mod parse_condition;
mod parse_operand;
mod parse_path;
mod parse_statement;
mod parse_update;
mod parse_value;
mod parser;
mod reserved;
mod statement;
#[cfg(test)]
mod tests;
mod token;

pub use error::{ParseError, ParseProblem};
pub use parser::{NESTING_MAX, OPERATORS_MAX};
pub use statement::{Delete, Insert, OrderTerm, ReturnValues, Select, Statement, Target, Update};
pub use token::{Position, STATEMENT_MAX_CHARS};
