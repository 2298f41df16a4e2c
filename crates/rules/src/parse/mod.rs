//! Parses statements and the expressions of templates to trees, with the position of every error.

mod expression;
pub(crate) mod statement;
pub(crate) mod syntax_error;
pub(crate) mod token;
pub(crate) mod tree;
