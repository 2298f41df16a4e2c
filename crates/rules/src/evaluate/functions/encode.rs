//! Base64 encoding and decoding.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::text::text;
use crate::evaluate::{Context, Fault};
use crate::value::Value;

pub(crate) fn base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

pub(super) fn encode(value: &Value, context: &mut Context<'_>) -> Result<Value, Fault> {
    if let Value::Bytes(bytes) = value {
        context.spend_bytes(bytes.len())?;
        return Ok(Value::String(base64(bytes)));
    }
    let text = text(value, context)?;
    Ok(Value::String(base64(text.as_bytes())))
}

/// The decoded value: JSON if it is valid JSON, otherwise text. Null if it cannot be decoded or is
/// not text.
pub(super) fn decode(value: &Value, context: &mut Context<'_>) -> Result<Value, Fault> {
    let encoded = text(value, context)?;
    let decoded = STANDARD
        .decode(encoded.trim())
        .ok()
        .and_then(|bytes| String::from_utf8(bytes).ok());
    Ok(match decoded {
        Some(text) => Value::from_json(&text).unwrap_or(Value::String(text)),
        None => Value::Null,
    })
}
