//! Parse errors, with DynamoDB's messages.

use crate::token::Position;

/// Why a statement is invalid, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub struct ParseError {
    pub problem: ParseProblem,
    pub at: Position,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseProblem {
    /// The text is not a statement.
    #[error("Statement wasn't well formed, can't be processed: {0}")]
    Syntax(String),
    /// The statement is well-formed, but DynamoDB does not support it.
    #[error("{0}")]
    Unsupported(String),
}

impl ParseError {
    pub(crate) fn syntax(text: impl Into<String>, at: Position) -> Self {
        Self {
            problem: ParseProblem::Syntax(text.into()),
            at,
        }
    }

    pub(crate) fn unsupported(text: impl Into<String>, at: Position) -> Self {
        Self {
            problem: ParseProblem::Unsupported(text.into()),
            at,
        }
    }
}
