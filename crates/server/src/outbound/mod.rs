//! Requests to other services: Expo, webhooks, the HTTP actions of rules, key sets, and e-mail.

mod alert_delivery;
mod client;
mod expo;
mod public_address;
mod rule_requests;
mod smtp;
mod standard_webhooks;

pub use alert_delivery::Delivery;
pub(crate) use client::{AllowedAddresses, HttpClient};
pub use expo::Expo;
pub use rule_requests::{InvalidRequestSecret, SignedRequests};
pub use smtp::{SmtpRelay, SmtpRelayError, SmtpTls};
