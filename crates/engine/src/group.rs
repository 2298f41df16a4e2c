//! A group of commits being put together: the writes so far and the state that they make.
//!
//! Everything that changes an item passes through [`Group::apply`], whatever asked for it: a
//! request, the expiry of an item, a restored backup.

use std::sync::Arc;

use homeport_item::binary::DecodeError;
use homeport_store::StoreError;
use rustc_hash::{FxBuildHasher, FxHashMap};

use crate::changes::NewChange;
use crate::error::unavailable;
use crate::expiry::Pages;
use crate::keyspaces::Keyspaces;
use crate::layout::{self, TableId};
use crate::newest::Newest;
use crate::record::Record;
use crate::table::{Index, Table};
use crate::vault::{self, Batch, Database, Keyspace, UserKey, UserValue};
use crate::writer::Decided;

/// What happens to one stored item.
pub(crate) struct Mutation<'a> {
    pub(crate) table: &'a Table,
    pub(crate) key: UserKey,
    /// The stored value before, expired or not.
    pub(crate) old: Option<UserValue>,
    /// Whether `old` had already expired: to everyone else it was gone.
    pub(crate) old_expired: bool,
    pub(crate) new: Option<UserValue>,
}

/// What a group writes and the store does not show yet.
#[derive(Default)]
pub(crate) struct Pending {
    items: FxHashMap<(TableId, UserKey), Option<UserValue>>,
    tokens: FxHashMap<UserKey, UserValue>,
}

pub(crate) struct Group<'a> {
    keyspaces: &'a Keyspaces,
    batch: Batch,
    pages: Pages,
    pending: Pending,
    /// What the group before this one writes, where that is still under way.
    before: Option<Arc<Pending>>,
    newest: Newest,
    next_change: u64,
    now_ms: i64,
    bytes: usize,
}

impl<'a> Group<'a> {
    pub(crate) fn new(
        database: &Database,
        keyspaces: &'a Keyspaces,
        before: Option<Arc<Pending>>,
        newest: Newest,
        next_change: u64,
        now_ms: i64,
    ) -> Self {
        // Under load, groups that follow each other are about as large.
        let items = before.as_ref().map_or(0, |before| before.items.len());
        Self {
            keyspaces,
            batch: database.batch(),
            pages: Pages::default(),
            pending: Pending {
                items: FxHashMap::with_capacity_and_hasher(items, FxBuildHasher),
                tokens: FxHashMap::default(),
            },
            before,
            newest,
            next_change,
            now_ms,
            bytes: 0,
        }
    }

    pub(crate) fn now_ms(&self) -> i64 {
        self.now_ms
    }

    pub(crate) fn now_secs(&self) -> i64 {
        self.now_ms.div_euclid(1000)
    }

    /// The stored value of an item, with what this group and the one before it write.
    pub(crate) fn load(
        &mut self,
        table: &Table,
        key: &UserKey,
    ) -> Result<Option<UserValue>, StoreError> {
        if self.newest.is_behind_all(table, key) {
            return Ok(None);
        }
        let name = (table.id(), key.clone());
        for pending in self.pending() {
            if let Some(value) = pending.items.get(&name) {
                return Ok(value.clone());
            }
        }
        let stored = table.items.get(key).map_err(unavailable)?;
        if stored.is_none()
            && let Some(partition) = self.newest.missed(table, key)
        {
            let greatest = self.greatest(table, partition)?;
            self.newest.learn(table.id(), partition, greatest);
        }
        Ok(stored)
    }

    /// The greatest key of a partition, with what this group and the one before it write; of an empty one,
    /// what all its keys begin with.
    fn greatest(&self, table: &Table, partition: &[u8]) -> Result<UserKey, StoreError> {
        let mut greatest = match table.items.prefix(partition).next_back() {
            Some(last) => last.key().map_err(unavailable)?,
            None => UserKey::from(partition),
        };
        for pending in self.pending() {
            for (id, key) in pending.items.keys() {
                if *id == table.id() && key.starts_with(partition) && *key > greatest {
                    greatest = key.clone();
                }
            }
        }
        Ok(greatest)
    }

    /// Writes a change of an item together with its index entries, its expiry and its change
    /// record. The only place where items change.
    pub(crate) fn apply(&mut self, mutation: Mutation<'_>) -> Result<(), StoreError> {
        let Mutation {
            table,
            key,
            old,
            old_expired,
            new,
        } = mutation;
        if old == new && !old_expired {
            return Ok(());
        }
        let written = Changed {
            table,
            key: &key,
            old: view(table, &key, old.as_ref())?,
            new: view(table, &key, new.as_ref())?,
        };
        for index in &table.indexes {
            self.apply_index(index, &written, old.as_ref(), new.as_ref())
                .map_err(unavailable)?;
        }
        // The sweeper, who alone removes what has expired, removes also what led it there.
        let is_swept = old_expired && new.is_none();
        if !is_swept {
            self.apply_expiry(&written).map_err(unavailable)?;
        }
        if old_expired {
            // Its time had come before: the log says so before it says what came after.
            self.log(table, &key, old.as_ref(), None, true);
            self.log(table, &key, None, new.as_ref(), false);
        } else {
            self.log(table, &key, old.as_ref(), new.as_ref(), false);
        }
        match &new {
            Some(value) => {
                self.newest.stored(table, &key);
                self.insert(&table.items, key.clone(), value.clone());
            }
            None if old.is_some() => self.remove(&table.items, key.clone()),
            None => {}
        }
        self.pending.items.insert((table.id(), key), new);
        Ok(())
    }

    /// Removes an item because its time has come.
    pub(crate) fn expire(
        &mut self,
        table: &Table,
        key: UserKey,
        old: UserValue,
    ) -> Result<(), StoreError> {
        self.apply(Mutation {
            table,
            key,
            old: Some(old),
            old_expired: true,
            new: None,
        })
    }

    /// Writes what an item that was there before an index, or before its table had a time to live,
    /// should have. Doing it again changes nothing.
    pub(crate) fn refresh(&mut self, table: &Table, key: &UserKey) -> Result<(), StoreError> {
        let Some(value) = self.load(table, key)? else {
            return Ok(());
        };
        let record = Record::new(&table.key, key, &value).map_err(unavailable)?;
        for index in &table.indexes {
            let entry = index
                .entry(table.ttl_attribute(), &record, key, &value)
                .map_err(unavailable)?;
            if let Some((key, value)) = entry {
                self.insert(&index.entries, key, value);
            }
        }
        if let Some(window) = table.expiry_window(&record).map_err(unavailable)? {
            self.insert_expiry(window, table, key);
        }
        Ok(())
    }

    /// Removes the expiry entry that an item has from `attribute`, which no longer counts.
    pub(crate) fn clear_expiry(
        &mut self,
        table: &Table,
        key: &UserKey,
        attribute: &str,
    ) -> Result<(), StoreError> {
        let Some(value) = self.load(table, key)? else {
            return Ok(());
        };
        let record = Record::new(&table.key, key, &value).map_err(unavailable)?;
        if let Some(at) = record.expires_at(attribute).map_err(unavailable)? {
            self.remove_expiry(layout::expiry_window(at), table, key);
        }
        Ok(())
    }

    fn apply_index(
        &mut self,
        index: &Index,
        changed: &Changed<'_>,
        old: Option<&UserValue>,
        new: Option<&UserValue>,
    ) -> Result<(), DecodeError> {
        let entry = |record: Option<Record<'_>>, value: Option<&UserValue>| match (record, value) {
            (Some(record), Some(value)) => {
                index.entry(changed.table.ttl_attribute(), &record, changed.key, value)
            }
            _ => Ok(None),
        };
        let before = entry(changed.old, old)?;
        let after = entry(changed.new, new)?;
        if before == after {
            return Ok(());
        }
        if let Some((key, _)) = before
            && after.as_ref().is_none_or(|(kept, _)| *kept != key)
        {
            self.remove(&index.entries, key);
        }
        if let Some((key, value)) = after {
            self.insert(&index.entries, key, value);
        }
        Ok(())
    }

    fn apply_expiry(&mut self, changed: &Changed<'_>) -> Result<(), DecodeError> {
        let Changed { table, key, .. } = *changed;
        let before = match &changed.old {
            Some(record) => table.kept_expiry_window(record)?,
            None => None,
        };
        let after = match &changed.new {
            Some(record) => table.expiry_window(record)?,
            None => None,
        };
        if before == after {
            return Ok(());
        }
        if let Some(window) = before {
            self.remove_expiry(window, table, key);
        }
        match (before, after) {
            (None, Some(window)) => {
                let name = layout::expiry_name(key);
                self.bytes += self.pages.add(window, table.id(), &name);
            }
            (Some(_), Some(window)) => self.insert_expiry(window, table, key),
            (_, None) => {}
        }
        Ok(())
    }

    /// Lists an item once more, of those that are listed in the order of their names.
    pub(crate) fn list_sorted(&mut self, window: u64, table: TableId, name: &[u8]) {
        self.pages.are_sorted = true;
        self.bytes += self.pages.add(window, table, name);
    }

    fn insert_expiry(&mut self, window: u64, table: &Table, item_key: &[u8]) {
        let keyspaces = self.keyspaces;
        let key = layout::expiry_key(window, table.id(), item_key);
        self.insert(&keyspaces.expiry, key, UserValue::from(&b""[..]));
    }

    /// Removes the entry that an item may have. One that is listed in a page has none.
    fn remove_expiry(&mut self, window: u64, table: &Table, item_key: &[u8]) {
        let keyspaces = self.keyspaces;
        let key = layout::expiry_key(window, table.id(), item_key);
        self.remove(&keyspaces.expiry, key);
    }

    fn log(
        &mut self,
        table: &Table,
        item_key: &[u8],
        old: Option<&UserValue>,
        new: Option<&UserValue>,
        by_expiry: bool,
    ) {
        let view = table.schema().stream;
        let history = table.record.history.is_some();
        if view.is_none() && !history {
            return;
        }
        if old.is_none() && new.is_none() {
            return;
        }
        let change = NewChange {
            view,
            history,
            at_ms: self.now_ms,
            by_expiry,
            item_key,
            old,
            new,
        };
        let key = layout::change_key(table.id(), self.next_change);
        self.next_change += 1;
        let keyspaces = self.keyspaces;
        self.insert(
            &keyspaces.changes,
            UserKey::from(&key[..]),
            change.encode().into(),
        );
    }

    pub(crate) fn load_token(&self, key: &UserKey) -> Result<Option<UserValue>, vault::Error> {
        for pending in self.pending() {
            if let Some(value) = pending.tokens.get(key) {
                return Ok(Some(value.clone()));
            }
        }
        self.keyspaces.tokens.get(key)
    }

    pub(crate) fn write_token(&mut self, key: UserKey, value: UserValue) {
        let keyspaces = self.keyspaces;
        self.pending.tokens.insert(key.clone(), value.clone());
        self.insert(&keyspaces.tokens, key, value);
    }

    pub(crate) fn insert(&mut self, keyspace: &Keyspace, key: UserKey, value: UserValue) {
        self.bytes += key.len() + value.len();
        self.batch.insert(keyspace, key, value);
    }

    pub(crate) fn remove(&mut self, keyspace: &Keyspace, key: UserKey) {
        self.bytes += key.len();
        self.batch.remove(keyspace, key);
    }

    /// What is to be written, and what the next group has to know of it meanwhile.
    pub(crate) fn finish(self) -> (Decided, Pending, Newest) {
        let decided = Decided {
            batch: self.batch,
            pages: self.pages,
            bytes: self.bytes,
            next_change: self.next_change,
        };
        (decided, self.pending, self.newest)
    }

    /// What the store does not show yet, the newest first.
    fn pending(&self) -> impl Iterator<Item = &Pending> {
        std::iter::once(&self.pending).chain(self.before.as_deref())
    }
}

struct Changed<'a> {
    table: &'a Table,
    key: &'a [u8],
    old: Option<Record<'a>>,
    new: Option<Record<'a>>,
}

fn view<'a>(
    table: &'a Table,
    key: &'a [u8],
    value: Option<&'a UserValue>,
) -> Result<Option<Record<'a>>, StoreError> {
    value
        .map(|value| Record::new(&table.key, key, value).map_err(unavailable))
        .transpose()
}
