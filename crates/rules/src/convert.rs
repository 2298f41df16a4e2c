//! The standard conversions between types, which operators and functions apply to what they get.

use std::borrow::Cow;

use crate::decimal::Decimal;
use crate::value::Value;

/// The value as text; none for Null, Undefined and raw bytes.
pub(crate) fn to_text(value: &Value) -> Option<Cow<'_, str>> {
    Some(match value {
        Value::String(text) => Cow::Borrowed(text),
        Value::Int(number) | Value::Decimal(number) => Cow::Owned(number.to_string()),
        Value::Boolean(true) => Cow::Borrowed("true"),
        Value::Boolean(false) => Cow::Borrowed("false"),
        Value::Array(_) | Value::Object(_) => Cow::Owned(value.to_json()),
        Value::Null | Value::Undefined | Value::Bytes(_) => return None,
    })
}

/// The value as a number. Strings are read as numbers where they look like one; Booleans are none,
/// only a cast makes them so.
pub(crate) fn to_number(value: &Value) -> Option<Decimal> {
    match value {
        Value::Int(number) | Value::Decimal(number) => Some(*number),
        // A sign before the exponent is as far as AWS IoT goes: no plus.
        Value::String(text) if !text.contains('+') => Decimal::parse(text).ok(),
        _ => None,
    }
}

/// The value as a whole number, without its decimal places.
pub(crate) fn to_whole(value: &Value) -> Option<Decimal> {
    to_number(value).map(|number| number.truncate(0))
}

/// The value as an index, where it is one: whole, not negative, and of a size that can be.
pub(crate) fn to_index(value: &Value) -> Option<usize> {
    usize::try_from(to_whole(value)?.to_i128()?).ok()
}

/// The value as true or false. Numbers are neither, only a cast makes them so.
pub(crate) fn to_boolean(value: &Value) -> Option<bool> {
    match value {
        Value::Boolean(value) => Some(*value),
        Value::String(text) if text.eq_ignore_ascii_case("true") => Some(true),
        Value::String(text) if text.eq_ignore_ascii_case("false") => Some(false),
        _ => None,
    }
}
