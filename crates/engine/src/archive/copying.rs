//! Consistent copies of whole tables, read while the tables are written.
//!
//! An open snapshot keeps every memtable in memory that is flushed after it was taken, so a table of any size
//! cannot be read from one snapshot. A [`TableCopy`] reads chunks, each from a snapshot of its own, and
//! undoes later changes. From the start of the copy on, the first change of an item that the copy has not
//! read yet also writes the item's old value into the keyspace `undo`, in the same batch
//! (`Group::apply_plan`). A chunk then merges the table with its undo records from the same snapshot; an undo
//! record overrides the item.
//!
//! ```text
//! key    run (8) ‖ number of the copy (4) ‖ table (4) ‖ item's key
//! value  0, or 1 ‖ the item's old value
//! ```
//! The sweeper deletes the undo records of copies that have ended.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use homeport_store::StoreError;

use crate::catalogue::table::Table;
use crate::commit::committer::Committer;
use crate::error::unavailable;
use crate::shared::{Shared, run_exclusive, stopped};
use crate::storage::layout::TableId;
use crate::storage::vault::{self, Iter, Keyspace, Snapshot, UserKey, UserValue};

/// Limits of what is read from one snapshot.
pub(crate) const CHUNK_ENTRIES_MAX: usize = 1024;
const COPY_CHUNK_BYTES_MAX: usize = 1024 * 1024;
/// Undo records per commit of the sweeper.
const DELETED_AT_ONCE: usize = 1024;
const ID_LEN: usize = 12;

const ABSENT: u8 = 0;
const PRESENT: u8 = 1;

type CopyId = [u8; ID_LEN];

/// The copies in progress.
pub(crate) struct RunningCopies {
    /// A number that no earlier process used.
    run_number: u64,
    last: AtomicU32,
    running: Mutex<Vec<Arc<CopyProgress>>>,
    /// Whether undo records of ended copies may exist.
    has_leftovers: AtomicBool,
}

impl RunningCopies {
    pub(crate) fn new(run_number: u64) -> Self {
        Self {
            run_number,
            last: AtomicU32::new(0),
            running: Mutex::default(),
            has_leftovers: AtomicBool::new(true),
        }
    }

    /// All running copies, for a new group.
    pub(crate) fn now(&self) -> Vec<Arc<CopyProgress>> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<CopyProgress>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The progress of a copy.
pub(crate) struct CopyProgress {
    id: CopyId,
    /// Tables that are not read completely, each with the key to continue at.
    unread: Mutex<BTreeMap<TableId, Vec<u8>>>,
}

impl CopyProgress {
    /// The key for the item's undo record, if the copy has not read the item yet.
    pub(crate) fn undo_key(&self, table: TableId, item_key: &[u8]) -> Option<UserKey> {
        let unread = self.lock();
        let next = unread.get(&table)?;
        (item_key >= next.as_slice()).then(|| self.key(table, item_key).into())
    }

    fn key(&self, table: TableId, item_key: &[u8]) -> Vec<u8> {
        [&self.id, table.to_be_bytes().as_slice(), item_key].concat()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<TableId, Vec<u8>>> {
        self.unread.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The value of an undo record.
pub(crate) fn undo_value(old: Option<&UserValue>) -> UserValue {
    match old {
        Some(old) => [&[PRESENT], old.as_ref()].concat().into(),
        None => [ABSENT].as_slice().into(),
    }
}

/// Tables as they were when the copy began.
pub(crate) struct TableCopy {
    shared: Arc<Shared>,
    progress: Arc<CopyProgress>,
}

impl TableCopy {
    /// Starts a copy of `tables`. Borrowing the committer ensures that this runs between two groups: all
    /// later groups write undo records.
    pub(crate) fn begin(committer: &Committer, tables: &[Arc<Table>]) -> Self {
        let shared = Arc::clone(&committer.shared);
        let number = shared.copies.last.fetch_add(1, Ordering::Relaxed);
        let mut id = [0; ID_LEN];
        id[..8].copy_from_slice(&shared.copies.run_number.to_be_bytes());
        id[8..].copy_from_slice(&number.to_be_bytes());
        let unread = tables.iter().map(|table| (table.id(), Vec::new()));
        let progress = Arc::new(CopyProgress {
            id,
            unread: Mutex::new(unread.collect()),
        });
        shared.copies.lock().push(Arc::clone(&progress));
        Self { shared, progress }
    }

    /// Whether an item of a table that is not read yet changed between the start of the copy and the
    /// snapshot.
    pub(crate) fn has_changed(
        &self,
        snapshot: &Snapshot,
        table: TableId,
        item_key: &[u8],
    ) -> Result<bool, vault::Error> {
        let undo_key = self.progress.key(table, item_key);
        snapshot.contains_key(&self.shared.keyspaces.undo, undo_key)
    }

    /// Reads a table from its first item to its last, once.
    pub(crate) fn read<E: From<StoreError>>(
        &self,
        table: &Table,
        mut take: impl FnMut(UserKey, UserValue) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut from = Vec::new();
        loop {
            let chunk =
                CopyChunk::read(&self.shared, &table.items, &from, Some((self, table.id())))?;
            if let Some(next) = &chunk.next {
                from.clone_from(next);
                self.progress.lock().insert(table.id(), next.clone());
            } else {
                self.progress.lock().remove(&table.id());
            }
            for (key, value) in chunk.items {
                take(key, value)?;
            }
            if chunk.next.is_none() {
                return Ok(());
            }
        }
    }
}

impl Drop for TableCopy {
    fn drop(&mut self) {
        let copies = &self.shared.copies;
        copies
            .lock()
            .retain(|running| running.id != self.progress.id);
        copies.has_leftovers.store(true, Ordering::Release);
    }
}

/// Reads a keyspace that nothing changes in the meantime, from its first entry to its last.
pub(crate) fn read_unchanged<E: From<StoreError>>(
    shared: &Shared,
    items: &Keyspace,
    mut take: impl FnMut(UserKey, UserValue) -> Result<(), E>,
) -> Result<(), E> {
    let mut from = Vec::new();
    loop {
        let chunk = CopyChunk::read(shared, items, &from, None)?;
        for (key, value) in chunk.items {
            take(key, value)?;
        }
        match chunk.next {
            Some(next) => from = next,
            None => return Ok(()),
        }
    }
}

/// Items that were read from one snapshot.
struct CopyChunk {
    items: Vec<(UserKey, UserValue)>,
    /// Where the next chunk begins, unless this is the last.
    next: Option<Vec<u8>>,
}

impl CopyChunk {
    fn read(
        shared: &Shared,
        keyspace: &Keyspace,
        from: &[u8],
        copy: Option<(&TableCopy, TableId)>,
    ) -> Result<Self, StoreError> {
        if shared.stopping.load(Ordering::Acquire) {
            return Err(stopped());
        }
        let snapshot = shared.database.snapshot();
        let mut items = LookaheadIter::new(snapshot.range(keyspace, from.to_vec()..), 0);
        let mut undo_entries = copy.map(|(copy, table)| {
            let first = copy.progress.key(table, from);
            let end = copy.progress.key(table, &[]);
            let prefix_len = end.len();
            let range = first..after_prefix(end);
            LookaheadIter::new(snapshot.range(&shared.keyspaces.undo, range), prefix_len)
        });
        let mut chunk = Vec::new();
        let (mut entries, mut bytes) = (0, 0);
        loop {
            let item = items.peek()?;
            let undo = match &mut undo_entries {
                Some(undo_entries) => undo_entries.peek()?,
                None => None,
            };
            let key = match (item, undo) {
                (None, None) => {
                    return Ok(Self {
                        items: chunk,
                        next: None,
                    });
                }
                (Some((item, _)), Some((undo, _))) => item.min(undo),
                (Some((key, _)), None) | (None, Some((key, _))) => key,
            };
            if entries >= CHUNK_ENTRIES_MAX || bytes >= COPY_CHUNK_BYTES_MAX {
                let next = Some(key.to_vec());
                return Ok(Self { items: chunk, next });
            }
            let key = key.clone();
            let current = items.take_if(&key);
            let value = match undo_entries
                .as_mut()
                .and_then(|undo_entries| undo_entries.take_if(&key))
            {
                Some(undo) => old_value(&undo)?,
                None => current,
            };
            entries += 1;
            if let Some(value) = value {
                bytes += key.len() + value.len();
                chunk.push((key, value));
            }
        }
    }
}

/// The old value in an undo record.
fn old_value(undo: &UserValue) -> Result<Option<UserValue>, StoreError> {
    match undo.first() {
        Some(&ABSENT) => Ok(None),
        Some(&PRESENT) => Ok(Some(UserValue::from(&undo[1..]))),
        _ => Err(unavailable("an undo record is damaged")),
    }
}

/// The end of the range of all keys that begin with `prefix`.
fn after_prefix(mut prefix: Vec<u8>) -> Vec<u8> {
    while let Some(last) = prefix.pop() {
        if let Some(next) = last.checked_add(1) {
            prefix.push(next);
            break;
        }
    }
    prefix
}

/// A range iterator with lookahead.
struct LookaheadIter<'k> {
    walk: Iter<'k>,
    /// The length of the prefix before the items' keys.
    prefix_len: usize,
    next: Option<(UserKey, UserValue)>,
    is_read: bool,
}

impl<'k> LookaheadIter<'k> {
    fn new(walk: Iter<'k>, prefix_len: usize) -> Self {
        Self {
            walk,
            prefix_len,
            next: None,
            is_read: false,
        }
    }

    fn peek(&mut self) -> Result<Option<&(UserKey, UserValue)>, StoreError> {
        if !self.is_read {
            let entry = self.walk.next().map(|guard| guard.into_inner());
            let entry = entry.transpose().map_err(unavailable)?;
            self.next = entry.map(|(key, value)| match self.prefix_len {
                0 => (key, value),
                prefix_len => (UserKey::from(&key[prefix_len..]), value),
            });
            self.is_read = true;
        }
        Ok(self.next.as_ref())
    }

    /// Takes the value of the next entry if it has this key.
    fn take_if(&mut self, key: &UserKey) -> Option<UserValue> {
        let (_, value) = self.next.take_if(|(next, _)| next == key)?;
        self.is_read = false;
        Some(value)
    }
}

/// Deletes the undo records of ended copies.
pub(crate) fn sweep(shared: &Arc<Shared>) -> Result<(), StoreError> {
    if !shared.copies.has_leftovers.swap(false, Ordering::AcqRel) {
        return Ok(());
    }
    let swept = remove_leftovers(shared);
    if swept.is_err() {
        shared.copies.has_leftovers.store(true, Ordering::Release);
    }
    swept
}

fn remove_leftovers(shared: &Arc<Shared>) -> Result<(), StoreError> {
    let mut from = Vec::new();
    loop {
        let keys: Vec<UserKey> = shared
            .database
            .snapshot()
            .range(&shared.keyspaces.undo, from.clone()..)
            .take(DELETED_AT_ONCE)
            .map(|guard| guard.key())
            .collect::<Result<_, vault::Error>>()
            .map_err(unavailable)?;
        let Some(last) = keys.last() else {
            return Ok(());
        };
        // IMPORTANT: read this after the records: a copy is registered before it has any.
        let running: Vec<_> = shared.copies.now().iter().map(|copy| copy.id).collect();
        from = match running.iter().find(|id| last.starts_with(*id)) {
            // Skip all records of a running copy.
            Some(id) => after_prefix(id.to_vec()),
            None => [last.as_ref(), &[0]].concat(),
        };
        let leftovers: Vec<_> = keys
            .into_iter()
            .filter(|key| !running.iter().any(|id| key.starts_with(id)))
            .collect();
        if leftovers.is_empty() {
            continue;
        }
        run_exclusive(shared, move |committer| {
            let shared = Arc::clone(&committer.shared);
            committer.write(|group| {
                for key in leftovers {
                    group.remove(&shared.keyspaces.undo, key);
                }
                Ok(())
            })
        })?;
    }
}
