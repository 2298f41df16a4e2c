//! Why a statement is refused, in DynamoDB's words.

use crate::token::Position;

/// Why a statement is refused, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub struct ParseError {
    pub problem: Problem,
    pub at: Position,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// It is not a statement.
    #[error("Statement wasn't well formed, can't be processed: {0}")]
    Syntax(String),
    /// It is one that DynamoDB does not carry out.
    #[error("{0}")]
    Refused(String),
}

impl ParseError {
    pub(crate) fn syntax(text: impl Into<String>, at: Position) -> Self {
        Self {
            problem: Problem::Syntax(text.into()),
            at,
        }
    }

    pub(crate) fn refused(text: impl Into<String>, at: Position) -> Self {
        Self {
            problem: Problem::Refused(text.into()),
            at,
        }
    }
}
