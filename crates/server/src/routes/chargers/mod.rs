//! Chargers: events, the fleet, states, daily statistics.

pub(super) mod daily;
pub(super) mod events;
pub(super) mod fleet;
pub(super) mod ingest;
pub(super) mod state;

/// The system's name in keys.
const SYSTEM: &str = "chargers";
