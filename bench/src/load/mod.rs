//! Load over HTTP: prebuilt requests, simple connections, and the servers, each in its own process.

pub(crate) mod connection;
pub(crate) mod drive;
pub(crate) mod server;
pub(crate) mod template;
