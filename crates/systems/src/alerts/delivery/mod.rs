//! Notifications of alerts, and the worker that delivers them.

pub(in crate::alerts) mod announcement;
pub(in crate::alerts) mod notification;
pub(in crate::alerts) mod outbox;
pub(in crate::alerts) mod result;
pub(in crate::alerts) mod service;
mod test_notifications;
pub(in crate::alerts) mod worker;
