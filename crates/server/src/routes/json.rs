//! Plain JSON in and out of attribute values, with every digit of a number.

use std::borrow::Cow;
use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use homeport_item::{Item, Map, Value};
use serde::ser::{SerializeMap as _, SerializeSeq as _};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

/// Reads a JSON object whose members are nested at most so deep.
pub(super) fn object(raw: &RawValue, depth_max: usize) -> Result<Map, String> {
    match read(raw, 0, depth_max + 1)? {
        Value::M(members) => Ok(members),
        _ => Err("expected an object".to_owned()),
    }
}

/// Reads any JSON value that is nested at most so deep.
pub(super) fn value(raw: &RawValue, depth_max: usize) -> Result<Value, String> {
    read(raw, 0, depth_max)
}

/// Deeper values are refused before they are built.
fn read(raw: &RawValue, depth: usize, depth_max: usize) -> Result<Value, String> {
    if depth > depth_max {
        return Err("nested too deep".to_owned());
    }
    let text = raw.get();
    let wrong = |error: serde_json::Error| error.to_string();
    Ok(match text.as_bytes().first() {
        Some(b'{') => {
            let members: BTreeMap<Cow<'_, str>, &RawValue> =
                serde_json::from_str(text).map_err(wrong)?;
            let members = members
                .into_iter()
                .map(|(name, raw)| Ok((name.into_owned(), read(raw, depth + 1, depth_max)?)));
            Value::M(members.collect::<Result<_, String>>()?)
        }
        Some(b'[') => {
            let elements: Vec<&RawValue> = serde_json::from_str(text).map_err(wrong)?;
            let elements = elements
                .into_iter()
                .map(|raw| read(raw, depth + 1, depth_max));
            Value::L(elements.collect::<Result<_, _>>()?)
        }
        Some(b'"') => Value::S(serde_json::from_str(text).map_err(wrong)?),
        Some(b't' | b'f') => Value::Bool(serde_json::from_str(text).map_err(wrong)?),
        Some(b'n') => Value::Null,
        _ => Value::N(
            text.parse()
                .map_err(|_| format!("{text} must be a number of at most 38 digits"))?,
        ),
    })
}

/// An item as plain JSON.
#[derive(Debug)]
pub(super) struct PlainItem(pub(super) Item);

/// Members as plain JSON.
#[derive(Debug)]
pub(super) struct PlainMap(pub(super) Map);

/// One value as plain JSON.
#[derive(Debug)]
pub(super) struct PlainValue(pub(super) Value);

struct Plain<'a>(&'a Value);

impl Serialize for PlainValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Plain(&self.0).serialize(serializer)
    }
}

impl Serialize for PlainItem {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        members(self.0.attributes(), serializer)
    }
}

impl Serialize for PlainMap {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        members(&self.0, serializer)
    }
}

impl Serialize for Plain<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let number = |number: &homeport_item::Number| RawValue::from_string(number.to_string());
        match self.0 {
            Value::S(text) => serializer.serialize_str(text),
            // A decimal in plain notation is a JSON number as it stands.
            Value::N(given) => number(given)
                .map_err(serde::ser::Error::custom)?
                .serialize(serializer),
            Value::B(bytes) => serializer.serialize_str(&STANDARD.encode(bytes)),
            Value::Bool(value) => serializer.serialize_bool(*value),
            Value::Null => serializer.serialize_unit(),
            Value::M(map) => members(map, serializer),
            Value::L(list) => elements(list.iter().map(Plain), serializer),
            Value::Ss(set) => elements(set.iter(), serializer),
            Value::Ns(set) => {
                let numbers: Result<Vec<_>, _> = set.iter().map(number).collect();
                elements(
                    numbers.map_err(serde::ser::Error::custom)?.iter(),
                    serializer,
                )
            }
            Value::Bs(set) => elements(set.iter().map(|bytes| STANDARD.encode(bytes)), serializer),
        }
    }
}

fn members<S: Serializer>(map: &Map, serializer: S) -> Result<S::Ok, S::Error> {
    let mut object = serializer.serialize_map(Some(map.len()))?;
    for (name, value) in map {
        object.serialize_entry(name, &Plain(value))?;
    }
    object.end()
}

fn elements<S: Serializer, T: Serialize>(
    values: impl Iterator<Item = T>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut list = serializer.serialize_seq(None)?;
    for value in values {
        list.serialize_element(&value)?;
    }
    list.end()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_comes_back_with_every_digit() {
        let text = r#"{"a":[1,0.1234567890123456789012345678901234567,true,null],"b":{"c":"d"}}"#;
        let raw: Box<RawValue> = serde_json::from_str(text).expect("json");
        let members = object(&raw, 8).expect("an object");
        assert_eq!(
            serde_json::to_string(&PlainMap(members)).expect("json"),
            text
        );
    }

    #[test]
    fn what_cannot_be_a_value_is_refused() {
        let read = |text: &str| {
            let raw: Box<RawValue> = serde_json::from_str(text).expect("json");
            object(&raw, 8)
        };
        assert!(read("[1]").is_err());
        assert!(read(r#"{"a":1e200}"#).is_err());
        let deep = format!(r#"{{"a":{}1{}}}"#, "[".repeat(60), "]".repeat(60));
        assert!(read(&deep).is_err());
    }
}
