//! Table schemas: keys, indexes, time to live and stream.

use serde::{Deserialize, Serialize};

use crate::item::Item;
use crate::key::{KeyKind, PARTITION_KEY_MAX_BYTES, SORT_KEY_MAX_BYTES};
use crate::value::Value;

/// Maximum number of local secondary indexes per table.
pub const LOCAL_INDEXES_MAX: usize = 5;
/// Maximum number of attributes in the partition key or the sort key of a global index.
pub const KEY_PART_ATTRIBUTES_MAX: usize = 4;
/// Maximum number of attributes that all INCLUDE projections of a table list together.
pub const INCLUDED_ATTRIBUTES_MAX: usize = 100;

/// An attribute that is part of a key.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct KeyAttribute {
    pub name: String,
    pub kind: KeyKind,
}

/// A partition key and an optional sort key. In a global index, each may have several attributes.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct KeySchema {
    pub partition: KeyAttribute,
    pub sort: Option<KeyAttribute>,
    /// Further attributes of the partition key.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub partition_rest: Vec<KeyAttribute>,
    /// Further attributes of the sort key; empty if there is no sort key.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sort_rest: Vec<KeyAttribute>,
}

/// The attributes that an index projects, in addition to the table's keys and its own.
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

/// Which versions of a changed item the change log stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum StreamView {
    KeysOnly,
    NewImage,
    OldImage,
    NewAndOldImages,
}

/// The requested definition of a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableSchema {
    pub name: String,
    pub key: KeySchema,
    pub indexes: Vec<IndexSchema>,
    /// The attribute with the item's expiry time in epoch seconds.
    pub ttl_attribute: Option<String>,
    pub stream: Option<StreamView>,
}

/// Why a schema is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    #[error("TableName must be 3 to 255 characters of a-z, A-Z, 0-9, '_', '-' and '.'")]
    TableName,
    #[error("index name {0:?} must be 3 to 255 characters of a-z, A-Z, 0-9, '_', '-' and '.'")]
    IndexName(String),
    #[error("two indexes are named {0:?}")]
    DuplicateIndex(String),
    #[error("a key attribute's name must be 1 to 255 bytes long")]
    KeyName,
    #[error("a key contains the attribute {0:?} twice")]
    DuplicateKeyAttribute(String),
    #[error(
        "the partition key and the sort key of a global index may have at most {KEY_PART_ATTRIBUTES_MAX} attributes each; all other keys have one attribute each"
    )]
    MultiAttributeKey,
    #[error("attribute {0:?} is declared with two different types")]
    ConflictingType(String),
    #[error("local index {0:?} must have its table's partition key and a sort key")]
    LocalKey(String),
    #[error("a table may have at most {LOCAL_INDEXES_MAX} local indexes")]
    TooManyLocalIndexes,
    #[error(
        "the projections of all indexes may include at most {INCLUDED_ATTRIBUTES_MAX} attributes"
    )]
    TooManyIncluded,
}

/// Why the key attributes of an item do not fit the schema.
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

    /// Checks that `value` is valid for this attribute in a key of at most `max_bytes`.
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

    /// Creates a key from its attributes; `None` if there is no partition attribute.
    #[must_use]
    pub fn from_attributes(
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

    /// The attributes of the partition key, in order.
    pub fn partition_attributes(&self) -> impl Iterator<Item = &KeyAttribute> {
        std::iter::once(&self.partition).chain(&self.partition_rest)
    }

    /// The attributes of the sort key, in order.
    pub fn sort_attributes(&self) -> impl Iterator<Item = &KeyAttribute> {
        self.sort.iter().chain(&self.sort_rest)
    }

    /// All attributes, first the partition key's, then the sort key's.
    pub fn attributes(&self) -> impl Iterator<Item = &KeyAttribute> {
        self.partition_attributes().chain(self.sort_attributes())
    }

    /// Whether the partition key or the sort key has several attributes.
    #[must_use]
    pub fn is_multi_attribute(&self) -> bool {
        !self.partition_rest.is_empty() || !self.sort_rest.is_empty()
    }

    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.attributes().any(|attribute| attribute.name == name)
    }

    /// The validated key values of `item`.
    ///
    /// # Errors
    /// When a value is missing, has the wrong type, is empty or is too long.
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

    /// The validated values of all key attributes, in order.
    ///
    /// # Errors
    /// When a value is missing, has the wrong type, is empty or is too long.
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

    /// Validates a value for the key attribute `name`.
    ///
    /// # Errors
    /// When the key has no such attribute, or the value has the wrong type, is empty or is too
    /// long.
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

    /// The validated values of a key that may contain nothing but the key attributes.
    ///
    /// # Errors
    /// When an attribute is missing, superfluous or invalid.
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

    /// Validates a value for the partition key.
    ///
    /// # Errors
    /// When it has the wrong type, is empty or is too long.
    pub fn check_partition(&self, value: &Value) -> Result<(), KeyError> {
        self.partition
            .check(value, PARTITION_KEY_MAX_BYTES, KeyError::PartitionTooLong)
    }

    /// Validates a value for the sort key.
    ///
    /// # Errors
    /// When there is no sort key, or the value has the wrong type, is empty or is too long.
    pub fn check_sort(&self, value: &Value) -> Result<(), KeyError> {
        self.sort
            .as_ref()
            .ok_or(KeyError::DoesNotMatchSchema)?
            .check(value, SORT_KEY_MAX_BYTES, KeyError::SortTooLong)
    }
}

impl TableSchema {
    /// A table with a partition key. Add the rest with the `with_` methods.
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
    /// The first violation.
    pub fn check(&self) -> Result<(), SchemaError> {
        if !is_resource_name(&self.name) {
            return Err(SchemaError::TableName);
        }
        check_key(&self.key)?;
        if self.key.is_multi_attribute() {
            return Err(SchemaError::MultiAttributeKey);
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
            if index.local && index.key.is_multi_attribute() {
                return Err(SchemaError::MultiAttributeKey);
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

    /// Checks that every attribute has the same type in all keys that use it.
    fn check_kinds(&self) -> Result<(), SchemaError> {
        let mut kinds = std::collections::BTreeMap::new();
        let keys = std::iter::once(&self.key).chain(self.indexes.iter().map(|index| &index.key));
        for attribute in keys.flat_map(KeySchema::attributes) {
            let kind = *kinds.entry(&attribute.name).or_insert(attribute.kind);
            if kind != attribute.kind {
                return Err(SchemaError::ConflictingType(attribute.name.clone()));
            }
        }
        Ok(())
    }
}

impl IndexSchema {
    /// A global index that projects all attributes.
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

    /// Whether this index, on a table with `table_key`, projects the attribute.
    #[must_use]
    pub fn projects(&self, table_key: &KeySchema, name: &str) -> bool {
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
        return Err(SchemaError::MultiAttributeKey);
    }
    let mut seen = std::collections::BTreeSet::new();
    let twice = key
        .attributes()
        .find(|attribute| !seen.insert(attribute.name.as_str()));
    match twice {
        Some(twice) => Err(SchemaError::DuplicateKeyAttribute(twice.name.clone())),
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
    fn item_keys_are_validated() {
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
    fn invalid_schemas_are_rejected() {
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
            Err(SchemaError::DuplicateKeyAttribute("a".into()))
        );
        let conflicting = IndexSchema::global("by-at", kind("at", KeyKind::S), None);
        assert_eq!(
            table().with_index(conflicting).check(),
            Err(SchemaError::ConflictingType("at".into()))
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
    fn projection_always_includes_the_keys() {
        let index = IndexSchema::global("idx", KeyAttribute::new("x", KeyKind::S), None)
            .projecting(IndexProjection::Include(vec!["y".into()]));
        let key = table().key;
        let carried: Vec<_> = ["device", "at", "x", "y", "z"]
            .into_iter()
            .filter(|name| index.projects(&key, name))
            .collect();
        assert_eq!(carried, ["device", "at", "x", "y"]);
    }

    #[test]
    fn only_global_indexes_allow_multi_attribute_keys() {
        let attribute = |name: &str| KeyAttribute::new(name, KeyKind::S);
        let of = |partition: &[&str], sort: &[&str]| {
            let attributes = |names: &[&str]| names.iter().map(|name| attribute(name)).collect();
            let (partition, sort): (Vec<_>, Vec<_>) = (attributes(partition), attributes(sort));
            KeySchema::from_attributes(partition, sort).expect("a partition key")
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
        let several = Err(SchemaError::MultiAttributeKey);
        assert_eq!(with(of(&["a"], &["c", "d"]), true), several);
        assert_eq!(with(of(&["a", "b", "c", "d", "e"], &[]), false), several);
        assert_eq!(
            with(of(&["a"], &["b", "c", "b"]), false),
            Err(SchemaError::DuplicateKeyAttribute("b".to_owned()))
        );
        let table = TableSchema {
            key: of(&["a", "b"], &[]),
            ..TableSchema::new("things", "a", KeyKind::S)
        };
        assert_eq!(table.check(), several);
    }

    #[test]
    fn single_attribute_keys_keep_their_stored_form() {
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
