//! Rules on a store: the effects of messages, managing rules, and what is reported when something
//! fails.

#[path = "../failing/mod.rs"]
mod failing;
#[path = "../support/mod.rs"]
mod support;

mod actions;
mod failures;
mod manage;
mod replay;
mod requests;
mod telemetry;
mod world;
