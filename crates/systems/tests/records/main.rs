//! The rules of the record store.

mod dispenser;
mod housekeeping;
mod model;
mod patterns;
mod removal;
mod rules;
#[path = "../support/mod.rs"]
mod support;
mod world;
