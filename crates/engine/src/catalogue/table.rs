//! A table at run time: its schema and the keyspaces of its items and index entries.

use std::sync::Arc;

use homeport_item::binary::DecodeError;
use homeport_item::schema::{IndexSchema, KeySchema, TableSchema};
use homeport_item::{Item, Value};
use homeport_store::{InvalidRequest, StoreError};
use serde::{Deserialize, Serialize};

use crate::storage::layout::{self, TableId};
use crate::storage::record::{self, Record};
use crate::storage::vault::{Keyspace, UserKey, UserValue};

/// The catalogue's record of a table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct TableRecord {
    pub(crate) id: TableId,
    pub(crate) created_at_ms: i64,
    /// The schema; its indexes correspond to `indexes`, in the same order.
    pub(crate) schema: TableSchema,
    pub(crate) indexes: Vec<IndexRecord>,
    /// Never reused within a table.
    pub(crate) next_index_id: u32,
    /// The keyspace of the items, unless the table uses the one named after its id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) keyspace: Option<String>,
    /// Unfinished background work on the expiry of older items.
    pub(crate) expiry_job: Option<ExpiryJob>,
    /// Opaque settings that a protocol stores with the table.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) settings: String,
    /// When the newest stream was enabled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) stream_at_ms: Option<i64>,
    /// Since when and for how long changes are kept for restoring; `None` if history is disabled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) history: Option<History>,
}

impl TableRecord {
    /// A new table; all its indexes can be read immediately.
    pub(crate) fn new(id: TableId, schema: TableSchema, settings: String, now_ms: i64) -> Self {
        let index_count = schema.indexes.len();
        Self {
            id,
            created_at_ms: now_ms,
            indexes: (0..)
                .take(index_count)
                .map(|id| IndexRecord {
                    id,
                    state: IndexState::Active,
                    keyspace: None,
                })
                .collect(),
            keyspace: None,
            next_index_id: u32::try_from(index_count).unwrap_or(u32::MAX),
            schema,
            expiry_job: None,
            settings,
            stream_at_ms: None,
            history: None,
        }
    }
}

/// How much of a table's past can be restored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct History {
    /// When history was enabled.
    pub since_ms: i64,
    /// How many days of history are kept.
    pub period_days: u32,
}

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

impl History {
    /// The oldest moment that can be restored.
    #[must_use]
    pub fn reaches_back_to_ms(&self, now_ms: i64) -> i64 {
        self.since_ms
            .max(now_ms - i64::from(self.period_days) * DAY_MS)
    }
}

/// Background work after a change of a table's time to live.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ExpiryJob {
    /// Older items have no expiry entries yet.
    Building,
    /// Items still have expiry entries from the previous TTL attribute.
    Clearing { attribute: String },
}

/// The catalogue's record of an index, besides its schema.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct IndexRecord {
    pub(crate) id: u32,
    pub(crate) state: IndexState,
    /// The keyspace of the entries, unless the index uses the one named after its id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) keyspace: Option<String>,
}

/// Whether an index can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum IndexState {
    /// Writes maintain it, but older items may still be missing.
    Building,
    Active,
}

/// An open table.
pub(crate) struct Table {
    pub(crate) record: TableRecord,
    pub(crate) key: Arc<KeySchema>,
    /// Shared by all versions of the table, so a reader that holds one may read here.
    pub(crate) items: Arc<Keyspace>,
    pub(crate) indexes: Vec<Index>,
}

/// An open index.
pub(crate) struct Index {
    pub(crate) schema: Arc<IndexSchema>,
    pub(crate) state: IndexState,
    /// Shared like the table's own keyspace.
    pub(crate) entries: Arc<Keyspace>,
}

impl TableRecord {
    /// The name of the keyspace of the items.
    pub(crate) fn keyspace_name(&self) -> String {
        let own = || layout::table_keyspace(self.id);
        self.keyspace.clone().unwrap_or_else(own)
    }

    /// The names of the index keyspaces, in the order of the indexes.
    pub(crate) fn index_keyspace_names(&self) -> impl Iterator<Item = String> {
        self.indexes.iter().map(|index| {
            let own = || layout::index_keyspace(self.id, index.id);
            index.keyspace.clone().unwrap_or_else(own)
        })
    }

    /// The names of all keyspaces of the table.
    pub(crate) fn keyspace_names(&self) -> impl Iterator<Item = String> {
        std::iter::once(self.keyspace_name()).chain(self.index_keyspace_names())
    }
}

impl Table {
    pub(crate) fn id(&self) -> TableId {
        self.record.id
    }

    pub(crate) fn name(&self) -> &str {
        &self.record.schema.name
    }

    pub(crate) fn schema(&self) -> &TableSchema {
        &self.record.schema
    }

    pub(crate) fn ttl_attribute(&self) -> Option<&str> {
        self.schema().ttl_attribute.as_deref()
    }

    /// Finds one of the table's keyspaces by name.
    pub(crate) fn open_keyspace(&self, name: &str) -> Option<&Arc<Keyspace>> {
        self.keyspaces().find(|keyspace| keyspace.name() == name)
    }

    pub(crate) fn keyspaces(&self) -> impl Iterator<Item = &Arc<Keyspace>> {
        std::iter::once(&self.items).chain(self.indexes.iter().map(|index| &index.entries))
    }

    /// Whether the table has unfinished background work.
    pub(crate) fn has_job(&self) -> bool {
        self.record.expiry_job.is_some()
            || self
                .indexes
                .iter()
                .any(|index| index.state == IndexState::Building)
    }

    /// Finds an index that can be read.
    pub(crate) fn readable_index(&self, name: &str) -> Result<&Index, StoreError> {
        let index = self.indexes.iter().find(|index| index.schema.name == name);
        match index {
            Some(index) if index.state == IndexState::Active => Ok(index),
            Some(_) => Err(StoreError::invalid(format!(
                "Cannot read from backfilling global secondary index: {name}"
            ))),
            None => Err(StoreError::IndexNotFound {
                table: self.name().to_owned(),
                index: name.to_owned(),
            }),
        }
    }

    /// The stored key for `key`, which must consist of exactly the key attributes.
    pub(crate) fn exact_key(&self, key: &Item) -> Result<UserKey, StoreError> {
        let (partition, sort) = self.key.exact_values(key).map_err(StoreError::invalid)?;
        Ok(layout::item_key(partition, sort))
    }

    /// The stored key of `item`.
    pub(crate) fn key_of(&self, item: &Item) -> Result<UserKey, StoreError> {
        let (partition, sort) = self.key.values(item).map_err(StoreError::invalid)?;
        Ok(layout::item_key(partition, sort))
    }

    /// The stored key and value of a restored item, which may lack index keys.
    pub(crate) fn encode(&self, item: &Item) -> Result<(UserKey, UserValue), StoreError> {
        let key = self.key_of(item)?;
        item.check().map_err(StoreError::invalid)?;
        Ok((key, record::encode(item, &self.key)))
    }

    /// Checks that the item's index key attributes, where present, are valid.
    pub(crate) fn check_index_keys(
        &self,
        item: &Item,
        from: KeyFrom,
    ) -> Result<(), InvalidRequest> {
        for index in &self.indexes {
            for attribute in index.schema.key.attributes() {
                if let Some(value) = item.get(&attribute.name) {
                    index.check_key(&attribute.name, value, from)?;
                }
            }
        }
        Ok(())
    }

    /// Whether the stored item has expired.
    pub(crate) fn is_expired(
        &self,
        record: &Record<'_>,
        now_secs: i64,
    ) -> Result<bool, DecodeError> {
        let expires_at = self.expires_at(record)?;
        Ok(expires_at.is_some_and(|at| record::is_expired(at, now_secs)))
    }

    /// When `record` expires.
    pub(crate) fn expires_at(&self, record: &Record<'_>) -> Result<Option<u64>, DecodeError> {
        match self.ttl_attribute() {
            Some(attribute) => record.expires_at(attribute),
            None => Ok(None),
        }
    }

    /// The expiry window of `record`.
    pub(crate) fn expiry_window(&self, record: &Record<'_>) -> Result<Option<u64>, DecodeError> {
        Ok(self.expires_at(record)?.map(layout::expiry_window))
    }

    /// When an older `record` may be listed as expiring: during clearing, by the previous TTL attribute.
    pub(crate) fn kept_expires_at(&self, record: &Record<'_>) -> Result<Option<u64>, DecodeError> {
        match &self.record.expiry_job {
            Some(ExpiryJob::Clearing { attribute }) => record.expires_at(attribute),
            _ => self.expires_at(record),
        }
    }
}

impl Index {
    /// Checks that `value` is valid for the key attribute `name`.
    pub(crate) fn check_key(
        &self,
        name: &str,
        value: &Value,
        from: KeyFrom,
    ) -> Result<(), InvalidRequest> {
        let checked = self.schema.key.check_attribute(name, value);
        checked.map_err(|error| InvalidRequest::IndexKey {
            index: self.schema.name.clone(),
            error,
            by_update: from == KeyFrom::Update,
        })
    }

    /// The index entry of an item; `None` if the item lacks a key attribute of the index.
    pub(crate) fn entry(
        &self,
        ttl_attribute: Option<&str>,
        record: &Record<'_>,
        item_key: &[u8],
        value: &UserValue,
    ) -> Result<Option<(UserKey, UserValue)>, DecodeError> {
        match self.entry_key(record, item_key)? {
            Some(key) => {
                let value = record.index_value(&self.schema, ttl_attribute, value)?;
                Ok(Some((key, value)))
            }
            None => Ok(None),
        }
    }

    fn entry_key(
        &self,
        record: &Record<'_>,
        item_key: &[u8],
    ) -> Result<Option<UserKey>, DecodeError> {
        let key = &self.schema.key;
        let mut values = Vec::with_capacity(2);
        for attribute in key.attributes() {
            // An index that was added later can meet items whose attribute has another type: as in DynamoDB,
            // they are not in the index.
            match record.attribute(&attribute.name)? {
                Some(value) if key.check_attribute(&attribute.name, &value).is_ok() => {
                    values.push(value);
                }
                _ => return Ok(None),
            }
        }
        Ok(Some(layout::index_entry_key(key, &values, item_key)))
    }

    /// The attributes that identify the end of a page of this index: its own key and the table's.
    pub(crate) fn page_key(&self, table: &KeySchema, entry_key: &[u8]) -> Option<Item> {
        let mut bytes = entry_key.get(1..)?;
        let mut item = Item::new();
        for schema in [&self.schema.key, table] {
            let values = layout::take_all_values(schema, &mut bytes).ok()?;
            for (attribute, value) in schema.attributes().zip(values) {
                item.insert(attribute.name.as_str(), value);
            }
        }
        Some(item)
    }
}

/// The kind of write that sets an index key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyFrom {
    Put,
    Update,
}

impl std::fmt::Debug for Table {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Table")
            .field("record", &self.record)
            .finish_non_exhaustive()
    }
}

/// The description of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct TableDescription {
    pub schema: TableSchema,
    pub created_at_ms: i64,
    /// The state of each index, in the schema's order.
    pub index_states: Vec<IndexState>,
    /// Whether a change of the time to live is still in progress; until then, indexes may show expired items.
    pub expiry_is_changing: bool,
    /// Distinguishes this table from all others that ever had its name.
    pub id: u32,
    /// The settings that a protocol stores with the table.
    pub settings: String,
    /// When the newest stream was enabled; a disabled stream may still be readable.
    pub stream_at_ms: Option<i64>,
    /// How much of the table's past can be restored, if history is enabled.
    pub history: Option<History>,
    /// Whether the table is still being restored from a backup or from another table's history.
    pub is_restoring: bool,
}

/// A current table, without a copy of its schema.
#[derive(Debug, Clone)]
pub struct TableView(pub(crate) Arc<Table>);

impl TableView {
    #[must_use]
    pub fn schema(&self) -> &TableSchema {
        self.0.schema()
    }
}

/// The size of a table or an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DataSize {
    pub items: u64,
    pub bytes: u64,
}

/// The sizes of a table and its indexes, in the schema's order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TableSize {
    pub table: DataSize,
    pub indexes: Vec<DataSize>,
}

impl TableDescription {
    pub(crate) fn of(table: &Table) -> Self {
        Self {
            schema: table.schema().clone(),
            created_at_ms: table.record.created_at_ms,
            index_states: table.indexes.iter().map(|index| index.state).collect(),
            expiry_is_changing: table.record.expiry_job.is_some(),
            id: table.id(),
            settings: table.record.settings.clone(),
            stream_at_ms: table.record.stream_at_ms,
            history: table.record.history,
            is_restoring: false,
        }
    }
}
