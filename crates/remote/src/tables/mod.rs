//! Creates, describes and completes tables.

pub(crate) mod create;
pub(crate) mod describe;
mod ensure;

pub use describe::{TableDescription, TableStatus};
