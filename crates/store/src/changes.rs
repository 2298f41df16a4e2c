//! The second seam: what happened to the items of a table, in order. What reacts to data reads this
//! and nothing else.

use std::time::Duration;

use async_trait::async_trait;
use homeport_item::Item;

use crate::StoreError;

/// What happened to an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeKind {
    Insert,
    Modify,
    Remove,
}

/// One change of one item.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    pub at_ms: i64,
    pub kind: ChangeKind,
    /// Removed because its time to live had passed, not by a request.
    pub by_expiry: bool,
    pub key: Item,
    /// The item before, where the table's stream keeps it.
    pub old: Option<Item>,
    /// The item after, where the table's stream keeps it.
    pub new: Option<Item>,
}

/// Where a reader of changes stands. Only the feed that made it understands it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Position(String);

impl Position {
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Some changes and where to read on.
#[derive(Debug, Clone, PartialEq)]
pub struct ChangePage {
    pub changes: Vec<Change>,
    /// Behind the last change of this page.
    pub next: Position,
    /// Changes between the position that was asked for and the end of this page are gone: they are older than
    /// what is kept, or damaged.
    pub has_gap: bool,
}

/// The changes of tables whose schema asks for a stream.
///
/// Changes of one item come in the order in which they happened. A change is seen once it is
/// durable, and again by whoever reads again from an older position.
#[async_trait]
pub trait ChangeFeed: Send + Sync + 'static {
    /// The position behind the newest change.
    ///
    /// # Errors
    /// When the table does not exist or the store fails.
    async fn end(&self, table: &str) -> Result<Position, StoreError>;

    /// Up to `limit` changes behind `from`. Where there is none, this waits up to `wait` for one.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] for a position of another feed; otherwise when the table does not
    /// exist or the store fails.
    async fn changes(
        &self,
        table: &str,
        from: &Position,
        limit: usize,
        wait: Duration,
    ) -> Result<ChangePage, StoreError>;
}
