//! What a device stored in a range of time, page by page. At most one page of the store is in memory.

use std::collections::VecDeque;
use std::sync::Arc;

use async_trait::async_trait;
use homeport_item::Item;
use homeport_store::{Query, Store};

use super::FleetError;
use super::source::DeviceSource;
use crate::time::{EpochMillis, Order};

/// The first and the last time that the keys of all systems can hold.
pub(super) const FIRST_MS: i64 = 0;
pub(super) const LAST_MS: i64 = 9_999_999_999_999;

/// How much of each item is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// At least the attributes with values; the order does not matter.
    Values,
    /// The item as it is stored; the order does not matter.
    Stored,
    /// The item as people see it, in the order of time.
    Shown,
}

/// Which rows are read; both ends are included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistoryRange {
    pub from: EpochMillis,
    pub to: EpochMillis,
    pub order: Order,
    pub detail: Detail,
}

/// An item that a device stored.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    pub at: EpochMillis,
    pub item: Item,
    /// The name of the history, if the device has several.
    pub history: Option<Arc<str>>,
}

/// Rows that were read at once, perhaps none.
#[derive(Debug, Default)]
pub struct RowPage {
    pub rows: Vec<Row>,
    /// Items that were read, including those that are not rows of the device.
    pub items_read: usize,
    /// The time of the last item that was read.
    pub reached: Option<EpochMillis>,
}

/// Reads one history.
#[async_trait]
pub trait RowReader: Send {
    /// The next rows; `None` after the last page. A reader may ignore the limit.
    async fn next_page(&mut self, limit: Option<usize>) -> Result<Option<RowPage>, FleetError>;
}

/// Reads the rows that a query finds.
pub struct QueryReader {
    store: Arc<dyn Store>,
    /// `None` after the last page.
    query: Option<Query>,
    range: HistoryRange,
    time_of: fn(&Item) -> Option<EpochMillis>,
}

/// All histories of a device, one after the other.
pub struct Rows(pub(super) VecDeque<Box<dyn RowReader>>);

impl Row {
    #[must_use]
    pub fn new(at: EpochMillis, item: Item) -> Self {
        Self {
            at,
            item,
            history: None,
        }
    }
}

impl HistoryRange {
    #[must_use]
    pub fn new(from: EpochMillis, to: EpochMillis, order: Order, detail: Detail) -> Self {
        let bound = |at: EpochMillis| EpochMillis(at.0.clamp(FIRST_MS, LAST_MS));
        Self {
            from: bound(from),
            to: bound(to),
            order,
            detail,
        }
    }
}

impl QueryReader {
    /// Rows of a query whose times are in the range.
    #[must_use]
    pub fn new(source: &dyn DeviceSource, mut query: Query, range: &HistoryRange) -> Self {
        query.descending = range.order == Order::NewestFirst;
        Self {
            store: Arc::clone(source.store()),
            query: Some(query),
            range: *range,
            time_of: source.system().time_of,
        }
    }

    /// As the only history of a device.
    #[must_use]
    pub fn alone(self) -> Vec<Box<dyn RowReader>> {
        vec![Box::new(self)]
    }
}

#[async_trait]
impl RowReader for QueryReader {
    async fn next_page(&mut self, limit: Option<usize>) -> Result<Option<RowPage>, FleetError> {
        let Some(query) = &mut self.query else {
            return Ok(None);
        };
        query.limit = limit;
        let page = self.store.query(query.clone()).await?;
        let mut rows = RowPage {
            items_read: page.scanned,
            ..RowPage::default()
        };
        for item in page.items {
            let Some(at) = (self.time_of)(&item) else {
                continue;
            };
            rows.reached = Some(at);
            if (self.range.from..=self.range.to).contains(&at) {
                rows.rows.push(Row::new(at, item));
            }
        }
        match page.next {
            Some(next) => query.start = Some(next),
            None => self.query = None,
        }
        Ok(Some(rows))
    }
}

impl Rows {
    /// The next rows, or `None` after the last page. A page may be empty.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn next_page(&mut self) -> Result<Option<Vec<Row>>, FleetError> {
        while let Some(reader) = self.0.front_mut() {
            if let Some(page) = reader.next_page(None).await? {
                return Ok(Some(page.rows));
            }
            self.0.pop_front();
        }
        Ok(None)
    }
}

impl std::fmt::Debug for QueryReader {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("QueryReader")
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Rows {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Rows").finish_non_exhaustive()
    }
}
