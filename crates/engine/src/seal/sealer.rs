//! Sealing and opening values: AES-256-GCM under the data keys of a keyring.
//!
//! ```text
//! sealed := 01 key-id(4) count(4) ciphertext tag(16)
//! ```
//! The count is the number of values that the key had sealed before, and all there is of the nonce. A
//! data key is random, made by the process that uses it and written to the keyring before its first
//! use, and no other process ever seals under it: copies of a directory make keys of their own. So a
//! plain count never repeats under one key. What is sealed is bound to its keyspace and its key: it
//! does not open in another place.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use homeport_store::Clock;
use ring::aead::{Aad, LessSafeKey, NONCE_LEN, Nonce};

use crate::seal::error::SealError;
use crate::seal::file::{FileHead, SALT_BYTES};
use crate::seal::keyring::{self, DataKey, Keyring, StoreId, Wrapped};
use crate::seal::master::{MasterKey, derive};
use crate::vault::UserValue;

const FORMAT: u8 = 1;
const LABEL: &[u8] = b"homeport data key 1: values";
const HEAD_BYTES: usize = 1 + 4 + 4;
const TAG_BYTES: usize = 16;
/// Values that are sealed under one key; with values of 400 KB, less than AES-GCM bears.
const VALUES_PER_KEY_MAX: u64 = 1 << 32;
/// Keys that one process makes.
const KEYS_PER_LIFE_MAX: usize = 1024;

/// What seals and opens the values of one store.
pub(crate) struct Sealer {
    directory: PathBuf,
    master: MasterKey,
    clock: Arc<dyn Clock>,
    store: StoreId,
    /// The keys that there were when the store was opened.
    loaded: Box<[Wrapped]>,
    /// Keys that have been used, each at the place of its id.
    opened: Box<[OnceLock<Box<LessSafeKey>>]>,
    writing: Mutex<Writing>,
    values_per_key: u64,
}

struct Writing {
    keyring: Keyring,
    current: Option<Current>,
}

/// The key that new values are sealed under.
struct Current {
    id: u32,
    key: DataKey,
    sealed: u64,
}

impl Sealer {
    pub(crate) fn new(
        directory: &Path,
        keyring: Keyring,
        master: MasterKey,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let loaded: Box<[Wrapped]> = keyring.keys.as_slice().into();
        let slots = loaded.len() + KEYS_PER_LIFE_MAX;
        Self {
            directory: directory.to_owned(),
            master,
            clock,
            store: keyring.store,
            loaded,
            opened: std::iter::repeat_with(OnceLock::new).take(slots).collect(),
            writing: Mutex::new(Writing {
                keyring,
                current: None,
            }),
            values_per_key: VALUES_PER_KEY_MAX,
        }
    }

    /// Begins to seal values; one at a time does.
    pub(crate) fn begin(&self) -> Sealing<'_> {
        Sealing {
            sealer: self,
            writing: self.lock(),
            scratch: Vec::new(),
            bound_to: Vec::new(),
        }
    }

    /// What a sealed value of `keyspace` at `key` was, if it is one that was sealed for this place.
    pub(crate) fn open(&self, keyspace: &str, key: &[u8], sealed: &[u8]) -> Option<UserValue> {
        thread_local! {
            static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
        }
        let mut rest = sealed;
        if keyring::take::<1>(&mut rest)? != [FORMAT] {
            return None;
        }
        let id = u32::from_be_bytes(keyring::take(&mut rest)?);
        let count = u32::from_be_bytes(keyring::take(&mut rest)?);
        let cipher = self.cipher(id)?;
        SCRATCH.with_borrow_mut(|scratch| {
            scratch.clear();
            bind(keyspace, key, scratch);
            let bound = scratch.len();
            scratch.extend_from_slice(rest);
            let (bound_to, body) = scratch.split_at_mut(bound);
            let plain = cipher
                .open_in_place(nonce(count), Aad::from(&*bound_to), body)
                .ok()?;
            Some(UserValue::from(&*plain))
        })
    }

    /// The head of a new sealed file, and what seals it.
    pub(crate) fn begin_file(&self) -> Result<(FileHead, LessSafeKey), SealError> {
        let mut writing = self.lock();
        self.ensure_key(&mut writing)?;
        let current = writing.current.as_ref().ok_or(SealError::NoRandomness)?;
        let at = current.id as usize - 1;
        let salt: [u8; SALT_BYTES] = keyring::random()?;
        let head = FileHead {
            store: self.store,
            fingerprint: writing.keyring.fingerprint,
            id: current.id,
            wrapped: writing.keyring.keys[at],
            salt,
        };
        let cipher = head.cipher(&current.key);
        Ok((head, cipher))
    }

    /// What opens a sealed file: by this store's keyring, whatever its master key was when the file
    /// was written, or by the key that the file itself carries.
    pub(crate) fn file_cipher(
        &self,
        path: &Path,
        head: &FileHead,
    ) -> Result<LessSafeKey, SealError> {
        if head.store == self.store
            && let Some(key) = self.lock().keyring.unwrap(&self.master, head.id)
        {
            return Ok(head.cipher(&key));
        }
        head.open(path, &self.master)
    }

    fn cipher(&self, id: u32) -> Option<&LessSafeKey> {
        let at = usize::try_from(id).ok()?.checked_sub(1)?;
        let slot = self.opened.get(at)?;
        if let Some(cipher) = slot.get() {
            return Some(cipher);
        }
        let key = keyring::unwrap(&self.master, &self.store, id, self.loaded.get(at)?)?;
        Some(slot.get_or_init(|| Box::new(value_cipher(&key))))
    }

    /// Makes a key if there is none to seal under, and has it on disk before it is used.
    fn ensure_key(&self, writing: &mut Writing) -> Result<(), SealError> {
        let is_spent = |current: &Current| current.sealed >= self.values_per_key;
        if writing.current.as_ref().is_some_and(|key| !is_spent(key)) {
            return Ok(());
        }
        let mut keyring = writing.keyring.clone();
        let now_ms = self.clock.now_ms();
        let (id, key) = keyring.add(&self.directory, &self.master, now_ms)?;
        let full = || SealError::KeyringFull {
            path: self.directory.join(keyring::KEYRING_FILE),
            max: self.opened.len(),
        };
        let slot = self.opened.get(id as usize - 1).ok_or_else(full)?;
        keyring.write(&self.directory, &self.master)?;
        slot.get_or_init(|| Box::new(value_cipher(&key)));
        writing.keyring = keyring;
        writing.current = Some(Current { id, key, sealed: 0 });
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Writing> {
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Values being sealed.
pub(crate) struct Sealing<'a> {
    sealer: &'a Sealer,
    writing: MutexGuard<'a, Writing>,
    scratch: Vec<u8>,
    bound_to: Vec<u8>,
}

impl Sealing<'_> {
    /// Seals a value for one place.
    pub(crate) fn seal(
        &mut self,
        keyspace: &str,
        key: &[u8],
        value: &[u8],
    ) -> Result<UserValue, SealError> {
        self.sealer.ensure_key(&mut self.writing)?;
        let current = self
            .writing
            .current
            .as_mut()
            .ok_or(SealError::NoRandomness)?;
        // The limit on values of one key keeps the count within four bytes.
        let count = u32::try_from(current.sealed).unwrap_or(u32::MAX);
        // IMPORTANT: counted before it is used, whatever happens then.
        current.sealed += 1;
        let cipher = self
            .sealer
            .cipher(current.id)
            .ok_or(SealError::NoRandomness)?;
        self.scratch.clear();
        self.scratch.push(FORMAT);
        self.scratch.extend_from_slice(&current.id.to_be_bytes());
        self.scratch.extend_from_slice(&count.to_be_bytes());
        self.scratch.extend_from_slice(value);
        self.bound_to.clear();
        bind(keyspace, key, &mut self.bound_to);
        let tag = cipher
            .seal_in_place_separate_tag(
                nonce(count),
                Aad::from(&*self.bound_to),
                &mut self.scratch[HEAD_BYTES..],
            )
            .expect("a value is far below the cipher's limit");
        self.scratch.extend_from_slice(tag.as_ref());
        debug_assert_eq!(self.scratch.len(), HEAD_BYTES + value.len() + TAG_BYTES);
        Ok(UserValue::from(&*self.scratch))
    }
}

/// What seals values under a data key.
fn value_cipher(key: &DataKey) -> LessSafeKey {
    derive(key, &[], LABEL)
}

/// What a value is bound to. No name of a keyspace has a zero byte in it.
fn bind(keyspace: &str, key: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(keyspace.as_bytes());
    out.push(0);
    out.extend_from_slice(key);
}

fn nonce(count: u32) -> Nonce {
    let mut bytes = [0; NONCE_LEN];
    bytes[NONCE_LEN - 4..].copy_from_slice(&count.to_be_bytes());
    Nonce::assume_unique_for_key(bytes)
}

#[cfg(test)]
mod tests {
    use homeport_store::SystemClock;

    use super::*;

    fn master() -> MasterKey {
        MasterKey::parse(&format!("{}0", "c".repeat(63))).unwrap()
    }

    fn sealer(directory: &Path) -> Sealer {
        let keyring = match Keyring::open(directory, &master()).unwrap() {
            Some(keyring) => keyring,
            None => Keyring::new(&master()).unwrap(),
        };
        Sealer::new(directory, keyring, master(), Arc::new(SystemClock))
    }

    fn head(sealed: &[u8]) -> [u8; HEAD_BYTES] {
        sealed[..HEAD_BYTES].try_into().unwrap()
    }

    #[test]
    fn a_value_opens_in_its_place_and_in_no_other() {
        let directory = tempfile::tempdir().unwrap();
        let sealer = sealer(directory.path());
        let sealed = sealer.begin().seal("t1", b"key", b"value").unwrap();
        assert_eq!(sealed.len(), 5 + HEAD_BYTES + TAG_BYTES);
        assert_eq!(
            sealer.open("t1", b"key", &sealed).as_deref(),
            Some(&b"value"[..])
        );
        for (keyspace, key) in [
            ("t1", &b"kez"[..]),
            ("t2", b"key"),
            ("t", b"1\0key"),
            ("t1", b""),
        ] {
            assert_eq!(sealer.open(keyspace, key, &sealed), None);
        }
    }

    #[test]
    fn no_changed_or_plain_value_opens() {
        let directory = tempfile::tempdir().unwrap();
        let sealer = sealer(directory.path());
        let sealed = sealer.begin().seal("t1", b"key", b"value").unwrap();
        for at in 0..sealed.len() {
            let mut flipped = sealed.to_vec();
            flipped[at] ^= 1;
            assert_eq!(sealer.open("t1", b"key", &flipped), None, "byte {at}");
            assert_eq!(
                sealer.open("t1", b"key", &sealed[..at]),
                None,
                "cut at {at}"
            );
        }
        assert_eq!(
            sealer.open("t1", b"key", b"\x07\x01 a plain record of an item"),
            None
        );
    }

    #[test]
    fn no_two_values_share_a_key_and_a_count_whoever_seals_them() {
        let directory = tempfile::tempdir().unwrap();
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..3 {
            let mut sealer = sealer(directory.path());
            sealer.values_per_key = 4;
            for _ in 0..5 {
                let mut sealing = sealer.begin();
                for _ in 0..2 {
                    let sealed = sealing.seal("t1", b"key", b"value").unwrap();
                    assert!(seen.insert(head(&sealed)), "a nonce has come again");
                }
            }
        }
        assert_eq!(seen.len(), 30);
        // Ten values of each life, four to a key.
        let keyring = Keyring::look(directory.path()).unwrap().unwrap();
        assert_eq!(keyring.keys.len(), 9);
    }

    #[test]
    fn a_copied_directory_makes_a_key_of_its_own() {
        let directory = tempfile::tempdir().unwrap();
        let copy = tempfile::tempdir().unwrap();
        let first = sealer(directory.path());
        first.begin().seal("t1", b"key", b"before").unwrap();
        let file = keyring::KEYRING_FILE;
        std::fs::copy(directory.path().join(file), copy.path().join(file)).unwrap();
        let (one, other) = (sealer(directory.path()), sealer(copy.path()));
        let sealed = one.begin().seal("t1", b"key", b"value").unwrap();
        let copied = other.begin().seal("t1", b"key", b"value").unwrap();
        // The same id and count, and yet not the same key: nothing of one opens with the other.
        assert_eq!(head(&sealed), head(&copied));
        assert_ne!(sealed[HEAD_BYTES..], copied[HEAD_BYTES..]);
        assert_eq!(other.open("t1", b"key", &sealed), None);
    }

    #[test]
    fn who_seals_nothing_makes_no_key() {
        let directory = tempfile::tempdir().unwrap();
        let first = sealer(directory.path());
        let sealed = first.begin().seal("t1", b"key", b"value").unwrap();
        for _ in 0..3 {
            let reader = sealer(directory.path());
            drop(reader.begin());
            assert!(reader.open("t1", b"key", &sealed).is_some());
        }
        let keyring = Keyring::look(directory.path()).unwrap().unwrap();
        assert_eq!(keyring.keys.len(), 1);
    }

    #[test]
    fn a_key_is_in_the_keyring_before_anything_is_sealed_under_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("gone");
        std::fs::create_dir(&path).unwrap();
        let sealer = sealer(&path);
        std::fs::remove_dir(&path).unwrap();
        let error = sealer.begin().seal("t1", b"key", b"value").unwrap_err();
        assert!(matches!(error, SealError::Io { .. }), "{error}");
    }
}
