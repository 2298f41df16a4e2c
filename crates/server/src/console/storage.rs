//! The store as a whole, which the seam does not show: each backend tells what it can.

use async_trait::async_trait;
use homeport_item::schema::TableSchema;
use homeport_store::StoreError;

/// A table as it is now.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredTable {
    pub schema: TableSchema,
    /// As DynamoDB writes it: `ACTIVE`, `UPDATING` and so on.
    pub status: &'static str,
    /// Indexes that are still being filled and cannot be read.
    pub indexes_filling: Vec<String>,
    /// About as many, where counting would take long; absent where nobody knows.
    pub items: Option<u64>,
    pub bytes: Option<u64>,
}

/// How long commits took since the start.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct CommitTimes {
    pub count: u64,
    pub mean_ms: f64,
    pub p50_ms: f64,
    pub p99_ms: f64,
}

/// What a backend tells about itself.
#[async_trait]
pub trait Storage: Send + Sync + 'static {
    /// All tables that there are, or that Homeport uses where a backend has others too.
    ///
    /// # Errors
    /// When the store cannot answer.
    async fn tables(&self) -> Result<Vec<StoredTable>, StoreError>;

    /// One table; `None` when there is none of this name.
    ///
    /// # Errors
    /// When the store cannot answer.
    async fn table(&self, name: &str) -> Result<Option<StoredTable>, StoreError>;

    /// Bytes on disk, where that is known.
    fn disk_bytes(&self) -> Option<u64>;

    /// Absent where commits are somebody else's.
    fn commit_times(&self) -> Option<CommitTimes>;
}
