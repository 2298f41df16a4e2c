//! Raw keys and their hashes. Neither a raw key nor the pepper is printed by `Debug`.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

const KEY_BYTES: usize = 32;
/// Hashed with the pepper in place of a key. It is not a key, so the hash is that of no key.
const CHECKED_TEXT: &str = "homeport check of the pepper";

/// A key as a device sends it: 64 hexadecimal digits.
#[derive(Clone, PartialEq, Eq)]
pub struct RawKey(String);

/// The text is not a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an API key is 64 hexadecimal digits")]
pub struct RawKeyError;

/// A secret of the server that is hashed with every key, so that a copy of the table alone is useless.
#[derive(Clone)]
pub struct Pepper(String);

impl RawKey {
    /// A new key from the operating system's random number generator.
    ///
    /// # Panics
    /// When the operating system has no random numbers.
    #[must_use]
    pub fn random() -> Self {
        let mut bytes = [0; KEY_BYTES];
        getrandom::fill(&mut bytes).expect("the operating system provides random bytes");
        Self(hex::encode(bytes))
    }

    /// The text of the key, to be shown once.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl FromStr for RawKey {
    type Err = RawKeyError;

    fn from_str(text: &str) -> Result<Self, RawKeyError> {
        let is_hex = text.bytes().all(|byte| byte.is_ascii_hexdigit());
        if text.len() == KEY_BYTES * 2 && is_hex {
            Ok(Self(text.to_owned()))
        } else {
            Err(RawKeyError)
        }
    }
}

impl Pepper {
    #[must_use]
    pub fn new(secret: String) -> Self {
        Self(secret)
    }

    /// `SHA256(pepper + key)` in hexadecimal.
    pub(super) fn hash(&self, key: &RawKey) -> String {
        self.hash_text(&key.0)
    }

    /// What shows whether a pepper is the same.
    pub(super) fn check_value(&self) -> String {
        self.hash_text(CHECKED_TEXT)
    }

    fn hash_text(&self, text: &str) -> String {
        let mut hasher = Sha256::new();
        hasher.update(self.0.as_bytes());
        hasher.update(text.as_bytes());
        hex::encode(hasher.finalize())
    }
}

/// Compares two hashes in constant time.
pub(super) fn hashes_equal(one: &str, other: &str) -> bool {
    one.as_bytes().ct_eq(other.as_bytes()).into()
}

impl fmt::Debug for RawKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("RawKey(…)")
    }
}

impl fmt::Debug for Pepper {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Pepper(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_64_hexadecimal_digits() {
        let key = RawKey::random();
        assert_eq!(key.reveal().parse::<RawKey>(), Ok(key.clone()));
        assert_ne!(RawKey::random(), key);
        for text in ["", "abc", &"g".repeat(64), &"a".repeat(63), &"a".repeat(65)] {
            assert_eq!(text.parse::<RawKey>(), Err(RawKeyError));
        }
    }

    #[test]
    fn the_hash_is_sha256_of_pepper_and_key() {
        let key: RawKey = "0".repeat(64).parse().unwrap();
        let expected = hex::encode(Sha256::digest(format!("salt{}", "0".repeat(64))));
        assert_eq!(Pepper::new("salt".to_owned()).hash(&key), expected);
    }

    #[test]
    fn secrets_are_not_printed() {
        let key = RawKey::random();
        assert!(!format!("{key:?}").contains(key.reveal()));
        assert!(!format!("{:?}", Pepper::new("secret".to_owned())).contains("secret"));
    }
}
