//! Atomic writes to any keyspaces. This is the only way to write.

use std::sync::Arc;

use crate::storage::seal::sealer::Sealer;
use crate::storage::vault::{Error, Keyspace, PersistMode, UserKey, UserValue};

pub(crate) struct Batch {
    /// With the generation of the store that it belongs to. `None` once a keyspace belongs to another
    /// generation or is closed; then the batch cannot be written.
    inner: Option<(u64, fjall::OwnedWriteBatch)>,
    sealer: Option<Arc<Sealer>>,
    /// Entries to seal in order during the commit, on the thread that writes instead of the one that decides.
    unsealed: Vec<(Keyspace, UserKey, Option<UserValue>)>,
}

impl Batch {
    pub(super) fn new(
        inner: Option<(u64, fjall::OwnedWriteBatch)>,
        sealer: Option<Arc<Sealer>>,
    ) -> Self {
        Self {
            inner,
            sealer,
            unsealed: Vec::new(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        let is_written = |(_, inner): &(u64, fjall::OwnedWriteBatch)| inner.is_empty();
        self.inner.as_ref().is_some_and(is_written) && self.unsealed.is_empty()
    }

    pub(crate) fn insert(
        &mut self,
        keyspace: &Keyspace,
        key: impl Into<UserKey>,
        value: impl Into<UserValue>,
    ) {
        match &self.sealer {
            None => self.put(keyspace, key.into(), Some(value.into())),
            Some(_) => {
                let entry = (keyspace.clone(), key.into(), Some(value.into()));
                self.unsealed.push(entry);
            }
        }
    }

    pub(crate) fn remove(&mut self, keyspace: &Keyspace, key: impl Into<UserKey>) {
        match &self.sealer {
            None => self.put(keyspace, key.into(), None),
            Some(_) => self.unsealed.push((keyspace.clone(), key.into(), None)),
        }
    }

    /// Writes everything with the given durability, and then makes it visible.
    pub(crate) fn commit(mut self, mode: PersistMode) -> Result<(), Error> {
        self.seal()?;
        let (_, inner) = self.inner.ok_or(Error::Closed)?;
        Ok(inner.durability(Some(mode)).commit()?)
    }

    fn put(&mut self, keyspace: &Keyspace, key: UserKey, value: Option<UserValue>) {
        let handle = keyspace.slot.handle();
        match (&mut self.inner, handle) {
            (Some((generation, inner)), Ok(handle)) if *generation == handle.generation => {
                match value {
                    Some(value) => inner.insert(&handle.inner, key, value),
                    None => inner.remove(&handle.inner, key),
                }
            }
            _ => self.inner = None,
        }
    }

    fn seal(&mut self) -> Result<(), Error> {
        let Some(sealer) = self.sealer.clone() else {
            return Ok(());
        };
        let mut sealing = sealer.begin();
        for (keyspace, key, value) in std::mem::take(&mut self.unsealed) {
            let value = match value {
                Some(value) if keyspace.sealer.is_some() && !value.is_empty() => {
                    Some(sealing.seal(keyspace.name(), &key, &value)?)
                }
                value => value,
            };
            self.put(&keyspace, key, value);
        }
        Ok(())
    }
}
