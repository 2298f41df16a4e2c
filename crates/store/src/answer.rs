//! What a store answers.

use homeport_item::Item;

use crate::request::{TableKeys, WriteRequest};

/// A page of a query or a scan.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Page {
    /// The items that passed the filter; empty when only a count was asked for.
    pub items: Vec<Item>,
    /// How many items passed the filter.
    pub count: usize,
    /// How many items were looked at.
    pub scanned: usize,
    /// What the items looked at count for.
    pub scanned_bytes: usize,
    /// Where to go on; absent when there is nothing more.
    pub next: Option<Item>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct BatchGetAnswer {
    /// The items found, each with the name of its table, in no promised order.
    pub items: Vec<(String, Item)>,
    pub unprocessed: Vec<TableKeys>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct BatchWriteAnswer {
    pub unprocessed: Vec<WriteRequest>,
}
