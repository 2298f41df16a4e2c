//! Streams, their shards and their records.

pub(crate) mod describe_stream;
pub(crate) mod get_records;
pub(crate) mod get_shard_iterator;
pub(crate) mod list_streams;
