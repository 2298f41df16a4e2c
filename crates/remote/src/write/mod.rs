//! Single-item writes, transactions and batches. Batch reads are next to batch writes, because they
//! share the resubmission of unprocessed parts.

pub(crate) mod batch;
pub(crate) mod item;
pub(crate) mod transact;
