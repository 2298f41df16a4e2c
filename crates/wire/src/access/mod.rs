//! Access control: policies in IAM's form, the permissions that a request needs, and the audit log.
//!
//! `operations::run` reads every request once, into the input of its operation, and passes it to `Call::authorize` before the
//! operation runs. Permissions and audited resources come only from that input, so an operation cannot use another resource than
//! the authorized one.

mod attribute_names;
mod audit;
mod call;
mod condition;
mod pattern;
mod permission;
mod policy;
mod request_context;
mod resources;
mod statements;

pub(crate) use attribute_names::{Expressions, attributes_of, listed};
pub(crate) use call::{Call, Request, one_resource};
pub(crate) use permission::Permission;
pub use policy::{Policy, PolicyError};
pub(crate) use request_context::{RequestContext, Values};
pub(crate) use resources::{Resources, key_text};
pub(crate) use statements::permission as statement_permission;
