//! A request's JSON as a tree, for who decides about it before its operation reads it.
//!
//! IMPORTANT: the two must not read it differently. Where an object has a member twice, one reader may
//! take the first and the other the last, so that such requests are not read here at all.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// The object that a body holds; none where it is none, or has a member twice anywhere.
pub(super) fn object(body: &[u8]) -> Option<Map<String, Value>> {
    let mut reader = serde_json::Deserializer::from_slice(body);
    let tree = Tree.deserialize(&mut reader).ok()?;
    reader.end().ok()?;
    match tree {
        Value::Object(object) => Some(object),
        _ => None,
    }
}

#[derive(Clone, Copy)]
struct Tree;

impl<'de> DeserializeSeed<'de> for Tree {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Tree {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        let number = Number::from_f64(value).ok_or_else(|| E::custom("not a number"))?;
        Ok(Value::Number(number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = list.next_element_seed(Tree)? {
            values.push(value);
        }
        Ok(Value::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            let value = members.next_value_seed(Tree)?;
            if object.insert(name, value).is_some() {
                return Err(A::Error::custom("a member comes twice"));
            }
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_read_as_any_other_reader_reads_it() {
        let body = br#"{"a":[1,-2,2.5,"x",null,true],"b":{"c":{}}}"#;
        let expected: Value = serde_json::from_slice(body).expect("JSON");
        assert_eq!(object(body).map(Value::Object), Some(expected));
    }

    #[test]
    fn what_two_readers_could_read_differently_is_not_read() {
        let bodies = [
            r#"{"TableName":"mine","TableName":"yours"}"#,
            r#"{"RequestItems":{"t":{"Keys":[]},"t":null}}"#,
            r#"{"Key":{"pk":{"S":"mine","S":"yours"}}}"#,
            r#"{"a":1} {"a":2}"#,
            "[]",
            "{",
        ];
        for body in bodies {
            assert_eq!(object(body.as_bytes()), None, "{body}");
        }
    }
}
