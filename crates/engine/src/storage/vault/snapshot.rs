//! Snapshots: consistent reads and iterators.
//!
//! IMPORTANT: while a snapshot is open, the key-value store keeps every memtable in memory that was flushed
//! since, of all keyspaces. Long reads use many short snapshots (`copying`).

use std::ops::RangeBounds;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fjall::Readable as _;

use crate::storage::vault::keyspace::Handle;
use crate::storage::vault::{Error, Keyspace, UserKey, UserValue};

/// The whole store at one moment.
pub(crate) struct Snapshot {
    /// With the generation of the store that it belongs to; `None` while the store is closed.
    pub(super) inner: Option<(u64, fjall::Snapshot)>,
    /// The number of entries read from it.
    entries: Arc<AtomicU64>,
}

impl Snapshot {
    pub(super) fn new(inner: Option<(u64, fjall::Snapshot)>) -> Self {
        Self {
            inner,
            entries: Arc::default(),
        }
    }

    pub(crate) fn get(
        &self,
        keyspace: &Keyspace,
        key: impl AsRef<[u8]>,
    ) -> Result<Option<UserValue>, Error> {
        let key = key.as_ref();
        let (snapshot, handle) = self.of(keyspace)?;
        match snapshot.get(&handle.inner, key)? {
            Some(value) => keyspace.open(key, value).map(Some),
            None => Ok(None),
        }
    }

    pub(crate) fn contains_key(
        &self,
        keyspace: &Keyspace,
        key: impl AsRef<[u8]>,
    ) -> Result<bool, Error> {
        let (snapshot, handle) = self.of(keyspace)?;
        Ok(snapshot.contains_key(&handle.inner, key)?)
    }

    pub(crate) fn iter<'k>(&self, keyspace: &'k Keyspace) -> Iter<'k> {
        let walk = self.of(keyspace);
        let walk = walk.map(|(snapshot, handle)| (snapshot.iter(&handle.inner), handle));
        Iter::new(keyspace, walk, Arc::clone(&self.entries))
    }

    pub(crate) fn range<'k, K: AsRef<[u8]>>(
        &self,
        keyspace: &'k Keyspace,
        range: impl RangeBounds<K>,
    ) -> Iter<'k> {
        let walk = self.of(keyspace);
        let walk = walk.map(|(snapshot, handle)| (snapshot.range(&handle.inner, range), handle));
        Iter::new(keyspace, walk, Arc::clone(&self.entries))
    }

    /// The keyspace in this snapshot. A snapshot of an earlier generation cannot be read any more, because
    /// its data is no longer kept.
    fn of(&self, keyspace: &Keyspace) -> Result<(&fjall::Snapshot, Handle), Error> {
        let handle = keyspace.slot.handle()?;
        match &self.inner {
            Some((generation, snapshot)) if *generation == handle.generation => {
                Ok((snapshot, handle))
            }
            _ => Err(Error::Closed),
        }
    }
}

/// An iterator over entries of a keyspace, from either end.
pub(crate) struct Iter<'k> {
    keyspace: &'k Keyspace,
    walk: Walk,
    entries: u64,
    /// The number of entries read from the same snapshot.
    snapshot_entries: Arc<AtomicU64>,
}

enum Walk {
    /// The handle prevents reopening the store during the iteration.
    Open { inner: fjall::Iter, _handle: Handle },
    /// Returns the error once and then ends.
    Failed(Option<Error>),
}

impl<'k> Iter<'k> {
    pub(super) fn new(
        keyspace: &'k Keyspace,
        walk: Result<(fjall::Iter, Handle), Error>,
        snapshot_entries: Arc<AtomicU64>,
    ) -> Self {
        let walk = match walk {
            Ok((inner, _handle)) => Walk::Open { inner, _handle },
            Err(error) => Walk::Failed(Some(error)),
        };
        Self {
            keyspace,
            walk,
            entries: 0,
            snapshot_entries,
        }
    }

    fn step(
        &mut self,
        step: impl FnOnce(&mut fjall::Iter) -> Option<fjall::Guard>,
    ) -> Option<Guard<'k>> {
        let inner = match &mut self.walk {
            Walk::Open { inner, .. } => Ok(step(inner)?),
            Walk::Failed(error) => Err(error.take()?),
        };
        self.entries += 1;
        Some(Guard {
            keyspace: self.keyspace,
            inner,
        })
    }
}

impl Drop for Iter<'_> {
    fn drop(&mut self) {
        let before = self
            .snapshot_entries
            .fetch_add(self.entries, Ordering::Relaxed);
        self.keyspace.slot.reads.note(before + self.entries);
    }
}

impl<'k> Iterator for Iter<'k> {
    type Item = Guard<'k>;

    fn next(&mut self) -> Option<Self::Item> {
        self.step(Iterator::next)
    }
}

impl DoubleEndedIterator for Iter<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.step(DoubleEndedIterator::next_back)
    }
}

/// An entry of an iterator. Its value is only decrypted on request.
pub(crate) struct Guard<'k> {
    keyspace: &'k Keyspace,
    inner: Result<fjall::Guard, Error>,
}

impl Guard<'_> {
    pub(crate) fn key(self) -> Result<UserKey, Error> {
        Ok(self.inner?.key()?)
    }

    pub(crate) fn value(self) -> Result<UserValue, Error> {
        self.into_inner().map(|(_, value)| value)
    }

    pub(crate) fn into_inner(self) -> Result<(UserKey, UserValue), Error> {
        let (key, value) = self.inner?.into_inner()?;
        let value = self.keyspace.open(&key, value)?;
        Ok((key, value))
    }
}
