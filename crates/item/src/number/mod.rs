//! Exact decimal numbers with DynamoDB's limits: up to 38 significant digits and magnitudes from
//! 1E-130 to 9.99…E+125. Numbers are normalised, so equal numbers are equal values.

use std::fmt;
use std::str::FromStr;

mod decimal;
mod wide;

pub use decimal::{DIGITS_MAX, Decimal, DecimalError};

/// Maximum decimal exponent of the leading digit.
pub const MAGNITUDE_MAX: i32 = 125;
/// Minimum decimal exponent of the leading digit.
pub const MAGNITUDE_MIN: i32 = -130;

/// A decimal within DynamoDB's limits. Decimals are normalised, so the derived equality, order and hash
/// are numeric.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Number(Decimal);

/// Why a text or the result of a calculation is not a valid DynamoDB number.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NumberError {
    #[error("The parameter cannot be converted to a numeric value: {0}")]
    NotANumber(String),
    #[error("The parameter cannot be converted to a numeric value")]
    Empty,
    #[error("Attempting to store more than 38 significant digits in a Number")]
    TooManyDigits,
    #[error(
        "Number overflow. Attempting to store a number with magnitude larger than supported range"
    )]
    Overflow,
    #[error(
        "Number underflow. Attempting to store a number with magnitude smaller than supported range"
    )]
    Underflow,
}

impl Number {
    pub const ZERO: Self = Self(Decimal::ZERO);

    /// Builds `±coefficient × 10^exponent`, normalised and checked against DynamoDB's range.
    ///
    /// # Errors
    /// When the value needs more than 38 digits or its magnitude is out of range.
    pub fn new(negative: bool, coefficient: u128, exponent: i32) -> Result<Self, NumberError> {
        match Decimal::normalised(negative, coefficient, exponent) {
            Ok(decimal) => decimal.try_into(),
            Err(_) if exponent < 0 => Err(NumberError::Underflow),
            Err(_) => Err(NumberError::Overflow),
        }
    }

    #[must_use]
    pub fn is_negative(&self) -> bool {
        self.0.is_negative()
    }

    #[must_use]
    pub fn is_zero(&self) -> bool {
        self.0.is_zero()
    }

    /// The digits as an integer without trailing zeros.
    #[must_use]
    pub fn coefficient(&self) -> u128 {
        self.0.coefficient()
    }

    /// The power of ten by which the coefficient is multiplied.
    #[must_use]
    pub fn exponent(&self) -> i32 {
        self.0.exponent()
    }

    /// The number of significant digits; 1 for zero.
    #[must_use]
    pub fn digits(&self) -> u32 {
        self.0.digits()
    }

    /// The decimal exponent of the leading digit (`d.ddd × 10^magnitude`).
    #[must_use]
    pub fn magnitude(&self) -> i32 {
        self.0.magnitude()
    }

    /// The value as an `i64`, if it is an integer in range.
    #[must_use]
    pub fn to_i64(&self) -> Option<i64> {
        i64::try_from(self.0.to_i128()?).ok()
    }

    /// The value rounded towards negative infinity, saturating at the limits of `i64`.
    #[must_use]
    pub fn floor_i64(&self) -> i64 {
        let floor = self.0.floor().to_i128();
        let floor = floor.and_then(|floor| i64::try_from(floor).ok());
        floor.unwrap_or(if self.is_negative() {
            i64::MIN
        } else {
            i64::MAX
        })
    }

    /// The nearest binary floating-point value. For charts and statistics only, never for storage.
    #[must_use]
    pub fn to_f64(&self) -> f64 {
        self.0.to_f64()
    }

    /// The exact sum.
    ///
    /// # Errors
    /// [`NumberError::Overflow`] when the result is too large or, as in DynamoDB, has more than 38
    /// digits; [`NumberError::Underflow`] when it is too small.
    pub fn checked_add(&self, other: &Self) -> Result<Self, NumberError> {
        let sum = self.0.add_exactly(&other.0);
        sum.ok_or(NumberError::Overflow)?.try_into()
    }

    /// The exact difference.
    ///
    /// # Errors
    /// As [`Number::checked_add`].
    pub fn checked_sub(&self, other: &Self) -> Result<Self, NumberError> {
        self.checked_add(&other.negated())
    }

    #[must_use]
    pub fn negated(&self) -> Self {
        Self(self.0.negated())
    }

    /// The number's share of the item size, as DynamoDB counts it.
    #[must_use]
    pub fn size(&self) -> usize {
        if self.is_zero() {
            return 1;
        }
        // Two digits share a byte, but not across the decimal point.
        let digits = self.0.digits();
        let fraction = self.exponent().min(0).unsigned_abs().min(digits);
        let whole = digits - fraction;
        (whole.div_ceil(2) + fraction.div_ceil(2)) as usize + 1 + usize::from(self.is_negative())
    }

    /// Appends the same text as `Display`, without the cost of a formatter.
    pub fn write_decimal(&self, out: &mut Vec<u8>) {
        self.0.write_plain(out);
    }
}

impl From<Number> for Decimal {
    fn from(number: Number) -> Self {
        number.0
    }
}

impl TryFrom<Decimal> for Number {
    type Error = NumberError;

    fn try_from(decimal: Decimal) -> Result<Self, NumberError> {
        let digits = decimal.digits();
        if digits > DIGITS_MAX {
            return Err(NumberError::TooManyDigits);
        }
        let magnitude = decimal.exponent() + digits as i32 - 1;
        if decimal.is_zero() || (MAGNITUDE_MIN..=MAGNITUDE_MAX).contains(&magnitude) {
            return Ok(Self(decimal));
        }
        Err(if magnitude > MAGNITUDE_MAX {
            NumberError::Overflow
        } else {
            NumberError::Underflow
        })
    }
}

impl FromStr for Number {
    type Err = NumberError;

    fn from_str(text: &str) -> Result<Self, NumberError> {
        let refuse = || NumberError::NotANumber(text.to_owned());
        let bytes = text.as_bytes();
        if bytes.is_empty() {
            return Err(NumberError::Empty);
        }
        let (negative, mut at) = match bytes[0] {
            b'-' => (true, 1),
            b'+' => (false, 1),
            _ => (false, 0),
        };
        let mut coefficient: u128 = 0;
        let mut significant = 0u32;
        // Zeros after significant digits are multiplied in only when a later digit makes them
        // significant, which also bounds the work for "1000…0".
        let mut zeros_pending = 0u32;
        let mut exponent: i64 = 0;
        let mut seen_digit = false;
        let mut seen_point = false;
        while let Some(&byte) = bytes.get(at) {
            match byte {
                b'0'..=b'9' => {
                    seen_digit = true;
                    if seen_point {
                        exponent -= 1;
                    }
                    let digit = u128::from(byte - b'0');
                    if digit == 0 {
                        if significant > 0 {
                            zeros_pending = zeros_pending.saturating_add(1);
                        }
                    } else {
                        significant = significant.saturating_add(zeros_pending).saturating_add(1);
                        if significant > DIGITS_MAX {
                            // Finish the syntax check first: an invalid text is "not a number", not
                            // "too many digits".
                            coefficient = 0;
                        } else {
                            if zeros_pending > 0 {
                                coefficient *= 10u128.pow(zeros_pending);
                            }
                            coefficient = coefficient * 10 + digit;
                        }
                        zeros_pending = 0;
                    }
                }
                b'.' if !seen_point => seen_point = true,
                b'e' | b'E' if seen_digit => break,
                _ => return Err(refuse()),
            }
            at += 1;
        }
        if !seen_digit {
            return Err(refuse());
        }
        if at < bytes.len() {
            exponent =
                exponent.saturating_add(parse_exponent(&bytes[at + 1..]).ok_or_else(refuse)?);
        }
        if significant > DIGITS_MAX {
            return Err(NumberError::TooManyDigits);
        }
        let exponent = exponent.saturating_add(i64::from(zeros_pending));
        let exponent = exponent.clamp(-100_000, 100_000) as i32;
        // For zero, the written exponent decides whether it is in range, as in DynamoDB.
        if significant == 0 && exponent > MAGNITUDE_MAX {
            return Err(NumberError::Overflow);
        }
        if significant == 0 && exponent < MAGNITUDE_MIN {
            return Err(NumberError::Underflow);
        }
        Self::new(negative, coefficient, exponent)
    }
}

impl Number {
    /// Parses a number as the older DynamoDB operations do. They calculate exponents in 32 bits: a
    /// larger exponent is not a number for them, and one near the limit may wrap around.
    ///
    /// # Errors
    /// As for [`str::parse`], except for exponents beyond 32 bits.
    pub fn parse_legacy(text: &str) -> Result<Self, NumberError> {
        let error = match text.parse::<Self>() {
            Err(error @ (NumberError::Overflow | NumberError::Underflow)) => error,
            other => return other,
        };
        let (digits, exponent) = match text.split_once(['e', 'E']) {
            Some((digits, exponent)) => (digits, parse_exponent(exponent.as_bytes())),
            None => (text, Some(0)),
        };
        let fraction = digits.split_once('.').map_or(0, |(_, part)| part.len());
        let narrow = |exponent: i64| -> Option<(i32, i32)> {
            i32::try_from(exponent).ok()?;
            let scale = i64::try_from(fraction).ok()?.checked_sub(exponent)?;
            let significant = digits
                .bytes()
                .filter(u8::is_ascii_digit)
                .skip_while(|digit| *digit == b'0');
            let precision = i32::try_from(significant.count().max(1)).ok()?;
            Some((precision, i32::try_from(scale).ok()?))
        };
        let Some((precision, scale)) = exponent.and_then(narrow) else {
            return Err(NumberError::NotANumber(text.to_owned()));
        };
        Err(match precision.overflowing_sub(scale) {
            (_, false) => error,
            (turned, true) if turned < 0 => NumberError::Underflow,
            (_, true) => NumberError::Overflow,
        })
    }
}

fn parse_exponent(bytes: &[u8]) -> Option<i64> {
    let (sign, digits) = match bytes.first()? {
        b'-' => (-1, &bytes[1..]),
        b'+' => (1, &bytes[1..]),
        _ => (1, bytes),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    // An exponent that overflows makes the text invalid.
    digits.iter().try_fold(0i64, |sum, digit| {
        sum.checked_mul(10)?
            .checked_add(sign * i64::from(digit - b'0'))
    })
}

impl fmt::Display for Number {
    /// Plain decimal notation without an exponent, as DynamoDB returns numbers.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0.to_plain())
    }
}

impl fmt::Debug for Number {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Number({self})")
    }
}

macro_rules! from_integer {
    ($($integer:ty),*) => {$(
        impl From<$integer> for Number {
            fn from(value: $integer) -> Self {
                Self(Decimal::from(value))
            }
        }
    )*};
}
from_integer!(i8, i16, i32, i64, u8, u16, u32, u64);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn number(text: &str) -> Number {
        text.parse().expect("a number")
    }

    #[test]
    fn numbers_print_in_plain_notation() {
        for (text, expect) in [
            ("0", "0"),
            ("-0", "0"),
            ("0.000", "0"),
            ("+7", "7"),
            ("007", "7"),
            ("1.50", "1.5"),
            ("-1.5e3", "-1500"),
            ("1E-3", "0.001"),
            (".5", "0.5"),
            ("5.", "5"),
            (
                "12345678901234567890123456789012345678",
                "12345678901234567890123456789012345678",
            ),
            (
                "1000000000000000000000000000000000000000",
                "1000000000000000000000000000000000000000",
            ),
            (
                "0.00000000000000000000000000000000000000001",
                "0.00000000000000000000000000000000000000001",
            ),
            (
                "22.50000000000000000000000000000000000000000000000000",
                "22.5",
            ),
        ] {
            assert_eq!(number(text).to_string(), expect, "{text}");
        }
    }

    #[test]
    fn limits_match_dynamodb() {
        assert!(
            "9.9999999999999999999999999999999999999E+125"
                .parse::<Number>()
                .is_ok()
        );
        assert!(
            "-9.9999999999999999999999999999999999999E+125"
                .parse::<Number>()
                .is_ok()
        );
        assert!("1E-130".parse::<Number>().is_ok());
        for (text, error) in [
            ("1E+126", NumberError::Overflow),
            ("1e999999999999", NumberError::Overflow),
            ("0e126", NumberError::Overflow),
            ("0e-131", NumberError::Underflow),
            ("1E-131", NumberError::Underflow),
            ("1.2E-999999999999", NumberError::Underflow),
            (
                "123456789012345678901234567890123456789",
                NumberError::TooManyDigits,
            ),
            ("", NumberError::Empty),
        ] {
            assert_eq!(text.parse::<Number>(), Err(error), "{text}");
        }
        for text in [
            "-",
            "+",
            ".",
            "1e",
            "e5",
            "1.2.3",
            "1 ",
            " 1",
            "0x1",
            "NaN",
            "1e+",
            "--1",
            "1_0",
            "1e9223372036854775808",
        ] {
            assert!(
                matches!(text.parse::<Number>(), Err(NumberError::NotANumber(_))),
                "{text}"
            );
        }
    }

    #[test]
    fn legacy_exponents_wrap_around() {
        for (text, error) in [
            ("1e2147483647", NumberError::Underflow),
            ("1e2147483646", NumberError::Overflow),
            ("1e126", NumberError::Overflow),
            ("1e-2147483647", NumberError::Underflow),
            ("", NumberError::Empty),
        ] {
            assert_eq!(Number::parse_legacy(text), Err(error), "{text}");
        }
        for text in ["1e2147483648", "1e-2147483648", "1.5e-2147483647", "x"] {
            let refused = Number::parse_legacy(text);
            assert_eq!(refused, Err(NumberError::NotANumber(text.to_owned())));
        }
        assert_eq!(Number::parse_legacy("1.5e3"), Ok(number("1500")));
    }

    #[test]
    fn size_counts_digit_pairs_around_the_point() {
        for (text, size) in [
            ("0", 1),
            ("12", 2),
            ("1234", 3),
            ("1010", 3),
            ("1.5", 3),
            ("3.14159", 5),
            ("100.5", 4),
            ("0.0015", 2),
            ("1e125", 2),
            ("-42", 3),
        ] {
            assert_eq!(number(text).size(), size, "{text}");
        }
    }

    #[test]
    fn inexact_sums_overflow() {
        assert_eq!(
            number("1e40").checked_add(&number("1")),
            Err(NumberError::Overflow)
        );
        assert_eq!(
            number("1e125").checked_sub(&number("1e-130")),
            Err(NumberError::Overflow)
        );
        assert_eq!(number("0.1").checked_add(&number("0.2")), Ok(number("0.3")));
        assert_eq!(number("1").checked_sub(&number("1")), Ok(Number::ZERO));
        assert_eq!(
            number("9e125").checked_add(&number("9e125")),
            Err(NumberError::Overflow)
        );
    }

    #[test]
    fn floor_rounds_towards_negative_infinity() {
        for (text, floor) in [
            ("1.9", 1),
            ("-1.1", -2),
            ("1e30", i64::MAX),
            ("-1e30", i64::MIN),
            ("0.001", 0),
            ("-0.001", -1),
            ("1700000000", 1_700_000_000),
        ] {
            assert_eq!(number(text).floor_i64(), floor, "{text}");
        }
    }

    proptest! {
        #[test]
        fn printing_and_parsing_round_trip(negative: bool, coefficient in 0u128..10u128.pow(38), exponent in -130i32..88) {
            if let Ok(value) = Number::new(negative, coefficient, exponent) {
                prop_assert_eq!(number(&value.to_string()), value);
            }
        }

        #[test]
        fn order_is_numeric(a: i64, b: i64, shift in -20i32..20) {
            let scale = |value: i64| Number::new(value < 0, u128::from(value.unsigned_abs()), shift).expect("in range");
            prop_assert_eq!(scale(a).cmp(&scale(b)), a.cmp(&b));
        }

        #[test]
        fn sums_agree_with_integers(a in -10i64.pow(17)..10i64.pow(17), b in -10i64.pow(17)..10i64.pow(17)) {
            prop_assert_eq!(Number::from(a).checked_add(&Number::from(b)), Ok(Number::from(a + b)));
            prop_assert_eq!(Number::from(a).checked_sub(&Number::from(b)), Ok(Number::from(a - b)));
        }

        #[test]
        fn parsing_never_panics(text in "\\PC*") {
            let _ = text.parse::<Number>();
        }
    }
}
