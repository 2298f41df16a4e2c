//! Notifications of alerts, and the worker that delivers them.

pub(in crate::alerts) mod announcement;
pub(in crate::alerts) mod notification;
pub(in crate::alerts) mod outbox;
pub(in crate::alerts) mod service;
pub(in crate::alerts) mod worker;
