//! Exact decimal numbers in JSON requests and responses.

use homeport_item::Number;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// A JSON number of at most 38 digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Decimal(pub(crate) Number);

impl<'de> Deserialize<'de> for Decimal {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        let text = raw.get();
        let is_number = text.starts_with(|first: char| first == '-' || first.is_ascii_digit());
        let number = is_number.then(|| text.parse().ok()).flatten();
        number
            .map(Self)
            .ok_or_else(|| serde::de::Error::custom("expected a number of at most 38 digits"))
    }
}

impl Serialize for Decimal {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // The text of a decimal is a JSON number.
        RawValue::from_string(self.0.to_string())
            .map_err(serde::ser::Error::custom)?
            .serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_keep_every_digit() {
        let text = "-0.1234567890123456789012345678901234567";
        let read: Decimal = serde_json::from_str(text).expect("a number");
        assert_eq!(serde_json::to_string(&read).expect("JSON"), text);
        for wrong in ["\"1\"", "true", "null", "[1]", "1e200"] {
            assert!(serde_json::from_str::<Decimal>(wrong).is_err(), "{wrong}");
        }
    }
}
