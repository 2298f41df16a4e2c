//! The HTTP interface, talked to over a socket.

mod access;
mod alerts;
mod chargers;
mod connections;
mod delivery;
mod expo;
mod jwks;
mod push;
mod records;
mod sensors;
mod support;
