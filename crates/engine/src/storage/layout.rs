//! Names and key bytes of everything on disk, described in `docs/engine-format.md`.

use homeport_item::Value;
use homeport_item::key;
use homeport_item::schema::KeySchema;
use xxhash_rust::xxh3::xxh3_64;

use crate::storage::vault::UserKey;

/// The format that this program writes, stored in the file `FORMAT` of a data directory. A program that does
/// not know the format must not open the directory.
pub(crate) const FORMAT_VERSION: u32 = 5;
/// The format of a sealed data directory.
pub(crate) const SEALED_FORMAT_VERSION: u32 = 6;
/// The formats before there was a mark of how far the journals must reach.
pub(crate) const FORMAT_VERSION_BEFORE_MARK: u32 = 3;
pub(crate) const SEALED_FORMAT_VERSION_BEFORE_MARK: u32 = 4;
/// The formats before expiring items were listed in pages; their expiry entries can still be read.
pub(crate) const FORMAT_VERSION_BEFORE_PAGES: u32 = 1;
pub(crate) const SEALED_FORMAT_VERSION_BEFORE_PAGES: u32 = 2;
pub(crate) const FORMAT_FILE: &str = "FORMAT";
/// The key-value store's folder inside a data directory.
pub(crate) const STORE_DIR: &str = "store";

pub(crate) const CATALOGUE_KEYSPACE: &str = "catalogue";
pub(crate) const META_KEYSPACE: &str = "meta";
pub(crate) const EXPIRY_KEYSPACE: &str = "expiry";
pub(crate) const EXPIRY_PAGES_KEYSPACE: &str = "expiry-pages";
pub(crate) const CHANGES_KEYSPACE: &str = "changes";
pub(crate) const TOKENS_KEYSPACE: &str = "tokens";
pub(crate) const UNDO_KEYSPACE: &str = "undo";

/// Key of the commit record, which every group writes.
pub(crate) const COMMIT_KEY: &[u8] = b"homeport.commit";

/// Key of the commit time, which every group writes.
pub(crate) const TIME_KEY: &[u8] = b"homeport.time";

/// A key that no keyspace uses: all others are longer or begin with another byte.
pub(crate) const UNUSED_KEY: &[u8] = &[0xFF];

/// Prefix of the keys, one per table, of the last change that was trimmed.
const TRIMMED_PREFIX: &[u8] = b"homeport.trimmed/";

pub(crate) fn trimmed_key(table: TableId) -> Vec<u8> {
    [TRIMMED_PREFIX, &table.to_be_bytes()].concat()
}

/// Identifies a table; never reused.
pub(crate) type TableId = u32;

pub(crate) fn table_keyspace(table: TableId) -> String {
    format!("t{table}")
}

pub(crate) fn index_keyspace(table: TableId, index: u32) -> String {
    format!("t{table}i{index}")
}

/// The first byte of every key: it spreads partitions over 256 buckets, which define the order and the
/// segments of a scan.
fn bucket(partition: &[u8]) -> u8 {
    (xxh3_64(partition) >> 56) as u8
}

/// `bucket · partition`, the prefix of all keys of one partition.
pub(crate) fn partition_prefix<'v>(partition: impl IntoIterator<Item = &'v Value>) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(64);
    bytes.push(0);
    encode_all(partition, &mut bytes);
    bytes[0] = bucket(&bytes[1..]);
    bytes
}

/// Every value is self-delimiting, so concatenated values sort by the first one that differs.
pub(crate) fn encode_all<'v>(values: impl IntoIterator<Item = &'v Value>, bytes: &mut Vec<u8>) {
    for value in values {
        let is_key = key::encode(value, bytes);
        debug_assert!(is_key, "key values are checked before they are encoded");
    }
}

/// `bucket · partition · sort`
pub(crate) fn item_key(partition: &Value, sort: Option<&Value>) -> UserKey {
    let mut bytes = partition_prefix([partition]);
    encode_all(sort, &mut bytes);
    bytes.into()
}

/// `bucket · index partition · index sort · table partition · table sort`; `values` are the values of the
/// index's attributes.
pub(crate) fn index_entry_key<'v>(
    index: &KeySchema,
    values: impl IntoIterator<Item = &'v Value>,
    item_key: &[u8],
) -> UserKey {
    let mut values = values.into_iter();
    let partition = values.by_ref().take(index.partition_attributes().count());
    let mut bytes = partition_prefix(partition);
    encode_all(values, &mut bytes);
    bytes.extend_from_slice(&item_key[1..]);
    bytes.into()
}

/// Decodes the key values at the start of `bytes` and advances it past them.
pub(crate) fn take_key_values(
    schema: &KeySchema,
    bytes: &mut &[u8],
) -> Result<(Value, Option<Value>), key::KeyDecodeError> {
    let partition = key::decode(schema.partition.kind, bytes)?;
    let sort = match &schema.sort {
        Some(sort) => Some(key::decode(sort.kind, bytes)?),
        None => None,
    };
    Ok((partition, sort))
}

/// Decodes the values of all key attributes at the start of `bytes` and advances it past them.
pub(crate) fn take_all_values(
    schema: &KeySchema,
    bytes: &mut &[u8],
) -> Result<Vec<Value>, key::KeyDecodeError> {
    schema
        .attributes()
        .map(|attribute| key::decode(attribute.kind, bytes))
        .collect()
}

/// Expiry entries are ordered by windows of this length, and within a window by the items' keys. Neighbours
/// then belong to one partition, and their keys compress well.
const EXPIRY_WINDOW_SECS: u64 = 3600;

/// The start of the window that contains this time.
pub(crate) fn expiry_window(expires_at_secs: u64) -> u64 {
    expires_at_secs - expires_at_secs % EXPIRY_WINDOW_SECS
}

/// The start of the next window.
pub(crate) fn window_end(window: u64) -> u64 {
    window.saturating_add(EXPIRY_WINDOW_SECS)
}

/// `item key without its bucket · bucket`: a leading bucket would scatter items with similar partition keys.
pub(crate) fn expiry_name(item_key: &[u8]) -> Vec<u8> {
    let mut name = Vec::with_capacity(item_key.len());
    push_expiry_name(item_key, &mut name);
    name
}

fn push_expiry_name(item_key: &[u8], bytes: &mut Vec<u8>) {
    if let Some((bucket, key)) = item_key.split_first() {
        bytes.extend_from_slice(key);
        bytes.push(*bucket);
    }
}

pub(crate) fn key_of_expiry_name(name: &[u8]) -> UserKey {
    match name.split_last() {
        Some((bucket, key)) => [&[*bucket], key].concat().into(),
        None => UserKey::from(name),
    }
}

/// `window(8) · table(4) · name`
pub(crate) fn expiry_key(window: u64, table: TableId, item_key: &[u8]) -> UserKey {
    let mut bytes = Vec::with_capacity(12 + item_key.len());
    bytes.extend_from_slice(&window.to_be_bytes());
    bytes.extend_from_slice(&table.to_be_bytes());
    push_expiry_name(item_key, &mut bytes);
    bytes.into()
}

/// The parts of an expiry key: the window, the table, the item's name.
pub(crate) fn split_expiry_key(bytes: &[u8]) -> Option<(u64, TableId, &[u8])> {
    let (window, rest) = bytes.split_first_chunk::<8>()?;
    let (table, name) = rest.split_first_chunk::<4>()?;
    Some((
        u64::from_be_bytes(*window),
        u32::from_be_bytes(*table),
        (!name.is_empty()).then_some(name)?,
    ))
}

/// `window(8) · commit(8) · part(4)`: consecutive writes usually expire in the same order, so pages are
/// appended.
pub(crate) fn expiry_page_key(window: u64, commit: u64, part: u32) -> UserKey {
    let mut bytes = [0; 20];
    bytes[..8].copy_from_slice(&window.to_be_bytes());
    bytes[8..16].copy_from_slice(&commit.to_be_bytes());
    bytes[16..].copy_from_slice(&part.to_be_bytes());
    UserKey::from(&bytes[..])
}

/// The number of the group that wrote a page.
pub(crate) fn commit_of_page(key: &[u8]) -> Option<u64> {
    let bytes: &[u8; 20] = key.try_into().ok()?;
    let mut commit = [0; 8];
    commit.copy_from_slice(&bytes[8..16]);
    Some(u64::from_be_bytes(commit))
}

/// The window of a page.
pub(crate) fn window_of_page(key: &[u8]) -> Option<u64> {
    let bytes: &[u8; 20] = key.try_into().ok()?;
    bytes
        .first_chunk()
        .map(|window| u64::from_be_bytes(*window))
}

/// `table(4) · sequence(8)`
pub(crate) fn change_key(table: TableId, sequence: u64) -> [u8; 12] {
    let mut bytes = [0; 12];
    bytes[..4].copy_from_slice(&table.to_be_bytes());
    bytes[4..].copy_from_slice(&sequence.to_be_bytes());
    bytes
}

/// The first key after all keys that start with `prefix`; `None` if no key can follow them.
pub(crate) fn prefix_end(prefix: &[u8]) -> Option<Vec<u8>> {
    let keep = prefix.iter().rposition(|byte| *byte != 0xFF)?;
    let mut end = prefix[..=keep].to_vec();
    end[keep] += 1;
    Some(end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use homeport_item::KeyKind;
    use homeport_item::schema::KeyAttribute;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn prefix_end_is_the_first_key_after_it(prefix: Vec<u8>, key: Vec<u8>) {
            let below = prefix_end(&prefix).is_none_or(|end| key < end);
            prop_assert_eq!(key.starts_with(&prefix), key >= prefix && below);
        }

        #[test]
        fn index_entry_contains_the_item_key(pk: String, sk: i64, ipk: i64) {
            let item = item_key(&Value::from(pk.clone()), Some(&Value::from(sk)));
            let index_schema = KeySchema::from_attributes(
                [KeyAttribute::new("i", KeyKind::N), KeyAttribute::new("j", KeyKind::S)],
                [KeyAttribute::new("k", KeyKind::N)],
            ).expect("a partition key");
            let index_values = [Value::from(ipk), Value::from("x"), Value::from(sk)];
            let entry = index_entry_key(&index_schema, &index_values, &item);
            let table_schema = KeySchema::new(
                KeyAttribute::new("p", KeyKind::S),
                Some(KeyAttribute::new("s", KeyKind::N)),
            );
            let mut rest = &entry[1..];
            let taken = take_all_values(&index_schema, &mut rest).expect("index key");
            prop_assert_eq!(taken, index_values);
            let (partition, sort) = take_key_values(&table_schema, &mut rest).expect("table key");
            prop_assert_eq!(partition, Value::from(pk));
            prop_assert_eq!(sort, Some(Value::from(sk)));
            prop_assert!(rest.is_empty());
        }
    }

    #[test]
    fn expiry_key_splits_into_its_parts() {
        let bytes = expiry_key(expiry_window(7207), 3, b"key");
        assert_eq!(split_expiry_key(&bytes), Some((7200, 3, &b"eyk"[..])));
        assert_eq!(key_of_expiry_name(b"eyk").as_ref(), b"key");
        assert_eq!(split_expiry_key(b"short"), None);
    }
}
