//! Attribute values as plain JSON with every digit of a number. Sets become arrays and binary values become
//! Base64, so the result is for display and cannot be read back.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use homeport_item::json::write_string;
use homeport_item::{Item, Map, Number, Value};

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
}
