//! The keys and attributes of tables with documents.

use homeport_item::schema::TableSchema;
use homeport_item::{Item, KeyKind};

pub const PK: &str = "pk";
pub const SK: &str = "sk";

/// What the partition of one document's versions begins with; the sort key is the version.
pub const VERSIONS: &str = "versions#";
/// Both keys of the item that counts changes.
pub const CHANGES: &str = "changes";

pub const NAME: &str = "name";
/// The document, as JSON.
pub const DOCUMENT: &str = "document";
pub const VERSION: &str = "version";
pub const CREATED_AT: &str = "created_at";
pub const UPDATED_AT: &str = "updated_at";
/// Of a version: that the document was deleted with it.
pub const DELETED: &str = "deleted";
/// Of the item that counts changes.
pub const CHANGED: &str = "changed";

/// A table with documents.
#[must_use]
pub fn table(name: &str) -> TableSchema {
    TableSchema::new(name, PK, KeyKind::S).with_sort(SK, KeyKind::S)
}

pub(crate) fn key(partition: impl Into<String>, sort: impl Into<String>) -> Item {
    Item::new().with(PK, partition.into()).with(SK, sort.into())
}

pub(crate) fn changes_key() -> Item {
    key(CHANGES, CHANGES)
}
