//! PartiQL as DynamoDB has it: a statement and its parameters become a tree whose conditions and updates are those of the
//! expression language.
//!
//! Pure: nothing here knows a table's keys or reads anything, and no text makes it panic. Length, nesting and the number of
//! operators are bounded.

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

pub use error::{ParseError, Problem};
pub use parser::{NESTING_MAX, OPERATORS_MAX};
pub use statement::{Delete, Insert, OrderTerm, Returning, Select, Statement, Target, Update};
pub use token::{Position, STATEMENT_MAX_CHARS};
