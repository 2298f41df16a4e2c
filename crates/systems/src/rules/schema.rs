//! The tables of rules, Homeport's own: rules with their versions, and requests that rules make over
//! HTTP until they are delivered.

use homeport_item::schema::TableSchema;
use homeport_item::{Item, KeyKind};

use crate::outbox::work_index;
pub(super) use crate::outbox::{DUE_AT_MS, WORK, WORK_PARTITION};

/// What Homeport's own tables begin with: no rule may write into them.
pub const OWN_PREFIX: &str = "homeport-";

pub const RULES: &str = "homeport-rules";
pub const PK: &str = "pk";
pub const SK: &str = "sk";

/// The partition of the rules as they are; the sort key is the name.
pub const CURRENT: &str = "rule";
/// What the partition of one rule's versions begins with; the sort key is the version.
pub const VERSIONS: &str = "versions#";
/// The partition of the rules that ship with Homeport and were made once.
pub const SHIPPED: &str = "shipped";
/// Both keys of the item that counts changes.
pub const CHANGES: &str = "changes";

pub const NAME: &str = "name";
/// The rule's document, as JSON.
pub const DOCUMENT: &str = "document";
pub const VERSION: &str = "version";
pub const CREATED_AT: &str = "created_at";
pub const UPDATED_AT: &str = "updated_at";
/// Of a version: that the rule was deleted with it.
pub const DELETED: &str = "deleted";
/// Of the item that counts changes.
pub const CHANGED: &str = "changed";

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
    TableSchema::new(RULES, PK, KeyKind::S).with_sort(SK, KeyKind::S)
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

pub(super) fn key(partition: impl Into<String>, sort: impl Into<String>) -> Item {
    Item::new().with(PK, partition.into()).with(SK, sort.into())
}
