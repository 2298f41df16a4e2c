//! How an operation can fail, as narrow as each kind of operation allows.

use homeport_item::Item;

/// What can go wrong with any operation.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum StoreError {
    /// The request can never succeed as it is.
    #[error("{0}")]
    Invalid(String),
    #[error("table {0:?} does not exist")]
    TableMissing(String),
    #[error("table {table:?} has no index {index:?}")]
    IndexMissing { table: String, index: String },
    /// Too much at once; the same request may succeed later. Nothing was written.
    #[error("the store is busy, try again later")]
    Throttled,
    /// The store cannot do this now. Of a write it is not known whether it happened.
    #[error("the store is unavailable: {0}")]
    Unavailable(String),
}

/// What can go wrong with a write of one item.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum WriteError {
    #[error("the condition of the write does not hold")]
    ConditionFailed {
        /// The item as it is, where it was asked for and exists.
        old: Option<Box<Item>>,
    },
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What can go wrong with a transaction.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum TransactError {
    /// Nothing was written; one reason per action, in order.
    #[error("the transaction was cancelled")]
    Cancelled(Vec<CancelReason>),
    /// The token was used within the last ten minutes for another transaction.
    #[error("the token was already used for a different transaction")]
    TokenMismatch,
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why an action cancelled its transaction.
#[derive(Debug, Clone, PartialEq)]
pub enum CancelReason {
    /// This action was not the cause.
    None,
    ConditionFailed {
        old: Option<Box<Item>>,
    },
    /// The action cannot be carried out on the item as it is.
    Invalid(String),
    /// Another transaction was working on the item.
    Conflict,
    Throttled,
}

impl StoreError {
    /// Whether the same request may succeed later.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Throttled | Self::Unavailable(_))
    }
}
