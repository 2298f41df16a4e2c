//! Load over HTTP: requests built in advance, plain connections, and the servers that they go to,
//! each a process of its own.

pub(crate) mod connection;
pub(crate) mod drive;
pub(crate) mod server;
pub(crate) mod template;
