//! Who may do what: a credential's policy in IAM's form, what a request needs, and a record of calls that change tables.
//!
//! Every request passes `authorize` before its operation sees it, so that no operation can forget to ask.

mod audit;
mod authorize;
mod condition;
mod needs;
mod needs_of_items;
mod needs_of_statements;
mod pattern;
mod policy;
mod request_context;
mod strict_json;

pub(crate) use audit::{Call, record};
pub(crate) use authorize::authorize;
pub use policy::{Policy, PolicyError};
