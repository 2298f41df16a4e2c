//! Tests over HTTP of the real service with a real engine on a free port.

mod access;
mod authorization;
mod backups;
mod batches;
mod browsers;
mod connections;
mod exports;
mod items;
mod legacy;
mod observed;
mod pages;
mod partiql;
mod protocol;
mod security;
mod server;
mod signing;
mod streams;
mod tables;
mod transactions;
