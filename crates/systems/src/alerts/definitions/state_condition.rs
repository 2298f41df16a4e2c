//! Conditions on states: an attribute has a value, gets another value, or reports a fault.

use homeport_item::{Number, Value};
use serde::{Deserialize, Serialize};

use super::condition::{SECS_MAX, check_hold};
use crate::alerts::types::{AttributePath, WantedText};
use crate::sensors::InvalidField;

/// Texts that report no fault, in any case of letters.
const NO_FAULT: [&str; 5] = ["", "none", "ok", "false", "0"];

/// An attribute that equals a value, or differs from it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Equality {
    pub attribute: AttributePath,
    pub operator: EqualityOperator,
    pub value: WantedValue,
    /// How long the condition must hold, by the times of the values.
    pub min_secs: u32,
    /// For how many consecutive values it must hold.
    pub min_count: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EqualityOperator {
    Equals,
    Differs,
}

/// The value that an attribute is compared with. Values of different types differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WantedValue {
    Text(WantedText),
    Number(Number),
    Boolean(bool),
}

/// An attribute whose value is another one than before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ValueChange {
    pub attribute: AttributePath,
    /// The alert is cleared by the first value that is the same, and this much newer than the change.
    pub clear_after_secs: u32,
}

/// An attribute that reports a fault.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// The last name may end with `*`: all attributes whose names begin like this.
    pub attribute: AttributePath,
    /// How long a fault must be reported, by the times of the values.
    pub min_secs: u32,
    /// In how many consecutive values there must be a fault.
    pub min_count: u32,
}

impl Equality {
    pub(super) fn check(&self) -> Result<(), InvalidField> {
        check_hold(self.min_secs, self.min_count)
    }

    pub(in crate::alerts) fn holds(&self, value: &Value) -> bool {
        let is_equal = self.value.to_value() == *value;
        is_equal == (self.operator == EqualityOperator::Equals)
    }
}

impl WantedValue {
    pub(in crate::alerts) fn to_value(&self) -> Value {
        match self {
            Self::Text(text) => Value::from(text.as_str()),
            Self::Number(number) => Value::from(*number),
            Self::Boolean(flag) => Value::from(*flag),
        }
    }
}

impl ValueChange {
    pub(super) fn check(&self) -> Result<(), InvalidField> {
        if self.clear_after_secs > SECS_MAX {
            return Err(InvalidField {
                field: "clear_after_secs",
                expected: "at most 2678400",
            });
        }
        Ok(())
    }
}

impl Fault {
    pub(super) fn check(&self) -> Result<(), InvalidField> {
        // All attributes of an item: its keys would always be faults.
        if self.attribute.as_str() == "*" {
            return Err(InvalidField {
                field: "attribute",
                expected: "a path, or the beginning of one and *, like data.fault_*",
            });
        }
        check_hold(self.min_secs, self.min_count)
    }
}

/// Whether a value reports a fault. Lists and maps do if one of their members does.
pub(in crate::alerts) fn is_fault(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(flag) => *flag,
        Value::N(number) => *number != Number::from(0),
        Value::S(text) => {
            let text = text.trim();
            !NO_FAULT.iter().any(|word| word.eq_ignore_ascii_case(text))
        }
        Value::L(elements) => elements.iter().any(is_fault),
        Value::M(members) => members.values().any(is_fault),
        Value::B(bytes) => !bytes.is_empty(),
        // A set has a member.
        Value::Ss(_) | Value::Ns(_) | Value::Bs(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use homeport_item::Map;

    use super::*;

    #[test]
    fn empty_false_zero_and_none_are_no_fault() {
        let flags = |flag: bool| Value::M(Map::from([("a".to_owned(), Value::from(flag))]));
        for value in [
            Value::Null,
            false.into(),
            0.into(),
            "".into(),
            " None ".into(),
            "OK".into(),
            "0".into(),
            Value::L(Vec::new()),
            Value::L(vec![false.into()]),
            flags(false),
        ] {
            assert!(!is_fault(&value), "{value:?}");
        }
        for value in [
            true.into(),
            7.into(),
            "E42".into(),
            Value::L(vec![0.into(), 3.into()]),
            flags(true),
        ] {
            assert!(is_fault(&value), "{value:?}");
        }
    }
}
