//! Parses and writes JSON, preserving all digits of numbers and the order of object members.

use std::fmt::Write as _;

use crate::value::Value;
use crate::value::object::Object;
use homeport_item::{Decimal, DecimalError};

/// Maximum nesting of arrays and objects, which bounds recursion over values.
pub const JSON_DEPTH_MAX: usize = 64;

/// Why a JSON text is invalid or unsupported, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem} at byte {offset}")]
pub struct JsonError {
    pub offset: usize,
    pub problem: JsonProblem,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum JsonProblem {
    #[error("the text is not UTF-8")]
    NotUtf8,
    #[error("the text ends too early")]
    EndsEarly,
    #[error("an unexpected character")]
    Unexpected,
    #[error("a string is not well formed")]
    BadString,
    #[error("a number is not well formed or out of range")]
    BadNumber,
    #[error("more than {JSON_DEPTH_MAX} levels of arrays and objects")]
    TooDeep,
    #[error("more text after the value")]
    Trailing,
}

impl Value {
    /// Parses a JSON text. The last of several members with the same name wins.
    ///
    /// # Errors
    /// When the text is not valid JSON, is nested too deeply, or contains a number out of range.
    pub fn from_json(text: &str) -> Result<Self, JsonError> {
        let mut reader = Reader { text, at: 0 };
        reader.skip_space();
        let value = reader.value(0)?;
        reader.skip_space();
        if reader.at < text.len() {
            return Err(reader.error(JsonProblem::Trailing));
        }
        Ok(value)
    }

    /// Writes the value as JSON. Undefined members and elements are left out, and Undefined itself
    /// is the empty text. Raw bytes become a base64 string, because JSON has no other form for
    /// them.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut out = String::new();
        write_value(self, &mut out);
        out
    }
}

pub(crate) fn parse_bytes(bytes: &[u8]) -> Result<Value, JsonError> {
    let text = std::str::from_utf8(bytes).map_err(|error| JsonError {
        offset: error.valid_up_to(),
        problem: JsonProblem::NotUtf8,
    })?;
    Value::from_json(text)
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn error(&self, problem: JsonProblem) -> JsonError {
        JsonError {
            offset: self.at,
            problem,
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn unexpected(&self) -> JsonError {
        self.error(if self.at < self.text.len() {
            JsonProblem::Unexpected
        } else {
            JsonProblem::EndsEarly
        })
    }

    fn value(&mut self, depth: usize) -> Result<Value, JsonError> {
        match self.peek() {
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'"') => self.string().map(Value::String),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word("true", Value::Boolean(true)),
            Some(b'f') => self.word("false", Value::Boolean(false)),
            Some(b'n') => self.word("null", Value::Null),
            _ => Err(self.unexpected()),
        }
    }

    fn word(&mut self, word: &str, value: Value) -> Result<Value, JsonError> {
        if self.text[self.at..].starts_with(word) {
            self.at += word.len();
            Ok(value)
        } else {
            Err(self.unexpected())
        }
    }

    fn enter(&mut self, depth: usize) -> Result<(), JsonError> {
        if depth >= JSON_DEPTH_MAX {
            return Err(self.error(JsonProblem::TooDeep));
        }
        self.at += 1;
        self.skip_space();
        Ok(())
    }

    /// Whether another member or element follows.
    fn more(&mut self, close: u8) -> Result<bool, JsonError> {
        self.skip_space();
        match self.peek() {
            Some(b',') => {
                self.at += 1;
                self.skip_space();
                Ok(true)
            }
            Some(byte) if byte == close => {
                self.at += 1;
                Ok(false)
            }
            _ => Err(self.unexpected()),
        }
    }

    fn object(&mut self, depth: usize) -> Result<Value, JsonError> {
        /// Enough for most objects from devices; larger ones grow.
        const MEMBERS_EXPECTED: usize = 8;
        self.enter(depth)?;
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(Value::Object(Object::new()));
        }
        let mut object = Object::with_capacity(MEMBERS_EXPECTED);
        loop {
            if self.peek() != Some(b'"') {
                return Err(self.unexpected());
            }
            let name = self.string()?;
            self.skip_space();
            if self.peek() != Some(b':') {
                return Err(self.unexpected());
            }
            self.at += 1;
            self.skip_space();
            let value = self.value(depth + 1)?;
            object.insert(name, value);
            if !self.more(b'}')? {
                return Ok(Value::Object(object));
            }
        }
    }

    fn array(&mut self, depth: usize) -> Result<Value, JsonError> {
        self.enter(depth)?;
        let mut elements = Vec::new();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(Value::Array(elements));
        }
        loop {
            elements.push(self.value(depth + 1)?);
            if !self.more(b']')? {
                return Ok(Value::Array(elements));
            }
        }
    }

    fn number(&mut self) -> Result<Value, JsonError> {
        let rest = &self.text[self.at..];
        let len = rest
            .bytes()
            .position(|byte| !matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9'))
            .unwrap_or(rest.len());
        let text = &rest[..len];
        let digits = text.trim_start_matches('-');
        let leading_zero =
            digits.starts_with('0') && digits[1..].starts_with(|c: char| c.is_ascii_digit());
        let number = if leading_zero {
            Err(DecimalError::NotANumber)
        } else {
            Decimal::parse(text)
        };
        let number = number.map_err(|_| self.error(JsonProblem::BadNumber))?;
        self.at += len;
        Ok(Value::number(number))
    }

    fn string(&mut self) -> Result<String, JsonError> {
        self.at += 1;
        let mut text = String::new();
        loop {
            let rest = &self.text[self.at..];
            let plain = rest
                .bytes()
                .position(|byte| matches!(byte, b'"' | b'\\' | 0..0x20))
                .ok_or(JsonError {
                    offset: self.text.len(),
                    problem: JsonProblem::EndsEarly,
                })?;
            text.push_str(&rest[..plain]);
            self.at += plain;
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(text);
                }
                Some(b'\\') => text.push(self.escape()?),
                _ => return Err(self.error(JsonProblem::BadString)),
            }
        }
    }

    fn escape(&mut self) -> Result<char, JsonError> {
        let letter = self.text.as_bytes().get(self.at + 1).copied();
        let plain = match letter {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode(),
            _ => return Err(self.error(JsonProblem::BadString)),
        };
        self.at += 2;
        Ok(plain)
    }

    /// Parses `\uXXXX`, or a surrogate pair.
    fn unicode(&mut self) -> Result<char, JsonError> {
        let bad = self.error(JsonProblem::BadString);
        let first = self.hex_unit().ok_or_else(|| bad.clone())?;
        let code = if (0xD800..0xDC00).contains(&first) {
            let second = self
                .hex_unit()
                .filter(|second| (0xDC00..0xE000).contains(second))
                .ok_or_else(|| bad.clone())?;
            0x1_0000 + ((first - 0xD800) << 10) + (second - 0xDC00)
        } else {
            first
        };
        char::from_u32(code).ok_or(bad)
    }

    fn hex_unit(&mut self) -> Option<u32> {
        let unit = self.text.get(self.at..self.at + 6)?.strip_prefix("\\u")?;
        if !unit.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        self.at += 6;
        u32::from_str_radix(unit, 16).ok()
    }
}

fn write_value(value: &Value, out: &mut String) {
    match value {
        Value::Undefined => {}
        Value::Null => out.push_str("null"),
        Value::Boolean(true) => out.push_str("true"),
        Value::Boolean(false) => out.push_str("false"),
        Value::Int(number) | Value::Decimal(number) => {
            let _ = write!(out, "{number}");
        }
        Value::String(text) => write_string(text, out),
        Value::Bytes(bytes) => {
            write_string(&crate::evaluate::functions::encode::base64(bytes), out)
        }
        Value::Array(elements) => {
            out.push('[');
            let mut first = true;
            for element in elements.iter().filter(|element| !element.is_undefined()) {
                if !std::mem::take(&mut first) {
                    out.push(',');
                }
                write_value(element, out);
            }
            out.push(']');
        }
        Value::Object(object) => {
            out.push('{');
            let mut first = true;
            for (name, value) in object.iter().filter(|(_, value)| !value.is_undefined()) {
                if !std::mem::take(&mut first) {
                    out.push(',');
                }
                write_string(name, out);
                out.push(':');
                write_value(value, out);
            }
            out.push('}');
        }
    }
}

fn write_string(text: &str, out: &mut String) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            control if control < ' ' => {
                let _ = write!(out, "\\u{:04x}", u32::from(control));
            }
            other => out.push(other),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests;
