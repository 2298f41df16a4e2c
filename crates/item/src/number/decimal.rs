//! Decimals with 38 significant digits, which are rounded half to even, and magnitudes from 1E-999 to
//! 9.99…E+999. The numbers of DynamoDB are decimals within closer limits; the numbers of rules are any.
//!
//! DIFFERENCE: AWS IoT rounds to 34 digits. With 38, every number that DynamoDB can store passes
//! through unchanged.

use std::cmp::Ordering;
use std::fmt;

use super::wide::Wide;

/// Maximum number of significant digits.
pub const DIGITS_MAX: u32 = 38;
/// Maximum and, negated, minimum decimal exponent of the leading digit.
const MAGNITUDE_MAX: i32 = 999;

/// `±coefficient × 10^exponent`. The coefficient has no trailing zeros and zero is `0 × 10^0`, so
/// equality is numeric.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Decimal {
    negative: bool,
    exponent: i16,
    coefficient: Coefficient,
}

/// The digits as an integer, in two halves. A `u128` field would be aligned to 16 bytes and make
/// every type that holds a number half as large again.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Coefficient {
    high: u64,
    low: u64,
}

impl Coefficient {
    const fn new(whole: u128) -> Self {
        Self {
            high: (whole >> 64) as u64,
            low: whole as u64,
        }
    }

    const fn whole(self) -> u128 {
        (self.high as u128) << 64 | self.low as u128
    }
}

/// Why a text or result is not a valid number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DecimalError {
    #[error("this is not a number")]
    NotANumber,
    #[error(
        "the number is out of range; its magnitude must be between 1E-{MAGNITUDE_MAX} and 9.99E+{MAGNITUDE_MAX}"
    )]
    OutOfRange,
    #[error("division by zero")]
    DivisionByZero,
}

impl Decimal {
    pub const ZERO: Self = Self {
        negative: false,
        exponent: 0,
        coefficient: Coefficient::new(0),
    };

    /// Normalises and rounds to 38 digits.
    fn new(negative: bool, coefficient: Wide, mut exponent: i32) -> Result<Self, DecimalError> {
        let coefficient = match coefficient.narrow() {
            Some(narrow) if digits(narrow) <= DIGITS_MAX => narrow,
            _ => {
                // Drop digits until 38 are left. Rounding may add one more, a zero.
                let mut drop = coefficient.digits_min().saturating_sub(DIGITS_MAX).max(1);
                loop {
                    let (rounded, remainder) = coefficient.divide(pow10(drop));
                    let kept = rounded.narrow().filter(|kept| digits(*kept) <= DIGITS_MAX);
                    if let Some(kept) = kept {
                        exponent = exponent.saturating_add(drop as i32);
                        break round_half_even(kept, remainder, pow10(drop));
                    }
                    drop += 1;
                }
            }
        };
        Self::normalised(negative, coefficient, exponent)
    }

    /// `±coefficient × 10^exponent` without trailing zeros. The coefficient has at most 38 other digits.
    pub(super) fn normalised(
        negative: bool,
        mut coefficient: u128,
        mut exponent: i32,
    ) -> Result<Self, DecimalError> {
        if coefficient == 0 {
            return Ok(Self::ZERO);
        }
        // 64-bit division is many times faster and covers almost all numbers in practice.
        if let Ok(mut small) = u64::try_from(coefficient) {
            while small.is_multiple_of(10) {
                small /= 10;
                exponent = exponent.saturating_add(1);
            }
            coefficient = u128::from(small);
        } else {
            while coefficient.is_multiple_of(10) {
                coefficient /= 10;
                exponent = exponent.saturating_add(1);
            }
        }
        let magnitude = exponent.saturating_add(digits(coefficient) as i32 - 1);
        if magnitude.abs() > MAGNITUDE_MAX {
            return Err(DecimalError::OutOfRange);
        }
        Ok(Self {
            negative,
            exponent: i16::try_from(exponent).map_err(|_| DecimalError::OutOfRange)?,
            coefficient: Coefficient::new(coefficient),
        })
    }

    /// Parses a JSON number. Leading zeros are allowed, as in AWS IoT's strings.
    ///
    /// # Errors
    /// When the text is not a number or out of range.
    pub fn parse(text: &str) -> Result<Self, DecimalError> {
        let (negative, unsigned) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (mantissa, power) = match unsigned.find(['e', 'E']) {
            Some(at) => (&unsigned[..at], parse_power(&unsigned[at + 1..])?),
            None => (unsigned, 0),
        };
        let (whole, fraction) = mantissa
            .split_once('.')
            .map_or((mantissa, None), |(whole, fraction)| {
                (whole, Some(fraction))
            });
        let all_digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        if !all_digits(whole) || fraction.is_some_and(|fraction| !all_digits(fraction)) {
            return Err(DecimalError::NotANumber);
        }
        let fraction = fraction.unwrap_or_default();
        let mut coefficient = 0u128;
        let mut kept = 0u32;
        let mut exponent = power.saturating_sub(length(fraction));
        // The first dropped digit, and whether a non-zero digit follows it, decide the rounding.
        let mut dropped: Option<(u8, bool)> = None;
        for byte in whole.bytes().chain(fraction.bytes()) {
            let digit = byte - b'0';
            if kept < DIGITS_MAX {
                coefficient = coefficient * 10 + u128::from(digit);
                kept += u32::from(coefficient != 0);
            } else {
                exponent = exponent.saturating_add(1);
                match &mut dropped {
                    None => dropped = Some((digit, false)),
                    Some((_, more)) => *more |= digit != 0,
                }
            }
        }
        if let Some((first, more)) = dropped {
            let remainder = u128::from(first) * 2 + u128::from(more);
            coefficient = round_half_even(coefficient, remainder, 20);
        }
        let exponent = i32::try_from(exponent).unwrap_or(if exponent < 0 {
            i32::MIN / 2
        } else {
            i32::MAX / 2
        });
        Self::new(negative, Wide::new(coefficient), exponent)
    }

    /// The shortest decimal that converts back to the same binary number; `None` for NaN and
    /// infinity.
    #[must_use]
    pub fn from_f64(value: f64) -> Option<Self> {
        if !value.is_finite() {
            return None;
        }
        Self::parse(&format!("{value:e}")).ok()
    }

    /// The nearest binary floating-point number.
    #[must_use]
    pub fn to_f64(&self) -> f64 {
        let sign = if self.negative { "-" } else { "" };
        format!("{sign}{}e{}", self.coefficient(), self.exponent())
            .parse()
            .unwrap_or(f64::NAN)
    }

    /// The value as an `i128`, if it is an integer in range.
    #[must_use]
    pub fn to_i128(&self) -> Option<i128> {
        if self.exponent() < 0 {
            return None;
        }
        let scale = 10u128.checked_pow(self.exponent().unsigned_abs())?;
        let magnitude = i128::try_from(self.coefficient().checked_mul(scale)?).ok()?;
        Some(if self.negative { -magnitude } else { magnitude })
    }

    /// The digits as an integer without trailing zeros.
    #[must_use]
    pub fn coefficient(&self) -> u128 {
        self.coefficient.whole()
    }

    /// The power of ten by which the coefficient is multiplied.
    #[must_use]
    pub fn exponent(&self) -> i32 {
        i32::from(self.exponent)
    }

    /// The number of significant digits; 1 for zero.
    #[must_use]
    pub fn digits(&self) -> u32 {
        digits(self.coefficient())
    }

    /// The decimal exponent of the leading digit (`d.ddd × 10^magnitude`).
    #[must_use]
    pub fn magnitude(&self) -> i32 {
        self.exponent() + self.digits() as i32 - 1
    }

    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.exponent() >= 0
    }

    #[must_use]
    pub fn is_zero(&self) -> bool {
        self.coefficient() == 0
    }

    #[must_use]
    pub fn is_negative(&self) -> bool {
        self.negative
    }

    #[must_use]
    pub fn negated(&self) -> Self {
        Self {
            negative: !self.negative && !self.is_zero(),
            ..*self
        }
    }

    #[must_use]
    pub fn abs(&self) -> Self {
        Self {
            negative: false,
            ..*self
        }
    }

    /// The rounded sum.
    ///
    /// # Errors
    /// [`DecimalError::OutOfRange`], like the other calculations.
    pub fn add(&self, other: &Self) -> Result<Self, DecimalError> {
        if let Some(exact) = self.add_exactly(other) {
            return Ok(exact);
        }
        let (high, low) = self.by_exponent(other);
        // Extend the number with the larger exponent to as many digits as fit. Digits of the other
        // number below those cannot change the rounded sum.
        let mut shift = high.exponent() - low.exponent();
        let mut coefficient = high.coefficient();
        let mut exponent = high.exponent();
        if shift > DIGITS_MAX as i32 {
            let spare = DIGITS_MAX - high.digits();
            coefficient *= pow10(spare);
            exponent -= spare as i32;
            shift -= spare as i32;
            if shift > DIGITS_MAX as i32 {
                return Self::normalised(high.negative, coefficient, exponent);
            }
        }
        let (negative, sum) = signed_sum((high.negative, coefficient), shift.unsigned_abs(), low);
        Self::new(negative, sum, low.exponent())
    }

    /// The sum, if it needs no rounding.
    pub(super) fn add_exactly(&self, other: &Self) -> Option<Self> {
        if self.is_zero() || other.is_zero() {
            return Some(if self.is_zero() { *other } else { *self });
        }
        let (high, low) = self.by_exponent(other);
        let shift = (high.exponent() - low.exponent()).unsigned_abs();
        if shift > DIGITS_MAX {
            return None;
        }
        let (negative, sum) = signed_sum((high.negative, high.coefficient()), shift, low);
        let sum = Self::normalised(negative, sum.narrow()?, low.exponent()).ok()?;
        (sum.digits() <= DIGITS_MAX).then_some(sum)
    }

    /// Both numbers, first the one with the larger exponent.
    fn by_exponent<'a>(&'a self, other: &'a Self) -> (&'a Self, &'a Self) {
        if self.exponent >= other.exponent {
            (self, other)
        } else {
            (other, self)
        }
    }

    /// # Errors
    /// When the result is out of range, or the divisor is zero.
    pub fn subtract(&self, other: &Self) -> Result<Self, DecimalError> {
        self.add(&other.negated())
    }

    /// # Errors
    /// When the result is out of range, or the divisor is zero.
    pub fn multiply(&self, other: &Self) -> Result<Self, DecimalError> {
        Self::new(
            self.negative != other.negative,
            Wide::product(self.coefficient(), other.coefficient()),
            self.exponent() + other.exponent(),
        )
    }

    /// # Errors
    /// When the result is out of range, or the divisor is zero.
    pub fn divide(&self, other: &Self) -> Result<Self, DecimalError> {
        if other.is_zero() {
            return Err(DecimalError::DivisionByZero);
        }
        // Extend the dividend to 76 digits, so that the quotient has at least 38.
        let spare = DIGITS_MAX - self.digits();
        let dividend = Wide::product(self.coefficient() * pow10(spare), pow10(DIGITS_MAX));
        let (quotient, remainder) = dividend.divide(other.coefficient());
        let negative = self.negative != other.negative;
        let exponent = self.exponent() - other.exponent() - (spare + DIGITS_MAX) as i32;
        if remainder == 0 {
            return Self::new(negative, quotient, exponent);
        }
        match quotient.narrow() {
            // Two more digits represent the remainder in the rounding: 01, 50 or 99 hundredths.
            Some(narrow) if digits(narrow) <= DIGITS_MAX => {
                let part = match (remainder * 2).cmp(&other.coefficient()) {
                    Ordering::Less => 1,
                    Ordering::Equal => 50,
                    Ordering::Greater => 99,
                };
                let extended = Wide::product(narrow, 100).plus(Wide::new(part));
                Self::new(negative, extended, exponent - 2)
            }
            // At least one digit will be dropped. The remainder matters only if that digit would be
            // exactly half or zero.
            _ => {
                let exact_end = quotient.divide(5).1 == 0;
                let quotient = quotient.plus(Wide::new(u128::from(exact_end)));
                Self::new(negative, quotient, exponent)
            }
        }
    }

    /// The remainder of integer division, with the sign of the dividend.
    ///
    /// # Errors
    /// When the divisor is zero.
    pub fn remainder(&self, other: &Self) -> Result<Self, DecimalError> {
        if other.is_zero() {
            return Err(DecimalError::DivisionByZero);
        }
        if self.exponent() >= other.exponent() {
            let divisor = other.coefficient();
            let power = (self.exponent() - other.exponent()).unsigned_abs();
            let scale = power_modulo(power, divisor);
            let (_, rest) = Wide::product(self.coefficient() % divisor, scale).divide(divisor);
            return Self::normalised(self.negative, rest, other.exponent());
        }
        let shift = (other.exponent() - self.exponent()).unsigned_abs();
        let divisor = 10u128
            .checked_pow(shift)
            .and_then(|scale| other.coefficient().checked_mul(scale));
        // A divisor that overflows is larger than any dividend.
        let rest = divisor.map_or(self.coefficient(), |divisor| self.coefficient() % divisor);
        Self::normalised(self.negative, rest, self.exponent())
    }

    /// The integer part of the quotient.
    ///
    /// # Errors
    /// When the result is out of range, or the divisor is zero.
    pub fn divide_whole(&self, other: &Self) -> Result<Self, DecimalError> {
        let rest = self.remainder(other)?;
        Ok(self.subtract(&rest)?.divide(other)?.truncate(0))
    }

    /// Truncates to the given number of decimal places.
    #[must_use]
    pub fn truncate(&self, places: u32) -> Self {
        let drop = self
            .exponent()
            .saturating_neg()
            .saturating_sub(places as i32)
            .max(0)
            .unsigned_abs();
        if drop == 0 {
            return *self;
        }
        let kept = 10u128
            .checked_pow(drop)
            .map_or(0, |scale| self.coefficient() / scale);
        Self::normalised(
            self.negative,
            kept,
            self.exponent().saturating_add_unsigned(drop),
        )
        .unwrap_or(Self::ZERO)
    }

    #[must_use]
    pub fn floor(&self) -> Self {
        let cut = self.truncate(0);
        if self.negative && cut != *self {
            cut.subtract(&Self::from(1)).unwrap_or(cut)
        } else {
            cut
        }
    }

    #[must_use]
    pub fn ceil(&self) -> Self {
        self.negated().floor().negated()
    }

    /// Rounds to the nearest integer, with halves away from zero.
    #[must_use]
    pub fn round(&self) -> Self {
        let half = Self {
            negative: self.negative,
            exponent: -1,
            coefficient: Coefficient::new(5),
        };
        if self.is_whole() {
            return *self;
        }
        self.add(&half).map_or(*self, |sum| sum.truncate(0))
    }

    fn cmp_magnitude(&self, other: &Self) -> Ordering {
        self.magnitude().cmp(&other.magnitude()).then_with(|| {
            let (left, right) = (self.digits(), other.digits());
            let left_scaled = self.coefficient() * pow10(right.saturating_sub(left));
            let right_scaled = other.coefficient() * pow10(left.saturating_sub(right));
            left_scaled.cmp(&right_scaled)
        })
    }

    /// Appends the number in plain notation, without an exponent.
    pub fn write_plain(&self, out: &mut Vec<u8>) {
        let mut digits = [0u8; 40];
        let digits = write_digits(self.coefficient(), &mut digits).as_bytes();
        if self.negative {
            out.push(b'-');
        }
        let shift = usize::from(self.exponent.unsigned_abs());
        if self.exponent() >= 0 {
            out.extend_from_slice(digits);
            out.resize(out.len() + shift, b'0');
        } else if digits.len() > shift {
            let (whole, part) = digits.split_at(digits.len() - shift);
            out.extend_from_slice(whole);
            out.push(b'.');
            out.extend_from_slice(part);
        } else {
            out.extend_from_slice(b"0.");
            out.resize(out.len() + shift - digits.len(), b'0');
            out.extend_from_slice(digits);
        }
    }

    /// The number in plain notation.
    #[must_use]
    pub fn to_plain(&self) -> String {
        let mut out = Vec::with_capacity(48);
        self.write_plain(&mut out);
        String::from_utf8(out).unwrap_or_default()
    }
}

/// The sum of `±high × 10^shift` and `±low`, with the exponent of `low`.
fn signed_sum((negative, high): (bool, u128), shift: u32, low: &Decimal) -> (bool, Wide) {
    let high = Wide::product(high, pow10(shift));
    let other = Wide::new(low.coefficient());
    if negative == low.negative {
        (negative, high.plus(other))
    } else if high >= other {
        (negative, high.minus(other))
    } else {
        (low.negative, other.minus(high))
    }
}

/// The number of decimal digits; 1 for zero.
fn digits(coefficient: u128) -> u32 {
    // 64-bit arithmetic is many times faster and covers almost all numbers in practice.
    let digits = match u64::try_from(coefficient) {
        Ok(small) => small.checked_ilog10(),
        Err(_) => coefficient.checked_ilog10(),
    };
    digits.unwrap_or(0) + 1
}

fn write_digits(mut coefficient: u128, buffer: &mut [u8; 40]) -> &str {
    let mut at = buffer.len();
    loop {
        at -= 1;
        // 64-bit division is many times faster and covers almost every real number.
        if let Ok(small) = u64::try_from(coefficient) {
            buffer[at] = b'0' + (small % 10) as u8;
            coefficient = u128::from(small / 10);
        } else {
            buffer[at] = b'0' + (coefficient % 10) as u8;
            coefficient /= 10;
        }
        if coefficient == 0 {
            break;
        }
    }
    std::str::from_utf8(&buffer[at..]).unwrap_or("0")
}

/// A power of ten; `power` is at most 38.
fn pow10(power: u32) -> u128 {
    10u128.pow(power.min(DIGITS_MAX))
}

fn round_half_even(kept: u128, remainder: u128, unit: u128) -> u128 {
    let half = unit / 2;
    match remainder.cmp(&half) {
        Ordering::Greater => kept + 1,
        Ordering::Equal => kept + (kept & 1),
        Ordering::Less => kept,
    }
}

/// `10^power mod modulus`, by squaring.
fn power_modulo(mut power: u32, modulus: u128) -> u128 {
    let times = |left: u128, right: u128| Wide::product(left, right).divide(modulus).1;
    let mut result = 1 % modulus;
    let mut base = 10 % modulus;
    while power > 0 {
        if power & 1 == 1 {
            result = times(result, base);
        }
        base = times(base, base);
        power >>= 1;
    }
    result
}

fn parse_power(text: &str) -> Result<i64, DecimalError> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(DecimalError::NotANumber);
    }
    let power = digits.bytes().fold(0i64, |sum, byte| {
        sum.saturating_mul(10)
            .saturating_add(i64::from(byte - b'0'))
    });
    Ok(if negative { -power } else { power })
}

fn length(text: &str) -> i64 {
    i64::try_from(text.len()).unwrap_or(i64::MAX)
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        let sign = |number: &Self| match (number.is_zero(), number.negative) {
            (true, _) => 0,
            (false, true) => -1,
            (false, false) => 1,
        };
        sign(self)
            .cmp(&sign(other))
            .then_with(|| match (self.is_zero(), self.negative) {
                (true, _) => Ordering::Equal,
                (false, false) => self.cmp_magnitude(other),
                (false, true) => other.cmp_magnitude(self),
            })
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

macro_rules! from_integer {
    ($($integer:ty),*) => {$(
        impl From<$integer> for Decimal {
            fn from(value: $integer) -> Self {
                #[allow(unused_comparisons)]
                let negative = value < 0;
                let mut coefficient = (value as i128).unsigned_abs() as u64;
                let mut exponent = 0i16;
                while coefficient != 0 && coefficient.is_multiple_of(10) {
                    coefficient /= 10;
                    exponent += 1;
                }
                let coefficient = Coefficient { high: 0, low: coefficient };
                Self { negative, exponent, coefficient }
            }
        }
    )*};
}
from_integer!(i8, i16, i32, i64, u8, u16, u32, u64);

impl TryFrom<i128> for Decimal {
    type Error = DecimalError;

    fn try_from(value: i128) -> Result<Self, DecimalError> {
        Self::new(value < 0, Wide::new(value.unsigned_abs()), 0)
    }
}

impl fmt::Display for Decimal {
    /// Plain notation, with an exponent only for fractions of more than 40 places.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        const PLACES_MAX: i32 = 40;
        if self.magnitude() >= 0 || self.exponent() >= -PLACES_MAX {
            return formatter.write_str(&self.to_plain());
        }
        let sign = if self.negative { "-" } else { "" };
        let digits = self.coefficient().to_string();
        let (first, rest) = digits.split_at(1);
        let point = if rest.is_empty() { "" } else { "." };
        write!(formatter, "{sign}{first}{point}{rest}E{}", self.magnitude())
    }
}

impl fmt::Debug for Decimal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

#[cfg(test)]
mod tests;
