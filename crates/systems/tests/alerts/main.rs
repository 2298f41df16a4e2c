//! Alerts: what is raised, cleared and told, once each, whatever is seen again and whenever the
//! process ends.

#[path = "../support/mod.rs"]
mod support;

mod definitions;
mod handling;
mod outbox;
mod quiet;
mod results;
mod silence;
mod sources;
mod thresholds;
mod world;
