//! Validated texts and values of the record store.

use std::fmt;
use std::str::FromStr;

use homeport_item::{Item, Map, Number, Value};

use super::{RecordsError, schema, stored};
use crate::text::{InvalidField, PRINTABLE, text_type};
use crate::time::EpochMillis;

/// Longest text that a record can have as value, in characters.
pub const VALUE_CHARS_MAX: usize = 4096;
/// Largest policy.
const POLICY_BYTES_MAX: usize = 16 * 1024;
/// Deepest nesting of the members of a policy.
pub const POLICY_DEPTH_MAX: usize = 15;
/// The largest time that 13 digits hold.
const LAST_MS: i64 = 9_999_999_999_999;
/// Bounds of a group's retention.
pub const RETENTION_SECS_MIN: i64 = 60;
pub const RETENTION_SECS_MAX: i64 = 100 * 366 * 24 * 60 * 60;

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
    /// The stored number of a group.
    GroupId
);
id_type!(
    /// The stored number of a device.
    DeviceId
);
id_type!(
    /// The stored number of a journal.
    JournalId
);

text_type! {
    /// The name of a group, a device or a journal.
    Name(String) {
        field: schema::NAME,
        chars: 1..=128,
        form: PRINTABLE,
        expected: "1 to 128 printable characters",
    }
}

text_type! {
    /// The model of a device.
    Model(String) {
        field: schema::MODEL,
        chars: 1..=128,
        form: PRINTABLE,
        expected: "1 to 128 printable characters",
    }
}

text_type! {
    /// The unit of a value; empty for values without a unit.
    Unit(String) {
        field: schema::UNIT,
        chars: 0..=128,
        form: PRINTABLE,
        expected: "at most 128 printable characters",
        example: "C",
    }
}

text_type! {
    /// The type of a record.
    RecordType(String) {
        field: schema::TYPE,
        chars: 1..=128,
        form: PRINTABLE,
        expected: "1 to 128 printable characters",
    }
}

text_type! {
    /// Identifies a record within its journal, so that a repeat is stored once.
    RecordId(String) {
        field: "record_id",
        chars: 1..=128,
        form: PRINTABLE,
        expected: "1 to 128 printable characters",
    }
}

text_type! {
    /// The id of a group in the application, such as a user id.
    ExternalId(String) {
        field: schema::EXTERNAL_ID,
        chars: 1..=128,
        form: PRINTABLE,
        expected: "1 to 128 printable characters",
    }
}

/// The type of the values of a journal, one of [`DataType::NAMES`]. Another program may have stored another one, which
/// is not enforced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataType(String);

impl DataType {
    /// `text` is another name for `string`, and `any` accepts all values.
    pub const NAMES: [&str; 6] = ["number", "integer", "string", "text", "boolean", "any"];

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Checks that a value is of this type.
    pub(super) fn check(&self, value: &RecordValue) -> Result<(), InvalidField> {
        let (is_right, expected) = match (self.as_str(), value) {
            ("number", value) => (
                matches!(value, RecordValue::Number(_)),
                "a number: the journal's data type",
            ),
            ("integer", RecordValue::Number(number)) => (
                number.to_i64().is_some(),
                "a whole number: the journal's data type",
            ),
            ("integer", _) => (false, "a whole number: the journal's data type"),
            ("string" | "text", value) => (
                matches!(value, RecordValue::Text(_)),
                "a string: the journal's data type",
            ),
            ("boolean", value) => (
                matches!(value, RecordValue::Bool(_)),
                "true or false: the journal's data type",
            ),
            _ => (true, ""),
        };
        if is_right {
            return Ok(());
        }
        Err(InvalidField {
            field: schema::VALUE,
            expected,
        })
    }

    pub(super) fn of_stored(item: &Item) -> Result<Self, RecordsError> {
        stored::text(item, schema::DATA_TYPE).map(Self)
    }
}

impl TryFrom<String> for DataType {
    type Error = InvalidField;

    fn try_from(text: String) -> Result<Self, InvalidField> {
        if Self::NAMES.contains(&text.as_str()) {
            Ok(Self(text))
        } else {
            Err(InvalidField {
                field: schema::DATA_TYPE,
                expected: "number, integer, string, text, boolean or any",
            })
        }
    }
}

impl FromStr for DataType {
    type Err = InvalidField;

    fn from_str(text: &str) -> Result<Self, InvalidField> {
        Self::try_from(text.to_owned())
    }
}

impl From<&DataType> for Value {
    fn from(data_type: &DataType) -> Self {
        Self::from(data_type.as_str())
    }
}

/// The time of a record in milliseconds, with at most 13 digits. It prints with all 13 digits, so that texts
/// sort by time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RecordTime(i64);

impl RecordTime {
    pub const FIRST: Self = Self(0);
    pub const LAST: Self = Self(LAST_MS);

    #[must_use]
    pub fn millis(self) -> i64 {
        self.0
    }

    /// The nearest time that has at most 13 digits.
    #[must_use]
    pub fn nearest(time: EpochMillis) -> Self {
        Self(time.0.clamp(0, LAST_MS))
    }

    /// A time that is later by some milliseconds; `None` if it has more than 13 digits.
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

/// The value of a record.
#[derive(Debug, Clone, PartialEq)]
pub enum RecordValue {
    Number(Number),
    Text(String),
    Bool(bool),
}

impl RecordValue {
    /// # Errors
    /// When the text is too long.
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

/// The permissions of a device: a JSON object. `policy` evaluates it.
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

/// The change that a partial update makes to an optional attribute.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Change<T> {
    #[default]
    Keep,
    Set(T),
    Remove,
}

impl<T> Change<T> {
    /// Parses a field that may be absent or null.
    ///
    /// # Errors
    /// When the field is present and invalid.
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
    fn time_has_exactly_thirteen_digits() {
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
    fn policy_size_and_depth_are_bounded() {
        let policy = |value: Value| PolicyDocument::new(Map::from([("a".to_owned(), value)]));
        let nest = |levels| (0..levels).fold(Value::from(1), |inner, _| Value::L(vec![inner]));
        assert!(policy("x".repeat(16_000).into()).is_ok());
        assert!(policy("x".repeat(17_000).into()).is_err());
        assert!(policy(nest(POLICY_DEPTH_MAX)).is_ok());
        assert!(policy(nest(POLICY_DEPTH_MAX + 1)).is_err());
    }

    #[test]
    fn only_units_may_be_empty() {
        assert!("".parse::<Unit>().is_ok());
        assert!("".parse::<Name>().is_err());
        assert!("a\n".parse::<RecordType>().is_err());
        assert!("é".repeat(128).parse::<Model>().is_ok());
        assert!("é".repeat(129).parse::<Model>().is_err());
    }

    #[test]
    fn data_type_decides_about_values() {
        let number = |text: &str| RecordValue::Number(text.parse().unwrap());
        let text = RecordValue::text("warm".to_owned()).unwrap();
        let values = [number("1.5"), number("2"), text, RecordValue::Bool(true)];
        for (name, accepted) in [
            ("number", [true, true, false, false]),
            ("integer", [false, true, false, false]),
            ("string", [false, false, true, false]),
            ("text", [false, false, true, false]),
            ("boolean", [false, false, false, true]),
            ("any", [true; 4]),
        ] {
            let data_type: DataType = name.parse().unwrap();
            let checked = values
                .each_ref()
                .map(|value| data_type.check(value).is_ok());
            assert_eq!(checked, accepted, "{name}");
        }
        assert!("temperature".parse::<DataType>().is_err());
    }

    #[test]
    fn text_value_is_limited_in_characters() {
        assert!(RecordValue::text("é".repeat(VALUE_CHARS_MAX)).is_ok());
        assert!(RecordValue::text("e".repeat(VALUE_CHARS_MAX + 1)).is_err());
    }

    #[test]
    fn retention_is_bounded() {
        assert!(Retention::try_from(59).is_err());
        assert!(Retention::try_from(86_400).is_ok());
        assert!(Retention::try_from(i64::MAX).is_err());
    }
}
