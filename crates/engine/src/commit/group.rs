//! A group of transactions that will be committed together: its writes so far and the state they create.
//!
//! Everything that changes an item passes through [`Group::apply_plan`]: requests, expiry, restored backups.

use std::sync::Arc;

use homeport_item::binary::DecodeError;
use homeport_store::StoreError;
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};

use crate::archive::copying::{self, CopyProgress};
use crate::catalogue::keyspaces::Keyspaces;
use crate::catalogue::table::{Index, Table};
use crate::changes::log::NewChange;
use crate::commit::commit_clock::Times;
use crate::commit::greatest_keys::GreatestKeys;
use crate::commit::writer::CommitBatch;
use crate::error::unavailable;
use crate::expiry::expiring::GroupExpiry;
use crate::expiry::pages::Pages;
use crate::shared::Shared;
use crate::storage::layout::{self, TableId};
use crate::storage::record::Record;
use crate::storage::vault::{self, Batch, Keyspace, UserKey, UserValue};

/// A change of one stored item.
pub(crate) struct Mutation<'a> {
    pub(crate) table: &'a Table,
    pub(crate) key: UserKey,
    /// The stored value before the change, expired or not.
    pub(crate) old: Option<UserValue>,
    /// Whether `old` had already expired and was invisible to readers.
    pub(crate) old_expired: bool,
    pub(crate) new: Option<UserValue>,
}

/// Writes that cannot be read from the store yet.
#[derive(Default)]
pub(crate) struct PendingWrites {
    items: FxHashMap<(TableId, UserKey), Option<UserValue>>,
    tokens: FxHashMap<UserKey, UserValue>,
    /// Keys of undo records.
    undo: FxHashSet<UserKey>,
}

pub(crate) struct Group<'a> {
    keyspaces: &'a Keyspaces,
    batch: Batch,
    pages: Pages,
    pending: PendingWrites,
    /// Writes of the previous group, if it is still being written.
    previous: Option<Arc<PendingWrites>>,
    /// Running copies that must keep showing the state before this group's changes.
    copies: Vec<Arc<CopyProgress>>,
    greatest_keys: GreatestKeys,
    next_change: u64,
    times: Times,
    /// Write the group even if it is empty, for its commit time.
    writes_time: bool,
    expiry: GroupExpiry,
    bytes: usize,
}

impl<'a> Group<'a> {
    pub(crate) fn new(
        shared: &'a Shared,
        previous: Option<Arc<PendingWrites>>,
        greatest_keys: GreatestKeys,
        next_change: u64,
    ) -> Self {
        // Under load, consecutive groups have similar sizes.
        let items = previous.as_ref().map_or(0, |previous| previous.items.len());
        Self {
            keyspaces: &shared.keyspaces,
            batch: shared.database.batch(),
            pages: Pages::default(),
            pending: PendingWrites {
                items: FxHashMap::with_capacity_and_hasher(items, FxBuildHasher),
                tokens: FxHashMap::default(),
                undo: FxHashSet::default(),
            },
            previous,
            copies: shared.copies.now(),
            greatest_keys,
            next_change,
            times: shared.commit_clock.stamp(shared.options.clock.now_ms()),
            writes_time: false,
            expiry: shared.expiring.begin_group(),
            bytes: 0,
        }
    }

    /// The time that the group's changes are stamped with.
    pub(crate) fn commit_ms(&self) -> i64 {
        self.times.commit_ms
    }

    /// The wall clock's seconds: items that have expired by then are hidden from readers.
    pub(crate) fn now_secs(&self) -> i64 {
        self.times.wall_ms.div_euclid(1000)
    }

    /// The time by which expired items are deleted.
    pub(crate) fn removal_secs(&self) -> i64 {
        self.times.removal_secs()
    }

    /// Writes the commit time even if the group is empty.
    pub(crate) fn write_time(&mut self) {
        self.writes_time = true;
    }

    /// The stored value of an item, including the pending writes of this group and the previous one.
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
        if self.greatest_keys.exceeds_greatest(table, key) {
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
            && let Some(partition) = self.greatest_keys.note_miss(table, key)
        {
            let greatest = self.greatest_key(table, partition)?;
            self.greatest_keys.remember(table.id(), partition, greatest);
        }
        Ok(stored)
    }

    /// The greatest key of a partition, including pending writes; for an empty partition, the prefix of its
    /// keys.
    fn greatest_key(&self, table: &Table, partition: &[u8]) -> Result<UserKey, vault::Error> {
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

    /// Plans the writes that a change of an item needs. Fails if a stored value cannot be decoded, before
    /// anything is added to the group.
    pub(crate) fn plan<'m>(
        &self,
        mutation: Mutation<'m>,
    ) -> Result<Option<MutationPlan<'m>>, StoreError> {
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
                entries.push(IndexEntryChange {
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
        Ok(Some(MutationPlan {
            undo_keys,
            entries,
            expires_before,
            expires_after,
            mutation,
        }))
    }

    /// Writes a change of an item together with its index entries, expiry entry and change record.
    pub(crate) fn apply(&mut self, mutation: Mutation<'_>) -> Result<(), StoreError> {
        if let Some(plan) = self.plan(mutation)? {
            self.apply_plan(plan);
        }
        Ok(())
    }

    /// The only place where items change.
    pub(crate) fn apply_plan(&mut self, plan: MutationPlan<'_>) {
        let MutationPlan {
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
        // The sweeper alone deletes expired items, and it also deletes their expiry entries.
        let is_swept = old_expired && new.is_none();
        if !is_swept {
            self.apply_expiry(table, &key, expires_before, expires_after);
        }
        if old_expired {
            // The item had expired before: log the expiry first, then the new write.
            self.log(table, &key, old.as_ref(), None, true);
            self.log(table, &key, None, new.as_ref(), false);
        } else {
            self.log(table, &key, old.as_ref(), new.as_ref(), false);
        }
        match &new {
            Some(value) => {
                self.greatest_keys.note_stored(table, &key);
                self.insert(&table.items, key.clone(), value.clone());
            }
            None if old.is_some() => self.remove(&table.items, key.clone()),
            None => {}
        }
        self.pending.items.insert((table.id(), key), new);
    }

    /// Whether a running copy needs the item's old value.
    pub(crate) fn is_copied(&self, table: &Table, key: &[u8]) -> bool {
        let mut copies = self.copies.iter();
        copies.any(|copy| copy.undo_key(table.id(), key).is_some())
    }

    /// The undo records that a change of an item needs: one for each running copy that has not read the item
    /// yet and has no undo record of it.
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

    /// Deletes an expired item.
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

    /// Writes the index entries and the expiry entry of an item that is older than an index or its table's
    /// TTL attribute. Repeating it changes nothing.
    pub(crate) fn refresh(&mut self, table: &Table, key: &UserKey) -> Result<(), RefreshError> {
        let Some(value) = self.load_to_refresh(table, key)? else {
            return Ok(());
        };
        let record = Record::new(&table.key, key, &value)?;
        // Decode everything before writing anything.
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
            self.expiry.note_item(at, table.id(), key, false);
        }
        Ok(())
    }

    /// Deletes the expiry entry that an item has from `attribute`, which is no longer the TTL attribute.
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

    fn apply_entry(&mut self, change: IndexEntryChange<'_>) {
        let IndexEntryChange {
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

    /// Adds an item to the list of items that expire in its window.
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
                    self.expiry.note_window(window);
                    self.bytes += self.pages.add(window, table.id(), &name);
                }
                (Some(_), Some(window)) => self.insert_expiry(window, table, key),
                (_, None) => {}
            }
        }
        if let Some(at) = after.filter(|_| before != after) {
            self.expiry.note_item(at, table.id(), key, before.is_none());
        }
    }

    /// Lists an item again while its window is sorted; callers add names in sorted order.
    pub(crate) fn list_sorted(&mut self, window: u64, table: TableId, name: &[u8]) {
        self.pages.are_sorted = true;
        self.expiry.note_window(window);
        self.bytes += self.pages.add(window, table, name);
    }

    fn insert_expiry(&mut self, window: u64, table: &Table, item_key: &[u8]) {
        let keyspaces = self.keyspaces;
        let key = layout::expiry_key(window, table.id(), item_key);
        self.expiry.note_window(window);
        self.insert(&keyspaces.expiry, key, UserValue::from(&b""[..]));
    }

    /// Deletes an item's expiry entry, if it has one. An item that is listed in a page has none.
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

    /// The batch to write, and what the next group needs to know until it is written.
    pub(crate) fn finish(self) -> (CommitBatch, PendingWrites, GreatestKeys) {
        let decided = CommitBatch {
            batch: self.batch,
            pages: self.pages,
            bytes: self.bytes,
            next_change: self.next_change,
            commit_ms: self.times.commit_ms,
            writes_time: self.writes_time,
            expiry: self.expiry,
        };
        (decided, self.pending, self.greatest_keys)
    }

    /// The pending writes, newest first.
    fn pending(&self) -> impl Iterator<Item = &PendingWrites> {
        std::iter::once(&self.pending).chain(self.previous.as_deref())
    }
}

/// Why an item's entries could not be written.
#[derive(Debug)]
pub(crate) enum RefreshError {
    /// The item is damaged; other items can be processed.
    Unreadable(String),
    Store(StoreError),
}

impl From<DecodeError> for RefreshError {
    fn from(error: DecodeError) -> Self {
        Self::Unreadable(error.to_string())
    }
}

/// A change of an item with all the writes that it needs.
pub(crate) struct MutationPlan<'a> {
    mutation: Mutation<'a>,
    /// Keys of the undo records that keep the old value for running copies.
    undo_keys: Vec<UserKey>,
    entries: Vec<IndexEntryChange<'a>>,
    expires_before: Option<u64>,
    expires_after: Option<u64>,
}

/// An index entry that changes.
struct IndexEntryChange<'a> {
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
