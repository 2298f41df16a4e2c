//! A stored item: its key, and a value of `size · binary item`.
//!
//! The binary item omits the table's key attributes, which the key already contains. The size is the item's
//! size as DynamoDB counts it, so that pages and limits need no decoding.

use std::borrow::Cow;
use std::cell::RefCell;
use std::sync::Arc;

use homeport_item::binary::{self, DecodeError};
use homeport_item::expression::{Document, Path, Projection};
use homeport_item::json;
use homeport_item::key::KeyDecodeError;
use homeport_item::schema::{IndexProjection, IndexSchema, KeySchema};
use homeport_item::{Item, ItemRef, Number, Value};

use crate::storage::layout;
use crate::storage::vault::{UserKey, UserValue};

/// As in DynamoDB, an item with an expiry older than this does not expire: such a small number is not meant
/// as a time.
const EXPIRY_AGE_MAX_SECS: i64 = 5 * 365 * 24 * 60 * 60;

/// Items up to this size are encoded in a thread-local buffer.
const SCRATCH_BYTES: usize = 4096;

thread_local! {
    static SCRATCH: RefCell<Vec<u8>> = RefCell::new(Vec::with_capacity(2 * SCRATCH_BYTES));
}

/// Encodes the stored value of `item`, which must have been checked.
pub(crate) fn encode(item: &Item, key: &KeySchema) -> UserValue {
    encode_sized(item, key, item.size())
}

pub(crate) fn encode_sized(item: &Item, key: &KeySchema, size: usize) -> UserValue {
    let encode = |out: &mut Vec<u8>| {
        push_size(size, out);
        let kept = item.iter().filter(|(name, _)| !key.has(name));
        binary::encode_item(kept, out);
    };
    if size > SCRATCH_BYTES {
        let mut out = Vec::with_capacity(size + 16);
        encode(&mut out);
        return out.into();
    }
    // The key-value store copies the value, so small items need no allocation of their own here.
    SCRATCH.with_borrow_mut(|out| {
        out.clear();
        encode(out);
        UserValue::from(out.as_slice())
    })
}

/// Encodes `record` with new values for some attributes, which must be sorted by name and must not be key
/// attributes. Other attributes are copied without decoding. Also returns the size.
pub(crate) fn encode_with_changes(
    record: &Record<'_>,
    changes: &[(&str, &Value)],
) -> Result<(UserValue, usize), DecodeError> {
    let mut body = Vec::with_capacity(record.size() + 64);
    let change = binary::encode_with_changes(record.body, changes, &mut body)?;
    let size = (record.size() + change.added)
        .checked_sub(change.removed)
        .ok_or(DecodeError::Damaged)?;
    let mut out = Vec::with_capacity(body.len() + 4);
    push_size(size, &mut out);
    out.extend_from_slice(&body);
    Ok((out.into(), size))
}

fn push_size(size: usize, out: &mut Vec<u8>) {
    // Sizes are at most 400 KB, so three bytes of seven bits each are enough.
    let mut left = size;
    while left >= 0x80 {
        out.push((left & 0x7F) as u8 | 0x80);
        left >>= 7;
    }
    out.push(left as u8);
}

fn split_size(value: &[u8]) -> Result<(usize, &[u8]), DecodeError> {
    let mut size = 0usize;
    for (at, byte) in value.iter().take(4).enumerate() {
        size |= usize::from(byte & 0x7F) << (7 * at);
        if byte & 0x80 == 0 {
            return Ok((size, &value[at + 1..]));
        }
    }
    Err(DecodeError::Damaged)
}

/// The size of a stored item, as DynamoDB counts it.
pub(crate) fn size_of(value: &[u8]) -> Result<usize, DecodeError> {
    split_size(value).map(|(size, _)| size)
}

/// A borrowed view of a stored item.
#[derive(Clone, Copy)]
pub(crate) struct Record<'a> {
    schema: &'a KeySchema,
    /// The encoded key values of the table, without the bucket.
    key: &'a [u8],
    body: ItemRef<'a>,
    size: usize,
    /// The index that this was read from, if it does not carry all attributes.
    partial: Option<&'a IndexSchema>,
}

impl<'a> Record<'a> {
    /// A view of an entry in a table's own keyspace.
    pub(crate) fn new(
        schema: &'a KeySchema,
        item_key: &'a [u8],
        value: &'a [u8],
    ) -> Result<Self, DecodeError> {
        let (size, body) = split_size(value)?;
        Ok(Self {
            schema,
            key: item_key.get(1..).ok_or(DecodeError::Damaged)?,
            body: ItemRef::new(body)?,
            size,
            partial: None,
        })
    }

    /// A view of an index entry.
    pub(crate) fn of_index(
        schema: &'a KeySchema,
        index: &'a IndexSchema,
        entry_key: &'a [u8],
        value: &'a [u8],
    ) -> Result<Self, DecodeError> {
        let (size, body) = split_size(value)?;
        let mut key = entry_key.get(1..).ok_or(DecodeError::Damaged)?;
        layout::take_all_values(&index.key, &mut key).map_err(damaged)?;
        Ok(Self {
            schema,
            key,
            body: ItemRef::new(body)?,
            size,
            partial: (index.projection != IndexProjection::All).then_some(index),
        })
    }

    /// The item's size, as DynamoDB counts it.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    pub(crate) fn key_values(&self) -> Result<(Value, Option<Value>), DecodeError> {
        layout::take_key_values(self.schema, &mut &*self.key).map_err(damaged)
    }

    /// The item's key attributes.
    pub(crate) fn key_item(&self) -> Result<Item, DecodeError> {
        let mut item = Item::new();
        self.insert_keys(&mut item)?;
        Ok(item)
    }

    fn insert_keys(&self, item: &mut Item) -> Result<(), DecodeError> {
        let (partition, sort) = self.key_values()?;
        item.insert(self.schema.partition.name.as_str(), partition);
        if let (Some(attribute), Some(sort)) = (&self.schema.sort, sort) {
            item.insert(attribute.name.as_str(), sort);
        }
        Ok(())
    }

    pub(crate) fn to_item(self) -> Result<Item, DecodeError> {
        let mut item = self.body.to_item()?;
        if let Some(index) = self.partial {
            item.attributes_mut()
                .retain(|name, _| index.projects(self.schema, name));
        }
        self.insert_keys(&mut item)?;
        Ok(item)
    }

    /// Whether the attribute is visible: an index entry also holds the expiry of its item, which is only
    /// visible as an attribute if the index carries it.
    fn shows(&self, name: &str) -> bool {
        self.partial
            .is_none_or(|index| index.projects(self.schema, name))
    }

    /// A top-level attribute, including key attributes.
    pub(crate) fn attribute(&self, name: &str) -> Result<Option<Value>, DecodeError> {
        if self.schema.partition.name == name {
            return Ok(Some(self.key_values()?.0));
        }
        if self
            .schema
            .sort
            .as_ref()
            .is_some_and(|sort| sort.name == name)
        {
            return Ok(self.key_values()?.1);
        }
        if !self.shows(name) {
            return Ok(None);
        }
        self.body
            .get(name)?
            .map(|value| value.to_value())
            .transpose()
    }

    fn write_json(&self, out: &mut Vec<u8>) -> Result<(), DecodeError> {
        let (partition, sort) = self.key_values()?;
        out.push(b'{');
        write_entry(&self.schema.partition.name, &partition, out);
        if let (Some(attribute), Some(sort)) = (&self.schema.sort, &sort) {
            out.push(b',');
            write_entry(&attribute.name, sort, out);
        }
        for entry in self.body.entries() {
            let (name, value) = entry?;
            let name = std::str::from_utf8(name).map_err(|_| DecodeError::Damaged)?;
            if !self.shows(name) {
                continue;
            }
            out.push(b',');
            json::write_string(name, out);
            out.push(b':');
            json::write_value_ref(value, out)?;
        }
        out.push(b'}');
        Ok(())
    }

    /// When the item expires, if it does.
    pub(crate) fn expires_at(&self, ttl_attribute: &str) -> Result<Option<u64>, DecodeError> {
        let number = if self.schema.has(ttl_attribute) {
            match self.attribute(ttl_attribute)? {
                Some(Value::N(number)) => Some(number),
                _ => None,
            }
        } else {
            match self.body.get(ttl_attribute)? {
                Some(value) => value.as_number()?,
                None => None,
            }
        };
        Ok(number.as_ref().and_then(expiry_secs))
    }

    /// The value of this item's entry in `index`: the item's own value if the index carries everything,
    /// otherwise the carried attributes and the expiry.
    pub(crate) fn index_value(
        &self,
        index: &IndexSchema,
        ttl_attribute: Option<&str>,
        value: &UserValue,
    ) -> Result<UserValue, DecodeError> {
        if index.projection == IndexProjection::All {
            return Ok(value.clone());
        }
        let mut item = self.to_item()?;
        let expiry = ttl_attribute
            .filter(|name| !index.projects(self.schema, name))
            .and_then(|name| item.remove(name).map(|value| (name, value)));
        item.attributes_mut()
            .retain(|name, _| index.projects(self.schema, name));
        let size = item.size();
        if let Some((name, value)) = expiry {
            item.insert(name, value);
        }
        Ok(encode_sized(&item, self.schema, size))
    }
}

impl Document for Record<'_> {
    fn resolve(&self, path: &Path) -> Result<Option<Cow<'_, Value>>, DecodeError> {
        if self.schema.has(path.name()) {
            // Key attributes are scalars without nested values.
            if !path.nested().is_empty() {
                return Ok(None);
            }
            return Ok(self.attribute(path.name())?.map(Cow::Owned));
        }
        if !self.shows(path.name()) {
            return Ok(None);
        }
        match self.body.resolve(path)? {
            Some(value) => Ok(Some(Cow::Owned(value.into_owned()))),
            None => Ok(None),
        }
    }
}

/// An expiry in whole seconds; `None` for numbers that are not a valid time.
pub(crate) fn expiry_secs(number: &Number) -> Option<u64> {
    u64::try_from(number.floor_i64())
        .ok()
        .filter(|secs| *secs > 0)
}

/// Whether an item that expires at `expires_at_secs` has expired at `now_secs`.
pub(crate) fn is_expired(expires_at_secs: u64, now_secs: i64) -> bool {
    i64::try_from(expires_at_secs)
        .is_ok_and(|at| at <= now_secs && now_secs - at <= EXPIRY_AGE_MAX_SECS)
}

/// The oldest expiry that is still respected.
pub(crate) fn oldest_expiry_secs(now_secs: i64) -> u64 {
    u64::try_from(now_secs - EXPIRY_AGE_MAX_SECS).unwrap_or(0)
}

fn write_entry(name: &str, value: &Value, out: &mut Vec<u8>) {
    json::write_string(name, out);
    out.push(b':');
    json::write_value(value, out);
}

fn damaged(_: KeyDecodeError) -> DecodeError {
    DecodeError::Damaged
}

/// A stored item that is decoded on demand.
///
/// It keeps the bytes as they were read; reading one attribute decodes only that one.
#[derive(Clone)]
pub struct StoredItem {
    pub(crate) schema: Arc<KeySchema>,
    pub(crate) index: Option<Arc<IndexSchema>>,
    pub(crate) key: UserKey,
    pub(crate) value: UserValue,
}

impl StoredItem {
    pub(crate) fn record(&self) -> Result<Record<'_>, DecodeError> {
        match &self.index {
            None => Record::new(&self.schema, &self.key, &self.value),
            Some(index) => Record::of_index(&self.schema, index, &self.key, &self.value),
        }
    }

    /// The complete item.
    ///
    /// # Errors
    /// Fails if its bytes are damaged.
    pub fn to_item(&self) -> Result<Item, DecodeError> {
        self.record()?.to_item()
    }

    /// One attribute.
    ///
    /// # Errors
    /// Fails if its bytes are damaged.
    pub fn attribute(&self, name: &str) -> Result<Option<Value>, DecodeError> {
        self.record()?.attribute(name)
    }

    /// The table's key attributes.
    ///
    /// # Errors
    /// Fails if its bytes are damaged.
    pub fn key(&self) -> Result<Item, DecodeError> {
        self.record()?.key_item()
    }

    /// Appends the item as JSON, directly from its bytes.
    ///
    /// # Errors
    /// Fails if its bytes are damaged; the caller must then discard what was appended.
    pub fn write_json(&self, out: &mut Vec<u8>) -> Result<(), DecodeError> {
        self.record()?.write_json(out)
    }

    /// Applies a projection to the item.
    ///
    /// # Errors
    /// Fails if its bytes are damaged.
    pub fn project(&self, projection: &Projection) -> Result<Item, DecodeError> {
        projection.read(&self.record()?)
    }

    /// Like [`StoredItem::write_json`], for a projection of the item.
    ///
    /// # Errors
    /// Fails if its bytes are damaged.
    pub fn write_projected_json(
        &self,
        projection: &Projection,
        out: &mut Vec<u8>,
    ) -> Result<(), DecodeError> {
        json::write_item(&self.project(projection)?, out);
        Ok(())
    }

    /// The item's size, as DynamoDB counts it.
    ///
    /// # Errors
    /// Fails if its bytes are damaged.
    pub fn size(&self) -> Result<usize, DecodeError> {
        Ok(self.record()?.size())
    }
}

impl std::fmt::Debug for StoredItem {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("StoredItem")
            .field("item", &self.to_item())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use homeport_item::KeyKind;
    use homeport_item::schema::KeyAttribute;

    fn schema() -> KeySchema {
        KeySchema::new(
            KeyAttribute::new("pk", KeyKind::S),
            Some(KeyAttribute::new("sk", KeyKind::N)),
        )
    }

    #[test]
    fn item_round_trips_without_storing_keys_twice() {
        let item = Item::new()
            .with("pk", "a")
            .with("sk", 7)
            .with("ttl", 12)
            .with("x", "y");
        let schema = schema();
        let key = layout::item_key(item.get("pk").unwrap(), item.get("sk"));
        let value = encode(&item, &schema);
        let record = Record::new(&schema, &key, &value).unwrap();
        assert_eq!(record.to_item(), Ok(item.clone()));
        assert_eq!(record.size(), item.size());
        assert_eq!(record.attribute("sk"), Ok(Some(Value::from(7))));
        assert_eq!(record.expires_at("ttl"), Ok(Some(12)));
        assert_eq!(record.expires_at("x"), Ok(None));
        let mut json = Vec::new();
        record.write_json(&mut json).unwrap();
        assert_eq!(serde_json::from_slice::<Item>(&json).unwrap(), item);
        assert!(!value.windows(2).any(|bytes| bytes == b"pk"));
    }

    #[test]
    fn only_plausible_numbers_are_expiries() {
        let now = 1_700_000_000;
        assert!(is_expired(1_700_000_000, now));
        assert!(!is_expired(1_700_000_001, now));
        assert!(!is_expired(5, now));
        assert_eq!(expiry_secs(&"-5".parse().unwrap()), None);
        assert_eq!(
            expiry_secs(&"1700000000.9".parse().unwrap()),
            Some(1_700_000_000)
        );
    }
}
