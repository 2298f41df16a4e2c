//! The store interface: requests, responses and errors for tables with DynamoDB's semantics.
//! Backends implement [`Store`]; this crate depends on none of them.

mod changes;
mod clock;
#[cfg(feature = "contract")]
pub mod contract;
mod error;
#[cfg(feature = "model")]
pub mod model;
mod output;
mod request;

pub use changes::{Change, ChangeFeed, ChangeKind, ChangePage, Position};
pub use clock::{Clock, ManualClock, SystemClock};
pub use error::{CancelReason, InvalidRequest, StoreError, TransactError, WriteError};
pub use output::{BatchGetOutput, BatchWriteOutput, Page};
pub use request::{
    Action, BatchGet, BatchWrite, ConditionCheck, Delete, Get, Put, Query, ReturnValues, Scan,
    Segment, TableKeys, Transaction, Update, WriteRequest,
};

use async_trait::async_trait;
use homeport_item::Item;
use homeport_item::schema::TableSchema;

/// Maximum number of actions in one transaction.
pub const TRANSACTION_ACTIONS_MAX: usize = 100;
/// Maximum total size of the items in one transaction.
pub const TRANSACTION_SIZE_MAX_BYTES: usize = 4 * 1024 * 1024;
/// Maximum number of keys in one batch get.
pub const BATCH_GET_MAX: usize = 100;
/// Maximum number of writes in one batch write.
pub const BATCH_WRITE_MAX: usize = 25;
/// A page of a query, a scan or a batch get ends when its items reach this total size.
pub const PAGE_SIZE_MAX_BYTES: usize = 1024 * 1024;

/// Expiry times further in the past are ignored, because they are most likely in another unit or
/// not a time.
pub const TTL_AGE_MAX_SECS: i64 = 5 * 365 * 24 * 60 * 60;
/// How long a transaction token makes repeated requests idempotent.
pub const TOKEN_LIFETIME_SECS: i64 = 10 * 60;

/// A store of tables.
///
/// A write is durable once it has returned success. Expired items are invisible to every operation.
#[async_trait]
pub trait Store: Send + Sync + 'static {
    /// Creates missing tables and indexes so that each table has the given keys, indexes, time to
    /// live and stream. Nothing is ever deleted. The tables are usable when this returns; an index
    /// added to a table with items may still be filling.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] when a schema is invalid, or a table or index exists with different
    /// keys.
    async fn ensure_tables(&self, tables: &[TableSchema]) -> Result<(), StoreError>;

    /// Reads one item by its key.
    async fn get(&self, request: Get) -> Result<Option<Item>, StoreError>;

    /// Creates or replaces an item. Returns the requested attributes.
    async fn put(&self, request: Put) -> Result<Option<Item>, WriteError>;

    /// Changes attributes of an item, or creates the item.
    async fn update(&self, request: Update) -> Result<Option<Item>, WriteError>;

    /// Deletes an item. Deleting a missing item succeeds.
    async fn delete(&self, request: Delete) -> Result<Option<Item>, WriteError>;

    /// Returns a page of the items of one partition, in sort key order.
    async fn query(&self, request: Query) -> Result<Page, StoreError>;

    /// Returns a page of the items of a table or index, in unspecified order.
    async fn scan(&self, request: Scan) -> Result<Page, StoreError>;

    /// Reads several items by their keys. Keys that could not be read now are returned as
    /// unprocessed.
    async fn batch_get(&self, request: BatchGet) -> Result<BatchGetOutput, StoreError>;

    /// Runs several independent puts and deletes. Writes that could not be done now are returned as
    /// unprocessed.
    async fn batch_write(&self, request: BatchWrite) -> Result<BatchWriteOutput, StoreError>;

    /// Reads several items from one snapshot, in the order of the requests.
    async fn transact_get(&self, requests: Vec<Get>) -> Result<Vec<Option<Item>>, TransactError>;

    /// Runs all actions of a transaction or none of them.
    async fn transact(&self, transaction: Transaction) -> Result<(), TransactError>;

    /// Submits independent transactions together. Each has its own outcome, in order.
    async fn transact_each(&self, transactions: Vec<Transaction>)
    -> Vec<Result<(), TransactError>>;
}
