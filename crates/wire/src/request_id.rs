//! Request ids: 52 letters and digits, unique within this process.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

pub(crate) const LEN: usize = 52;
const ALPHABET: &[u8; 32] = b"0123456789ABCDEFGHIJKLMNOPQRSTUV";

#[derive(Debug)]
pub(crate) struct RequestIds {
    seed: u64,
    next: AtomicU64,
}

impl RequestIds {
    pub(crate) fn new() -> Self {
        Self {
            seed: RandomState::new().hash_one(0),
            next: AtomicU64::new(1),
        }
    }

    pub(crate) fn next(&self) -> [u8; LEN] {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let mut state = self.seed ^ number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mut id = [0; LEN];
        // Each mixed word gives twelve letters of five bits.
        for chunk in id.chunks_mut(12) {
            state = mix(state);
            let mut bits = state;
            for letter in chunk {
                *letter = ALPHABET[(bits & 31) as usize];
                bits >>= 5;
            }
        }
        id
    }
}

/// One step of SplitMix64.
fn mix(state: u64) -> u64 {
    let mut mixed = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn ids_are_unique_and_alphanumeric() {
        let ids = RequestIds::new();
        let seen: BTreeSet<_> = (0..1000).map(|_| ids.next()).collect();
        assert_eq!(seen.len(), 1000);
        let known = |byte: &u8| byte.is_ascii_uppercase() || byte.is_ascii_digit();
        assert!(seen.iter().flatten().all(known));
    }
}
