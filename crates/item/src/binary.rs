//! The compact binary form of an item, and views that read parts of it without decoding the rest.
//!
//! ```text
//! item   := version(1) entry*                     entries in ascending order of their names
//! entry  := len(name) name value
//! value  := tag(1) payload
//! S, B   := len bytes                             N := len sortable-number
//! TRUE, FALSE, NULL have no payload
//! M      := len entry*                            L := len value*
//! SS, BS := len (len bytes)*                      NS := len (len sortable-number)*
//! len    := unsigned LEB128 count of bytes
//! ```
//! Every payload starts with its length, so a reader can skip values that it does not need.

use crate::item::Item;
use crate::key;
use crate::map::Map;
use crate::number::Number;
use crate::set::Set;
use crate::value::{READ_DEPTH_MAX, Value, ValueKind};

/// The format version that this code writes.
pub const FORMAT_VERSION: u8 = 1;

const TAG_S: u8 = 1;
const TAG_N: u8 = 2;
const TAG_B: u8 = 3;
const TAG_FALSE: u8 = 4;
const TAG_TRUE: u8 = 5;
const TAG_NULL: u8 = 6;
const TAG_M: u8 = 7;
const TAG_L: u8 = 8;
const TAG_SS: u8 = 9;
const TAG_NS: u8 = 10;
const TAG_BS: u8 = 11;

/// The bytes are not an item that this version of the program can read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    #[error("an item's bytes are damaged")]
    Damaged,
    #[error("an item is in format version {0}, which is newer than this program")]
    UnknownVersion(u8),
}

/// Appends the binary form of `attributes`, which must be in ascending order of their names.
pub fn encode_item<'a>(attributes: impl Iterator<Item = (&'a str, &'a Value)>, out: &mut Vec<u8>) {
    out.push(FORMAT_VERSION);
    for (name, value) in attributes {
        encode_entry(name, value, out);
    }
}

/// Appends the binary form of `item` with some attributes replaced or added, without decoding the
/// others. `changes` must be in ascending order of their names, without duplicates. Returns the
/// change of the item's size, as DynamoDB counts it.
///
/// # Errors
/// When the bytes of `item` are damaged.
pub fn encode_with_changes(
    item: ItemRef<'_>,
    changes: &[(&str, &Value)],
    out: &mut Vec<u8>,
) -> Result<SizeChange, DecodeError> {
    out.push(FORMAT_VERSION);
    let mut change = SizeChange::default();
    let mut changes = changes.iter().peekable();
    for entry in item.entries() {
        let (name, value) = entry?;
        let mut is_replaced = false;
        while let Some((changed, new)) = changes.next_if(|(next, _)| next.as_bytes() <= name) {
            is_replaced = changed.as_bytes() == name;
            change.added += changed.len() + new.size();
            encode_entry(changed, new, out);
        }
        if is_replaced {
            change.removed += name.len() + value.to_value()?.size();
        } else {
            push_bytes(name, out);
            value.push(out);
        }
    }
    for (name, value) in changes {
        change.added += name.len() + value.size();
        encode_entry(name, value, out);
    }
    Ok(change)
}

/// The change of an item's size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SizeChange {
    pub added: usize,
    pub removed: usize,
}

fn encode_entry(name: &str, value: &Value, out: &mut Vec<u8>) {
    push_bytes(name.as_bytes(), out);
    encode_value(value, out);
}

fn encode_value(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::S(text) => {
            out.push(TAG_S);
            push_bytes(text.as_bytes(), out);
        }
        Value::N(number) => {
            out.push(TAG_N);
            push_number(number, out);
        }
        Value::B(bytes) => {
            out.push(TAG_B);
            push_bytes(bytes, out);
        }
        Value::Bool(false) => out.push(TAG_FALSE),
        Value::Bool(true) => out.push(TAG_TRUE),
        Value::Null => out.push(TAG_NULL),
        Value::M(map) => push_nested(TAG_M, out, |out| {
            for (name, value) in map {
                encode_entry(name, value, out);
            }
        }),
        Value::L(list) => push_nested(TAG_L, out, |out| {
            for value in list {
                encode_value(value, out);
            }
        }),
        Value::Ss(set) => push_nested(TAG_SS, out, |out| {
            for text in set {
                push_bytes(text.as_bytes(), out);
            }
        }),
        Value::Ns(set) => push_nested(TAG_NS, out, |out| {
            for number in set {
                push_number(number, out);
            }
        }),
        Value::Bs(set) => push_nested(TAG_BS, out, |out| {
            for bytes in set {
                push_bytes(bytes, out);
            }
        }),
    }
}

/// Writes a tag, a one-byte placeholder for the length, the content, and then the real length. Only
/// content of 128 bytes or more, which is rare, has to be moved up to make room for a longer
/// length.
fn push_nested(tag: u8, out: &mut Vec<u8>, content: impl FnOnce(&mut Vec<u8>)) {
    out.push(tag);
    let at = out.len();
    out.push(0);
    content(out);
    let len = out.len() - at - 1;
    if len < 0x80 {
        out[at] = len as u8;
    } else {
        let mut prefix = Vec::with_capacity(5);
        push_len(len, &mut prefix);
        out.splice(at..=at, prefix);
    }
}

fn push_len(mut len: usize, out: &mut Vec<u8>) {
    while len >= 0x80 {
        out.push((len & 0x7F) as u8 | 0x80);
        len >>= 7;
    }
    out.push(len as u8);
}

fn push_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    push_len(bytes.len(), out);
    out.extend_from_slice(bytes);
}

fn push_number(number: &Number, out: &mut Vec<u8>) {
    // The sortable encoding of a number has at most 22 bytes, so its length always fits one byte.
    let at = out.len();
    out.push(0);
    key::encode_number(number, out);
    out[at] = (out.len() - at - 1) as u8;
}

fn take_len(bytes: &mut &[u8]) -> Result<usize, DecodeError> {
    let mut len = 0usize;
    for shift in [0, 7, 14, 21, 28] {
        let (byte, rest) = bytes.split_first().ok_or(DecodeError::Damaged)?;
        *bytes = rest;
        len |= usize::from(byte & 0x7F) << shift;
        if byte & 0x80 == 0 {
            return Ok(len);
        }
    }
    Err(DecodeError::Damaged)
}

fn take_bytes<'a>(bytes: &mut &'a [u8]) -> Result<&'a [u8], DecodeError> {
    let len = take_len(bytes)?;
    let (taken, rest) = bytes.split_at_checked(len).ok_or(DecodeError::Damaged)?;
    *bytes = rest;
    Ok(taken)
}

/// Decodes a name or a member of a string set.
pub(crate) fn decode_text(bytes: &[u8]) -> Result<&str, DecodeError> {
    std::str::from_utf8(bytes).map_err(|_| DecodeError::Damaged)
}

/// Decodes a number or a member of a number set.
pub(crate) fn decode_number(mut bytes: &[u8]) -> Result<Number, DecodeError> {
    let number = key::decode_number(&mut bytes).map_err(|_| DecodeError::Damaged)?;
    if bytes.is_empty() {
        Ok(number)
    } else {
        Err(DecodeError::Damaged)
    }
}

/// A view of an item in binary form. Reading one attribute skips the others.
#[derive(Debug, Clone, Copy)]
pub struct ItemRef<'a> {
    entries: Entries<'a>,
}

/// A view of one value in binary form.
#[derive(Debug, Clone, Copy)]
pub struct ValueRef<'a> {
    tag: u8,
    payload: &'a [u8],
}

/// An iterator over the named values of an item or a map in binary form.
#[derive(Debug, Clone, Copy)]
pub struct Entries<'a> {
    bytes: &'a [u8],
}

/// A value in binary form, decoded one level deep.
pub(crate) enum DecodedValue<'a> {
    S(&'a str),
    N(Number),
    B(&'a [u8]),
    Bool(bool),
    Null,
    M(Entries<'a>),
    L(ListElements<'a>),
    Ss(SetMembers<'a>),
    Ns(SetMembers<'a>),
    Bs(SetMembers<'a>),
}

/// An iterator over the elements of a list in binary form.
pub(crate) struct ListElements<'a> {
    bytes: &'a [u8],
}

impl<'a> Iterator for ListElements<'a> {
    type Item = Result<ValueRef<'a>, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.bytes.is_empty() {
            return None;
        }
        let element = ValueRef::take(&mut self.bytes);
        if element.is_err() {
            self.bytes = &[];
        }
        Some(element)
    }
}

/// An iterator over the members of a set in binary form.
pub(crate) struct SetMembers<'a> {
    bytes: &'a [u8],
}

impl<'a> Iterator for SetMembers<'a> {
    type Item = Result<&'a [u8], DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.bytes.is_empty() {
            return None;
        }
        let member = take_bytes(&mut self.bytes);
        if member.is_err() {
            self.bytes = &[];
        }
        Some(member)
    }
}

impl<'a> ItemRef<'a> {
    /// Creates a view of `bytes`. Checks only the version; damage is detected when the damaged part
    /// is read.
    ///
    /// # Errors
    /// When `bytes` is empty or the version is unknown.
    pub fn new(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        match bytes.split_first() {
            Some((&FORMAT_VERSION, bytes)) => Ok(Self {
                entries: Entries { bytes },
            }),
            Some((version, _)) => Err(DecodeError::UnknownVersion(*version)),
            None => Err(DecodeError::Damaged),
        }
    }

    /// The value of one attribute.
    ///
    /// # Errors
    /// When the bytes are damaged.
    pub fn get(&self, name: &str) -> Result<Option<ValueRef<'a>>, DecodeError> {
        self.entries.get(name)
    }

    #[must_use]
    pub fn entries(&self) -> Entries<'a> {
        self.entries
    }

    /// Decodes the whole item.
    ///
    /// # Errors
    /// When the bytes are damaged.
    pub fn to_item(&self) -> Result<Item, DecodeError> {
        self.entries.to_map(READ_DEPTH_MAX).map(Item::from)
    }
}

impl<'a> Entries<'a> {
    /// The value of the entry `name`.
    ///
    /// # Errors
    /// When the bytes are damaged.
    pub fn get(self, name: &str) -> Result<Option<ValueRef<'a>>, DecodeError> {
        for entry in self {
            let (found, value) = entry?;
            // Names are in ascending order: a greater name means that `name` is absent.
            match found.cmp(name.as_bytes()) {
                std::cmp::Ordering::Less => {}
                std::cmp::Ordering::Equal => return Ok(Some(value)),
                std::cmp::Ordering::Greater => return Ok(None),
            }
        }
        Ok(None)
    }

    fn to_map(self, depth_left: usize) -> Result<Map, DecodeError> {
        // Not `collect`, which would first fill a growing vector and then sort it.
        let mut map = Map::new();
        for entry in self {
            let (name, value) = entry?;
            map.insert(decode_text(name)?.to_owned(), value.decode(depth_left)?);
        }
        Ok(map)
    }
}

impl<'a> Iterator for Entries<'a> {
    type Item = Result<(&'a [u8], ValueRef<'a>), DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.bytes.is_empty() {
            return None;
        }
        let entry = take_bytes(&mut self.bytes).and_then(|name| {
            let value = ValueRef::take(&mut self.bytes)?;
            Ok((name, value))
        });
        if entry.is_err() {
            self.bytes = &[];
        }
        Some(entry)
    }
}

impl<'a> ValueRef<'a> {
    fn take(bytes: &mut &'a [u8]) -> Result<Self, DecodeError> {
        let (tag, rest) = bytes.split_first().ok_or(DecodeError::Damaged)?;
        *bytes = rest;
        let payload = match *tag {
            TAG_FALSE | TAG_TRUE | TAG_NULL => &[],
            TAG_S | TAG_N | TAG_B | TAG_M | TAG_L | TAG_SS | TAG_NS | TAG_BS => take_bytes(bytes)?,
            _ => return Err(DecodeError::Damaged),
        };
        Ok(Self { tag: *tag, payload })
    }

    /// Appends the value's bytes unchanged.
    fn push(&self, out: &mut Vec<u8>) {
        out.push(self.tag);
        if !matches!(self.tag, TAG_FALSE | TAG_TRUE | TAG_NULL) {
            push_bytes(self.payload, out);
        }
    }

    #[must_use]
    pub fn kind(&self) -> ValueKind {
        match self.tag {
            TAG_S => ValueKind::S,
            TAG_N => ValueKind::N,
            TAG_B => ValueKind::B,
            TAG_FALSE | TAG_TRUE => ValueKind::Bool,
            TAG_M => ValueKind::M,
            TAG_L => ValueKind::L,
            TAG_SS => ValueKind::Ss,
            TAG_NS => ValueKind::Ns,
            TAG_BS => ValueKind::Bs,
            // `take` rejects all other tags.
            _ => ValueKind::Null,
        }
    }

    /// The text of a string value, borrowed.
    ///
    /// # Errors
    /// When the bytes are damaged.
    pub fn as_str(&self) -> Result<Option<&'a str>, DecodeError> {
        if self.tag == TAG_S {
            decode_text(self.payload).map(Some)
        } else {
            Ok(None)
        }
    }

    /// The number of a number value.
    ///
    /// # Errors
    /// When the bytes are damaged.
    pub fn as_number(&self) -> Result<Option<Number>, DecodeError> {
        if self.tag == TAG_N {
            decode_number(self.payload).map(Some)
        } else {
            Ok(None)
        }
    }

    /// The member `name`, if this is a map that contains it.
    ///
    /// # Errors
    /// When the bytes are damaged.
    pub fn member(&self, name: &str) -> Result<Option<Self>, DecodeError> {
        match self.entries() {
            Some(entries) => entries.get(name),
            None => Ok(None),
        }
    }

    /// The entries, if this is a map.
    #[must_use]
    pub fn entries(&self) -> Option<Entries<'a>> {
        (self.tag == TAG_M).then_some(Entries {
            bytes: self.payload,
        })
    }

    /// The element at `index`, if this is a list that contains it.
    ///
    /// # Errors
    /// When the bytes are damaged.
    pub fn element(&self, index: usize) -> Result<Option<Self>, DecodeError> {
        if self.tag != TAG_L {
            return Ok(None);
        }
        let mut rest = self.payload;
        for _ in 0..index {
            if rest.is_empty() {
                return Ok(None);
            }
            Self::take(&mut rest)?;
        }
        if rest.is_empty() {
            return Ok(None);
        }
        Self::take(&mut rest).map(Some)
    }

    /// Decodes one level of the value, borrowing from the bytes where possible.
    pub(crate) fn decode_shallow(&self) -> Result<DecodedValue<'a>, DecodeError> {
        let members = SetMembers {
            bytes: self.payload,
        };
        Ok(match self.tag {
            TAG_S => DecodedValue::S(decode_text(self.payload)?),
            TAG_N => DecodedValue::N(decode_number(self.payload)?),
            TAG_B => DecodedValue::B(self.payload),
            TAG_FALSE => DecodedValue::Bool(false),
            TAG_TRUE => DecodedValue::Bool(true),
            TAG_M => DecodedValue::M(Entries {
                bytes: self.payload,
            }),
            TAG_L => DecodedValue::L(ListElements {
                bytes: self.payload,
            }),
            TAG_SS => DecodedValue::Ss(members),
            TAG_NS => DecodedValue::Ns(members),
            TAG_BS => DecodedValue::Bs(members),
            // `take` rejects all other tags.
            _ => DecodedValue::Null,
        })
    }

    /// Decodes the value.
    ///
    /// # Errors
    /// When the bytes are damaged.
    pub fn to_value(&self) -> Result<Value, DecodeError> {
        self.decode(READ_DEPTH_MAX)
    }

    fn decode(&self, depth_left: usize) -> Result<Value, DecodeError> {
        let deeper = || depth_left.checked_sub(1).ok_or(DecodeError::Damaged);
        Ok(match self.tag {
            TAG_S => Value::S(decode_text(self.payload)?.to_owned()),
            TAG_N => Value::N(decode_number(self.payload)?),
            TAG_B => Value::B(self.payload.to_vec()),
            TAG_FALSE => Value::Bool(false),
            TAG_TRUE => Value::Bool(true),
            TAG_M => {
                let entries = Entries {
                    bytes: self.payload,
                };
                Value::M(entries.to_map(deeper()?)?)
            }
            TAG_L => {
                let depth_left = deeper()?;
                let mut rest = self.payload;
                let mut list = Vec::new();
                while !rest.is_empty() {
                    list.push(Self::take(&mut rest)?.decode(depth_left)?);
                }
                Value::L(list)
            }
            TAG_SS => Value::Ss(self.set(|bytes| decode_text(bytes).map(str::to_owned))?),
            TAG_NS => Value::Ns(self.set(decode_number)?),
            TAG_BS => Value::Bs(self.set(|bytes| Ok(bytes.to_vec()))?),
            _ => Value::Null,
        })
    }

    fn set<T: Ord>(
        &self,
        member: impl Fn(&[u8]) -> Result<T, DecodeError>,
    ) -> Result<Set<T>, DecodeError> {
        let mut rest = self.payload;
        let mut members = Vec::new();
        while !rest.is_empty() {
            members.push(member(take_bytes(&mut rest)?)?);
        }
        Set::new(members).map_err(|_| DecodeError::Damaged)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::arbitrary::any_item;
    use proptest::prelude::*;

    fn encoded(item: &Item) -> Vec<u8> {
        let mut out = Vec::new();
        encode_item(item.iter(), &mut out);
        out
    }

    proptest! {
        #[test]
        fn every_item_round_trips(item in any_item()) {
            let bytes = encoded(&item);
            prop_assert_eq!(ItemRef::new(&bytes).and_then(|view| view.to_item()), Ok(item));
        }

        #[test]
        fn single_attribute_equals_decoded_item(item in any_item()) {
            let bytes = encoded(&item);
            let view = ItemRef::new(&bytes).expect("a view");
            for (name, value) in item.iter() {
                let found = view.get(name).expect("whole").expect("present");
                prop_assert_eq!(&found.to_value().expect("whole"), value);
                prop_assert_eq!(found.kind(), value.kind());
            }
            prop_assert!(view.get("no such name").expect("whole").is_none());
        }

        #[test]
        fn changing_encoded_item_equals_changing_item(item in any_item(), changes in any_item()) {
            let bytes = encoded(&item);
            let list: Vec<_> = changes.iter().collect();
            let mut out = Vec::new();
            let size = encode_with_changes(ItemRef::new(&bytes).expect("a view"), &list, &mut out)
                .expect("whole");
            let mut changed = item.clone();
            for (name, value) in changes {
                changed.insert(name, value);
            }
            prop_assert_eq!(item.size() + size.added - size.removed, changed.size());
            prop_assert_eq!(out, encoded(&changed));
        }

        #[test]
        fn invalid_bytes_are_rejected_without_panic(mut bytes: Vec<u8>) {
            bytes.insert(0, FORMAT_VERSION);
            let view = ItemRef::new(&bytes).expect("a known version");
            let _ = view.to_item();
            let _ = view.get("a");
        }
    }

    #[test]
    fn nested_members_and_elements_are_readable() {
        let inner = Map::from([(
            "b".to_owned(),
            Value::L(vec![Value::from(1), Value::from("x")]),
        )]);
        let bytes = encoded(&Item::new().with("a", Value::M(inner)));
        let view = ItemRef::new(&bytes).expect("a view");
        let list = view
            .get("a")
            .unwrap()
            .unwrap()
            .member("b")
            .unwrap()
            .unwrap();
        assert_eq!(list.element(1).unwrap().unwrap().as_str(), Ok(Some("x")));
        assert!(list.element(2).unwrap().is_none());
        assert!(list.member("b").unwrap().is_none());
    }

    #[test]
    fn reading_one_attribute_skips_the_others() {
        let mut bytes = encoded(
            &Item::new()
                .with("a", Value::L(vec![Value::from("x")]))
                .with("b", 7),
        );
        // Damage inside the list's element: only a reader that decodes the list notices it.
        let at = bytes.iter().position(|byte| *byte == TAG_L).unwrap() + 2;
        bytes[at] = 0xEE;
        let view = ItemRef::new(&bytes).expect("a view");
        let seven = view.get("b").unwrap().unwrap();
        assert_eq!(seven.as_number(), Ok(Some(Number::from(7))));
        assert_eq!(view.to_item(), Err(DecodeError::Damaged));
    }

    #[test]
    fn newer_format_version_is_reported() {
        assert_eq!(
            ItemRef::new(&[9]).map(|_| ()),
            Err(DecodeError::UnknownVersion(9))
        );
    }

    #[test]
    fn encoding_matches_documented_layout() {
        let item = Item::new()
            .with("n", 1_700_000_000_000_i64)
            .with("s", "hi")
            .with("t", true);
        assert_eq!(
            encoded(&item),
            [
                1, //
                1, b'n', TAG_N, 4, 3, 142, 18, 0, //
                1, b's', TAG_S, 2, b'h', b'i', //
                1, b't', TAG_TRUE,
            ]
        );
    }
}
