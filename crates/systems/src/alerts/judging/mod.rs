//! Judging values and silences, and storing what changed: watches, alerts and their notifications.

mod decommissioned;
pub(in crate::alerts) mod followers;
pub(in crate::alerts) mod judge;
pub(in crate::alerts) mod preview;
pub(in crate::alerts) mod reaction;
pub(in crate::alerts) mod settle;
pub(in crate::alerts) mod silence;
pub(in crate::alerts) mod source;
pub(in crate::alerts) mod transition;
pub(in crate::alerts) mod watch;
