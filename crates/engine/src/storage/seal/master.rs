//! The master key: its text form, its fingerprint, and the keys derived from it. It never encrypts data
//! itself; it wraps the data keys that do.

use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use ring::aead::{AES_256_GCM, LessSafeKey, UnboundKey};
use ring::hkdf::{HKDF_SHA256, KeyType, Prk, Salt};
use ring::hmac;
use zeroize::Zeroizing;

use crate::storage::seal::error::SealError;

pub(crate) const KEY_BYTES: usize = 32;
const FINGERPRINT_BYTES: usize = 8;

/// Each use has a derived key of its own, so that none reveals anything about another.
const WRAPPING: &[u8] = b"homeport master key 1: wrapping";
const LISTING: &[u8] = b"homeport master key 1: listing";
const FINGERPRINT: &[u8] = b"homeport master key 1: fingerprint";

/// The key of a sealed store. Only its fingerprint is ever printed.
#[derive(Clone)]
pub struct MasterKey(Arc<Zeroizing<[u8; KEY_BYTES]>>);

impl MasterKey {
    /// Parses a key from 64 hexadecimal digits or base64, with or without surrounding white space.
    ///
    /// # Errors
    /// Fails if the text is neither, or does not decode to 32 bytes.
    pub fn parse(text: &str) -> Result<Self, SealError> {
        let text = text.trim();
        let decoded = if text.len() == 2 * KEY_BYTES {
            hex::decode(text).ok()
        } else {
            let padded = STANDARD.decode(text).ok();
            padded.or_else(|| STANDARD_NO_PAD.decode(text).ok())
        };
        let Some(decoded) = decoded.map(Zeroizing::new) else {
            return Err(SealError::NotAKey("this text"));
        };
        let mut bytes = Zeroizing::new([0; KEY_BYTES]);
        if decoded.len() != KEY_BYTES {
            return Err(SealError::NotAKey("a text of this length"));
        }
        bytes.copy_from_slice(&decoded);
        if bytes.iter().all(|byte| *byte == bytes[0]) {
            return Err(SealError::NotAKey("a single repeated byte"));
        }
        Ok(Self(Arc::new(bytes)))
    }

    /// Identifies this key without revealing anything else about it.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        let mut bytes = [0; FINGERPRINT_BYTES];
        self.derive(FINGERPRINT, &mut bytes);
        Fingerprint(bytes)
    }

    /// The cipher that wraps data keys.
    pub(crate) fn wrapping(&self) -> LessSafeKey {
        let mut bytes = Zeroizing::new([0; KEY_BYTES]);
        self.derive(WRAPPING, &mut *bytes);
        aes(&bytes)
    }

    /// The key that authenticates the list of data keys.
    pub(crate) fn listing(&self) -> hmac::Key {
        let mut bytes = Zeroizing::new([0; KEY_BYTES]);
        self.derive(LISTING, &mut *bytes);
        hmac::Key::new(hmac::HMAC_SHA256, &*bytes)
    }

    fn derive(&self, label: &[u8], out: &mut [u8]) {
        let derived = Salt::new(HKDF_SHA256, &[]).extract(&**self.0);
        expand(&derived, label, out);
    }
}

impl fmt::Debug for MasterKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "MasterKey({})", self.fingerprint())
    }
}

/// A short name of a master key, from which the key cannot be derived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fingerprint(pub(crate) [u8; FINGERPRINT_BYTES]);

impl fmt::Display for Fingerprint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&hex::encode(self.0))
    }
}

/// Derives a cipher from a data key. Nothing is sealed with the data key itself, so values and files use
/// different keys. The salt makes each file's key unique.
pub(crate) fn derive(data_key: &[u8; KEY_BYTES], salt: &[u8], label: &[u8]) -> LessSafeKey {
    let derived = Salt::new(HKDF_SHA256, salt).extract(data_key);
    let mut bytes = Zeroizing::new([0; KEY_BYTES]);
    expand(&derived, label, &mut *bytes);
    aes(&bytes)
}

/// A key of the cipher.
fn aes(bytes: &[u8; KEY_BYTES]) -> LessSafeKey {
    let key = UnboundKey::new(&AES_256_GCM, bytes).expect("AES-256 takes 32 bytes");
    LessSafeKey::new(key)
}

fn expand(derived: &Prk, label: &[u8], out: &mut [u8]) {
    struct Len(usize);
    impl KeyType for Len {
        fn len(&self) -> usize {
            self.0
        }
    }
    derived
        .expand(&[label], Len(out.len()))
        .and_then(|derived| derived.fill(out))
        .expect("the requested length is far below HKDF's limit");
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEX: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
    const BASE64: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

    #[test]
    fn both_spellings_give_the_same_key() {
        let key = MasterKey::parse(HEX).unwrap();
        for text in [BASE64, BASE64.trim_end_matches('='), &format!(" {HEX}\n")] {
            assert_eq!(MasterKey::parse(text).unwrap().0, key.0, "{text}");
        }
    }

    #[test]
    fn invalid_keys_are_rejected() {
        let zeros = "0".repeat(64);
        for text in [
            "",
            "secret",
            &HEX[1..],
            &BASE64[4..],
            &zeros,
            "é".repeat(32).as_str(),
        ] {
            assert!(
                matches!(MasterKey::parse(text), Err(SealError::NotAKey(_))),
                "{text}"
            );
        }
    }

    #[test]
    fn key_is_printed_only_as_fingerprint() {
        let key = MasterKey::parse(HEX).unwrap();
        let printed = format!("{key:?}");
        assert_eq!(printed, format!("MasterKey({})", key.fingerprint()));
        assert!(!printed.contains("0001020304"));
        let other = MasterKey::parse(&HEX.replace("00", "ff")).unwrap();
        assert_ne!(key.fingerprint(), other.fingerprint());
    }
}
