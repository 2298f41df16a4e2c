//! The only access to the key-value store: no other module names it. In a sealed store, values are encrypted
//! when written and decrypted when read here, so that none can bypass encryption; otherwise they pass
//! unchanged.
//!
//! Keys are never sealed, because their order is needed. The keyspace `meta` is not sealed either: it is read
//! before the store is open and contains only numbers of our own. Empty values are not sealed.

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
