//! The [`Store`](homeport_store::Store) trait on Amazon DynamoDB or any service that speaks its
//! protocol. This is the only crate that uses the AWS SDK, and no SDK type leaves it.
//!
//! Expressions are printed from the same trees that the embedded engine evaluates, so a request
//! means the same on both. This crate adds what DynamoDB does not do itself: it hides expired items
//! from reads and write conditions, resubmits unprocessed requests, and parses the reasons of
//! cancelled transactions.

mod connect;
mod convert;
mod expiry;
mod feed;
mod moving;
mod read;
mod store;
mod tables;
mod write;

pub use connect::settings::{AccessKey, Settings, TableOptions};
pub use connect::{ConnectError, Remote};
pub use moving::{
    ContentHash, Move, MoveEndpoint, MoveError, MoveEvent, MoveOptions, MoveTables, Side,
    TableComparison,
};
pub use tables::{TableDescription, TableStatus};
