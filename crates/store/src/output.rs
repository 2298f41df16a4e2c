//! Responses of a store.

use homeport_item::Item;

use crate::request::{TableKeys, WriteRequest};

/// A page of a query or a scan.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Page {
    /// The items that passed the filter; empty when only a count was asked for.
    pub items: Vec<Item>,
    /// The number of items that passed the filter.
    pub count: usize,
    /// The number of items read before filtering.
    pub scanned: usize,
    /// The total size of the items read.
    pub scanned_bytes: usize,
    /// The start key of the next page; `None` on the last page.
    pub next: Option<Item>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct BatchGetOutput {
    /// The items found, each with its table name, in unspecified order.
    pub items: Vec<(String, Item)>,
    pub unprocessed: Vec<TableKeys>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct BatchWriteOutput {
    pub unprocessed: Vec<WriteRequest>,
}
