//! The HTTP client of commands, and where they find a running server.

pub(crate) mod address;
pub(crate) mod pool;
pub(crate) mod server_client;
