//! Writing: entries of any keyspaces that are written together or not at all. There is no other way
//! to write.

use std::sync::Arc;

use crate::seal::sealer::Sealer;
use crate::vault::{Error, Keyspace, PersistMode, UserKey, UserValue};

pub(crate) struct Batch {
    inner: fjall::OwnedWriteBatch,
    sealer: Option<Arc<Sealer>>,
    /// What is to be sealed when all of it is written, in its order: by the thread that writes, beside
    /// the one that decides.
    unsealed: Vec<(Keyspace, UserKey, Option<UserValue>)>,
}

impl Batch {
    pub(super) fn new(inner: fjall::OwnedWriteBatch, sealer: Option<Arc<Sealer>>) -> Self {
        Self {
            inner,
            sealer,
            unsealed: Vec::new(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.inner.is_empty() && self.unsealed.is_empty()
    }

    pub(crate) fn insert(
        &mut self,
        keyspace: &Keyspace,
        key: impl Into<UserKey>,
        value: impl Into<UserValue>,
    ) {
        match &self.sealer {
            None => self.inner.insert(&keyspace.inner, key, value),
            Some(_) => {
                let entry = (keyspace.clone(), key.into(), Some(value.into()));
                self.unsealed.push(entry);
            }
        }
    }

    pub(crate) fn remove(&mut self, keyspace: &Keyspace, key: impl Into<UserKey>) {
        match &self.sealer {
            None => self.inner.remove(&keyspace.inner, key),
            Some(_) => self.unsealed.push((keyspace.clone(), key.into(), None)),
        }
    }

    /// Writes everything, as durably as asked, and then shows it.
    pub(crate) fn commit(mut self, mode: PersistMode) -> Result<(), Error> {
        self.seal()?;
        Ok(self.inner.durability(Some(mode)).commit()?)
    }

    fn seal(&mut self) -> Result<(), Error> {
        let Some(sealer) = &self.sealer else {
            return Ok(());
        };
        let mut sealing = sealer.begin();
        for (keyspace, key, value) in self.unsealed.drain(..) {
            match value {
                None => self.inner.remove(&keyspace.inner, key),
                Some(value) if keyspace.sealer.is_none() || value.is_empty() => {
                    self.inner.insert(&keyspace.inner, key, value);
                }
                Some(value) => {
                    let sealed = sealing.seal(keyspace.name(), &key, &value)?;
                    self.inner.insert(&keyspace.inner, key, sealed);
                }
            }
        }
        Ok(())
    }
}
