//! The outcome of an operation without its texts, so that operations of every kind can be compared.

use crate::{CancelReason, StoreError, TransactError, WriteError};

/// The outcome of an operation.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Outcome {
    Success,
    Invalid,
    TableNotFound,
    IndexNotFound,
    ConditionFailed,
    Cancelled,
    TokenMismatch,
    /// Throttled or unavailable; no case expects this.
    Transient(String),
}

impl Outcome {
    pub(super) fn of<T, E: Into<Self>>(result: Result<T, E>) -> Self {
        result.map_or_else(Into::into, |_| Self::Success)
    }
}

impl From<StoreError> for Outcome {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Invalid(_) => Self::Invalid,
            StoreError::TableNotFound(_) => Self::TableNotFound,
            StoreError::IndexNotFound { .. } => Self::IndexNotFound,
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
    /// A transaction with an invalid action counts as invalid, whether the store rejects it before
    /// or after reading the items. DynamoDB does either, depending on the mistake.
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
