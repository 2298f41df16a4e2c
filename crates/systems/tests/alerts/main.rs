//! Alerts: what is raised, cleared and told, once each, whatever is seen again and whenever the
//! process ends.

#[path = "../failing/mod.rs"]
mod failing;
#[path = "../support/mod.rs"]
mod support;

mod conditions;
mod decommissioned;
mod definitions;
mod handling;
mod old_values;
mod outbox;
mod preview;
mod quiet;
mod results;
mod silence;
mod sources;
mod thresholds;
mod world;
