//! The write path: callers prepare transactions, one thread decides them in order, and each group of
//! them becomes one batch with one sync.

pub(crate) mod commit_clock;
pub(crate) mod committer;
pub(crate) mod cost;
pub(crate) mod evaluate;
pub(crate) mod greatest_keys;
pub(crate) mod group;
pub(crate) mod prepare;
pub(crate) mod queue;
pub(crate) mod token_digest;
pub(crate) mod tokens;
pub(crate) mod write;
pub(crate) mod writer;
