//! The record store's words: each is checked when it is made, and is right from then on.

use std::fmt;
use std::str::FromStr;

use homeport_item::{Map, Number, Value};

use super::schema;
use crate::sensors::InvalidField;
use crate::time::EpochMillis;

/// Longest name, model, data type, unit or type, in characters.
const TEXT_CHARS_MAX: usize = 128;
/// Longest text that a record can have as its value, in characters.
const VALUE_CHARS_MAX: usize = 4096;
/// Largest policy.
const POLICY_BYTES_MAX: usize = 16 * 1024;
/// How deep the members of a policy may be nested.
pub const POLICY_DEPTH_MAX: usize = 15;
/// The largest time that 13 digits hold.
const LAST_MS: i64 = 9_999_999_999_999;
/// Bounds of a group's retention.
const RETENTION_SECS_MIN: i64 = 60;
const RETENTION_SECS_MAX: i64 = 100 * 366 * 24 * 60 * 60;

macro_rules! id_type {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub u64);

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(formatter)
            }
        }
    };
}

id_type!(
    /// A group's number, as it is stored.
    GroupId
);
id_type!(
    /// A device's number.
    DeviceId
);
id_type!(
    /// A journal's number.
    JournalId
);

macro_rules! text_type {
    ($(#[$doc:meta])* $name:ident, $field:expr, $least:literal, $expected:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct $name(String);

        impl $name {
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidField;

            fn try_from(text: String) -> Result<Self, InvalidField> {
                let is_right = ($least..=TEXT_CHARS_MAX).contains(&text.chars().count())
                    && !text.chars().any(char::is_control);
                if is_right {
                    Ok(Self(text))
                } else {
                    Err(InvalidField { field: $field, expected: $expected })
                }
            }
        }

        impl FromStr for $name {
            type Err = InvalidField;

            fn from_str(text: &str) -> Result<Self, InvalidField> {
                Self::try_from(text.to_owned())
            }
        }

        impl From<&$name> for Value {
            fn from(text: &$name) -> Self {
                Self::from(text.as_str())
            }
        }
    };
}

text_type!(
    /// What people call a group, a device or a journal.
    Name,
    schema::NAME,
    1,
    "1 to 128 printable characters"
);
text_type!(
    /// What kind of device it is.
    Model,
    schema::MODEL,
    1,
    "1 to 128 printable characters"
);
text_type!(
    /// What kind of records a journal has.
    DataType,
    schema::DATA_TYPE,
    1,
    "1 to 128 printable characters"
);
text_type!(
    /// What a record's value is counted in; empty for what has no unit.
    Unit,
    schema::UNIT,
    0,
    "at most 128 printable characters"
);
text_type!(
    /// What a record's value is.
    RecordType,
    schema::TYPE,
    1,
    "1 to 128 printable characters"
);

/// When a record was made: milliseconds that 13 digits hold. It prints with all of them, so that
/// texts sort by time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RecordTime(i64);

impl RecordTime {
    pub const FIRST: Self = Self(0);
    pub const LAST: Self = Self(LAST_MS);

    #[must_use]
    pub fn millis(self) -> i64 {
        self.0
    }

    /// The time that is nearest to one that may lie outside of 13 digits.
    #[must_use]
    pub fn nearest(time: EpochMillis) -> Self {
        Self(time.0.clamp(0, LAST_MS))
    }

    /// Later by some milliseconds, unless that has more than 13 digits.
    pub(super) fn plus_ms(self, millis: i64) -> Option<Self> {
        Self::try_from(self.0.checked_add(millis)?).ok()
    }
}

impl TryFrom<i64> for RecordTime {
    type Error = InvalidField;

    fn try_from(millis: i64) -> Result<Self, InvalidField> {
        if (0..=LAST_MS).contains(&millis) {
            Ok(Self(millis))
        } else {
            Err(InvalidField {
                field: schema::TIMESTAMP,
                expected: "milliseconds since 1970, at most 13 digits",
            })
        }
    }
}

impl fmt::Display for RecordTime {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:013}", self.0)
    }
}

/// What was measured.
#[derive(Debug, Clone, PartialEq)]
pub enum RecordValue {
    Number(Number),
    Text(String),
    Bool(bool),
}

impl RecordValue {
    /// # Errors
    /// When it is too long.
    pub fn text(text: String) -> Result<Self, InvalidField> {
        if text.chars().count() <= VALUE_CHARS_MAX {
            Ok(Self::Text(text))
        } else {
            Err(InvalidField {
                field: schema::VALUE,
                expected: "a number, true or false, or a text of at most 4096 characters",
            })
        }
    }

    pub(super) fn from_stored(value: &Value) -> Option<Self> {
        Some(match value {
            Value::N(number) => Self::Number(*number),
            Value::S(text) => Self::Text(text.clone()),
            Value::Bool(flag) => Self::Bool(*flag),
            _ => return None,
        })
    }
}

impl From<&RecordValue> for Value {
    fn from(value: &RecordValue) -> Self {
        match value {
            RecordValue::Number(number) => Self::N(*number),
            RecordValue::Text(text) => Self::S(text.clone()),
            RecordValue::Bool(flag) => Self::Bool(*flag),
        }
    }
}

/// How long a group's history is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention(i64);

impl Retention {
    #[must_use]
    pub fn secs(self) -> i64 {
        self.0
    }
}

impl TryFrom<i64> for Retention {
    type Error = InvalidField;

    fn try_from(secs: i64) -> Result<Self, InvalidField> {
        if (RETENTION_SECS_MIN..=RETENTION_SECS_MAX).contains(&secs) {
            Ok(Self(secs))
        } else {
            Err(InvalidField {
                field: schema::RETENTION_SECS,
                expected: "a minute to a hundred years, in seconds",
            })
        }
    }
}

/// Who may do what with a device: a JSON object that this system keeps and does not look into.
#[derive(Debug, Clone, PartialEq)]
pub struct PolicyDocument(Map);

impl PolicyDocument {
    /// # Errors
    /// When it is too large or nested too deep.
    pub fn new(members: Map) -> Result<Self, InvalidField> {
        let sizes = members
            .iter()
            .map(|(name, value)| name.len() + value.size());
        let is_deep = members
            .values()
            .any(|value| value.depth() > POLICY_DEPTH_MAX);
        if is_deep || sizes.sum::<usize>() > POLICY_BYTES_MAX {
            return Err(InvalidField {
                field: schema::ACL_POLICY,
                expected: "an object of at most 16 KiB whose members are nested at most 15 levels deep",
            });
        }
        Ok(Self(members))
    }

    #[must_use]
    pub fn members(&self) -> &Map {
        &self.0
    }

    pub(super) fn from_stored(value: &Value) -> Option<Self> {
        value.as_map().cloned().map(Self)
    }
}

impl From<&PolicyDocument> for Value {
    fn from(document: &PolicyDocument) -> Self {
        Self::M(document.0.clone())
    }
}

/// What a partial change does to an attribute that may be absent.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Change<T> {
    #[default]
    Keep,
    Set(T),
    Remove,
}

impl<T> Change<T> {
    /// From a field that is absent, null, or there.
    ///
    /// # Errors
    /// When it is there and wrong.
    pub fn parse<S, E>(
        sent: Option<Option<S>>,
        parse: impl FnOnce(S) -> Result<T, E>,
    ) -> Result<Self, E> {
        Ok(match sent {
            None => Self::Keep,
            Some(None) => Self::Remove,
            Some(Some(sent)) => Self::Set(parse(sent)?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_prints_with_thirteen_digits_and_more_are_refused() {
        assert_eq!(
            RecordTime::try_from(7).unwrap().to_string(),
            "0000000000007"
        );
        assert_eq!(RecordTime::LAST.to_string(), "9999999999999");
        assert!(RecordTime::try_from(-1).is_err());
        assert!(RecordTime::try_from(LAST_MS + 1).is_err());
        assert_eq!(RecordTime::LAST.plus_ms(1), None);
    }

    #[test]
    fn a_policy_keeps_within_its_bounds() {
        let policy = |value: Value| PolicyDocument::new(Map::from([("a".to_owned(), value)]));
        let nest = |levels| (0..levels).fold(Value::from(1), |inner, _| Value::L(vec![inner]));
        assert!(policy("x".repeat(16_000).into()).is_ok());
        assert!(policy("x".repeat(17_000).into()).is_err());
        assert!(policy(nest(POLICY_DEPTH_MAX)).is_ok());
        assert!(policy(nest(POLICY_DEPTH_MAX + 1)).is_err());
    }

    #[test]
    fn texts_are_printable_and_only_a_unit_may_be_empty() {
        assert!("".parse::<Unit>().is_ok());
        assert!("".parse::<Name>().is_err());
        assert!("a\n".parse::<RecordType>().is_err());
        assert!("é".repeat(128).parse::<Model>().is_ok());
        assert!("é".repeat(129).parse::<DataType>().is_err());
    }

    #[test]
    fn a_value_has_so_many_characters_and_not_bytes() {
        assert!(RecordValue::text("é".repeat(VALUE_CHARS_MAX)).is_ok());
        assert!(RecordValue::text("e".repeat(VALUE_CHARS_MAX + 1)).is_err());
    }

    #[test]
    fn a_retention_has_bounds() {
        assert!(Retention::try_from(59).is_err());
        assert!(Retention::try_from(86_400).is_ok());
        assert!(Retention::try_from(i64::MAX).is_err());
    }
}
