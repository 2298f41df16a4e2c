//! How an operation ended, without the texts, so that operations of every kind can be compared.

use crate::{CancelReason, StoreError, TransactError, WriteError};

/// How an operation ended.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Outcome {
    Done,
    Invalid,
    TableMissing,
    IndexMissing,
    ConditionFailed,
    Cancelled,
    TokenMismatch,
    /// Throttled or unavailable, which no case expects.
    Transient(String),
}

impl Outcome {
    pub(super) fn of<T, E: Into<Self>>(result: Result<T, E>) -> Self {
        result.map_or_else(Into::into, |_| Self::Done)
    }
}

impl From<StoreError> for Outcome {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Invalid(_) => Self::Invalid,
            StoreError::TableMissing(_) => Self::TableMissing,
            StoreError::IndexMissing { .. } => Self::IndexMissing,
            error @ (StoreError::Throttled | StoreError::Unavailable(_)) => {
                Self::Transient(error.to_string())
            }
        }
    }
}

impl From<WriteError> for Outcome {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::ConditionFailed { .. } => Self::ConditionFailed,
            WriteError::Store(error) => error.into(),
        }
    }
}

impl From<TransactError> for Outcome {
    /// A transaction with an action that can never succeed is invalid, whether the store finds
    /// that out before it looks at any item or while it works on them: DynamoDB does either,
    /// depending on the mistake.
    fn from(error: TransactError) -> Self {
        match error {
            TransactError::Cancelled(reasons)
                if reasons
                    .iter()
                    .any(|reason| matches!(reason, CancelReason::Invalid(_))) =>
            {
                Self::Invalid
            }
            TransactError::Cancelled(_) => Self::Cancelled,
            TransactError::TokenMismatch => Self::TokenMismatch,
            TransactError::Store(error) => error.into(),
        }
    }
}
