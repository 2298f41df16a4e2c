//! The change log, and the feed and the streams that are read from it.

pub(crate) mod feed;
pub(crate) mod log;
pub(crate) mod stream_read;
pub(crate) mod streams;
