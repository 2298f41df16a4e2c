//! Processing a message: planning, writing, counting, and what happens after a failure.

pub(in crate::rules) mod carry_out;
pub(in crate::rules) mod failure;
pub(in crate::rules) mod moments;
pub(in crate::rules) mod plan;
pub(in crate::rules) mod stats;
pub(in crate::rules) mod write;
