//! DynamoDB's JSON protocol over HTTP on the embedded engine. The AWS CLI, the SDKs and the programs that use them only need
//! another endpoint.
//!
//! A request passes through `service` (HTTP), `signature` (authentication), `access` (authorization) and one file of `operations`.
//! `failure` has all errors. This crate stores no data: the engine stores the settings of a table with the table.

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
