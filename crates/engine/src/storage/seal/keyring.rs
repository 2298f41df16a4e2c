//! The file `keyring` of a sealed data directory: the data keys, each wrapped by the master key.
//!
//! ```text
//! keyring := "homeport keyring\n" 01 store(16) fingerprint(8) count(4) entry{count} tag(32) xxh3-64(8)
//! entry   := created_at_ms(8) nonce(12) wrapped-key(48)
//! ```
//! A data key's id is its position in the list, starting at 1. The tag is an HMAC-SHA256 with a key derived
//! from the master key; the checksum distinguishes damage from a wrong key.

use std::path::{Path, PathBuf};

use ring::aead::{Aad, NONCE_LEN, Nonce};
use ring::hmac;
use ring::rand::{SecureRandom as _, SystemRandom};
use xxhash_rust::xxh3::xxh3_64;
use zeroize::Zeroizing;

use crate::storage::permissions;
use crate::storage::seal::error::SealError;
use crate::storage::seal::master::{Fingerprint, KEY_BYTES, MasterKey};

pub(crate) const KEYRING_FILE: &str = "keyring";
const UNFINISHED_FILE: &str = "keyring.new";
const MAGIC: &[u8] = b"homeport keyring\n\x01";
pub(crate) const STORE_ID_BYTES: usize = 16;
pub(crate) const WRAPPED_BYTES: usize = KEY_BYTES + 16;
const ENTRY_BYTES: usize = 8 + NONCE_LEN + WRAPPED_BYTES;
const HEAD_BYTES: usize = MAGIC.len() + STORE_ID_BYTES + 8 + 4;
const TAG_BYTES: usize = 32;
const CHECKSUM_BYTES: usize = 8;
/// The maximum of data keys of one store; each start that writes something adds one.
pub(crate) const KEYS_MAX: usize = 65_536;
/// A longer file cannot be a keyring.
const FILE_BYTES_MAX: usize = HEAD_BYTES + KEYS_MAX * ENTRY_BYTES + TAG_BYTES + CHECKSUM_BYTES;

/// The id of a store.
pub(crate) type StoreId = [u8; STORE_ID_BYTES];
/// An unwrapped data key.
pub(crate) type DataKey = Zeroizing<[u8; KEY_BYTES]>;

/// A wrapped data key, as stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wrapped {
    pub(crate) created_at_ms: i64,
    pub(crate) nonce: [u8; NONCE_LEN],
    pub(crate) key: [u8; WRAPPED_BYTES],
}

/// The data keys of one store. Ids start at 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Keyring {
    pub(crate) store: StoreId,
    pub(crate) fingerprint: Fingerprint,
    pub(crate) keys: Vec<Wrapped>,
}

impl Keyring {
    /// The keyring of a new store, without any key.
    pub(crate) fn new(master: &MasterKey) -> Result<Self, SealError> {
        Ok(Self {
            store: random()?,
            fingerprint: master.fingerprint(),
            keys: Vec::new(),
        })
    }

    /// Reads the parts of a data directory's keyring that need no key, if there is one.
    pub(crate) fn read_unverified(directory: &Path) -> Result<Option<Self>, SealError> {
        Ok(read(&directory.join(KEYRING_FILE))?.map(|(keyring, _)| keyring))
    }

    /// Reads a data directory's keyring, if there is one, and verifies it with `master`.
    pub(crate) fn open(directory: &Path, master: &MasterKey) -> Result<Option<Self>, SealError> {
        let path = directory.join(KEYRING_FILE);
        let Some((keyring, bytes)) = read(&path)? else {
            return Ok(None);
        };
        must_be(&path, keyring.fingerprint, master)?;
        let (signed, rest) = bytes.split_at(bytes.len() - TAG_BYTES - CHECKSUM_BYTES);
        hmac::verify(&master.listing(), signed, &rest[..TAG_BYTES]).map_err(|_| {
            SealError::Damaged {
                path,
                reason: "its list of keys was not authenticated by the master key",
            }
        })?;
        Ok(Some(keyring))
    }

    /// Adds a new key and returns it with its id. It may only be used after the keyring is written.
    pub(crate) fn add(
        &mut self,
        directory: &Path,
        master: &MasterKey,
        now_ms: i64,
    ) -> Result<(u32, DataKey), SealError> {
        if self.keys.len() >= KEYS_MAX {
            return Err(SealError::KeyringFull {
                path: directory.join(KEYRING_FILE),
                max: KEYS_MAX,
            });
        }
        let key = Zeroizing::new(random()?);
        let id = u32::try_from(self.keys.len() + 1).unwrap_or(u32::MAX);
        self.keys.push(wrap(master, &self.store, id, now_ms, &key)?);
        Ok((id, key))
    }

    /// Unwraps a data key. This only fails for unknown ids and for a list that was modified by someone with
    /// the master key.
    pub(crate) fn unwrap(&self, master: &MasterKey, id: u32) -> Option<DataKey> {
        let at = usize::try_from(id).ok()?.checked_sub(1)?;
        unwrap(master, &self.store, id, self.keys.get(at)?)
    }

    /// The same keys, wrapped by another master key.
    pub(crate) fn rewrapped(
        &self,
        directory: &Path,
        from: &MasterKey,
        to: &MasterKey,
    ) -> Result<Self, SealError> {
        let mut keys = Vec::with_capacity(self.keys.len());
        for (id, wrapped) in (1..).zip(&self.keys) {
            let key = unwrap(from, &self.store, id, wrapped).ok_or(SealError::Damaged {
                path: directory.join(KEYRING_FILE),
                reason: "a key in it cannot be decrypted",
            })?;
            keys.push(wrap(to, &self.store, id, wrapped.created_at_ms, &key)?);
        }
        Ok(Self {
            store: self.store,
            fingerprint: to.fingerprint(),
            keys,
        })
    }

    /// Replaces the keyring file atomically.
    pub(crate) fn write(&self, directory: &Path, master: &MasterKey) -> Result<(), SealError> {
        let path = directory.join(KEYRING_FILE);
        // IMPORTANT: durably, because nothing may be sealed with a key that a power cut could lose.
        match permissions::replace_file(&path, UNFINISHED_FILE, &self.encode(master)) {
            Ok(_) => Ok(()),
            Err(source) => Err(SealError::Io { path, source }),
        }
    }

    fn encode(&self, master: &MasterKey) -> Vec<u8> {
        let count = u32::try_from(self.keys.len()).unwrap_or(u32::MAX);
        let mut bytes = Vec::with_capacity(HEAD_BYTES + self.keys.len() * ENTRY_BYTES + 40);
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&self.store);
        bytes.extend_from_slice(&self.fingerprint.0);
        bytes.extend_from_slice(&count.to_be_bytes());
        for key in &self.keys {
            bytes.extend_from_slice(&key.created_at_ms.to_be_bytes());
            bytes.extend_from_slice(&key.nonce);
            bytes.extend_from_slice(&key.key);
        }
        let tag = hmac::sign(&master.listing(), &bytes);
        bytes.extend_from_slice(tag.as_ref());
        let checksum = xxh3_64(&bytes);
        bytes.extend_from_slice(&checksum.to_be_bytes());
        bytes
    }
}

/// Fails unless the master key has the wanted fingerprint.
pub(crate) fn must_be(
    path: &Path,
    wanted: Fingerprint,
    master: &MasterKey,
) -> Result<(), SealError> {
    let given = master.fingerprint();
    if wanted != given {
        return Err(SealError::OtherKey {
            path: path.to_owned(),
            wanted,
            given,
        });
    }
    Ok(())
}

/// Cryptographically secure random bytes.
pub(crate) fn random<const LEN: usize>() -> Result<[u8; LEN], SealError> {
    let mut bytes = [0; LEN];
    SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| SealError::NoRandomness)?;
    Ok(bytes)
}

fn wrap(
    master: &MasterKey,
    store: &StoreId,
    id: u32,
    created_at_ms: i64,
    key: &DataKey,
) -> Result<Wrapped, SealError> {
    let nonce = random()?;
    let mut wrapped = [0; WRAPPED_BYTES];
    let (plain, end) = wrapped.split_at_mut(KEY_BYTES);
    plain.copy_from_slice(&**key);
    let tag = master
        .wrapping()
        .seal_in_place_separate_tag(
            Nonce::assume_unique_for_key(nonce),
            Aad::from(named(store, id, created_at_ms)),
            plain,
        )
        .expect("32 bytes are far below the cipher's limit");
    end.copy_from_slice(tag.as_ref());
    Ok(Wrapped {
        created_at_ms,
        nonce,
        key: wrapped,
    })
}

pub(crate) fn unwrap(
    master: &MasterKey,
    store: &StoreId,
    id: u32,
    wrapped: &Wrapped,
) -> Option<DataKey> {
    let mut bytes = Zeroizing::new(wrapped.key);
    let plain = master
        .wrapping()
        .open_in_place(
            Nonce::assume_unique_for_key(wrapped.nonce),
            Aad::from(named(store, id, wrapped.created_at_ms)),
            &mut *bytes,
        )
        .ok()?;
    let mut key = Zeroizing::new([0; KEY_BYTES]);
    key.copy_from_slice(plain);
    Some(key)
}

/// The associated data of a wrapped key: it cannot be unwrapped under another id or in another store's
/// keyring.
fn named(store: &StoreId, id: u32, created_at_ms: i64) -> [u8; STORE_ID_BYTES + 12] {
    let mut named = [0; STORE_ID_BYTES + 12];
    named[..STORE_ID_BYTES].copy_from_slice(store);
    named[STORE_ID_BYTES..STORE_ID_BYTES + 4].copy_from_slice(&id.to_be_bytes());
    named[STORE_ID_BYTES + 4..].copy_from_slice(&created_at_ms.to_be_bytes());
    named
}

/// Reads a keyring and its raw bytes, if there is one.
fn read(path: &Path) -> Result<Option<(Keyring, Vec<u8>)>, SealError> {
    let io = |source| SealError::Io {
        path: path.to_owned(),
        source,
    };
    let bytes = match std::fs::metadata(path) {
        Ok(file) if file.len() > FILE_BYTES_MAX as u64 => {
            return Err(damaged(path, "it is longer than any keyring"));
        }
        Ok(_) => std::fs::read(path).map_err(io)?,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(io(error)),
    };
    parse(path, &bytes).map(|keyring| Some((keyring, bytes)))
}

fn parse(path: &Path, bytes: &[u8]) -> Result<Keyring, SealError> {
    let version = MAGIC.len() - 1;
    if bytes.len() > version && bytes[..version] == MAGIC[..version] && bytes[version] > 1 {
        return Err(SealError::NewerFormat(path.to_owned()));
    }
    let body = bytes
        .split_last_chunk::<CHECKSUM_BYTES>()
        .filter(|(body, checksum)| xxh3_64(body).to_be_bytes() == **checksum)
        .map(|(body, _)| body)
        .ok_or_else(|| damaged(path, "its checksum does not match"))?;
    let malformed = || damaged(path, "it is not a keyring");
    let mut rest = body.strip_prefix(MAGIC).ok_or_else(malformed)?;
    let store = take(&mut rest).ok_or_else(malformed)?;
    let fingerprint = Fingerprint(take(&mut rest).ok_or_else(malformed)?);
    let count = u32::from_be_bytes(take(&mut rest).ok_or_else(malformed)?) as usize;
    if count > KEYS_MAX || rest.len() != count * ENTRY_BYTES + TAG_BYTES {
        return Err(malformed());
    }
    let keys = (0..count)
        .map(|_| {
            Some(Wrapped {
                created_at_ms: i64::from_be_bytes(take(&mut rest)?),
                nonce: take(&mut rest)?,
                key: take(&mut rest)?,
            })
        })
        .collect::<Option<_>>()
        .ok_or_else(malformed)?;
    Ok(Keyring {
        store,
        fingerprint,
        keys,
    })
}

pub(crate) fn take<const LEN: usize>(bytes: &mut &[u8]) -> Option<[u8; LEN]> {
    let (taken, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*taken)
}

fn damaged(path: &Path, reason: &'static str) -> SealError {
    SealError::Damaged {
        path: PathBuf::from(path),
        reason,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn master(digit: &str) -> MasterKey {
        MasterKey::parse(&format!("{}0", digit.repeat(63))).unwrap()
    }

    fn with_keys(directory: &Path, count: usize) -> (Keyring, Vec<DataKey>) {
        let mut keyring = Keyring::new(&master("a")).unwrap();
        let keys = (0..count)
            .map(|at| {
                let (id, key) = keyring.add(directory, &master("a"), at as i64).unwrap();
                assert_eq!(id as usize, at + 1);
                key
            })
            .collect();
        keyring.write(directory, &master("a")).unwrap();
        (keyring, keys)
    }

    #[test]
    fn keys_unwrap_only_with_their_master_key() {
        let directory = tempfile::tempdir().unwrap();
        let (keyring, keys) = with_keys(directory.path(), 3);
        let read = Keyring::open(directory.path(), &master("a")).unwrap();
        assert_eq!(read, Some(keyring.clone()));
        for (id, key) in (1..).zip(&keys) {
            assert_eq!(keyring.unwrap(&master("a"), id).as_ref(), Some(key));
            assert_eq!(keyring.unwrap(&master("b"), id), None);
        }
        assert_eq!(keyring.unwrap(&master("a"), 0), None);
        assert_eq!(keyring.unwrap(&master("a"), 4), None);
        assert!(matches!(
            Keyring::open(directory.path(), &master("b")),
            Err(SealError::OtherKey { .. })
        ));
    }

    #[test]
    fn moved_key_does_not_unwrap() {
        let directory = tempfile::tempdir().unwrap();
        let (mut keyring, _) = with_keys(directory.path(), 2);
        keyring.keys.swap(0, 1);
        assert_eq!(keyring.unwrap(&master("a"), 1), None);
        assert_eq!(keyring.unwrap(&master("a"), 2), None);
    }

    #[test]
    fn every_damaged_byte_of_a_keyring_is_detected() {
        let directory = tempfile::tempdir().unwrap();
        with_keys(directory.path(), 2);
        let path = directory.path().join(KEYRING_FILE);
        let bytes = std::fs::read(&path).unwrap();
        for at in 0..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[at] ^= 0x10;
            std::fs::write(&path, &flipped).unwrap();
            let error = Keyring::open(directory.path(), &master("a")).unwrap_err();
            let detected = matches!(error, SealError::Damaged { .. } | SealError::NewerFormat(_));
            assert!(detected, "byte {at}: {error}");
            std::fs::write(&path, &bytes[..at]).unwrap();
            let error = Keyring::open(directory.path(), &master("a")).unwrap_err();
            assert!(
                matches!(error, SealError::Damaged { .. }),
                "cut at {at}: {error}"
            );
        }
    }

    #[test]
    fn list_changed_without_the_master_key_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        with_keys(directory.path(), 2);
        let path = directory.path().join(KEYRING_FILE);
        let mut bytes = std::fs::read(&path).unwrap();
        // A later time for the first key, with a matching checksum.
        bytes[HEAD_BYTES + 7] ^= 1;
        let body = bytes.len() - CHECKSUM_BYTES;
        let checksum = xxh3_64(&bytes[..body]).to_be_bytes();
        bytes[body..].copy_from_slice(&checksum);
        std::fs::write(&path, &bytes).unwrap();
        let error = Keyring::open(directory.path(), &master("a")).unwrap_err();
        assert!(error.to_string().contains("authenticated"), "{error}");
    }

    #[test]
    fn rewrapped_keys_need_the_new_master_key() {
        let directory = tempfile::tempdir().unwrap();
        let (keyring, keys) = with_keys(directory.path(), 3);
        let rewrapped = keyring
            .rewrapped(directory.path(), &master("a"), &master("b"))
            .unwrap();
        assert_eq!(rewrapped.unwrap(&master("b"), 2).as_ref(), Some(&keys[1]));
        assert_eq!(rewrapped.unwrap(&master("a"), 2), None);
    }

    #[test]
    fn full_keyring_rejects_more_keys() {
        let directory = tempfile::tempdir().unwrap();
        let (mut keyring, _) = with_keys(directory.path(), 1);
        let one = keyring.keys[0];
        keyring.keys.resize(KEYS_MAX, one);
        let error = keyring.add(directory.path(), &master("a"), 0).unwrap_err();
        assert!(matches!(error, SealError::KeyringFull { .. }), "{error}");
        keyring.write(directory.path(), &master("a")).unwrap();
        let read = Keyring::read_unverified(directory.path()).unwrap().unwrap();
        assert_eq!(read.keys.len(), KEYS_MAX);
    }
}
