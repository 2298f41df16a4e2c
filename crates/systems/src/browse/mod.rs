//! Reads any table and edits single items, for operators. The invariants of the systems are not checked.

mod edit;
mod find;

use std::sync::Arc;

use homeport_item::expression::{ExpressionError, KeyConditionError, PlaceholderError};
use homeport_store::{Store, StoreError};

use crate::cursor::CursorError;

pub use edit::Expected;
pub use find::{Asked, AskedKeys, Filter, FoundPage, SortOperator};

/// Items of one page.
pub const PAGE_MAX: usize = 1000;

/// Reads and edits the tables of a store.
#[derive(Clone)]
pub struct TableBrowser {
    store: Arc<dyn Store>,
}

/// Why a table cannot be read or an item not be changed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum BrowseError {
    #[error("{0}")]
    Invalid(String),
    #[error("there is no table {0}")]
    TableNotFound(String),
    #[error("the table has no index {0}")]
    IndexNotFound(String),
    /// The item has been changed since it was read.
    #[error("the item has been changed in the meantime; read it again")]
    Changed,
    #[error(transparent)]
    Cursor(#[from] CursorError),
    #[error(transparent)]
    Store(StoreError),
}

impl TableBrowser {
    #[must_use]
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store }
    }
}

impl From<StoreError> for BrowseError {
    fn from(error: StoreError) -> Self {
        match error {
            // Invalid requests are the caller's mistake.
            StoreError::Invalid(reason) => Self::Invalid(reason.to_string()),
            StoreError::TableNotFound(table) => Self::TableNotFound(table),
            StoreError::IndexNotFound { index, .. } => Self::IndexNotFound(index),
            error => Self::Store(error),
        }
    }
}

impl From<ExpressionError> for BrowseError {
    fn from(error: ExpressionError) -> Self {
        Self::Invalid(error.to_string())
    }
}

impl From<PlaceholderError> for BrowseError {
    fn from(error: PlaceholderError) -> Self {
        Self::Invalid(error.to_string())
    }
}

impl From<KeyConditionError> for BrowseError {
    fn from(error: KeyConditionError) -> Self {
        Self::Invalid(error.to_string())
    }
}

impl std::fmt::Debug for TableBrowser {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("TableBrowser")
            .finish_non_exhaustive()
    }
}
