//! Homeport's systems: what devices, people and apps can do, on any store behind the seam. Each
//! system is a module with its frozen schema, its types and its use cases. There is no HTTP in here
//! and no AWS.

pub mod alerts;
pub mod api_keys;
pub mod browse;
pub mod chargers;
pub mod cursor;
pub mod export;
pub mod fleet;
pub mod ids;
pub mod live;
pub mod messages;
pub mod plain_json;
pub mod push;
pub mod reactions;
pub mod records;
pub mod rules;
pub mod schema;
pub mod sensors;
pub mod telemetry;
pub mod time;

mod fetch;
mod pages;
