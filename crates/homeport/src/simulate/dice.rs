//! Chance that can be repeated: the same seed gives the same numbers.

/// A stream of numbers.
#[derive(Debug, Clone)]
pub(super) struct Dice(u64);

impl Dice {
    /// A stream of its own for each way in which `parts` differ.
    pub(super) fn new<const N: usize>(parts: [u64; N]) -> Self {
        Self(parts.into_iter().fold(0, |state, part| mix(state ^ part)))
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mix(self.0)
    }

    /// From 0 up to but not 1.
    pub(super) fn unit(&mut self) -> f64 {
        // 53 bits are what a double holds exactly.
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// From 0 up to but not `limit`.
    pub(super) fn below(&mut self, limit: u32) -> u32 {
        // The high bits of the product are below the limit, and as even as the dice.
        ((u128::from(self.next()) * u128::from(limit)) >> 64) as u32
    }

    /// From -1 to 1, mostly near 0.
    pub(super) fn noise(&mut self) -> f64 {
        (self.unit() + self.unit() + self.unit() + self.unit()) / 2.0 - 1.0
    }
}

/// Spreads every bit of the input over the output; the constants are those of SplitMix64.
fn mix(input: u64) -> u64 {
    let mut bits = input.wrapping_add(0x9E37_79B9_7F4A_7C15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_seeds_give_equal_numbers_and_others_do_not() {
        let take = |mut dice: Dice| [dice.next(), dice.next(), dice.next()];
        assert_eq!(take(Dice::new([1, 2])), take(Dice::new([1, 2])));
        assert_ne!(take(Dice::new([1, 2])), take(Dice::new([2, 1])));
    }

    #[test]
    fn numbers_stay_in_their_range_and_spread_over_it() {
        let mut dice = Dice::new([7]);
        let units: Vec<f64> = (0..10_000).map(|_| dice.unit()).collect();
        assert!(units.iter().all(|unit| (0.0..1.0).contains(unit)));
        let mean = units.iter().sum::<f64>() / 10_000.0;
        assert!((0.48..0.52).contains(&mean), "{mean}");
        assert!((0..1000).all(|_| (-1.0..=1.0).contains(&dice.noise())));
        let thrown: std::collections::BTreeSet<u32> = (0..1000).map(|_| dice.below(6)).collect();
        assert_eq!(thrown, (0..6).collect());
    }
}
