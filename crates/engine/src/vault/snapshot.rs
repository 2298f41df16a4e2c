//! Reading: the store as it was at one moment, and walks over parts of it.

use std::ops::RangeBounds;

use fjall::Readable as _;

use crate::vault::{Error, Keyspace, UserKey, UserValue};

/// Everything as it was at one moment.
pub(crate) struct Snapshot(pub(super) fjall::Snapshot);

impl Snapshot {
    pub(crate) fn get(
        &self,
        keyspace: &Keyspace,
        key: impl AsRef<[u8]>,
    ) -> Result<Option<UserValue>, Error> {
        let key = key.as_ref();
        match self.0.get(&keyspace.inner, key)? {
            Some(value) => keyspace.open(key, value).map(Some),
            None => Ok(None),
        }
    }

    pub(crate) fn contains_key(
        &self,
        keyspace: &Keyspace,
        key: impl AsRef<[u8]>,
    ) -> Result<bool, Error> {
        Ok(self.0.contains_key(&keyspace.inner, key)?)
    }

    pub(crate) fn iter<'k>(&self, keyspace: &'k Keyspace) -> Iter<'k> {
        Iter::new(keyspace, self.0.iter(&keyspace.inner))
    }

    pub(crate) fn range<'k, K: AsRef<[u8]>>(
        &self,
        keyspace: &'k Keyspace,
        range: impl RangeBounds<K>,
    ) -> Iter<'k> {
        Iter::new(keyspace, self.0.range(&keyspace.inner, range))
    }
}

/// A walk over entries of a keyspace, from either end.
pub(crate) struct Iter<'k> {
    keyspace: &'k Keyspace,
    inner: fjall::Iter,
}

impl<'k> Iter<'k> {
    pub(super) fn new(keyspace: &'k Keyspace, inner: fjall::Iter) -> Self {
        Self { keyspace, inner }
    }

    fn guard(&self, inner: fjall::Guard) -> Guard<'k> {
        Guard {
            keyspace: self.keyspace,
            inner,
        }
    }
}

impl<'k> Iterator for Iter<'k> {
    type Item = Guard<'k>;

    fn next(&mut self) -> Option<Self::Item> {
        self.inner.next().map(|inner| self.guard(inner))
    }
}

impl DoubleEndedIterator for Iter<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.inner.next_back().map(|inner| self.guard(inner))
    }
}

/// An entry that a walk has come to. Its value is opened only when it is asked for.
pub(crate) struct Guard<'k> {
    keyspace: &'k Keyspace,
    inner: fjall::Guard,
}

impl Guard<'_> {
    pub(crate) fn key(self) -> Result<UserKey, Error> {
        Ok(self.inner.key()?)
    }

    pub(crate) fn value(self) -> Result<UserValue, Error> {
        self.into_inner().map(|(_, value)| value)
    }

    pub(crate) fn into_inner(self) -> Result<(UserKey, UserValue), Error> {
        let (key, value) = self.inner.into_inner()?;
        let value = self.keyspace.open(&key, value)?;
        Ok((key, value))
    }
}
