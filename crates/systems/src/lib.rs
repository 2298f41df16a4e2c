//! Homeport's systems: what devices, people and apps can do, on any store behind the store trait. Each system
//! is a module with its frozen schema, its types and its use cases. This crate contains no HTTP and no AWS
//! code.

pub mod alerts;
pub mod api_keys;
pub mod browse;
pub mod chargers;
pub mod cursor;
pub mod documents;
pub mod export;
pub mod fleet;
pub mod ids;
pub mod json_object;
pub mod live;
pub mod messages;
pub mod outbox;
pub mod people;
pub mod plain_json;
pub mod push;
pub mod reactions;
pub mod records;
pub mod removal;
pub mod rules;
pub mod schema;
pub mod sensors;
pub mod severity;
pub mod telemetry;
pub mod text;
pub mod time;
pub mod unknown_name;

mod fetch;
pub mod pages;
