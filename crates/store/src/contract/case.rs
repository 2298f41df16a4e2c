//! The environment of a case: a store, its own tables, and steps that many cases share.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use homeport_item::expression::KeyCondition;
use homeport_item::schema::TableSchema;
use homeport_item::{Item, KeyKind, Value};

use crate::{BatchWrite, Get, Page, Put, Query, Scan, Store, WriteRequest};

/// How long an index may lag behind its table. `ensure_tables` already waits until the index can be
/// queried.
const LAG_MAX: Duration = Duration::from_secs(10);
/// The pause between two polls.
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// The number of pages after which a case fails as endless.
const PAGES_MAX: usize = 1000;
/// Maximum number of attempts for a batch.
const RESUBMITS_MAX: usize = 100;

/// A store and names that are unique to this case, so that cases can share one server.
pub struct Case {
    pub store: Arc<dyn Store>,
    run: String,
}

impl fmt::Debug for Case {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Case")
            .field("run", &self.run)
            .finish_non_exhaustive()
    }
}

impl Case {
    #[must_use]
    pub fn new(store: Arc<dyn Store>) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let nanos = since_epoch().as_nanos() & u128::from(u64::MAX);
        let process = std::process::id();
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        Self {
            store,
            run: format!("{nanos:x}-{process:x}-{count:x}"),
        }
    }

    /// A table name that is unique to this case.
    #[must_use]
    pub fn name(&self, name: &str) -> String {
        format!("contract-{}-{name}", self.run)
    }

    /// A transaction token that is unique to this case. DynamoDB allows 36 characters.
    #[must_use]
    pub fn token(&self, name: &str) -> String {
        format!("{}-{name}", self.run)
    }

    /// Creates the table and returns its name.
    pub(super) async fn ensure(&self, schema: TableSchema) -> String {
        let name = schema.name.clone();
        self.store
            .ensure_tables(&[schema])
            .await
            .expect("the table can be created");
        name
    }

    /// Creates a table with the partition key `pk`, a string.
    pub(super) async fn keyed(&self) -> String {
        self.ensure(TableSchema::new(self.name("keyed"), "pk", KeyKind::S))
            .await
    }

    /// Creates a table with the partition key `pk`, a string, and the sort key `sk`.
    pub(super) async fn sorted(&self, kind: KeyKind) -> String {
        self.ensure(TableSchema::new(self.name("sorted"), "pk", KeyKind::S).with_sort("sk", kind))
            .await
    }

    pub(super) async fn put(&self, table: &str, item: Item) {
        self.store
            .put(Put::new(table, item))
            .await
            .expect("the put succeeds");
    }

    /// Puts any number of items with different keys.
    pub(super) async fn put_all(&self, table: &str, items: impl IntoIterator<Item = Item>) {
        let mut writes: Vec<_> = items
            .into_iter()
            .map(|item| WriteRequest::Put {
                table: table.to_owned(),
                item,
            })
            .collect();
        while !writes.is_empty() {
            let rest = writes.split_off(writes.len().min(crate::BATCH_WRITE_MAX));
            self.write_all(std::mem::replace(&mut writes, rest)).await;
        }
    }

    /// Writes a batch and resubmits unprocessed writes.
    pub(super) async fn write_all(&self, mut writes: Vec<WriteRequest>) {
        for _ in 0..RESUBMITS_MAX {
            let answer = self
                .store
                .batch_write(BatchWrite { writes })
                .await
                .expect("the batch is accepted");
            if answer.unprocessed.is_empty() {
                return;
            }
            writes = answer.unprocessed;
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        panic!("{} writes were never processed", writes.len());
    }

    pub(super) async fn get(&self, table: &str, key: Item) -> Option<Item> {
        self.store
            .get(Get::new(table, key))
            .await
            .expect("the get succeeds")
    }

    /// All pages of a query, starting after `query.start`.
    pub(super) async fn query_pages(&self, mut query: Query) -> Vec<Page> {
        let mut pages = Vec::new();
        while pages.len() < PAGES_MAX {
            let page = self.store.query(query.clone()).await;
            let page = page.expect("the query succeeds");
            query.start = page.next.clone();
            pages.push(page);
            if query.start.is_none() {
                return pages;
            }
        }
        panic!("the query has no end");
    }

    /// All items of a query on a table.
    pub(super) async fn query(&self, mut query: Query) -> Vec<Item> {
        query.consistent = true;
        items(self.query_pages(query).await)
    }

    /// All pages of a scan, starting after `scan.start`.
    pub(super) async fn scan_pages(&self, mut scan: Scan) -> Vec<Page> {
        let mut pages = Vec::new();
        while pages.len() < PAGES_MAX {
            let page = self.store.scan(scan.clone()).await;
            let page = page.expect("the scan succeeds");
            scan.start = page.next.clone();
            pages.push(page);
            if scan.start.is_none() {
                return pages;
            }
        }
        panic!("the scan has no end");
    }

    /// All items of a scan of a table.
    pub(super) async fn scan(&self, mut scan: Scan) -> Vec<Item> {
        scan.consistent = true;
        items(self.scan_pages(scan).await)
    }

    /// Waits until a query on an index returns `expected`, in this order.
    pub(super) async fn index_gives(&self, query: Query, expected: &[Item]) {
        let mut found = Vec::new();
        self.until(async || {
            found = items(self.query_pages(query.clone()).await);
            found == expected
        })
        .await;
        assert_eq!(found, expected);
    }

    /// Waits until a scan of an index returns `expected`, in any order.
    pub(super) async fn index_scan_gives(&self, scan: Scan, expected: &[Item]) {
        let mut found = Vec::new();
        self.until(async || {
            found = in_order(items(self.scan_pages(scan.clone()).await));
            found == in_order(expected.to_vec())
        })
        .await;
        assert_eq!(found, in_order(expected.to_vec()));
    }

    /// Polls until `holds` returns true, at most for as long as an index may lag.
    async fn until(&self, mut holds: impl AsyncFnMut() -> bool) {
        let deadline = tokio::time::Instant::now() + LAG_MAX;
        while !holds().await && tokio::time::Instant::now() < deadline {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }
}

/// An item, or the key of one, in a table without a sort key.
pub(super) fn item(pk: &str) -> Item {
    Item::new().with("pk", pk)
}

/// An item, or the key of one, in a table with a sort key.
pub(super) fn sorted_item(pk: &str, sk: impl Into<Value>) -> Item {
    item(pk).with("sk", sk)
}

/// A key condition for a whole partition.
pub(super) fn partition(pk: &str) -> KeyCondition {
    partition_of("pk", pk)
}

/// A key condition for a whole partition of an index.
pub(super) fn partition_of(name: &str, value: impl Into<Value>) -> KeyCondition {
    KeyCondition::new(name, value)
}

/// The items of all pages.
pub(super) fn items(pages: Vec<Page>) -> Vec<Item> {
    pages.into_iter().flat_map(|page| page.items).collect()
}

/// The values of one attribute, in the order of the items.
pub(super) fn values(items: &[Item], name: &str) -> Vec<Value> {
    items
        .iter()
        .map(|item| item.get(name).expect("each item has it").clone())
        .collect()
}

/// The items in an order that is independent of the store.
pub(super) fn in_order(mut items: Vec<Item>) -> Vec<Item> {
    items.sort_by_cached_key(|item| format!("{item:?}"));
    items
}

/// Parses a number.
pub(super) fn number(text: &str) -> Value {
    Value::N(text.parse().expect("a number"))
}

/// The current time in seconds, which the store's clock should agree with.
pub(super) fn now_secs() -> i64 {
    i64::try_from(since_epoch().as_secs()).expect("the clock is not that far off")
}

fn since_epoch() -> Duration {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("the clock is past 1970")
}
