//! A table: its schema and its items by key. Expiry and indexes are computed on every read.

use std::collections::BTreeMap;

use homeport_item::schema::{IndexSchema, KeySchema, TableSchema};
use homeport_item::{Item, Number, Value};

use super::invalid;
use crate::{StoreError, TTL_AGE_MAX_SECS};

#[derive(Clone)]
pub(super) struct Table {
    pub(super) schema: TableSchema,
    items: BTreeMap<Key, Item>,
}

/// The values of a key, ordered as DynamoDB orders them.
pub(super) type Key = Vec<KeyValue>;

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum KeyValue {
    N(Number),
    S(String),
    B(Vec<u8>),
}

/// An item's position in a table or index: the index key, then the table key.
pub(super) type RowPosition = (Key, Key);

impl Table {
    pub(super) fn new(schema: TableSchema) -> Self {
        Self {
            schema,
            items: BTreeMap::new(),
        }
    }

    /// Adds the parts of `schema` that the table lacks.
    pub(super) fn extend(&mut self, schema: &TableSchema) -> Result<(), StoreError> {
        if self.schema.key != schema.key {
            return Err(invalid("the table exists with different keys"));
        }
        for index in &schema.indexes {
            match self.schema.index(&index.name) {
                None => self.schema.indexes.push(index.clone()),
                Some(existing) if existing == index => {}
                Some(_) => return Err(invalid("the index exists with a different schema")),
            }
        }
        self.schema.check().map_err(invalid)?;
        if schema.ttl_attribute.is_some() {
            self.schema.ttl_attribute.clone_from(&schema.ttl_attribute);
        }
        if schema.stream.is_some() {
            self.schema.stream = schema.stream;
        }
        Ok(())
    }

    pub(super) fn index(&self, name: &str) -> Result<&IndexSchema, StoreError> {
        self.schema
            .index(name)
            .ok_or_else(|| StoreError::IndexNotFound {
                table: self.schema.name.clone(),
                index: name.to_owned(),
            })
    }

    /// The item with this key, unless it has expired.
    pub(super) fn get(&self, key: &Key, now_secs: i64) -> Option<&Item> {
        let item = self.items.get(key)?;
        (!self.has_expired(item, now_secs)).then_some(item)
    }

    /// Replaces an item, or deletes it with `None`.
    pub(super) fn set(&mut self, key: Key, item: Option<Item>) {
        match item {
            Some(item) => self.items.insert(key, item),
            None => self.items.remove(&key),
        };
    }

    /// The items of the table or of one of its indexes, in order.
    pub(super) fn rows(
        &self,
        index: Option<&IndexSchema>,
        now_secs: i64,
    ) -> Vec<(RowPosition, &Item)> {
        let mut rows: Vec<_> = self
            .items
            .values()
            .filter(|item| !self.has_expired(item, now_secs))
            .filter_map(|item| Some((self.position(index, item)?, item)))
            .collect();
        rows.sort_by(|one, two| one.0.cmp(&two.0));
        rows
    }

    /// The item's position, if it has the keys of the index.
    pub(super) fn position(&self, index: Option<&IndexSchema>, item: &Item) -> Option<RowPosition> {
        let own = key_in(&self.schema.key, item)?;
        let outer = match index {
            Some(index) => key_in(&index.key, item)?,
            None => own.clone(),
        };
        Some((outer, own))
    }

    fn has_expired(&self, item: &Item, now_secs: i64) -> bool {
        let Some(name) = &self.schema.ttl_attribute else {
            return false;
        };
        let Some(Value::N(expires)) = item.get(name) else {
            return false;
        };
        let expires_secs = expires.floor_i64();
        (now_secs - TTL_AGE_MAX_SECS..=now_secs).contains(&expires_secs)
    }
}

/// The values of a key that may contain nothing but the key attributes.
pub(super) fn exact_key(schema: &KeySchema, key: &Item) -> Result<Key, StoreError> {
    schema.exact_values(key).map_err(invalid)?;
    key_in(schema, key).ok_or_else(|| invalid("a key is missing"))
}

/// The key values of an item.
pub(super) fn item_key(schema: &KeySchema, item: &Item) -> Result<Key, StoreError> {
    schema.values(item).map_err(invalid)?;
    key_in(schema, item).ok_or_else(|| invalid("a key is missing"))
}

/// The key values of an item; `None` if one is missing or cannot be a key.
fn key_in(schema: &KeySchema, item: &Item) -> Option<Key> {
    let values = schema.all_values(item).ok()?;
    values.into_iter().map(key_value).collect()
}

pub(super) fn key_value(value: &Value) -> Option<KeyValue> {
    match value {
        Value::S(text) => Some(KeyValue::S(text.clone())),
        Value::N(number) => Some(KeyValue::N(*number)),
        Value::B(bytes) => Some(KeyValue::B(bytes.clone())),
        _ => None,
    }
}
