//! Trying a rule on a sample message, and replaying it over stored telemetry.

pub(in crate::rules) mod replay;
pub(in crate::rules) mod trial;
