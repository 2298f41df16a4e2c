//! Digests of table contents, which allow comparing two tables independently of the item order.
//!
//! An item's digest is the SHA-256 of a form in which equal items are equal bytes: numbers by
//! value, sets and maps without order. A table's digest is the sum of its items' digests modulo
//! 2^256. It is kept for parts of the table, so a difference can be located roughly.

use std::fmt;

use homeport_item::schema::KeySchema;
use homeport_item::{Item, Value};
use sha2::{Digest as _, Sha256};

/// Number of parts of a table: few enough to keep, and enough that each part of a large table is
/// small.
pub(super) const PARTS: usize = 1 << 18;

/// The digest of an item or of the items of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ContentHash([u64; 4]);

impl ContentHash {
    pub(super) fn of(item: &Item) -> Self {
        let mut bytes = Vec::with_capacity(256);
        write_map(item.iter(), &mut bytes);
        let digest = Sha256::digest(&bytes);
        let mut words = [0; 4];
        for (word, chunk) in words.iter_mut().zip(digest.chunks_exact(8)) {
            *word = chunk
                .iter()
                .fold(0, |word, byte| word << 8 | u64::from(*byte));
        }
        Self(words)
    }

    fn add(&mut self, other: Self) {
        let mut carry = false;
        for (word, more) in self.0.iter_mut().zip(other.0).rev() {
            let (sum, first) = word.overflowing_add(more);
            let (sum, second) = sum.overflowing_add(u64::from(carry));
            *word = sum;
            carry = first || second;
        }
    }

    /// The part of the table for an item whose key has this digest.
    pub(super) fn part(self) -> usize {
        let low = self.0[0] % u64::try_from(PARTS).unwrap_or(1);
        usize::try_from(low).unwrap_or(0)
    }
}

impl fmt::Display for ContentHash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0
            .iter()
            .try_for_each(|word| write!(formatter, "{word:016x}"))
    }
}

/// The number of items and the sum of their digests, per part of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TableSum {
    parts: Vec<(u64, ContentHash)>,
}

impl TableSum {
    pub(super) fn new() -> Self {
        Self {
            parts: vec![(0, ContentHash::default()); PARTS],
        }
    }

    pub(super) fn add(&mut self, key: &KeySchema, item: &Item) {
        let (count, sum) = &mut self.parts[ContentHash::of(&key_of(key, item)).part()];
        *count += 1;
        sum.add(ContentHash::of(item));
    }

    pub(super) fn count(&self) -> u64 {
        self.parts.iter().map(|(count, _)| count).sum()
    }

    pub(super) fn hash(&self) -> ContentHash {
        let mut all = ContentHash::default();
        for (_, sum) in &self.parts {
            all.add(*sum);
        }
        all
    }

    /// The parts in which two tables differ.
    pub(super) fn differing(&self, other: &Self) -> Vec<bool> {
        let pairs = self.parts.iter().zip(&other.parts);
        pairs.map(|(one, other)| one != other).collect()
    }
}

/// The key attributes of an item.
pub(super) fn key_of(key: &KeySchema, item: &Item) -> Item {
    let attributes = key.attributes();
    attributes
        .filter_map(|attribute| {
            let value = item.get(&attribute.name)?;
            Some((attribute.name.clone(), value.clone()))
        })
        .collect()
}

/// Every value starts with its type and length, so different values have different forms.
fn write_value(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::S(text) => write_bytes(b'S', text.as_bytes(), out),
        // Equal numbers have the same text.
        Value::N(number) => write_bytes(b'N', number.to_string().as_bytes(), out),
        Value::B(bytes) => write_bytes(b'B', bytes, out),
        Value::Bool(value) => out.extend([b'T', u8::from(*value)]),
        Value::Null => out.push(b'0'),
        Value::M(map) => {
            let attributes = map.iter().map(|(name, value)| (name.as_str(), value));
            write_map(attributes, out);
        }
        Value::L(list) => {
            write_len(b'L', list.len(), out);
            for value in list {
                write_value(value, out);
            }
        }
        // The members of a set are sorted.
        Value::Ss(set) => {
            write_len(b'1', set.len(), out);
            set.iter()
                .for_each(|text| write_bytes(b'S', text.as_bytes(), out));
        }
        Value::Ns(set) => {
            write_len(b'2', set.len(), out);
            set.iter()
                .for_each(|number| write_bytes(b'N', number.to_string().as_bytes(), out));
        }
        Value::Bs(set) => {
            write_len(b'3', set.len(), out);
            set.iter().for_each(|bytes| write_bytes(b'B', bytes, out));
        }
    }
}

fn write_map<'a>(attributes: impl Iterator<Item = (&'a str, &'a Value)>, out: &mut Vec<u8>) {
    let mut attributes: Vec<_> = attributes.collect();
    attributes.sort_unstable_by_key(|(name, _)| *name);
    write_len(b'M', attributes.len(), out);
    for (name, value) in attributes {
        write_bytes(b'K', name.as_bytes(), out);
        write_value(value, out);
    }
}

fn write_bytes(kind: u8, bytes: &[u8], out: &mut Vec<u8>) {
    write_len(kind, bytes.len(), out);
    out.extend_from_slice(bytes);
}

fn write_len(kind: u8, len: usize, out: &mut Vec<u8>) {
    out.push(kind);
    // An item is smaller than 512 KiB.
    out.extend(u32::try_from(len).unwrap_or(u32::MAX).to_be_bytes());
}

#[cfg(test)]
mod tests {
    use homeport_item::{KeyKind, Map, Number, schema::TableSchema};

    use super::*;

    fn number(text: &str) -> Value {
        Value::N(text.parse::<Number>().unwrap())
    }

    fn key() -> KeySchema {
        TableSchema::new("t", "id", KeyKind::S).key
    }

    fn sum(items: &[Item]) -> TableSum {
        let mut sum = TableSum::new();
        items.iter().for_each(|item| sum.add(&key(), item));
        sum
    }

    #[test]
    fn equal_items_have_equal_digests() {
        let one = Item::new()
            .with("n", number("1.50"))
            .with("s", Value::string_set(["a", "b"]).unwrap());
        let other = Item::new()
            .with("s", Value::string_set(["b", "a"]).unwrap())
            .with("n", number("15E-1"));
        assert_eq!(ContentHash::of(&one), ContentHash::of(&other));
    }

    #[test]
    fn different_items_have_different_digests() {
        let nested = |value: Value| Value::M(Map::from([("x".to_owned(), value)]));
        let values = [
            Value::from(""),
            Value::from("1"),
            Value::B(vec![]),
            Value::B(vec![b'1']),
            number("1"),
            number("-1"),
            number("1.0000000000000000000000000000000000001"),
            Value::Bool(true),
            Value::Bool(false),
            Value::Null,
            Value::L(vec![]),
            Value::L(vec![Value::from("1")]),
            Value::L(vec![Value::L(vec![]), Value::from("1")]),
            Value::L(vec![Value::L(vec![Value::from("1")])]),
            nested(Value::from("1")),
            nested(number("1")),
            Value::M(Map::new()),
            Value::string_set(["1"]).unwrap(),
            Value::string_set(["1", ""]).unwrap(),
            Value::Ns(homeport_item::Set::new(vec!["1".parse().unwrap()]).unwrap()),
            Value::Bs(homeport_item::Set::new(vec![vec![b'1']]).unwrap()),
        ];
        let mut digests: Vec<_> = values
            .iter()
            .map(|value| ContentHash::of(&Item::new().with("a", value.clone())))
            .collect();
        digests.sort_unstable();
        digests.dedup();
        assert_eq!(digests.len(), values.len());
        let absent = ContentHash::of(&Item::new());
        assert!(!digests.contains(&absent));
    }

    #[test]
    fn table_digest_ignores_order_but_counts_duplicates() {
        let item = |id: &str, n: i64| Item::new().with("id", id).with("n", n);
        let one = sum(&[item("a", 1), item("b", 2)]);
        let other = sum(&[item("b", 2), item("a", 1)]);
        assert_eq!(one, other);
        assert_eq!((one.count(), one.hash()), (2, other.hash()));
        for different in [
            sum(&[item("a", 1)]),
            sum(&[item("a", 2), item("b", 1)]),
            sum(&[item("a", 1), item("b", 3)]),
        ] {
            assert_ne!(one.hash(), different.hash());
            assert!(one.differing(&different).contains(&true));
        }
        assert!(!one.differing(&other).contains(&true));
    }

    #[test]
    fn sums_carry_into_the_next_word() {
        let mut sum = ContentHash([0, 0, u64::MAX, u64::MAX]);
        sum.add(ContentHash([0, 0, 0, 1]));
        assert_eq!(sum, ContentHash([0, 1, 0, 0]));
        let mut all = ContentHash([u64::MAX; 4]);
        all.add(ContentHash([0, 0, 0, 1]));
        assert_eq!(all, ContentHash::default());
    }
}
