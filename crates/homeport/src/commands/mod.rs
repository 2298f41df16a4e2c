//! The commands beside `serve`, one module each.

pub(crate) mod chargers;
mod columns;
pub(crate) mod encryption;
pub(crate) mod export;
pub(crate) mod keys;
pub(crate) mod maintenance;
pub(crate) mod moving;
pub(crate) mod push;
pub(crate) mod rules;
pub(crate) mod simulate;
mod store_access;
pub(crate) mod tables;
pub(crate) mod time;
pub(crate) mod users;
