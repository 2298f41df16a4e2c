//! MQTT over a socket, with the packets of another implementation.

mod access;
mod client;
mod delivery;
mod held_store;
mod hostile;
mod limits;
mod order;
mod properties;
mod refusals;
mod retained;
mod sessions;
mod wills;
mod world;
