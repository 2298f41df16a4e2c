//! Tests of the whole language, from the text to the message or effect.

mod condition_messages;
mod evaluation;
mod hostile;
mod key_conditions;
mod roundtrip;
mod updates;

use super::Placeholders;
use crate::item::Item;
use crate::value::Value;

/// The placeholder maps of a request.
fn placeholders(names: &[(&str, &str)], values: &[(&str, Value)]) -> Placeholders {
    let names = names
        .iter()
        .map(|(key, name)| (key.to_string(), name.to_string()));
    let values = values
        .iter()
        .map(|(key, value)| (key.to_string(), value.clone()));
    Placeholders::new(names, values).expect("placeholders")
}

/// An item from its JSON form.
fn item(json: &str) -> Item {
    serde_json::from_str(json).expect("an item")
}

/// A value from its JSON form.
fn value(json: &str) -> Value {
    serde_json::from_str(json).expect("a value")
}
