//! The values of the language: JSON values, raw bytes, and Undefined.

pub(crate) mod attribute;
pub(crate) mod json;
pub(crate) mod object;

use std::fmt;

use crate::value::object::Object;
use homeport_item::Decimal;

/// The value of an expression.
///
/// Rust's equality distinguishes `Int` and `Decimal` even if the numbers are equal.
/// [`Value::equals`] implements `=` of a statement.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Value {
    /// No value: left out of objects, and a rule does not fire on it.
    #[default]
    Undefined,
    Null,
    Boolean(bool),
    /// A whole number.
    Int(Decimal),
    Decimal(Decimal),
    String(String),
    Array(Vec<Value>),
    Object(Object),
    /// A payload that is not JSON.
    Bytes(Vec<u8>),
}

/// The type of a value, without the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    Undefined,
    Null,
    Boolean,
    Int,
    Decimal,
    String,
    Array,
    Object,
    Bytes,
}

impl fmt::Display for Kind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Undefined => "Undefined",
            Self::Null => "Null",
            Self::Boolean => "Boolean",
            Self::Int => "Int",
            Self::Decimal => "Decimal",
            Self::String => "String",
            Self::Array => "Array",
            Self::Object => "Object",
            Self::Bytes => "raw bytes",
        })
    }
}

impl Value {
    /// A number from a payload: an integer is an Int in this version of the language, however it is
    /// written.
    #[must_use]
    pub fn number(number: Decimal) -> Self {
        if number.is_whole() {
            Self::Int(number)
        } else {
            Self::Decimal(number)
        }
    }

    #[must_use]
    pub fn kind(&self) -> Kind {
        match self {
            Self::Undefined => Kind::Undefined,
            Self::Null => Kind::Null,
            Self::Boolean(_) => Kind::Boolean,
            Self::Int(_) => Kind::Int,
            Self::Decimal(_) => Kind::Decimal,
            Self::String(_) => Kind::String,
            Self::Array(_) => Kind::Array,
            Self::Object(_) => Kind::Object,
            Self::Bytes(_) => Kind::Bytes,
        }
    }

    #[must_use]
    pub fn is_undefined(&self) -> bool {
        matches!(self, Self::Undefined)
    }

    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    #[must_use]
    pub fn as_object(&self) -> Option<&Object> {
        match self {
            Self::Object(object) => Some(object),
            _ => None,
        }
    }

    #[must_use]
    pub fn as_array(&self) -> Option<&[Self]> {
        match self {
            Self::Array(elements) => Some(elements),
            _ => None,
        }
    }

    /// Whether `=` is true for two defined values: numbers compare by value, arrays in order,
    /// objects in any order; values of different types are not equal.
    #[must_use]
    pub fn equals(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Int(left) | Self::Decimal(left), Self::Int(right) | Self::Decimal(right)) => {
                left == right
            }
            (Self::Array(left), Self::Array(right)) => {
                left.len() == right.len()
                    && left
                        .iter()
                        .zip(right)
                        .all(|(left, right)| left.equals(right))
            }
            (Self::Object(left), Self::Object(right)) => {
                left.len() == right.len()
                    && left.iter().all(|(name, value)| {
                        right.get(name).is_some_and(|other| value.equals(other))
                    })
            }
            (left, right) => left == right,
        }
    }

    /// The nesting of arrays and objects.
    pub(crate) fn depth(&self) -> usize {
        match self {
            Self::Array(elements) => 1 + elements.iter().map(Self::depth).max().unwrap_or(0),
            Self::Object(object) => {
                let members = object.iter().map(|(_, value)| value.depth());
                1 + members.max().unwrap_or(0)
            }
            _ => 0,
        }
    }

    /// The approximate size of the value in bytes: texts and names, and a word for everything else.
    /// Work limits use it.
    pub(crate) fn weight(&self) -> usize {
        const WORD: usize = 8;
        match self {
            Self::String(text) => WORD + text.len(),
            Self::Bytes(bytes) => WORD + bytes.len(),
            Self::Array(elements) => WORD + elements.iter().map(Self::weight).sum::<usize>(),
            Self::Object(object) => {
                WORD + object
                    .iter()
                    .map(|(name, value)| name.len() + value.weight())
                    .sum::<usize>()
            }
            _ => WORD,
        }
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Boolean(value)
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::Int(Decimal::from(value))
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::String(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::String(text)
    }
}
