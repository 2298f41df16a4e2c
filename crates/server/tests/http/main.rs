//! The HTTP interface, talked to over a socket.

mod access;
mod chargers;
mod connections;
mod expo;
mod jwks;
mod push;
mod records;
mod sensors;
mod support;
mod topics;
