//! Tests of the HTTP interface over real sockets.

mod access;
mod alerts;
mod chargers;
mod connections;
mod console_devices;
mod console_export;
mod console_live;
mod console_session;
mod console_tables;
mod delivery;
mod expo;
mod jwks;
mod jwks_rsa;
mod people;
mod permissions;
mod policy;
mod push;
mod push_delivery;
mod records;
mod rules;
mod sensors;
mod sixth_system;
mod support;
mod telemetry;
mod time;
mod topics;
