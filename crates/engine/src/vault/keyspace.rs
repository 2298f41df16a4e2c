//! A keyspace: an ordered map of bytes, with what seals its values.

use std::sync::Arc;

use fjall::AbstractTree as _;

use crate::seal::sealer::Sealer;
use crate::vault::snapshot::Iter;
use crate::vault::{Error, UserValue};

#[derive(Clone)]
pub(crate) struct Keyspace {
    pub(super) inner: fjall::Keyspace,
    pub(super) sealer: Option<Arc<Sealer>>,
}

impl Keyspace {
    pub(crate) fn name(&self) -> &str {
        self.inner.name()
    }

    pub(crate) fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<UserValue>, Error> {
        let key = key.as_ref();
        match self.inner.get(key)? {
            Some(value) => self.open(key, value).map(Some),
            None => Ok(None),
        }
    }

    pub(crate) fn contains_key(&self, key: impl AsRef<[u8]>) -> Result<bool, Error> {
        Ok(self.inner.contains_key(key)?)
    }

    pub(crate) fn iter(&self) -> Iter<'_> {
        Iter::new(self, self.inner.iter())
    }

    pub(crate) fn prefix(&self, prefix: impl AsRef<[u8]>) -> Iter<'_> {
        Iter::new(self, self.inner.prefix(prefix))
    }

    /// How many entries there are, counting also what was removed and overwritten.
    pub(crate) fn approximate_len(&self) -> usize {
        self.inner.approximate_len()
    }

    pub(crate) fn disk_space(&self) -> u64 {
        self.inner.disk_space()
    }

    /// Sets aside what is in memory, to be flushed; whether there was anything.
    pub(crate) fn rotate_memtable(&self) -> Result<bool, Error> {
        Ok(self.inner.rotate_memtable()?)
    }

    /// Whether something that was set aside is not flushed yet.
    pub(crate) fn has_unflushed(&self) -> bool {
        self.inner.tree.sealed_memtable_count() > 0
    }

    pub(crate) fn major_compact(&self) -> Result<(), Error> {
        Ok(self.inner.major_compact()?)
    }

    /// What the value at `key` was before it was sealed.
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
