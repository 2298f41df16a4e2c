//! Looking into any table, and changing an item of it: for operators, who see the tables as they
//! are. What the systems promise about their tables is not checked here.

mod edit;
mod find;

use std::sync::Arc;

use homeport_item::expression::{ExpressionError, KeyConditionError, PlaceholderError};
use homeport_store::{Store, StoreError};

use crate::cursor::CursorError;

pub use edit::Expected;
pub use find::{Asked, AskedKeys, Filter, FoundPage, SortOperator};

/// Items that one page may have.
pub const PAGE_MAX: usize = 1000;

/// Tables on a store.
#[derive(Clone)]
pub struct TableBrowser {
    store: Arc<dyn Store>,
}

/// Why a table cannot be looked into, or an item not be changed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum BrowseError {
    #[error("{0}")]
    Invalid(String),
    #[error("there is no table {0}")]
    TableMissing(String),
    #[error("the table has no index {0}")]
    IndexMissing(String),
    /// Someone else has changed it meanwhile.
    #[error("the item is no longer as it was: someone has changed it meanwhile")]
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
            // What is wrong with a request is for whoever wrote it.
            StoreError::Invalid(reason) => Self::Invalid(reason),
            StoreError::TableMissing(table) => Self::TableMissing(table),
            StoreError::IndexMissing { index, .. } => Self::IndexMissing(index),
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
