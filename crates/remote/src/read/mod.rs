//! Reads of single items, and pages of queries and scans, without expired items.

pub(crate) mod items;
pub(crate) mod pages;
pub(crate) mod projection;
