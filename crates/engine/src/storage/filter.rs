//! A Bloom filter: a set that may report an absent entry as present, but never the other way round.

use xxhash_rust::xxh3::xxh3_128;

/// With this many bits per entry and this many probes, about one absent entry in a thousand is reported as
/// present.
const BITS_PER_ENTRY: usize = 16;
const PROBES: u64 = 6;

pub(crate) struct Filter {
    words: Vec<u64>,
}

impl Filter {
    pub(crate) fn for_entries(count: usize) -> Self {
        let words = (count * BITS_PER_ENTRY).div_ceil(64).max(1);
        Self {
            words: vec![0; words],
        }
    }

    pub(crate) fn insert(&mut self, entry: &[u8]) {
        for (word, bit) in self.places(entry) {
            self.words[word] |= bit;
        }
    }

    pub(crate) fn may_contain(&self, entry: &[u8]) -> bool {
        self.places(entry)
            .all(|(word, bit)| self.words[word] & bit != 0)
    }

    /// The bits of an entry: two hashes stand in for one hash per probe.
    fn places(&self, entry: &[u8]) -> impl Iterator<Item = (usize, u64)> + use<> {
        let hash = xxh3_128(entry);
        let (first, step) = (hash as u64, (hash >> 64) as u64 | 1);
        let bits = self.words.len() as u64 * 64;
        (0..PROBES).map(move |probe| {
            let at = first.wrapping_add(step.wrapping_mul(probe)) % bits;
            ((at / 64) as usize, 1 << (at % 64))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_found_and_few_others() {
        let mut filter = Filter::for_entries(10_000);
        let entry = |at: u32| at.to_be_bytes();
        for at in 0..10_000 {
            filter.insert(&entry(at));
        }
        assert!((0..10_000).all(|at| filter.may_contain(&entry(at))));
        let mistaken = (10_000..110_000).filter(|at| filter.may_contain(&entry(*at)));
        let mistaken = mistaken.count();
        assert!(mistaken < 300, "{mistaken} of 100,000");
        assert!(!Filter::for_entries(0).may_contain(b"anything"));
    }
}
