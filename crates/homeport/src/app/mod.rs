//! The server's composition: builds every part from the settings and the store, and runs them.

mod alerts;
mod background;
mod bridge;
pub(crate) mod console;
mod dynamodb_credentials;
mod exposure;
mod mqtt;
mod network;
pub(crate) mod rules;
pub(crate) mod serve;
pub(crate) mod state;
mod tasks;
mod tls;
