//! `parse_time`, which despite its name formats a time, and `time_to_epoch`, which parses one.

use std::borrow::Cow;

use jiff::Timestamp;

use super::time_fields::zone;
use super::time_pattern::{self, Dialect};
use super::{Function, time_format, time_parse};
use crate::evaluate::convert::{to_text, to_whole};
use crate::evaluate::{Fault, shown};
use crate::value::Value;
use homeport_item::Decimal;

/// Validates a literal pattern of the statement.
///
/// # Errors
/// A message that says why the pattern is invalid.
pub(crate) fn check_pattern(function: Function, pattern: &str) -> Result<(), String> {
    let dialect = match function {
        Function::ParseTime => Dialect::Joda,
        _ => Dialect::Java,
    };
    time_pattern::parse(pattern, dialect).map(|_| ())
}

fn text(value: &Value) -> Result<Cow<'_, str>, Fault> {
    to_text(value).ok_or_else(|| format!("{} cannot be converted to a text", value.kind()).into())
}

pub(super) fn parse_time(arguments: &[Cow<'_, Value>]) -> Result<Value, Fault> {
    let pieces = time_pattern::parse(&text(&arguments[0])?, Dialect::Joda)?;
    let milliseconds = to_whole(&arguments[1])
        .and_then(|number| number.to_i128())
        .and_then(|number| i64::try_from(number).ok())
        .and_then(|number| Timestamp::from_millisecond(number).ok());
    let Some(timestamp) = milliseconds else {
        return Err(format!("{} is not a time in milliseconds", shown(&arguments[1])).into());
    };
    let zone_name = match arguments.get(2) {
        Some(name) => text(name)?,
        None => Cow::Borrowed("UTC"),
    };
    let Some(zone) = zone(&zone_name) else {
        return Err(format!("{zone_name} is not a time zone").into());
    };
    let time = timestamp.to_zoned(zone);
    Ok(Value::String(time_format::format(
        &pieces, &time, &zone_name,
    )))
}

pub(super) fn time_to_epoch(time: &Value, pattern: &Value) -> Result<Value, Fault> {
    let pieces = time_pattern::parse(&text(pattern)?, Dialect::Java)?;
    let milliseconds = time_parse::parse(&pieces, &text(time)?)?;
    Ok(Value::Int(Decimal::from(milliseconds)))
}
