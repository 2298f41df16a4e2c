//! The standard type conversions that operators and functions apply to their operands.

use std::borrow::Cow;

use crate::value::Value;
use homeport_item::Decimal;

/// The value as text; `None` for Null, Undefined and raw bytes.
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

/// The value as a number. Numeric strings are converted; Booleans are not, which requires a cast.
pub(crate) fn to_number(value: &Value) -> Option<Decimal> {
    match value {
        Value::Int(number) | Value::Decimal(number) => Some(*number),
        // AWS IoT accepts no plus sign.
        Value::String(text) if !text.contains('+') => Decimal::parse(text).ok(),
        _ => None,
    }
}

/// The value as an integer, truncated.
pub(crate) fn to_whole(value: &Value) -> Option<Decimal> {
    to_number(value).map(|number| number.truncate(0))
}

/// The value as an index, if it is a non-negative integer in range.
pub(crate) fn to_index(value: &Value) -> Option<usize> {
    usize::try_from(to_whole(value)?.to_i128()?).ok()
}

/// The value as a Boolean. Numbers are not converted, which requires a cast.
pub(crate) fn to_boolean(value: &Value) -> Option<bool> {
    match value {
        Value::Boolean(value) => Some(*value),
        Value::String(text) if text.eq_ignore_ascii_case("true") => Some(true),
        Value::String(text) if text.eq_ignore_ascii_case("false") => Some(false),
        _ => None,
    }
}
