//! Strings, numbers and booleans of a request.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};

const MAP_FOUND: &str = "Start of structure or map found where not expected";

/// A string, borrowed if it has no escapes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Text<'a>(pub(crate) Cow<'a, str>);

impl Text<'_> {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// A 32-bit number; larger ones are clamped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Integer(pub(crate) i64);

/// A 64-bit number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Long(pub(crate) i64);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Flag(pub(crate) bool);

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextVisitor)
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Text<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a string")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Text<'de>, E> {
        Ok(Text(Cow::Borrowed(text)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Text<'de>, E> {
        Ok(Text(Cow::Owned(text.to_owned())))
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Text<'de>, E> {
        Err(bool_found(value, "String"))
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Text<'de>, E> {
        Err(E::custom("NUMBER_VALUE cannot be converted to String"))
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Text<'de>, E> {
        Err(E::custom("NUMBER_VALUE cannot be converted to String"))
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Text<'de>, E> {
        Err(E::custom("DECIMAL_VALUE cannot be converted to String"))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, _: A) -> Result<Text<'de>, A::Error> {
        Err(list_found("String"))
    }

    fn visit_map<A: MapAccess<'de>>(self, _: A) -> Result<Text<'de>, A::Error> {
        Err(A::Error::custom(MAP_FOUND))
    }
}

impl<'de> Deserialize<'de> for Integer {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = deserializer.deserialize_any(NumberVisitor("Integer"))?;
        Ok(Self(number.clamp(i64::from(i32::MIN), i64::from(i32::MAX))))
    }
}

impl<'de> Deserialize<'de> for Long {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer
            .deserialize_any(NumberVisitor("Long"))
            .map(Self)
    }
}

/// A time in milliseconds since the epoch. Requests have seconds, which may have a fraction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Timestamp(pub(crate) i64);

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TimestampVisitor).map(Self)
    }
}

struct TimestampVisitor;

impl<'de> Visitor<'de> for TimestampVisitor {
    type Value = i64;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a time")
    }

    fn visit_i64<E: Error>(self, secs: i64) -> Result<i64, E> {
        Ok(secs.saturating_mul(1000))
    }

    fn visit_u64<E: Error>(self, secs: u64) -> Result<i64, E> {
        self.visit_i64(i64::try_from(secs).unwrap_or(i64::MAX))
    }

    fn visit_f64<E: Error>(self, secs: f64) -> Result<i64, E> {
        // The cast saturates.
        Ok((secs * 1000.0).round() as i64)
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<i64, E> {
        Err(E::custom("STRING_VALUE cannot be converted to Date"))
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<i64, E> {
        Err(bool_found(value, "Date"))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, _: A) -> Result<i64, A::Error> {
        Err(A::Error::custom(
            "Unrecognized collection type class java.util.Date",
        ))
    }

    fn visit_map<A: MapAccess<'de>>(self, _: A) -> Result<i64, A::Error> {
        Err(A::Error::custom(MAP_FOUND))
    }
}

struct NumberVisitor(&'static str);

impl<'de> Visitor<'de> for NumberVisitor {
    type Value = i64;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a number")
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<i64, E> {
        Ok(value)
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<i64, E> {
        Ok(i64::try_from(value).unwrap_or(i64::MAX))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<i64, E> {
        // The cast truncates the fraction and saturates, as DynamoDB does.
        Ok(value as i64)
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<i64, E> {
        Err(E::custom(format_args!(
            "STRING_VALUE cannot be converted to {}",
            self.0
        )))
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<i64, E> {
        Err(bool_found(value, self.0))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, _: A) -> Result<i64, A::Error> {
        Err(list_found(self.0))
    }

    fn visit_map<A: MapAccess<'de>>(self, _: A) -> Result<i64, A::Error> {
        Err(A::Error::custom(MAP_FOUND))
    }
}

impl<'de> Deserialize<'de> for Flag {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(FlagVisitor).map(Self)
    }
}

struct FlagVisitor;

impl<'de> Visitor<'de> for FlagVisitor {
    type Value = bool;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a boolean")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<bool, E> {
        Ok(value)
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<bool, E> {
        Err(E::custom("Unexpected token received from parser"))
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<bool, E> {
        Err(E::custom("NUMBER_VALUE cannot be converted to Boolean"))
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<bool, E> {
        Err(E::custom("NUMBER_VALUE cannot be converted to Boolean"))
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<bool, E> {
        Err(E::custom("DECIMAL_VALUE cannot be converted to Boolean"))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, _: A) -> Result<bool, A::Error> {
        Err(list_found("Boolean"))
    }

    fn visit_map<A: MapAccess<'de>>(self, _: A) -> Result<bool, A::Error> {
        Err(A::Error::custom(MAP_FOUND))
    }
}

fn bool_found<E: Error>(value: bool, wanted: &str) -> E {
    let found = if value { "TRUE" } else { "FALSE" };
    E::custom(format_args!(
        "{found}_VALUE cannot be converted to {wanted}"
    ))
}

fn list_found<E: Error>(wanted: &str) -> E {
    E::custom(format_args!(
        "Unrecognized collection type class java.lang.{wanted}"
    ))
}
