//! What a table looks like: keys, indexes, time to live, stream.

use serde::{Deserialize, Serialize};

use crate::item::Item;
use crate::key::{KeyKind, PARTITION_KEY_MAX_BYTES, SORT_KEY_MAX_BYTES};
use crate::value::Value;

/// Local secondary indexes a table may have.
pub const LOCAL_INDEXES_MAX: usize = 5;
/// Attributes that a partition key or a sort key of a global index may have.
pub const KEY_PART_ATTRIBUTES_MAX: usize = 4;
/// Attributes that an INCLUDE projection may name.
pub const INCLUDED_ATTRIBUTES_MAX: usize = 100;

/// An attribute that is part of a key.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct KeyAttribute {
    pub name: String,
    pub kind: KeyKind,
}

/// A partition key and, perhaps, a sort key. Those of a global index may have several attributes each.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct KeySchema {
    pub partition: KeyAttribute,
    pub sort: Option<KeyAttribute>,
    /// The attributes of the partition key behind the first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub partition_rest: Vec<KeyAttribute>,
    /// The attributes of the sort key behind the first; there are none without that.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sort_rest: Vec<KeyAttribute>,
}

/// The attributes that an index carries besides the keys of its table and its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum IndexProjection {
    KeysOnly,
    Include(Vec<String>),
    All,
}

/// A secondary index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexSchema {
    pub name: String,
    pub key: KeySchema,
    pub projection: IndexProjection,
    /// A local index shares its table's partition key.
    pub local: bool,
}

/// Which images of an item the change log keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum StreamView {
    KeysOnly,
    NewImage,
    OldImage,
    NewAndOldImages,
}

/// A table as it is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableSchema {
    pub name: String,
    pub key: KeySchema,
    pub indexes: Vec<IndexSchema>,
    /// The attribute that holds an item's expiry in epoch seconds.
    pub ttl_attribute: Option<String>,
    pub stream: Option<StreamView>,
}

/// Why a schema cannot be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    #[error("TableName must be 3 to 255 characters of a-z, A-Z, 0-9, '_', '-' and '.'")]
    TableName,
    #[error("index name {0:?} must be 3 to 255 characters of a-z, A-Z, 0-9, '_', '-' and '.'")]
    IndexName(String),
    #[error("two indexes have the name {0:?}")]
    DuplicateIndex(String),
    #[error("a key attribute's name must be 1 to 255 bytes long")]
    KeyName,
    #[error("a key has the attribute {0:?} twice")]
    SameKey(String),
    #[error(
        "a key has at most {KEY_PART_ATTRIBUTES_MAX} attributes for each part on a global index, and one elsewhere"
    )]
    SeveralAttributes,
    #[error("attribute {0:?} is used with two different types")]
    ConflictingKind(String),
    #[error("local index {0:?} must have its table's partition key and a sort key of its own")]
    LocalKey(String),
    #[error("a table may have {LOCAL_INDEXES_MAX} local indexes at most")]
    TooManyLocalIndexes,
    #[error("the indexes' projections may name {INCLUDED_ATTRIBUTES_MAX} attributes at most")]
    TooManyIncluded,
}

/// Why an item's keys cannot be those of a table.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    #[error("One or more parameter values were invalid: Missing the key {0} in the item")]
    Missing(String),
    #[error(
        "One or more parameter values were invalid: Type mismatch for key {name} expected: {expected} actual: {actual}"
    )]
    WrongKind {
        name: String,
        expected: &'static str,
        actual: &'static str,
    },
    #[error(
        "One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty {kind} value. Key: {name}"
    )]
    Empty { name: String, kind: &'static str },
    #[error(
        "One or more parameter values were invalid: Size of hashkey has exceeded the maximum size limit of{PARTITION_KEY_MAX_BYTES} bytes"
    )]
    PartitionTooLong,
    #[error(
        "One or more parameter values were invalid: Aggregated size of all range keys has exceeded the size limit of {SORT_KEY_MAX_BYTES} bytes"
    )]
    SortTooLong,
    #[error("The provided key element does not match the schema")]
    DoesNotMatchSchema,
}

impl KeyAttribute {
    pub fn new(name: impl Into<String>, kind: KeyKind) -> Self {
        Self {
            name: name.into(),
            kind,
        }
    }

    /// Checks that `value` may stand for this attribute in a key of at most `max_bytes`.
    fn check(&self, value: &Value, max_bytes: usize, too_long: KeyError) -> Result<(), KeyError> {
        if value.kind() != self.kind.value_kind() {
            return Err(KeyError::WrongKind {
                name: self.name.clone(),
                expected: self.kind.value_kind().name(),
                actual: value.kind().name(),
            });
        }
        let (len, kind) = match value {
            Value::S(text) => (text.len(), "string"),
            Value::B(bytes) => (bytes.len(), "binary"),
            _ => return Ok(()),
        };
        if len == 0 {
            return Err(KeyError::Empty {
                name: self.name.clone(),
                kind,
            });
        }
        if len > max_bytes {
            return Err(too_long);
        }
        Ok(())
    }
}

impl KeySchema {
    #[must_use]
    pub fn new(partition: KeyAttribute, sort: Option<KeyAttribute>) -> Self {
        Self {
            partition,
            sort,
            partition_rest: Vec::new(),
            sort_rest: Vec::new(),
        }
    }

    /// A key of these attributes; `None` without one for the partition.
    #[must_use]
    pub fn of_parts(
        partition: impl IntoIterator<Item = KeyAttribute>,
        sort: impl IntoIterator<Item = KeyAttribute>,
    ) -> Option<Self> {
        let (mut partition, mut sort) = (partition.into_iter(), sort.into_iter());
        Some(Self {
            partition: partition.next()?,
            sort: sort.next(),
            partition_rest: partition.collect(),
            sort_rest: sort.collect(),
        })
    }

    /// Those of the partition key, in order.
    pub fn partition_attributes(&self) -> impl Iterator<Item = &KeyAttribute> {
        std::iter::once(&self.partition).chain(&self.partition_rest)
    }

    /// Those of the sort key, in order.
    pub fn sort_attributes(&self) -> impl Iterator<Item = &KeyAttribute> {
        self.sort.iter().chain(&self.sort_rest)
    }

    /// All attributes, those of the partition key first.
    pub fn attributes(&self) -> impl Iterator<Item = &KeyAttribute> {
        self.partition_attributes().chain(self.sort_attributes())
    }

    /// Whether a part of the key has several attributes.
    #[must_use]
    pub fn has_several(&self) -> bool {
        !self.partition_rest.is_empty() || !self.sort_rest.is_empty()
    }

    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.attributes().any(|attribute| attribute.name == name)
    }

    /// The key values of `item`, checked.
    ///
    /// # Errors
    /// When one is missing, of the wrong type, empty or too long.
    pub fn values<'a>(&self, item: &'a Item) -> Result<(&'a Value, Option<&'a Value>), KeyError> {
        let value = |attribute: &KeyAttribute| {
            item.get(&attribute.name)
                .ok_or_else(|| KeyError::Missing(attribute.name.clone()))
        };
        let partition = value(&self.partition)?;
        self.check_partition(partition)?;
        let sort = self.sort.as_ref().map(value).transpose()?;
        if let Some(sort) = sort {
            self.check_sort(sort)?;
        }
        Ok((partition, sort))
    }

    /// The values of all attributes of the key, in order, checked.
    ///
    /// # Errors
    /// When one is missing, of the wrong type, empty or too long.
    pub fn all_values<'a>(&self, item: &'a Item) -> Result<Vec<&'a Value>, KeyError> {
        self.attributes()
            .map(|attribute| {
                let value = item.get(&attribute.name);
                let value = value.ok_or_else(|| KeyError::Missing(attribute.name.clone()))?;
                self.check_attribute(&attribute.name, value)?;
                Ok(value)
            })
            .collect()
    }

    /// Checks a value for the attribute of the key that has this name.
    ///
    /// # Errors
    /// When the key has no such attribute, or the value is of the wrong type, empty or too long.
    pub fn check_attribute(&self, name: &str, value: &Value) -> Result<(), KeyError> {
        let is_named = |attribute: &&KeyAttribute| attribute.name == name;
        if let Some(attribute) = self.partition_attributes().find(is_named) {
            return attribute.check(value, PARTITION_KEY_MAX_BYTES, KeyError::PartitionTooLong);
        }
        self.sort_attributes()
            .find(is_named)
            .ok_or(KeyError::DoesNotMatchSchema)?
            .check(value, SORT_KEY_MAX_BYTES, KeyError::SortTooLong)
    }

    /// The values of a key that must have exactly the key's attributes.
    ///
    /// # Errors
    /// When it has others, lacks one, or one is invalid.
    pub fn exact_values<'a>(
        &self,
        key: &'a Item,
    ) -> Result<(&'a Value, Option<&'a Value>), KeyError> {
        let right_kind = |attribute: &KeyAttribute| {
            key.get(&attribute.name)
                .is_some_and(|value| value.kind() == attribute.kind.value_kind())
        };
        if key.len() != self.attributes().count() || !self.attributes().all(right_kind) {
            return Err(KeyError::DoesNotMatchSchema);
        }
        self.values(key)
    }

    /// Checks a value for the partition key.
    ///
    /// # Errors
    /// When it is of the wrong type, empty or too long.
    pub fn check_partition(&self, value: &Value) -> Result<(), KeyError> {
        self.partition
            .check(value, PARTITION_KEY_MAX_BYTES, KeyError::PartitionTooLong)
    }

    /// Checks a value for the sort key.
    ///
    /// # Errors
    /// When there is no sort key, or the value is of the wrong type, empty or too long.
    pub fn check_sort(&self, value: &Value) -> Result<(), KeyError> {
        self.sort
            .as_ref()
            .ok_or(KeyError::DoesNotMatchSchema)?
            .check(value, SORT_KEY_MAX_BYTES, KeyError::SortTooLong)
    }
}

impl TableSchema {
    /// A table with a partition key, to be completed with the `with_` methods.
    pub fn new(name: impl Into<String>, partition: &str, kind: KeyKind) -> Self {
        Self {
            name: name.into(),
            key: KeySchema::new(KeyAttribute::new(partition, kind), None),
            indexes: Vec::new(),
            ttl_attribute: None,
            stream: None,
        }
    }

    #[must_use]
    pub fn with_sort(mut self, sort: &str, kind: KeyKind) -> Self {
        self.key.sort = Some(KeyAttribute::new(sort, kind));
        self
    }

    #[must_use]
    pub fn with_index(mut self, index: IndexSchema) -> Self {
        self.indexes.push(index);
        self
    }

    #[must_use]
    pub fn with_ttl(mut self, attribute: &str) -> Self {
        self.ttl_attribute = Some(attribute.to_owned());
        self
    }

    #[must_use]
    pub fn with_stream(mut self, view: StreamView) -> Self {
        self.stream = Some(view);
        self
    }

    #[must_use]
    pub fn index(&self, name: &str) -> Option<&IndexSchema> {
        self.indexes.iter().find(|index| index.name == name)
    }

    /// Checks names, keys and limits.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check(&self) -> Result<(), SchemaError> {
        if !is_resource_name(&self.name) {
            return Err(SchemaError::TableName);
        }
        check_key(&self.key)?;
        if self.key.has_several() {
            return Err(SchemaError::SeveralAttributes);
        }
        for (at, index) in self.indexes.iter().enumerate() {
            if !is_resource_name(&index.name) {
                return Err(SchemaError::IndexName(index.name.clone()));
            }
            if self.indexes[..at]
                .iter()
                .any(|other| other.name == index.name)
            {
                return Err(SchemaError::DuplicateIndex(index.name.clone()));
            }
            check_key(&index.key)?;
            if index.local && index.key.has_several() {
                return Err(SchemaError::SeveralAttributes);
            }
            if index.local
                && (index.key.partition != self.key.partition || index.key.sort.is_none())
            {
                return Err(SchemaError::LocalKey(index.name.clone()));
            }
        }
        if self.indexes.iter().filter(|index| index.local).count() > LOCAL_INDEXES_MAX {
            return Err(SchemaError::TooManyLocalIndexes);
        }
        let included = self.indexes.iter().map(|index| match &index.projection {
            IndexProjection::Include(names) => names.len(),
            _ => 0,
        });
        if included.sum::<usize>() > INCLUDED_ATTRIBUTES_MAX {
            return Err(SchemaError::TooManyIncluded);
        }
        self.check_kinds()
    }

    /// One attribute has one type, in whatever keys it stands.
    fn check_kinds(&self) -> Result<(), SchemaError> {
        let mut kinds = std::collections::BTreeMap::new();
        let keys = std::iter::once(&self.key).chain(self.indexes.iter().map(|index| &index.key));
        for attribute in keys.flat_map(KeySchema::attributes) {
            let kind = *kinds.entry(&attribute.name).or_insert(attribute.kind);
            if kind != attribute.kind {
                return Err(SchemaError::ConflictingKind(attribute.name.clone()));
            }
        }
        Ok(())
    }
}

impl IndexSchema {
    /// A global index that carries whole items.
    pub fn global(name: &str, partition: KeyAttribute, sort: Option<KeyAttribute>) -> Self {
        Self {
            name: name.to_owned(),
            key: KeySchema::new(partition, sort),
            projection: IndexProjection::All,
            local: false,
        }
    }

    #[must_use]
    pub fn projecting(mut self, projection: IndexProjection) -> Self {
        self.projection = projection;
        self
    }

    /// Whether an entry of this index on a table with `table_key` carries the attribute.
    #[must_use]
    pub fn carries(&self, table_key: &KeySchema, name: &str) -> bool {
        match &self.projection {
            IndexProjection::All => true,
            IndexProjection::KeysOnly => self.key.has(name) || table_key.has(name),
            IndexProjection::Include(names) => {
                self.key.has(name)
                    || table_key.has(name)
                    || names.iter().any(|included| included == name)
            }
        }
    }
}

fn check_key(key: &KeySchema) -> Result<(), SchemaError> {
    if key
        .attributes()
        .any(|attribute| attribute.name.is_empty() || attribute.name.len() > 255)
    {
        return Err(SchemaError::KeyName);
    }
    if key.partition_rest.len() >= KEY_PART_ATTRIBUTES_MAX
        || key.sort_rest.len() >= KEY_PART_ATTRIBUTES_MAX
        || (key.sort.is_none() && !key.sort_rest.is_empty())
    {
        return Err(SchemaError::SeveralAttributes);
    }
    let mut seen = std::collections::BTreeSet::new();
    let twice = key
        .attributes()
        .find(|attribute| !seen.insert(attribute.name.as_str()));
    match twice {
        Some(twice) => Err(SchemaError::SameKey(twice.name.clone())),
        None => Ok(()),
    }
}

fn is_resource_name(name: &str) -> bool {
    (3..=255).contains(&name.len())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> TableSchema {
        TableSchema::new("events", "device", KeyKind::S).with_sort("at", KeyKind::N)
    }

    #[test]
    fn keys_of_an_item_are_checked() {
        let key = table().key;
        let good = Item::new().with("device", "a").with("at", 1).with("x", 2);
        assert!(key.values(&good).is_ok());
        assert_eq!(key.exact_values(&good), Err(KeyError::DoesNotMatchSchema));
        let missing = Item::new().with("device", "a");
        assert_eq!(key.values(&missing), Err(KeyError::Missing("at".into())));
        let empty = Item::new().with("device", "").with("at", 1);
        assert!(matches!(key.values(&empty), Err(KeyError::Empty { .. })));
        let long = Item::new().with("device", "x".repeat(2049)).with("at", 1);
        assert_eq!(key.values(&long), Err(KeyError::PartitionTooLong));
        let wrong = Item::new().with("device", "a").with("at", "1");
        assert!(matches!(
            key.values(&wrong),
            Err(KeyError::WrongKind { .. })
        ));
    }

    #[test]
    fn impossible_schemas_are_refused() {
        let kind = |name: &str, kind| KeyAttribute::new(name, kind);
        assert_eq!(table().check(), Ok(()));
        assert_eq!(
            TableSchema::new("x", "a", KeyKind::S).check(),
            Err(SchemaError::TableName)
        );
        assert_eq!(
            TableSchema::new("xyz", "a", KeyKind::S)
                .with_sort("a", KeyKind::S)
                .check(),
            Err(SchemaError::SameKey("a".into()))
        );
        let conflicting = IndexSchema::global("by-at", kind("at", KeyKind::S), None);
        assert_eq!(
            table().with_index(conflicting).check(),
            Err(SchemaError::ConflictingKind("at".into()))
        );
        let mut local = IndexSchema::global("loc", kind("other", KeyKind::S), None);
        local.local = true;
        assert_eq!(
            table().with_index(local).check(),
            Err(SchemaError::LocalKey("loc".into()))
        );
        let index = IndexSchema::global("idx", kind("x", KeyKind::S), None);
        assert_eq!(
            table().with_index(index.clone()).with_index(index).check(),
            Err(SchemaError::DuplicateIndex("idx".into()))
        );
    }

    #[test]
    fn a_projection_always_carries_the_keys() {
        let index = IndexSchema::global("idx", KeyAttribute::new("x", KeyKind::S), None)
            .projecting(IndexProjection::Include(vec!["y".into()]));
        let key = table().key;
        let carried: Vec<_> = ["device", "at", "x", "y", "z"]
            .into_iter()
            .filter(|name| index.carries(&key, name))
            .collect();
        assert_eq!(carried, ["device", "at", "x", "y"]);
    }

    #[test]
    fn only_global_indexes_have_keys_of_several_attributes() {
        let attribute = |name: &str| KeyAttribute::new(name, KeyKind::S);
        let of = |partition: &[&str], sort: &[&str]| {
            let attributes = |names: &[&str]| names.iter().map(|name| attribute(name)).collect();
            let (partition, sort): (Vec<_>, Vec<_>) = (attributes(partition), attributes(sort));
            KeySchema::of_parts(partition, sort).expect("a partition key")
        };
        let with = |key: KeySchema, local: bool| {
            let index = IndexSchema {
                key,
                local,
                ..IndexSchema::global("index", attribute("a"), None)
            };
            let table = TableSchema::new("things", "a", KeyKind::S);
            table.with_index(index).check()
        };
        assert_eq!(with(of(&["a", "b"], &["c", "d"]), false), Ok(()));
        let several = Err(SchemaError::SeveralAttributes);
        assert_eq!(with(of(&["a"], &["c", "d"]), true), several);
        assert_eq!(with(of(&["a", "b", "c", "d", "e"], &[]), false), several);
        assert_eq!(
            with(of(&["a"], &["b", "c", "b"]), false),
            Err(SchemaError::SameKey("b".to_owned()))
        );
        let table = TableSchema {
            key: of(&["a", "b"], &[]),
            ..TableSchema::new("things", "a", KeyKind::S)
        };
        assert_eq!(table.check(), several);
    }

    #[test]
    fn a_key_is_stored_as_before_where_each_part_has_one_attribute() {
        let key = KeySchema::new(KeyAttribute::new("a", KeyKind::S), None);
        let stored = serde_json::to_string(&key).expect("JSON");
        assert_eq!(
            stored,
            r#"{"partition":{"name":"a","kind":"S"},"sort":null}"#
        );
        let read: KeySchema = serde_json::from_str(&stored).expect("a key");
        assert_eq!(read, key);
    }
}
