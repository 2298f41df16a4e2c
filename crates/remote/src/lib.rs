//! The store seam on Amazon DynamoDB, or on whatever else speaks its protocol. The only crate that
//! names the AWS SDK: none of the SDK's types leave it.
//!
//! Expressions are printed from the trees that the embedded engine evaluates, so that a request
//! means the same on both. What DynamoDB does not do by itself is done here: items whose time has
//! passed are hidden from reads and from the conditions of writes, what it leaves unprocessed is
//! resubmitted, and each reason of a cancelled transaction is read.

mod backoff;
mod batch;
mod connect;
mod create;
mod describe;
mod ensure;
mod expiry;
mod expressions;
mod failure;
mod feed;
mod moving;
mod pages;
mod read;
mod seam;
mod settings;
mod shape;
mod transact;
mod value;
mod write;

pub use connect::{ConnectError, Remote};
pub use describe::{TableDescription, TableStatus};
pub use moving::{
    ContentHash, Move, MoveError, MoveEvent, MoveOptions, MovePlace, MoveTables, Side, Verified,
};
pub use settings::{AccessKey, Settings, TableOptions};
