//! Sending notifications through Expo's push service, and the work with its receipts.

mod broadcasting;
mod outbox;
mod pace;
mod receipts;
mod service;
mod worker;

pub(super) use outbox::RETRIES;
pub use service::{Envelope, PushService, Receipt, Ticket};
pub use worker::{Turn, Worker};
