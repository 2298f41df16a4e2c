//! HTTP requests and notifications that rules send.

pub(in crate::rules) mod outbox;
pub(in crate::rules) mod service;
pub(in crate::rules) mod sns;
