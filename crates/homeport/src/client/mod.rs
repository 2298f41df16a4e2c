//! The HTTP client of commands, and where they find a running server.

pub(crate) mod address;
mod pinned;
pub(crate) mod pool;
pub(crate) mod server_client;
pub(crate) mod tunnel;
