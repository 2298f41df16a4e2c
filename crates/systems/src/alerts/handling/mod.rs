//! What people do with alerts: acknowledge, snooze, assign and comment.

pub(in crate::alerts) mod acknowledge;
mod assign;
pub(in crate::alerts) mod comment;
pub(in crate::alerts) mod snooze;
