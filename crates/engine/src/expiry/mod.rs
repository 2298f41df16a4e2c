//! Expiry: the lists of items that expire, and the thread that deletes expired items and other old data.

pub(crate) mod expiring;
pub(crate) mod pages;
pub(crate) mod sorting;
pub(crate) mod sweep;
