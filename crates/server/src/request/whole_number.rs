//! Whole numbers in JSON. They may have a fraction of zero: `60.0` is an integer in JSON Schema, and
//! some languages write no other form.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, Visitor};

use crate::problem::Problem;

/// Largest whole number that a double represents exactly.
const EXACT_MAX: f64 = 9_007_199_254_740_991.0;

#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(transparent)]
pub(crate) struct WholeNumber(pub(crate) i64);

impl<'de> Deserialize<'de> for WholeNumber {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_i64(WholeNumberVisitor)
    }
}

impl WholeNumber {
    /// The value of the field `name`, which must be from 0 to `max`.
    pub(crate) fn up_to(self, name: &str, max: u32) -> Result<u32, Problem> {
        let number = u32::try_from(self.0).ok().filter(|number| *number <= max);
        number.ok_or_else(|| {
            Problem::invalid(format!("{name} must be a whole number from 0 to {max}"))
        })
    }
}

struct WholeNumberVisitor;

impl Visitor<'_> for WholeNumberVisitor {
    type Value = WholeNumber;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a whole number")
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<WholeNumber, E> {
        Ok(WholeNumber(number))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<WholeNumber, E> {
        let fits = i64::try_from(number).map(WholeNumber);
        fits.map_err(|_| E::custom(format!("{number} is too large")))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<WholeNumber, E> {
        let invalid = || E::custom(format!("{number} is not a whole number"));
        if number.fract() != 0.0 || number.abs() > EXACT_MAX {
            return Err(invalid());
        }
        let digits = format!("{number:.0}");
        digits.parse().map(WholeNumber).map_err(|_| invalid())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_may_have_a_zero_fraction() {
        for (text, number) in [("60", 60), ("60.0", 60), ("-1.2e1", -12), ("-0.0", 0)] {
            let read: WholeNumber = serde_json::from_str(text).expect(text);
            assert_eq!(read, WholeNumber(number), "{text}");
        }
        for text in ["60.5", "1e300", "18446744073709551615", "\"60\"", "true"] {
            assert!(serde_json::from_str::<WholeNumber>(text).is_err(), "{text}");
        }
    }
}
