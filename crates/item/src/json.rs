//! DynamoDB's JSON form of values (`{"S": "text"}`, `{"N": "1"}`, …). Serde reads and writes it
//! without an intermediate JSON tree. It can also be written from the binary form without decoding
//! that to a [`Value`].

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::binary::{DecodeError, DecodedValue, ValueRef, decode_number, decode_text};
use crate::item::Item;
use crate::map::Map;
use crate::number::Number;
use crate::set::Set;
use crate::value::{READ_DEPTH_MAX, Value, ValueKind};

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1))?;
        let name = self.kind().name();
        match self {
            Self::S(text) => map.serialize_entry(name, text)?,
            Self::N(number) => map.serialize_entry(name, number)?,
            Self::B(bytes) => map.serialize_entry(name, &Base64(bytes))?,
            Self::Bool(value) => map.serialize_entry(name, value)?,
            Self::Null => map.serialize_entry(name, &true)?,
            Self::M(members) => map.serialize_entry(name, members)?,
            Self::L(list) => map.serialize_entry(name, list)?,
            Self::Ss(set) => map.serialize_entry(name, set.as_slice())?,
            Self::Ns(set) => map.serialize_entry(name, set.as_slice())?,
            Self::Bs(set) => {
                let members: Vec<_> = set.iter().map(|bytes| Base64(bytes)).collect();
                map.serialize_entry(name, &members)?;
            }
        }
        map.end()
    }
}

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Serialize for Item {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.attributes().serialize(serializer)
    }
}

struct Base64<'a>(&'a [u8]);

impl Serialize for Base64<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(self.0))
    }
}

impl<'de> Deserialize<'de> for Item {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Map::deserialize(deserializer).map(Self::from)
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

struct Bytes(Vec<u8>);

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        STANDARD
            .decode(text.as_bytes())
            .map(Self)
            .map_err(de::Error::custom)
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ValueVisitor)
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = Value;

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("an attribute value with exactly one type")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let name: std::borrow::Cow<'de, str> = map.next_key()?.ok_or_else(|| {
            de::Error::custom("Supplied AttributeValue is empty, must contain exactly one of the supported datatypes")
        })?;
        let kind = ValueKind::from_name(&name)
            .ok_or_else(|| de::Error::custom("Supplied AttributeValue has an unknown datatype"))?;
        let value = match kind {
            ValueKind::S => Value::S(map.next_value()?),
            ValueKind::N => Value::N(map.next_value()?),
            ValueKind::B => Value::B(map.next_value::<Bytes>()?.0),
            ValueKind::Bool => Value::Bool(map.next_value()?),
            ValueKind::Null => {
                if !map.next_value::<bool>()? {
                    return Err(de::Error::custom(
                        "Null attribute value types must have the value of true",
                    ));
                }
                Value::Null
            }
            ValueKind::M => Value::M(map.next_value()?),
            ValueKind::L => Value::L(map.next_value()?),
            ValueKind::Ss => Value::Ss(Set::new(map.next_value()?).map_err(de::Error::custom)?),
            ValueKind::Ns => Value::Ns(Set::new(map.next_value()?).map_err(de::Error::custom)?),
            ValueKind::Bs => {
                let members: Vec<Bytes> = map.next_value()?;
                let members = members.into_iter().map(|bytes| bytes.0).collect();
                Value::Bs(Set::new(members).map_err(de::Error::custom)?)
            }
        };
        if map.next_key::<de::IgnoredAny>()?.is_some() {
            return Err(de::Error::custom(
                "Supplied AttributeValue has more than one datatypes set, must contain exactly one of the supported datatypes",
            ));
        }
        Ok(value)
    }
}

/// Appends a JSON string.
pub fn write_string(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    let bytes = text.as_bytes();
    let mut copied = 0;
    for (at, &byte) in bytes.iter().enumerate() {
        let short = match byte {
            b'"' => b'"',
            b'\\' => b'\\',
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            0x20.. => continue,
            _ => 0,
        };
        out.extend_from_slice(&bytes[copied..at]);
        copied = at + 1;
        if short == 0 {
            const HEX: &[u8; 16] = b"0123456789abcdef";
            out.extend_from_slice(b"\\u00");
            out.push(HEX[usize::from(byte >> 4)]);
            out.push(HEX[usize::from(byte & 0xF)]);
        } else {
            out.extend_from_slice(&[b'\\', short]);
        }
    }
    out.extend_from_slice(&bytes[copied..]);
    out.push(b'"');
}

/// Appends the JSON form of a value.
pub fn write_value(value: &Value, out: &mut Vec<u8>) {
    open_value(value.kind(), out);
    match value {
        Value::S(text) => write_string(text, out),
        Value::N(number) => write_number(number, out),
        Value::B(bytes) => write_base64(bytes, out),
        Value::Bool(value) => write_bool(*value, out),
        Value::Null => write_bool(true, out),
        Value::M(map) => write_map(map, out),
        Value::L(list) => write_list(list, out, write_value),
        Value::Ss(set) => write_list(set.as_slice(), out, |text, out| write_string(text, out)),
        Value::Ns(set) => write_list(set.as_slice(), out, write_number),
        Value::Bs(set) => write_list(set.as_slice(), out, |bytes, out| write_base64(bytes, out)),
    }
    out.push(b'}');
}

/// Appends the JSON form of an item.
pub fn write_item(item: &Item, out: &mut Vec<u8>) {
    write_map(item.attributes(), out);
}

fn write_map(map: &Map, out: &mut Vec<u8>) {
    out.push(b'{');
    for (at, (name, value)) in map.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        write_string(name, out);
        out.push(b':');
        write_value(value, out);
    }
    out.push(b'}');
}

fn write_list<T>(members: &[T], out: &mut Vec<u8>, write: impl Fn(&T, &mut Vec<u8>)) {
    out.push(b'[');
    for (at, member) in members.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        write(member, out);
    }
    out.push(b']');
}

fn open_value(kind: ValueKind, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"");
    out.extend_from_slice(kind.name().as_bytes());
    out.extend_from_slice(b"\":");
}

fn write_bool(value: bool, out: &mut Vec<u8>) {
    out.extend_from_slice(if value { b"true" } else { b"false" });
}

fn write_number(number: &Number, out: &mut Vec<u8>) {
    out.push(b'"');
    number.write_decimal(out);
    out.push(b'"');
}

fn write_base64(bytes: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    let start = out.len();
    out.resize(start + bytes.len().div_ceil(3) * 4, 0);
    let written = STANDARD
        .encode_slice(bytes, &mut out[start..])
        .expect("the buffer has exactly the length of the padded base64 text");
    out.truncate(start + written);
    out.push(b'"');
}

/// Appends the JSON form of a value that is in binary form, without decoding it to a [`Value`].
///
/// # Errors
/// When the bytes are damaged. Discard the output then: it is incomplete.
pub fn write_value_ref(value: ValueRef<'_>, out: &mut Vec<u8>) -> Result<(), DecodeError> {
    write_ref(value, READ_DEPTH_MAX, out)
}

fn write_ref(value: ValueRef<'_>, depth_left: usize, out: &mut Vec<u8>) -> Result<(), DecodeError> {
    let deeper = || depth_left.checked_sub(1).ok_or(DecodeError::Damaged);
    open_value(value.kind(), out);
    match value.decode_shallow()? {
        DecodedValue::S(text) => write_string(text, out),
        DecodedValue::N(number) => write_number(&number, out),
        DecodedValue::B(bytes) => write_base64(bytes, out),
        DecodedValue::Bool(value) => write_bool(value, out),
        DecodedValue::Null => write_bool(true, out),
        DecodedValue::M(entries) => {
            out.push(b'{');
            let depth_left = deeper()?;
            for (at, entry) in entries.enumerate() {
                let (name, value) = entry?;
                if at > 0 {
                    out.push(b',');
                }
                write_string(decode_text(name)?, out);
                out.push(b':');
                write_ref(value, depth_left, out)?;
            }
            out.push(b'}');
        }
        DecodedValue::L(elements) => {
            let depth_left = deeper()?;
            write_members(elements, out, |value, out| {
                write_ref(value, depth_left, out)
            })?;
        }
        DecodedValue::Ss(members) => write_members(members, out, |bytes, out| {
            write_string(decode_text(bytes)?, out);
            Ok(())
        })?,
        DecodedValue::Ns(members) => write_members(members, out, |bytes, out| {
            write_number(&decode_number(bytes)?, out);
            Ok(())
        })?,
        DecodedValue::Bs(members) => write_members(members, out, |bytes, out| {
            write_base64(bytes, out);
            Ok(())
        })?,
    }
    out.push(b'}');
    Ok(())
}

fn write_members<T>(
    members: impl Iterator<Item = Result<T, DecodeError>>,
    out: &mut Vec<u8>,
    write: impl Fn(T, &mut Vec<u8>) -> Result<(), DecodeError>,
) -> Result<(), DecodeError> {
    out.push(b'[');
    for (at, member) in members.enumerate() {
        if at > 0 {
            out.push(b',');
        }
        write(member?, out)?;
    }
    out.push(b']');
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::binary::{ItemRef, encode_item};
    use crate::value::arbitrary::{any_item, any_number};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_item_round_trips(item in any_item()) {
            let text = serde_json::to_string(&item).expect("serialises");
            prop_assert_eq!(serde_json::from_str::<Item>(&text).expect("parses"), item);
        }
    }

    proptest! {
        #[test]
        fn written_items_parse_back(item in any_item()) {
            let mut out = Vec::new();
            write_item(&item, &mut out);
            prop_assert_eq!(serde_json::from_slice::<Item>(&out).expect("parses"), item);
        }

        #[test]
        fn binary_form_and_value_write_same_json(item in any_item()) {
            let mut bytes = Vec::new();
            encode_item(item.iter(), &mut bytes);
            let view = ItemRef::new(&bytes).expect("a view");
            for (name, value) in item.iter() {
                let (mut from_binary, mut from_value) = (Vec::new(), Vec::new());
                let stored = view.get(name).expect("whole").expect("present");
                write_value_ref(stored, &mut from_binary).expect("whole");
                write_value(value, &mut from_value);
                prop_assert_eq!(from_binary, from_value);
            }
        }

        #[test]
        fn escaped_strings_parse_back(text: String) {
            let mut out = Vec::new();
            write_string(&text, &mut out);
            prop_assert_eq!(serde_json::from_slice::<String>(&out).expect("parses"), text);
        }

        #[test]
        fn write_decimal_equals_display(number in any_number()) {
            let mut out = Vec::new();
            number.write_decimal(&mut out);
            prop_assert_eq!(String::from_utf8(out).expect("ascii"), number.to_string());
        }
    }

    #[test]
    fn json_matches_aws_documentation() {
        let item = Item::new()
            .with("B", Value::B(b"hi".to_vec()))
            .with("N", 5)
            .with("Nul", Value::Null)
            .with("Ss", Value::string_set(["b", "a"]).expect("a set"));
        assert_eq!(
            serde_json::to_string(&item).expect("serialises"),
            r#"{"B":{"B":"aGk="},"N":{"N":"5"},"Nul":{"NULL":true},"Ss":{"SS":["a","b"]}}"#
        );
    }

    #[test]
    fn malformed_values_are_rejected() {
        for text in [
            "{}",
            r#"{"X":"1"}"#,
            r#"{"S":"a","N":"1"}"#,
            r#"{"N":"one"}"#,
            r#"{"N":1}"#,
            r#"{"SS":[]}"#,
            r#"{"NS":["1","1.0"]}"#,
            r#"{"NULL":false}"#,
            r#"{"B":"not base64!"}"#,
        ] {
            assert!(serde_json::from_str::<Value>(text).is_err(), "{text}");
        }
    }
}
