//! The way to the key-value store, and the only one: no other module names it. Where a store is sealed,
//! values are sealed on their way in and opened on their way out, so that none can slip by; where it is
//! not, they pass as they are.
//!
//! Keys are never sealed, since their order is what they are for. Neither is the keyspace `meta`, which
//! is read before anything is open and holds numbers of our own alone, nor an empty value.

mod backlog;
mod batch;
mod database;
mod error;
pub(crate) mod files;
mod journals;
mod keyspace;
mod snapshot;

pub(crate) use batch::Batch;
pub(crate) use database::Database;
pub(crate) use error::Error;
pub(crate) use fjall::{PersistMode, UserKey, UserValue};
pub(crate) use keyspace::Keyspace;
pub(crate) use snapshot::{Guard, Iter, Snapshot};
