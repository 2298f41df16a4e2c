//! DynamoDB's own protocol (JSON 1.0 over HTTP) over the embedded engine, so that the AWS CLI, the
//! SDKs and everything written for them work with nothing but another endpoint.
//!
//! A request passes `service` (HTTP), `signature` (who is asking), `access` (what they may do) and one file of `operations`.
//! Errors come from `failure` alone. Nothing here keeps data: what a table has beyond its schema is
//! kept with it by the engine.

mod access;
mod answer;
mod body;
mod capacity;
mod config;
mod constraints;
mod content_coding;
mod cross_origin;
mod expressions;
mod failure;
mod input;
mod legacy;
pub mod listen;
mod operations;
mod output;
mod partiql;
mod request_id;
mod server;
mod service;
mod signature;
mod streams;
mod table_name;
mod tables;

pub use access::{Policy, PolicyError};
pub use config::{Config, Credential, NotLoopback};
pub use operations::OPERATIONS;
pub use service::{Service, service};
