//! The tables of rules, Homeport's own: rules with their versions, and requests that rules make over
//! HTTP until they are delivered.

use homeport_item::KeyKind;
use homeport_item::schema::TableSchema;

use crate::documents;
use crate::outbox::work_index;
pub(super) use crate::outbox::{DUE_AT_MS, WORK, WORK_PARTITION};

/// What Homeport's own tables begin with: no rule may write into them.
pub const OWN_PREFIX: &str = "homeport-";

pub const RULES: &str = "homeport-rules";
/// The partition of the current rules.
pub const CURRENT: &str = "rule";
/// The partition of the rules that ship with Homeport and were made once.
pub const SHIPPED: &str = "shipped";
/// Requests that rules make over HTTP.
pub const REQUESTS: &str = "homeport-rule-requests";
pub const REQUEST_ID: &str = "request_id";
/// When a request expires.
pub const FORGET_AT: &str = "forget_at";
pub const RULE: &str = "rule";
pub const URL: &str = "url";
pub const HEADERS: &str = "headers";
pub const BODY: &str = "body";
pub const TOPIC: &str = "topic";
pub const CLIENT_ID: &str = "client_id";
pub const PAYLOAD: &str = "payload";
pub const ATTEMPTS: &str = "attempts";

#[must_use]
pub fn rules() -> TableSchema {
    documents::schema::table(RULES)
}

#[must_use]
pub fn requests() -> TableSchema {
    TableSchema::new(REQUESTS, REQUEST_ID, KeyKind::S)
        .with_index(work_index())
        .with_ttl(FORGET_AT)
}

/// All tables of the module.
#[must_use]
pub fn tables() -> Vec<TableSchema> {
    vec![rules(), requests()]
}
