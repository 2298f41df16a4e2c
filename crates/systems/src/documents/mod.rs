//! Named documents with versions, which operators write: the stored form that rules and payload decoders share.
//! Every change is a new version; old versions stay readable. What a document means is not part of this module.

pub mod schema;
mod write;

use std::sync::Arc;

use homeport_item::expression::KeyCondition;
use homeport_item::{Item, Value};
use homeport_store::{Get, Query, Store, StoreError};

use crate::time::EpochMillis;

pub(crate) use write::{Change, ChangeError};

/// Versions of a document that are kept.
pub const VERSIONS_KEPT: i64 = 100;
/// Digits of a version in its key.
const VERSION_DIGITS: usize = 10;

/// A document, or one of its versions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Document {
    pub(crate) name: String,
    pub(crate) json: String,
    pub(crate) version: i64,
    pub(crate) created_at: EpochMillis,
    pub(crate) updated_at: EpochMillis,
    /// Whether this is the version that deleted the document.
    pub(crate) is_deletion: bool,
}

/// The documents of one table.
#[derive(Clone)]
pub(crate) struct Documents {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) table: &'static str,
    /// The partition of the current documents.
    pub(crate) current: &'static str,
}

/// A stored document has an unknown form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a stored document has an unknown form")]
pub(crate) struct MalformedDocument;

impl Documents {
    pub(crate) async fn get(&self, name: &str) -> Result<Option<Item>, StoreError> {
        self.store
            .get(Get::new(self.table, schema::key(self.current, name)))
            .await
    }

    /// The items of all current documents by name; the last page may exceed `count_max`.
    pub(crate) async fn all(&self, count_max: usize) -> Result<Vec<Item>, StoreError> {
        let condition = KeyCondition::new(schema::PK, self.current);
        self.read(Query::new(self.table, condition), count_max)
            .await
    }

    /// The items of the newest versions of a document, newest first, also of a deleted one.
    pub(crate) async fn versions(&self, name: &str, limit: usize) -> Result<Vec<Item>, StoreError> {
        let condition = KeyCondition::new(schema::PK, versions_partition(name));
        let query = Query::new(self.table, condition).descending().limit(limit);
        self.read(query, limit).await
    }

    pub(crate) async fn version(
        &self,
        name: &str,
        version: i64,
    ) -> Result<Option<Item>, StoreError> {
        let get = Get::new(self.table, version_key(name, version));
        self.store.get(get).await
    }

    /// The stored count of changes, by which a process notices the changes of others.
    pub(crate) async fn change_count(&self) -> Result<i64, StoreError> {
        let get = Get::new(self.table, schema::changes_key());
        let item = self.store.get(get).await?;
        let count = item.and_then(|item| item.get(schema::CHANGED)?.as_number()?.to_i64());
        Ok(count.unwrap_or(0))
    }

    async fn read(&self, mut query: Query, count_max: usize) -> Result<Vec<Item>, StoreError> {
        query.consistent = true;
        let mut items = Vec::new();
        loop {
            let page = self.store.query(query.clone()).await?;
            items.extend(page.items);
            query.start = page.next;
            if query.start.is_none() || items.len() >= count_max {
                return Ok(items);
            }
        }
    }
}

impl Document {
    pub(crate) fn to_item(&self, current: &str) -> Item {
        self.with_key(schema::key(current, self.name.as_str()))
    }

    pub(crate) fn to_version_item(&self) -> Item {
        let mut item = self.with_key(version_key(&self.name, self.version));
        if self.is_deletion {
            item.insert(schema::DELETED, true);
        }
        item
    }

    fn with_key(&self, key: Item) -> Item {
        key.with(schema::NAME, self.name.as_str())
            .with(schema::DOCUMENT, self.json.as_str())
            .with(schema::VERSION, self.version)
            .with(schema::CREATED_AT, self.created_at.0)
            .with(schema::UPDATED_AT, self.updated_at.0)
    }

    pub(crate) fn from_item(item: &Item) -> Result<Self, MalformedDocument> {
        let text = |name| item.get(name).and_then(Value::as_str).map(str::to_owned);
        let whole = |name| item.get(name)?.as_number()?.to_i64();
        let read = || {
            Some(Self {
                name: text(schema::NAME)?,
                json: text(schema::DOCUMENT)?,
                version: whole(schema::VERSION)?,
                created_at: EpochMillis(whole(schema::CREATED_AT)?),
                updated_at: EpochMillis(whole(schema::UPDATED_AT)?),
                is_deletion: item.get(schema::DELETED).and_then(Value::as_bool) == Some(true),
            })
        };
        read().ok_or(MalformedDocument)
    }
}

fn version_key(name: &str, version: i64) -> Item {
    schema::key(
        versions_partition(name),
        format!("{version:0width$}", width = VERSION_DIGITS),
    )
}

fn versions_partition(name: &str) -> String {
    format!("{}{name}", schema::VERSIONS)
}
