//! The seam: what Homeport's systems ask of a store of tables with DynamoDB's semantics, and the
//! answers and errors they get. Backends implement [`Store`]; nothing here knows any of them.

mod answer;
mod changes;
mod clock;
#[cfg(feature = "contract")]
pub mod contract;
mod error;
#[cfg(feature = "model")]
pub mod model;
mod request;

pub use answer::{BatchGetAnswer, BatchWriteAnswer, Page};
pub use changes::{Change, ChangeFeed, ChangeKind, ChangePage, Position};
pub use clock::{Clock, ManualClock, SystemClock};
pub use error::{CancelReason, StoreError, TransactError, WriteError};
pub use request::{
    Action, BatchGet, BatchWrite, Check, Delete, Get, Put, Query, Returning, Scan, Segment,
    TableKeys, Transaction, Update, WriteRequest,
};

use async_trait::async_trait;
use homeport_item::Item;
use homeport_item::schema::TableSchema;

/// Actions that one transaction may have.
pub const TRANSACTION_ACTIONS_MAX: usize = 100;
/// What the items of one transaction may count for together.
pub const TRANSACTION_SIZE_MAX_BYTES: usize = 4 * 1024 * 1024;
/// Keys that one batch get may ask for.
pub const BATCH_GET_MAX: usize = 100;
/// Writes that one batch write may carry.
pub const BATCH_WRITE_MAX: usize = 25;
/// A page of a query, a scan or a batch get ends when its items count for this much.
pub const PAGE_SIZE_MAX_BYTES: usize = 1024 * 1024;

/// An expiry that lies further back than this is no expiry, but a value in another unit or none.
pub const TTL_AGE_MAX_SECS: i64 = 5 * 365 * 24 * 60 * 60;
/// How long a transaction's token makes a repeat harmless.
pub const TOKEN_LIFETIME_SECS: i64 = 10 * 60;

/// A store of tables.
///
/// A write that has been answered with success is durable. Expired items are invisible to every
/// operation.
#[async_trait]
pub trait Store: Send + Sync + 'static {
    /// Makes sure that each table exists with the given keys, indexes, time to live and stream:
    /// missing tables and indexes are created, and nothing is ever removed. Once this is answered
    /// they can be used; an index added to a table with items may still be filling.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] when a schema cannot be, or a table or an index exists with other
    /// keys than asked for.
    async fn ensure_tables(&self, tables: &[TableSchema]) -> Result<(), StoreError>;

    /// One item by its key.
    async fn get(&self, request: Get) -> Result<Option<Item>, StoreError>;

    /// Creates or replaces an item. Answers with the attributes that were asked for.
    async fn put(&self, request: Put) -> Result<Option<Item>, WriteError>;

    /// Changes attributes of an item, or creates it.
    async fn update(&self, request: Update) -> Result<Option<Item>, WriteError>;

    /// Removes an item; one that does not exist is no error.
    async fn delete(&self, request: Delete) -> Result<Option<Item>, WriteError>;

    /// A page of the items of one partition, in the order of the sort key.
    async fn query(&self, request: Query) -> Result<Page, StoreError>;

    /// A page of all items of a table or index, in no promised order.
    async fn scan(&self, request: Scan) -> Result<Page, StoreError>;

    /// Several items by their keys. What could not be read now is answered as unprocessed.
    async fn batch_get(&self, request: BatchGet) -> Result<BatchGetAnswer, StoreError>;

    /// Several independent puts and deletes. What could not be written now is answered as
    /// unprocessed.
    async fn batch_write(&self, request: BatchWrite) -> Result<BatchWriteAnswer, StoreError>;

    /// Several items as they were at one moment, in the order of the requests.
    async fn transact_get(&self, requests: Vec<Get>) -> Result<Vec<Option<Item>>, TransactError>;

    /// All actions or none.
    async fn transact(&self, transaction: Transaction) -> Result<(), TransactError>;

    /// Independent transactions handed over at once; each has its own outcome, in order.
    async fn transact_each(&self, transactions: Vec<Transaction>)
    -> Vec<Result<(), TransactError>>;
}
