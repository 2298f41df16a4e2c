//! DynamoDB's expression language: one tree per kind of expression that can be parsed from text,
//! built in code, printed as text with placeholders, and evaluated.

mod path;
mod tree;

pub use path::{Document, Path, PathElement};
pub use tree::{
    Comparator, Condition, KeyCondition, Operand, Projection, SortCondition, Update, UpdateOperand,
};
