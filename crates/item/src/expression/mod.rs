//! DynamoDB's expression language. Each kind of expression is one tree type that can be parsed from
//! text, built in code, printed with placeholders, and evaluated.

mod apply;
mod build;
mod condition_functions;
mod error;
mod evaluate;
mod operand_checks;
mod overlap;
mod parse_condition;
mod parse_key_condition;
mod parse_update;
mod parser;
mod path;
mod placeholders;
mod print;
mod project;
mod reserved;
#[cfg(test)]
mod tests;
mod token;
mod tree;

pub use apply::UpdateError;
pub use error::{
    ExpressionError, ExpressionKind, ExpressionProblem, KeyConditionError, ListedPath, QuotedValue,
};
pub use parse_condition::IN_OPERANDS_MAX;
pub use parser::{EXPRESSION_MAX_BYTES, NESTING_MAX, OPERATORS_MAX, PATH_DEPTH_MAX};
pub use path::{Document, Path, PathElement};
pub use placeholders::{PLACEHOLDER_MAX_BYTES, PlaceholderError, Placeholders};
pub use print::Printer;
pub use tree::{
    Comparator, Condition, KeyCondition, KeyConditions, Operand, Projection, SortCondition, Update,
    UpdateOperand,
};
