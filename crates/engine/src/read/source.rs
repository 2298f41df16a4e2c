//! The table or index that a query or scan reads.

use std::sync::Arc;

use homeport_item::Item;
use homeport_item::binary::DecodeError;
use homeport_item::expression::{Condition, Projection};
use homeport_item::schema::{IndexProjection, KeyError, KeySchema};
use homeport_store::{InvalidRequest, StoreError};

use super::Attributes;
use crate::catalogue::table::{Index, Table};
use crate::storage::layout;
use crate::storage::record::{Record, StoredItem};
use crate::storage::vault::{Keyspace, UserKey, UserValue};

/// A table, or an index with its table.
pub(super) enum ReadSource<'a> {
    Table(&'a Table),
    Index(&'a Table, &'a Index),
}

impl<'a> ReadSource<'a> {
    pub(super) fn of(
        table: &'a Table,
        index: Option<&str>,
        consistent: bool,
    ) -> Result<Self, StoreError> {
        let Some(name) = index else {
            return Ok(Self::Table(table));
        };
        let index = table.readable_index(name)?;
        if consistent && !index.schema.local {
            return Err(StoreError::invalid(InvalidRequest::ConsistentRead(
                name.to_owned(),
            )));
        }
        Ok(Self::Index(table, index))
    }

    /// Whether the items themselves must be read for the requested attributes. A local index reads them; a
    /// global index can only return what it carries.
    pub(super) fn needs_items(
        &self,
        projection: Option<&Projection>,
        attributes: Attributes,
    ) -> Result<bool, StoreError> {
        let Self::Index(table, index) = self else {
            return Ok(false);
        };
        if attributes == Attributes::All && index.schema.projection != IndexProjection::All {
            if index.schema.local {
                return Ok(true);
            }
            return Err(StoreError::invalid(InvalidRequest::AllAttributes(
                index.schema.name.clone(),
            )));
        }
        let Some(projection) = projection else {
            return Ok(false);
        };
        let missing: Vec<_> = projection
            .paths
            .iter()
            .map(|path| path.name())
            .filter(|name| !index.schema.projects(&table.key, name))
            .collect();
        if missing.is_empty() {
            return Ok(false);
        }
        if index.schema.local {
            return Ok(true);
        }
        Err(StoreError::invalid(format!(
            "One or more parameter values were invalid: Global secondary index {} does not project [{}]",
            index.schema.name,
            missing.join(", ")
        )))
    }

    /// A filter must not contain key attributes; those belong in the key condition.
    pub(super) fn check_query_filter(&self, filter: Option<&Condition>) -> Result<(), StoreError> {
        let paths = filter.map(Condition::paths).unwrap_or_default();
        match paths.iter().find(|path| self.key().has(path.name())) {
            None => Ok(()),
            Some(path) => Err(StoreError::invalid(format!(
                "Filter Expression can only contain non-primary key attributes: Primary key attribute: {}",
                path.name()
            ))),
        }
    }

    pub(super) fn key(&self) -> &'a KeySchema {
        match self {
            Self::Table(table) => &table.key,
            Self::Index(_, index) => &index.schema.key,
        }
    }

    pub(super) fn keyspace(&self) -> &'a Keyspace {
        match self {
            Self::Table(table) => &table.items,
            Self::Index(_, index) => &index.entries,
        }
    }

    pub(super) fn table(&self) -> &'a Table {
        match self {
            Self::Table(table) | Self::Index(table, _) => table,
        }
    }

    pub(super) fn record<'r>(
        &self,
        key: &'r [u8],
        value: &'r [u8],
    ) -> Result<Record<'r>, DecodeError>
    where
        'a: 'r,
    {
        match self {
            Self::Table(table) => Record::new(&table.key, key, value),
            Self::Index(table, index) => Record::of_index(&table.key, &index.schema, key, value),
        }
    }

    pub(super) fn stored(&self, key: UserKey, value: UserValue) -> StoredItem {
        let (table, index) = match self {
            Self::Table(table) => (table, None),
            Self::Index(table, index) => (table, Some(Arc::clone(&index.schema))),
        };
        StoredItem {
            schema: Arc::clone(&table.key),
            index,
            key,
            value,
        }
    }

    /// The attributes that identify the end of a page.
    pub(super) fn page_key(&self, key: &[u8]) -> Option<Item> {
        match self {
            Self::Index(table, index) => index.page_key(&table.key, key),
            Self::Table(table) => {
                let mut bytes = key.get(1..)?;
                let (partition, sort) = layout::take_key_values(&table.key, &mut bytes).ok()?;
                let mut item = Item::new().with(table.key.partition.name.as_str(), partition);
                if let (Some(attribute), Some(sort)) = (&table.key.sort, sort) {
                    item.insert(attribute.name.as_str(), sort);
                }
                Some(item)
            }
        }
    }

    /// The stored key of the position that a page ended at.
    pub(super) fn start_key(&self, start: &Item) -> Result<UserKey, StoreError> {
        let malformed = |error: KeyError| match error {
            KeyError::DoesNotMatchSchema | KeyError::Missing(_) => {
                StoreError::invalid("The provided starting key is invalid")
            }
            other => StoreError::invalid(other),
        };
        match self {
            Self::Table(table) => {
                let (partition, sort) = table.key.exact_values(start).map_err(malformed)?;
                Ok(layout::item_key(partition, sort))
            }
            Self::Index(table, index) => {
                let names = [&index.schema.key, table.key.as_ref()];
                let known = |name: &str| names.iter().any(|schema| schema.has(name));
                if start.iter().any(|(name, _)| !known(name)) {
                    return Err(malformed(KeyError::DoesNotMatchSchema));
                }
                let (partition, sort) = table.key.values(start).map_err(malformed)?;
                let item_key = layout::item_key(partition, sort);
                let key = &index.schema.key;
                let values = key.all_values(start).map_err(malformed)?;
                Ok(layout::index_entry_key(key, values, &item_key))
            }
        }
    }
}
