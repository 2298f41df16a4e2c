//! Definitions: what operators define, how it is changed, and the copy of all definitions in memory.

pub(in crate::alerts) mod condition;
pub(in crate::alerts) mod definition;
pub(in crate::alerts) mod manage;
pub(in crate::alerts) mod quiet;
pub(in crate::alerts) mod registry;
pub(in crate::alerts) mod state_condition;
