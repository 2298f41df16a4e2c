//! Unsigned 256-bit integers with the operations that exact decimals need: products of two
//! coefficients, and their quotients.

/// `high × 2^128 + low`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Wide {
    high: u128,
    low: u128,
}

const HALF_BITS: u32 = 64;
const HALF_MASK: u128 = u64::MAX as u128;

impl Wide {
    pub(crate) const fn new(value: u128) -> Self {
        Self {
            high: 0,
            low: value,
        }
    }

    /// The product of two 128-bit integers, which cannot overflow.
    pub(crate) fn product(left: u128, right: u128) -> Self {
        let (left_high, left_low) = (left >> HALF_BITS, left & HALF_MASK);
        let (right_high, right_low) = (right >> HALF_BITS, right & HALF_MASK);
        let low = left_low * right_low;
        let cross = left_high * right_low;
        let other = left_low * right_high;
        let middle = (low >> HALF_BITS) + (cross & HALF_MASK) + (other & HALF_MASK);
        Self {
            high: left_high * right_high
                + (cross >> HALF_BITS)
                + (other >> HALF_BITS)
                + (middle >> HALF_BITS),
            low: (low & HALF_MASK) | (middle << HALF_BITS),
        }
    }

    /// The value as a `u128`, if it fits.
    pub(crate) fn narrow(self) -> Option<u128> {
        (self.high == 0).then_some(self.low)
    }

    /// A lower bound of the number of decimal digits, at most one too low.
    pub(crate) fn digits_min(self) -> u32 {
        let bits = if self.high == 0 {
            u128::BITS - self.low.leading_zeros()
        } else {
            2 * u128::BITS - self.high.leading_zeros()
        };
        // 0.30102 is just under the logarithm of two.
        bits.saturating_sub(1) * 30_102 / 100_000 + 1
    }

    /// The sum of two integers below 2^255.
    pub(crate) fn plus(self, other: Self) -> Self {
        let (low, carry) = self.low.overflowing_add(other.low);
        Self {
            high: self
                .high
                .wrapping_add(other.high)
                .wrapping_add(u128::from(carry)),
            low,
        }
    }

    /// The difference; `other` must not be larger.
    pub(crate) fn minus(self, other: Self) -> Self {
        let (low, borrow) = self.low.overflowing_sub(other.low);
        Self {
            high: self
                .high
                .wrapping_sub(other.high)
                .wrapping_sub(u128::from(borrow)),
            low,
        }
    }

    /// Quotient and remainder. The divisor is not zero and below 2^127, as every coefficient is.
    pub(crate) fn divide(self, divisor: u128) -> (Self, u128) {
        if self.high == 0 {
            return (Self::new(self.low / divisor), self.low % divisor);
        }
        let high = self.high / divisor;
        let mut remainder = self.high % divisor;
        let mut low = 0u128;
        for bit in (0..u128::BITS).rev() {
            remainder = (remainder << 1) | ((self.low >> bit) & 1);
            low <<= 1;
            if remainder >= divisor {
                remainder -= divisor;
                low |= 1;
            }
        }
        (Self { high, low }, remainder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use proptest::prelude::*;

    proptest! {
        #[test]
        fn product_divided_by_factor_is_other_factor(
            left in any::<u128>(),
            right in 1u128..(1 << 127),
            rest in any::<u128>(),
        ) {
            let rest = rest % right;
            let (quotient, remainder) = Wide::product(left, right).plus(Wide::new(rest)).divide(right);
            prop_assert_eq!(quotient.narrow(), Some(left));
            prop_assert_eq!(remainder, rest);
        }

        #[test]
        fn subtraction_reverses_addition(
            left in any::<u128>(),
            right in any::<u128>(),
            more in any::<u128>(),
        ) {
            let sum = Wide::product(left / 2, right).plus(Wide::new(more));
            prop_assert_eq!(sum.minus(Wide::new(more)), Wide::product(left / 2, right));
        }
    }
}
