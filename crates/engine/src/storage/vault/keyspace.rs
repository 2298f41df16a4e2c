//! A keyspace: an ordered map of bytes, whose values may be sealed.
//!
//! A keyspace outlives a reopening of the store. Its [`HandleSlot`] contains the key-value store's own handle; it
//! is empty while the store is closed, and gets a new handle afterwards.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use fjall::AbstractTree as _;

use crate::storage::seal::sealer::Sealer;
use crate::storage::vault::snapshot::Iter;
use crate::storage::vault::{Error, UserValue};

#[derive(Clone)]
pub(crate) struct Keyspace {
    pub(super) slot: Arc<HandleSlot>,
    pub(super) sealer: Option<Arc<Sealer>>,
}

/// Holds the current handle of a keyspace.
pub(super) struct HandleSlot {
    name: String,
    handle: RwLock<Option<Handle>>,
    pub(super) reads: Arc<SnapshotReads>,
}

/// The key-value store's own handle, and the generation of the store that it belongs to.
#[derive(Clone)]
pub(super) struct Handle {
    pub(super) generation: u64,
    pub(super) inner: fjall::Keyspace,
}

/// Records how many entries are read from single snapshots.
#[derive(Debug, Default)]
pub(super) struct SnapshotReads {
    entries_max: AtomicU64,
}

impl SnapshotReads {
    pub(super) fn note(&self, entries: u64) {
        self.entries_max.fetch_max(entries, Ordering::Relaxed);
    }

    pub(super) fn entries_max(&self) -> u64 {
        self.entries_max.load(Ordering::Relaxed)
    }
}

impl HandleSlot {
    pub(super) fn new(name: &str, handle: Handle, reads: Arc<SnapshotReads>) -> Self {
        Self {
            name: name.to_owned(),
            handle: RwLock::new(Some(handle)),
            reads,
        }
    }

    fn read(&self) -> RwLockReadGuard<'_, Option<Handle>> {
        self.handle.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The current handle, which prevents reopening the store while it is held.
    pub(super) fn handle(&self) -> Result<Handle, Error> {
        self.read().clone().ok_or(Error::Closed)
    }

    /// Replaces the handle. Waits for reads that use the old one.
    pub(super) fn replace(&self, handle: Option<Handle>) {
        let mut state = self.handle.write().unwrap_or_else(PoisonError::into_inner);
        *state = handle;
    }
}

impl Keyspace {
    pub(crate) fn name(&self) -> &str {
        &self.slot.name
    }

    /// The folder of the keyspace's files.
    pub(crate) fn path(&self) -> Result<PathBuf, Error> {
        Ok(self.slot.handle()?.inner.path().to_owned())
    }

    pub(crate) fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<UserValue>, Error> {
        let key = key.as_ref();
        let found = match &*self.slot.read() {
            Some(handle) => handle.inner.get(key)?,
            None => return Err(Error::Closed),
        };
        found.map(|value| self.open(key, value)).transpose()
    }

    pub(crate) fn contains_key(&self, key: impl AsRef<[u8]>) -> Result<bool, Error> {
        match &*self.slot.read() {
            Some(handle) => Ok(handle.inner.contains_key(key)?),
            None => Err(Error::Closed),
        }
    }

    pub(crate) fn iter(&self) -> Iter<'_> {
        let walk = self
            .slot
            .handle()
            .map(|handle| (handle.inner.iter(), handle));
        Iter::new(self, walk, Arc::default())
    }

    pub(crate) fn prefix(&self, prefix: impl AsRef<[u8]>) -> Iter<'_> {
        let walk = self.slot.handle();
        let walk = walk.map(|handle| (handle.inner.prefix(prefix), handle));
        Iter::new(self, walk, Arc::default())
    }

    /// The number of entries, including deleted and overwritten ones; 0 while the store is closed.
    pub(crate) fn approximate_len(&self) -> usize {
        let handle = self.slot.handle();
        handle.map_or(0, |handle| handle.inner.approximate_len())
    }

    pub(crate) fn disk_space(&self) -> u64 {
        let handle = self.slot.handle();
        handle.map_or(0, |handle| handle.inner.disk_space())
    }

    /// Seals the active memtable for flushing; returns whether it had entries.
    pub(crate) fn rotate_memtable(&self) -> Result<bool, Error> {
        Ok(self.slot.handle()?.inner.rotate_memtable()?)
    }

    /// Whether a sealed memtable is not flushed yet.
    pub(crate) fn has_unflushed(&self) -> bool {
        let handle = self.slot.handle();
        handle.is_ok_and(|handle| handle.inner.tree.sealed_memtable_count() > 0)
    }

    pub(crate) fn major_compact(&self) -> Result<(), Error> {
        Ok(self.slot.handle()?.inner.major_compact()?)
    }

    /// Decrypts the value at `key`.
    #[inline]
    pub(super) fn open(&self, key: &[u8], value: UserValue) -> Result<UserValue, Error> {
        match &self.sealer {
            None => Ok(value),
            Some(_) if value.is_empty() => Ok(value),
            Some(sealer) => sealer
                .open(self.name(), key, &value)
                .ok_or_else(|| Error::Unopened {
                    keyspace: self.name().to_owned(),
                    key: key.into(),
                }),
        }
    }
}

impl std::fmt::Debug for Keyspace {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Keyspace")
            .field("name", &self.name())
            .finish_non_exhaustive()
    }
}
