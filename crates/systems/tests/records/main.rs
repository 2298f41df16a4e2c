//! The rules of the record store.

mod adding;
mod dispenser;
mod housekeeping;
mod model;
mod parents;
mod patterns;
mod removal;
mod rules;
#[path = "../support/mod.rs"]
mod support;
mod world;
