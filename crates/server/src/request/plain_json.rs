//! Attribute values as plain JSON: parsed from requests, written in responses. Numbers keep every digit.

use homeport_item::{Item, Map, Value};
use homeport_systems::plain_json;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

pub(crate) use homeport_systems::plain_json::{parse_members, parse_value};

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
}
