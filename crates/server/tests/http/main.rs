//! The HTTP interface, talked to over a socket.

mod access;
mod sensors;
mod support;
