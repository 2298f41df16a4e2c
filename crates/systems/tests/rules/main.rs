//! Rules: what messages lead to, on a store; how rules are looked after; what is told when something
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
