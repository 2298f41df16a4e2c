//! Reproducible random numbers: equal seeds give equal numbers.

/// A SplitMix64 generator.
#[derive(Debug, Clone)]
pub struct SeededRandom(u64);

impl SeededRandom {
    /// A generator whose sequence depends on every part of the seed.
    #[must_use]
    pub fn new<const N: usize>(parts: [u64; N]) -> Self {
        Self(parts.into_iter().fold(0, |state, part| mix(state ^ part)))
    }

    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mix(self.0)
    }

    /// A number in `0.0..1.0`.
    pub fn unit(&mut self) -> f64 {
        // A double holds 53 bits exactly.
        (self.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A number in `0..limit`.
    pub fn below(&mut self, limit: usize) -> usize {
        // The high half of the product is below the limit and evenly distributed.
        ((u128::from(self.next_u64()) * limit as u128) >> 64) as usize
    }

    /// Whether an event with a probability of one in `count` happens.
    pub fn once_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    /// One of the values.
    ///
    /// # Panics
    /// If there is no value.
    pub fn pick<'a, T>(&mut self, values: &'a [T]) -> &'a T {
        &values[self.below(values.len())]
    }

    pub fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.next_u64().to_le_bytes()[0]).collect()
    }

    /// A number from -1 to 1, most often near 0.
    pub fn noise(&mut self) -> f64 {
        (self.unit() + self.unit() + self.unit() + self.unit()) / 2.0 - 1.0
    }
}

/// Spreads every input bit over the output, with the constants of SplitMix64.
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
    fn equal_seeds_give_equal_numbers() {
        let take =
            |mut random: SeededRandom| [random.next_u64(), random.next_u64(), random.next_u64()];
        assert_eq!(
            take(SeededRandom::new([1, 2])),
            take(SeededRandom::new([1, 2]))
        );
        assert_ne!(
            take(SeededRandom::new([1, 2])),
            take(SeededRandom::new([2, 1]))
        );
    }

    #[test]
    fn numbers_stay_in_range_and_spread() {
        let mut random = SeededRandom::new([7]);
        let units: Vec<f64> = (0..10_000).map(|_| random.unit()).collect();
        assert!(units.iter().all(|unit| (0.0..1.0).contains(unit)));
        let mean = units.iter().sum::<f64>() / 10_000.0;
        assert!((0.48..0.52).contains(&mean), "{mean}");
        assert!((0..1000).all(|_| (-1.0..=1.0).contains(&random.noise())));
        let thrown: std::collections::BTreeSet<usize> =
            (0..1000).map(|_| random.below(6)).collect();
        assert_eq!(thrown, (0..6).collect());
    }
}
