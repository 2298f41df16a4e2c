//! The errors of a store: one narrow type per kind of operation.

use homeport_item::Item;
use homeport_item::expression::{ExpressionError, KeyConditionError, UpdateError};
use homeport_item::item::ItemError;
use homeport_item::schema::KeyError;

/// Errors of every operation.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum StoreError {
    /// The request is invalid; repeating it unchanged always fails.
    #[error(transparent)]
    Invalid(#[from] InvalidRequest),
    #[error("table {0:?} does not exist")]
    TableNotFound(String),
    #[error("table {table:?} has no index {index:?}")]
    IndexNotFound { table: String, index: String },
    /// Too many requests. Nothing was written, and the same request may succeed later.
    #[error("the store is busy; try again later")]
    Throttled,
    /// The store cannot serve the request now. For a write, the outcome is unknown.
    #[error("the store is unavailable: {0}")]
    Unavailable(String),
}

/// Why a request is invalid.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum InvalidRequest {
    #[error(transparent)]
    Key(#[from] KeyError),
    #[error(transparent)]
    Item(#[from] ItemError),
    #[error(transparent)]
    Expression(#[from] ExpressionError),
    #[error(transparent)]
    KeyCondition(#[from] KeyConditionError),
    #[error(transparent)]
    Update(#[from] UpdateError),
    #[error("the update makes the item larger than the maximum size")]
    UpdatedItemTooLarge,
    /// A value that an index cannot have as a key.
    #[error("the key of index {index:?} has an invalid value: {error}")]
    IndexKey {
        index: String,
        error: KeyError,
        /// An update sets the value; DynamoDB words that differently.
        by_update: bool,
    },
    #[error("global index {0:?} has no consistent reads")]
    ConsistentRead(String),
    #[error("global index {0:?} does not project all attributes")]
    AllAttributes(String),
    /// Any other reason, as text.
    #[error("{0}")]
    Other(String),
}

impl From<String> for InvalidRequest {
    fn from(reason: String) -> Self {
        Self::Other(reason)
    }
}

impl From<&str> for InvalidRequest {
    fn from(reason: &str) -> Self {
        Self::Other(reason.to_owned())
    }
}

/// Errors of a single-item write.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum WriteError {
    #[error("the condition of the write is false")]
    ConditionFailed {
        /// The current item, if requested and present.
        old: Option<Box<Item>>,
    },
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Errors of a transaction.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum TransactError {
    /// Nothing was written. There is one reason per action, in order.
    #[error("the transaction was cancelled")]
    Cancelled(Vec<CancelReason>),
    /// The token was used for another transaction within the last ten minutes.
    #[error("the token was already used for a different transaction")]
    TokenMismatch,
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why an action cancelled its transaction.
#[derive(Debug, Clone, PartialEq)]
pub enum CancelReason {
    /// This action did not cause the cancellation.
    None,
    ConditionFailed {
        old: Option<Box<Item>>,
    },
    /// The action is invalid for the current item.
    Invalid(InvalidRequest),
    /// Another transaction was using the item.
    Conflict,
    Throttled,
}

impl CancelReason {
    pub fn invalid(reason: impl Into<InvalidRequest>) -> Self {
        Self::Invalid(reason.into())
    }
}

impl StoreError {
    pub fn invalid(reason: impl Into<InvalidRequest>) -> Self {
        Self::Invalid(reason.into())
    }

    /// Whether the same request may succeed later.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Throttled | Self::Unavailable(_))
    }
}
