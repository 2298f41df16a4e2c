//! Functions that return a message's metadata.

use std::borrow::Cow;

use super::{Function, encode};
use crate::evaluate::convert::to_number;
use crate::evaluate::{Context, Fault};
use crate::message::Message;
use crate::statement::SQL_VERSION;
use crate::value::Value;
use crate::value::object::Object;

/// The topic prefix of messages sent directly to a rule, without the broker; `topic()` does not
/// show it.
const BASIC_INGEST: &str = "$aws/rules/";

pub(super) fn call(
    function: Function,
    arguments: &[Cow<'_, Value>],
    message: &Message<'_>,
    context: &mut Context<'_>,
) -> Result<Value, Fault> {
    let known = |value: Option<&str>, missing: &'static str| {
        value.map(Value::from).ok_or_else(|| Fault::from(missing))
    };
    match function {
        Function::AccountId => Ok(Value::from(message.account_id)),
        Function::ClientId => Ok(Value::from(message.client_id.unwrap_or("n/a"))),
        Function::Principal => known(message.principal, "nobody was authenticated"),
        Function::SourceIp => known(message.source_ip, "the sender's address is not known"),
        Function::SqlVersion => Ok(Value::from(SQL_VERSION)),
        Function::Timestamp => Ok(Value::from(message.now_ms)),
        Function::TraceId => Ok(Value::from(message.trace_id)),
        Function::NewUuid => Ok(Value::String(new_uuid(context))),
        Function::Topic => topic(message.topic, arguments.first().map(|level| &**level)),
        Function::GetMqttProperty => property(message, &arguments[0]),
        _ => user_properties(message, arguments.first().map(|name| &**name)),
    }
}

fn topic(topic: &str, level: Option<&Value>) -> Result<Value, Fault> {
    let topic = topic
        .strip_prefix(BASIC_INGEST)
        .and_then(|rest| rest.split_once('/'))
        .map_or(topic, |(_, rest)| rest);
    let Some(level) = level else {
        return Ok(Value::from(topic));
    };
    let number = to_number(level).and_then(|level| level.floor().to_i128());
    number
        .and_then(|number| usize::try_from(number).ok())
        .and_then(|number| number.checked_sub(1))
        .and_then(|index| topic.split('/').nth(index))
        .map(Value::from)
        .ok_or_else(|| format!("the topic has no level {}", crate::evaluate::shown(level)).into())
}

fn property(message: &Message<'_>, name: &Value) -> Result<Value, Fault> {
    let properties = &message.properties;
    let value = match name.as_str() {
        Some("content_type") => properties.content_type.map(Value::from),
        Some("response_topic") => properties.response_topic.map(Value::from),
        Some("format_indicator") => properties.payload_is_text.map(|text| {
            Value::from(if text {
                "UTF8_DATA"
            } else {
                "UNSPECIFIED_BYTES"
            })
        }),
        Some("correlation_data") => properties
            .correlation_data
            .map(|data| Value::String(encode::base64(data))),
        _ => None,
    };
    value.ok_or_else(|| "the message has no such property".into())
}

/// All values of a user property or, without a name, all user properties.
fn user_properties(message: &Message<'_>, name: Option<&Value>) -> Result<Value, Fault> {
    let all = message.properties.user;
    let Some(name) = name else {
        let pair = |(name, value): &(String, String)| {
            let pair = [(name.as_str(), Value::from(value.as_str()))];
            Value::Object(pair.into_iter().collect::<Object>())
        };
        return Ok(Value::Array(all.iter().map(pair).collect()));
    };
    let values: Vec<Value> = all
        .iter()
        .filter(|(known, _)| Some(known.as_str()) == name.as_str())
        .map(|(_, value)| Value::from(value.as_str()))
        .collect();
    if values.is_empty() {
        return Err("the message has no such user property".into());
    }
    Ok(Value::Array(values))
}

/// A random UUID (version 4).
fn new_uuid(context: &mut Context<'_>) -> String {
    let mut bytes = [0u8; 16];
    context.randomness.fill(&mut bytes);
    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    let hex = hex::encode(bytes);
    format!(
        "{}-{}-{}-{}-{}",
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..]
    )
}
