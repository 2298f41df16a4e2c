//! The change feed interface: the changes of a table's items, in order. Code that reacts to data
//! reads this and nothing else.

use std::time::Duration;

use async_trait::async_trait;
use homeport_item::Item;

use crate::StoreError;

/// The kind of a change.
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
    /// The item expired; no request deleted it.
    pub by_expiry: bool,
    pub key: Item,
    /// The item before the change, if the table's stream stores it.
    pub old: Option<Item>,
    /// The item after the change, if the table's stream stores it.
    pub new: Option<Item>,
}

/// A reader's position in a change feed. Opaque to everyone but the feed that created it.
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

/// A page of changes and the position after it.
#[derive(Debug, Clone, PartialEq)]
pub struct ChangePage {
    pub changes: Vec<Change>,
    /// The position after the last change of this page.
    pub next: Position,
    /// Changes between the requested position and the end of this page are missing, because they
    /// are older than the retention or damaged.
    pub has_gap: bool,
}

/// A feed of the changes of tables with a stream.
///
/// Changes of one item are in commit order. A change appears once it is durable, and again for a
/// reader that resumes from an older position.
#[async_trait]
pub trait ChangeFeed: Send + Sync + 'static {
    /// The position after the newest change.
    ///
    /// # Errors
    /// When the table is missing or the store fails.
    async fn end(&self, table: &str) -> Result<Position, StoreError>;

    /// Returns up to `limit` changes after `from`. If there are none, waits up to `wait` for one.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] for a position of another feed; other errors when the table is
    /// missing or the store fails.
    async fn changes(
        &self,
        table: &str,
        from: &Position,
        limit: usize,
        wait: Duration,
    ) -> Result<ChangePage, StoreError>;
}
