//! A group of commits being put together: the writes so far and the state that they make.
//!
//! Everything that changes an item passes through [`Group::apply`], whatever asked for it: a
//! request, the expiry of an item, a restored backup.

use std::sync::Arc;

use homeport_item::binary::DecodeError;
use homeport_store::StoreError;
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};

use crate::changes::NewChange;
use crate::commit_clock::Times;
use crate::copying::{self, CopyProgress};
use crate::error::unavailable;
use crate::expiring::Listed;
use crate::expiry::Pages;
use crate::keyspaces::Keyspaces;
use crate::layout::{self, TableId};
use crate::newest::Newest;
use crate::record::Record;
use crate::shared::Shared;
use crate::table::{Index, Table};
use crate::vault::{self, Batch, Keyspace, UserKey, UserValue};
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
    /// Keys of undo records.
    undo: FxHashSet<UserKey>,
}

pub(crate) struct Group<'a> {
    keyspaces: &'a Keyspaces,
    batch: Batch,
    pages: Pages,
    pending: Pending,
    /// What the group before this one writes, where that is still under way.
    before: Option<Arc<Pending>>,
    /// Copies that must not show what this group changes.
    copies: Vec<Arc<CopyProgress>>,
    newest: Newest,
    next_change: u64,
    times: Times,
    /// Written although nothing is in it, for its commit time.
    is_for_time: bool,
    listed: Listed,
    bytes: usize,
}

impl<'a> Group<'a> {
    pub(crate) fn new(
        shared: &'a Shared,
        before: Option<Arc<Pending>>,
        newest: Newest,
        next_change: u64,
    ) -> Self {
        // Under load, groups that follow each other are about as large.
        let items = before.as_ref().map_or(0, |before| before.items.len());
        Self {
            keyspaces: &shared.keyspaces,
            batch: shared.database.batch(),
            pages: Pages::default(),
            pending: Pending {
                items: FxHashMap::with_capacity_and_hasher(items, FxBuildHasher),
                tokens: FxHashMap::default(),
                undo: FxHashSet::default(),
            },
            before,
            copies: shared.copies.now(),
            newest,
            next_change,
            times: shared.commit_clock.stamp(shared.options.clock.now_ms()),
            is_for_time: false,
            listed: shared.expiring.begin_group(),
            bytes: 0,
        }
    }

    /// What the group's changes are stamped with.
    pub(crate) fn commit_ms(&self) -> i64 {
        self.times.commit_ms
    }

    /// The wall clock's seconds: items that have expired by then are hidden from all readers.
    pub(crate) fn now_secs(&self) -> i64 {
        self.times.wall_ms.div_euclid(1000)
    }

    /// The time by which expired items are removed.
    pub(crate) fn removal_secs(&self) -> i64 {
        self.times.removal_secs()
    }

    /// Has the commit time written even if the group is empty.
    pub(crate) fn write_time(&mut self) {
        self.is_for_time = true;
    }

    /// The stored value of an item, with what this group and the one before it write.
    pub(crate) fn load(
        &mut self,
        table: &Table,
        key: &UserKey,
    ) -> Result<Option<UserValue>, StoreError> {
        self.try_load(table, key).map_err(unavailable)
    }

    fn try_load(
        &mut self,
        table: &Table,
        key: &UserKey,
    ) -> Result<Option<UserValue>, vault::Error> {
        if self.newest.is_behind_all(table, key) {
            return Ok(None);
        }
        let name = (table.id(), key.clone());
        for pending in self.pending() {
            if let Some(value) = pending.items.get(&name) {
                return Ok(value.clone());
            }
        }
        let stored = table.items.get(key)?;
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
    fn greatest(&self, table: &Table, partition: &[u8]) -> Result<UserKey, vault::Error> {
        let mut greatest = match table.items.prefix(partition).next_back() {
            Some(last) => last.key()?,
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

    /// Works out the writes that a change of an item needs. Fails where a stored value cannot be decoded: nothing is in
    /// the group by then.
    pub(crate) fn plan<'m>(&self, mutation: Mutation<'m>) -> Result<Option<Plan<'m>>, StoreError> {
        if mutation.old == mutation.new && !mutation.old_expired {
            return Ok(None);
        }
        let Mutation { table, ref key, .. } = mutation;
        let old = view(table, key, mutation.old.as_ref())?;
        let new = view(table, key, mutation.new.as_ref())?;
        let entry = |index: &Index, record: Option<Record<'_>>, value: Option<&UserValue>| match (
            record, value,
        ) {
            (Some(record), Some(value)) => index.entry(table.ttl_attribute(), &record, key, value),
            _ => Ok(None),
        };
        let mut entries = Vec::with_capacity(table.indexes.len());
        for index in &table.indexes {
            let before = entry(index, old, mutation.old.as_ref()).map_err(unavailable)?;
            let after = entry(index, new, mutation.new.as_ref()).map_err(unavailable)?;
            if before != after {
                entries.push(EntryChange {
                    index,
                    before,
                    after,
                });
            }
        }
        let expires_before = match &old {
            Some(record) => table.kept_expires_at(record).map_err(unavailable)?,
            None => None,
        };
        let expires_after = match &new {
            Some(record) => table.expires_at(record).map_err(unavailable)?,
            None => None,
        };
        let undo_keys = self.missing_undo_keys(table, key)?;
        Ok(Some(Plan {
            undo_keys,
            entries,
            expires_before,
            expires_after,
            mutation,
        }))
    }

    /// Writes a change of an item together with its index entries, its expiry and its change
    /// record.
    pub(crate) fn apply(&mut self, mutation: Mutation<'_>) -> Result<(), StoreError> {
        if let Some(plan) = self.plan(mutation)? {
            self.apply_plan(plan);
        }
        Ok(())
    }

    /// The only place where items change.
    pub(crate) fn apply_plan(&mut self, plan: Plan<'_>) {
        let Plan {
            mutation,
            undo_keys,
            entries,
            expires_before,
            expires_after,
        } = plan;
        let Mutation {
            table,
            key,
            old,
            old_expired,
            new,
        } = mutation;
        for undo_key in undo_keys {
            let keyspaces = self.keyspaces;
            self.pending.undo.insert(undo_key.clone());
            self.insert(&keyspaces.undo, undo_key, copying::undo_value(old.as_ref()));
        }
        for change in entries {
            self.apply_entry(change);
        }
        // The sweeper, which alone removes expired items, also removes what lists them.
        let is_swept = old_expired && new.is_none();
        if !is_swept {
            self.apply_expiry(table, &key, expires_before, expires_after);
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
    }

    /// Whether a copy wants to know what the item was.
    pub(crate) fn is_copied(&self, table: &Table, key: &[u8]) -> bool {
        let mut copies = self.copies.iter();
        copies.any(|copy| copy.undo_key(table.id(), key).is_some())
    }

    /// The undo records that a change of an item needs: one for each copy that has not read the item and has no record
    /// of it from an earlier change.
    fn missing_undo_keys(&self, table: &Table, key: &[u8]) -> Result<Vec<UserKey>, StoreError> {
        let mut missing = Vec::new();
        for copy in &self.copies {
            let Some(undo_key) = copy.undo_key(table.id(), key) else {
                continue;
            };
            let is_pending = self.pending().any(|it| it.undo.contains(&undo_key));
            let undo = &self.keyspaces.undo;
            if !is_pending && !undo.contains_key(&undo_key).map_err(unavailable)? {
                missing.push(undo_key);
            }
        }
        Ok(missing)
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

    /// Writes the index entries and the expiry entry that an item from before an index, or before its
    /// table's time to live, should have. Doing it again changes nothing.
    pub(crate) fn refresh(&mut self, table: &Table, key: &UserKey) -> Result<(), RefreshError> {
        let Some(value) = self.load_to_refresh(table, key)? else {
            return Ok(());
        };
        let record = Record::new(&table.key, key, &value)?;
        // All of it is decoded before anything is written.
        let mut entries = Vec::with_capacity(table.indexes.len());
        for index in &table.indexes {
            let entry = index.entry(table.ttl_attribute(), &record, key, &value)?;
            entries.extend(entry.map(|entry| (index, entry)));
        }
        let expires_at = table.expires_at(&record)?;
        for (index, (key, value)) in entries {
            self.insert(&index.entries, key, value);
        }
        if let Some(at) = expires_at {
            self.insert_expiry(layout::expiry_window(at), table, key);
            self.listed.note_item(at, table.id(), key, false);
        }
        Ok(())
    }

    /// Removes the expiry entry that an item has from `attribute`, which no longer counts.
    pub(crate) fn clear_expiry(
        &mut self,
        table: &Table,
        key: &UserKey,
        attribute: &str,
    ) -> Result<(), RefreshError> {
        let Some(value) = self.load_to_refresh(table, key)? else {
            return Ok(());
        };
        let record = Record::new(&table.key, key, &value)?;
        if let Some(at) = record.expires_at(attribute)? {
            self.remove_expiry(layout::expiry_window(at), table, key);
        }
        Ok(())
    }

    fn load_to_refresh(
        &mut self,
        table: &Table,
        key: &UserKey,
    ) -> Result<Option<UserValue>, RefreshError> {
        self.try_load(table, key).map_err(|error| {
            if error.is_damage() {
                RefreshError::Unreadable(error.to_string())
            } else {
                RefreshError::Store(unavailable(error))
            }
        })
    }

    fn apply_entry(&mut self, change: EntryChange<'_>) {
        let EntryChange {
            index,
            before,
            after,
        } = change;
        if let Some((key, _)) = before
            && after.as_ref().is_none_or(|(kept, _)| *kept != key)
        {
            self.remove(&index.entries, key);
        }
        if let Some((key, value)) = after {
            self.insert(&index.entries, key, value);
        }
    }

    /// Lists an item where it expires.
    fn apply_expiry(&mut self, table: &Table, key: &[u8], before: Option<u64>, after: Option<u64>) {
        let window_before = before.map(layout::expiry_window);
        let window_after = after.map(layout::expiry_window);
        if window_before != window_after {
            if let Some(window) = window_before {
                self.remove_expiry(window, table, key);
            }
            match (window_before, window_after) {
                (None, Some(window)) => {
                    let name = layout::expiry_name(key);
                    self.listed.note_window(window);
                    self.bytes += self.pages.add(window, table.id(), &name);
                }
                (Some(_), Some(window)) => self.insert_expiry(window, table, key),
                (_, None) => {}
            }
        }
        if let Some(at) = after.filter(|_| before != after) {
            self.listed.note_item(at, table.id(), key, before.is_none());
        }
    }

    /// Lists an item once more, of those that are listed in the order of their names.
    pub(crate) fn list_sorted(&mut self, window: u64, table: TableId, name: &[u8]) {
        self.pages.are_sorted = true;
        self.listed.note_window(window);
        self.bytes += self.pages.add(window, table, name);
    }

    fn insert_expiry(&mut self, window: u64, table: &Table, item_key: &[u8]) {
        let keyspaces = self.keyspaces;
        let key = layout::expiry_key(window, table.id(), item_key);
        self.listed.note_window(window);
        self.insert(&keyspaces.expiry, key, UserValue::from(&b""[..]));
    }

    /// Removes the entry that an item may have. One that is listed in a page has none.
    pub(crate) fn remove_expiry(&mut self, window: u64, table: &Table, item_key: &[u8]) {
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
            at_ms: self.times.commit_ms,
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
            commit_ms: self.times.commit_ms,
            is_for_time: self.is_for_time,
            listed: self.listed,
        };
        (decided, self.pending, self.newest)
    }

    /// What the store does not show yet, the newest first.
    fn pending(&self) -> impl Iterator<Item = &Pending> {
        std::iter::once(&self.pending).chain(self.before.as_deref())
    }
}

/// Why an item's entries could not be written.
#[derive(Debug)]
pub(crate) enum RefreshError {
    /// The item is damaged; others can be processed.
    Unreadable(String),
    Store(StoreError),
}

impl From<DecodeError> for RefreshError {
    fn from(error: DecodeError) -> Self {
        Self::Unreadable(error.to_string())
    }
}

/// A change of an item with all the writes that it needs.
pub(crate) struct Plan<'a> {
    mutation: Mutation<'a>,
    /// Of the records that keep the old value for running copies.
    undo_keys: Vec<UserKey>,
    entries: Vec<EntryChange<'a>>,
    expires_before: Option<u64>,
    expires_after: Option<u64>,
}

/// An index entry that changes.
struct EntryChange<'a> {
    index: &'a Index,
    before: Option<(UserKey, UserValue)>,
    after: Option<(UserKey, UserValue)>,
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
