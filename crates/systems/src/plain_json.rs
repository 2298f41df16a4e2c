//! Attribute values as plain JSON with every digit of a number. In written JSON, sets become arrays and binary values
//! become Base64, so it is for display and cannot be read back.

use std::borrow::Cow;
use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use homeport_item::json::write_string;
use homeport_item::{Item, Map, Number, Value};
use serde_json::value::RawValue;

/// An item as one JSON object.
#[must_use]
pub fn item(item: &Item) -> String {
    text(object(item.attributes()))
}

/// A value as JSON.
#[must_use]
pub fn value(value: &Value) -> String {
    let mut out = Vec::new();
    write_value(value, &mut out);
    text(out)
}

/// Members as one JSON object.
pub(crate) fn object(members: &Map) -> Vec<u8> {
    let mut out = Vec::new();
    write_object(members, &mut out);
    out
}

/// Parses a JSON object whose members are nested at most `depth_max` levels deep.
///
/// # Errors
/// When it is not such an object.
pub fn parse_members(raw: &RawValue, depth_max: usize) -> Result<Map, String> {
    match parse(raw, 0, depth_max + 1)? {
        Value::M(members) => Ok(members),
        _ => Err("expected an object".to_owned()),
    }
}

/// Parses a JSON value that is nested at most `depth_max` levels deep.
///
/// # Errors
/// When the text is not such a value.
pub fn parse_value(raw: &RawValue, depth_max: usize) -> Result<Value, String> {
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

fn text(json: Vec<u8>) -> String {
    String::from_utf8_lossy(&json).into_owned()
}

fn write_object(members: &Map, out: &mut Vec<u8>) {
    out.push(b'{');
    for (at, (name, value)) in members.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        write_string(name, out);
        out.push(b':');
        write_value(value, out);
    }
    out.push(b'}');
}

fn write_value(value: &Value, out: &mut Vec<u8>) {
    let base64 = |bytes: &Vec<u8>, out: &mut Vec<u8>| write_string(&STANDARD.encode(bytes), out);
    let number = |number: &Number, out: &mut Vec<u8>| number.write_decimal(out);
    match value {
        Value::S(text) => write_string(text, out),
        Value::N(given) => number(given, out),
        Value::B(bytes) => base64(bytes, out),
        Value::Bool(true) => out.extend_from_slice(b"true"),
        Value::Bool(false) => out.extend_from_slice(b"false"),
        Value::Null => out.extend_from_slice(b"null"),
        Value::M(members) => write_object(members, out),
        Value::L(elements) => write_array(elements.iter(), out, write_value),
        Value::Ss(set) => write_array(set.iter(), out, |text, out| write_string(text, out)),
        Value::Ns(set) => write_array(set.iter(), out, number),
        Value::Bs(set) => write_array(set.iter(), out, base64),
    }
}

fn write_array<'a, T: 'a>(
    elements: impl Iterator<Item = &'a T>,
    out: &mut Vec<u8>,
    write: impl Fn(&'a T, &mut Vec<u8>),
) {
    out.push(b'[');
    for (at, element) in elements.enumerate() {
        if at > 0 {
            out.push(b',');
        }
        write(element, out);
    }
    out.push(b']');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_is_shown_with_all_digits() {
        let number: Number = "0.1234567890123456789012345678901234567".parse().unwrap();
        let shown = Item::new()
            .with("a", number)
            .with("b", Value::B(vec![1, 2]))
            .with("c", Value::L(vec![Value::Null, true.into(), "é\"".into()]))
            .with("d", Value::string_set(["x", "y"]).unwrap());
        assert_eq!(
            item(&shown),
            r#"{"a":0.1234567890123456789012345678901234567,"b":"AQI=","c":[null,true,"é\""],"d":["x","y"]}"#
        );
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
