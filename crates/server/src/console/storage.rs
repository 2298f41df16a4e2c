//! Sizes and states of the store that the store trait does not report. Each backend implements this.

use async_trait::async_trait;
use homeport_item::schema::TableSchema;
use homeport_store::StoreError;

/// A table and its current state.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredTable {
    pub schema: TableSchema,
    /// As DynamoDB writes it, such as `ACTIVE` or `UPDATING`.
    pub status: &'static str,
    /// Indexes that are still being filled and cannot be read.
    pub indexes_filling: Vec<String>,
    /// An estimate where counting would take long; absent if unknown.
    pub items: Option<u64>,
    pub bytes: Option<u64>,
}

/// Commit latencies since the start.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct CommitTimes {
    pub count: u64,
    pub mean_ms: f64,
    pub p50_ms: f64,
    pub p99_ms: f64,
}

/// Describes the storage of a backend.
#[async_trait]
pub trait Storage: Send + Sync + 'static {
    /// All tables. If the backend is shared with other programs, only those of Homeport.
    ///
    /// # Errors
    /// If the store is unavailable.
    async fn tables(&self) -> Result<Vec<StoredTable>, StoreError>;

    /// One table, or `None` if it does not exist.
    ///
    /// # Errors
    /// If the store is unavailable.
    async fn table(&self, name: &str) -> Result<Option<StoredTable>, StoreError>;

    /// Bytes on disk, if known.
    fn disk_bytes(&self) -> Option<u64>;

    /// `None` if another service commits, as with Amazon DynamoDB.
    fn commit_times(&self) -> Option<CommitTimes>;
}
