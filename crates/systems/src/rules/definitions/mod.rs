//! Rules as operators write them, how they are stored and changed, and their compiled form in memory.

pub(in crate::rules) mod compiled;
pub(in crate::rules) mod compiled_notes;
pub(in crate::rules) mod document;
pub(in crate::rules) mod load;
pub(in crate::rules) mod manage;
pub(in crate::rules) mod name;
pub(in crate::rules) mod registry;
pub(in crate::rules) mod rule;
pub(in crate::rules) mod shipped;
