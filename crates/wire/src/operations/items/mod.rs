//! Reading and writing items: single items, batches, transactions and pages.

pub(crate) mod batch_get_item;
pub(crate) mod batch_write_item;
pub(crate) mod delete_item;
pub(crate) mod get_item;
mod page_input;
pub(crate) mod put_item;
pub(crate) mod query;
pub(crate) mod reading;
pub(crate) mod scan;
pub(crate) mod transact_get_items;
pub(crate) mod transact_write_items;
pub(crate) mod update_item;
mod write_input;
pub(crate) mod writing;
