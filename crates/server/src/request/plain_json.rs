//! Attribute values as plain JSON: parsed from requests, written in responses. Numbers keep every digit.

use std::borrow::Cow;
use std::collections::BTreeMap;

use homeport_item::{Item, Map, Value};
use homeport_systems::plain_json;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

/// Parses a JSON object whose members are nested at most `depth_max` levels deep.
pub(crate) fn parse_members(raw: &RawValue, depth_max: usize) -> Result<Map, String> {
    match parse(raw, 0, depth_max + 1)? {
        Value::M(members) => Ok(members),
        _ => Err("expected an object".to_owned()),
    }
}

/// Parses a JSON value that is nested at most `depth_max` levels deep.
pub(crate) fn parse_value(raw: &RawValue, depth_max: usize) -> Result<Value, String> {
    parse(raw, 0, depth_max)
}

/// Rejects deeper values before it builds them.
fn parse(raw: &RawValue, depth: usize, depth_max: usize) -> Result<Value, String> {
    if depth > depth_max {
        return Err("nested too deeply".to_owned());
    }
    let text = raw.get();
    let invalid = |error: serde_json::Error| error.to_string();
    Ok(match text.as_bytes().first() {
        Some(b'{') => {
            let members: BTreeMap<Cow<'_, str>, &RawValue> =
                serde_json::from_str(text).map_err(invalid)?;
            let members = members
                .into_iter()
                .map(|(name, raw)| Ok((name.into_owned(), parse(raw, depth + 1, depth_max)?)));
            Value::M(members.collect::<Result<_, String>>()?)
        }
        Some(b'[') => {
            let elements: Vec<&RawValue> = serde_json::from_str(text).map_err(invalid)?;
            let elements = elements
                .into_iter()
                .map(|raw| parse(raw, depth + 1, depth_max));
            Value::L(elements.collect::<Result<_, _>>()?)
        }
        Some(b'"') => Value::S(serde_json::from_str(text).map_err(invalid)?),
        Some(b't' | b'f') => Value::Bool(serde_json::from_str(text).map_err(invalid)?),
        Some(b'n') => Value::Null,
        _ => Value::N(
            text.parse()
                .map_err(|_| format!("{text} must be a number of at most 38 digits"))?,
        ),
    })
}

/// An item as plain JSON.
#[derive(Debug)]
pub(crate) struct PlainItem(pub(crate) Item);

/// A value as plain JSON.
#[derive(Debug)]
pub(crate) struct PlainValue(pub(crate) Value);

impl PlainValue {
    pub(crate) fn members(members: Map) -> Self {
        Self(Value::M(members))
    }
}

impl Serialize for PlainItem {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize_json(plain_json::item(&self.0), serializer)
    }
}

impl Serialize for PlainValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize_json(plain_json::value(&self.0), serializer)
    }
}

fn serialize_json<S: Serializer>(json: String, serializer: S) -> Result<S::Ok, S::Error> {
    RawValue::from_string(json)
        .map_err(serde::ser::Error::custom)?
        .serialize(serializer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_every_digit() {
        let text = r#"{"a":[1,0.1234567890123456789012345678901234567,true,null],"b":{"c":"d"}}"#;
        let raw: Box<RawValue> = serde_json::from_str(text).expect("json");
        let members = parse_members(&raw, 8).expect("an object");
        let written = serde_json::to_string(&PlainValue::members(members)).expect("json");
        assert_eq!(written, text);
    }

    #[test]
    fn values_that_cannot_be_stored_are_rejected() {
        let parse = |text: &str| {
            let raw: Box<RawValue> = serde_json::from_str(text).expect("json");
            parse_members(&raw, 8)
        };
        assert!(parse("[1]").is_err());
        assert!(parse(r#"{"a":1e200}"#).is_err());
        let deep = format!(r#"{{"a":{}1{}}}"#, "[".repeat(60), "]".repeat(60));
        assert!(parse(&deep).is_err());
    }
}
