//! Reading whole tables as they were at one moment, while they are written.
//!
//! An open snapshot keeps every memtable in memory that is flushed after it was taken, so that a table of any
//! size cannot be read from one. A [`TableCopy`] reads pieces, each from a snapshot of its own. What the
//! pieces must not show is undone: from the copy's first moment on, the first change of an item that the
//! copy has not read yet also writes what the item was before, into the keyspace `undo` and in the same
//! batch (`Group::apply`). A piece is then the table and its undo records in one snapshot, and where there
//! is an undo record, that is what the item was.
//!
//! ```text
//! key    life (8) ‖ number of the copy (4) ‖ table (4) ‖ item's key
//! value  0, or 1 ‖ what the item was
//! ```
//! The records of copies that have ended are removed by the sweeper.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use homeport_store::StoreError;

use crate::committer::Committer;
use crate::error::unavailable;
use crate::layout::TableId;
use crate::shared::{Shared, run_exclusive, stopped};
use crate::table::Table;
use crate::vault::{self, Iter, Keyspace, Snapshot, UserKey, UserValue};

/// What is read from one snapshot.
pub(crate) const PIECE_ENTRIES_MAX: usize = 1024;
const PIECE_BYTES_MAX: usize = 1024 * 1024;
/// Undo records that one commit of the sweeper removes.
const REMOVED_AT_ONCE: usize = 1024;
const ID_LEN: usize = 12;

const ABSENT: u8 = 0;
const PRESENT: u8 = 1;

type CopyId = [u8; ID_LEN];

/// The copies that are being made.
pub(crate) struct RunningCopies {
    /// No earlier process had this number.
    life: u64,
    last: AtomicU32,
    running: Mutex<Vec<Arc<CopyProgress>>>,
    /// Whether there may be undo records of copies that have ended.
    has_leftovers: AtomicBool,
}

impl RunningCopies {
    pub(crate) fn new(life: u64) -> Self {
        Self {
            life,
            last: AtomicU32::new(0),
            running: Mutex::default(),
            has_leftovers: AtomicBool::new(true),
        }
    }

    /// All of them, for a group that is about to be put together.
    pub(crate) fn now(&self) -> Vec<Arc<CopyProgress>> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<CopyProgress>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How far a copy is.
pub(crate) struct CopyProgress {
    id: CopyId,
    /// The tables that are not read to their end, each with the key that is read next.
    unread: Mutex<BTreeMap<TableId, Vec<u8>>>,
}

impl CopyProgress {
    /// Where the record of what an item was belongs, if the copy has not read the item yet.
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
    /// Begins a copy of `tables`. Taking the committer says that this runs between two groups: all later
    /// groups write what they change.
    pub(crate) fn begin(committer: &Committer, tables: &[Arc<Table>]) -> Self {
        let shared = Arc::clone(&committer.shared);
        let number = shared.copies.last.fetch_add(1, Ordering::Relaxed);
        let mut id = [0; ID_LEN];
        id[..8].copy_from_slice(&shared.copies.life.to_be_bytes());
        id[8..].copy_from_slice(&number.to_be_bytes());
        let unread = tables.iter().map(|table| (table.id(), Vec::new()));
        let progress = Arc::new(CopyProgress {
            id,
            unread: Mutex::new(unread.collect()),
        });
        shared.copies.lock().push(Arc::clone(&progress));
        Self { shared, progress }
    }

    /// Whether an item of a table that was not read yet has changed since the copy began and before the snapshot.
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
            let piece = Piece::read(&self.shared, &table.items, &from, Some((self, table.id())))?;
            if let Some(next) = &piece.next {
                from.clone_from(next);
                self.progress.lock().insert(table.id(), next.clone());
            } else {
                self.progress.lock().remove(&table.id());
            }
            for (key, value) in piece.items {
                take(key, value)?;
            }
            if piece.next.is_none() {
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

/// Reads a keyspace that nobody changes meanwhile from its first entry to its last.
pub(crate) fn read_unchanging<E: From<StoreError>>(
    shared: &Shared,
    items: &Keyspace,
    mut take: impl FnMut(UserKey, UserValue) -> Result<(), E>,
) -> Result<(), E> {
    let mut from = Vec::new();
    loop {
        let piece = Piece::read(shared, items, &from, None)?;
        for (key, value) in piece.items {
            take(key, value)?;
        }
        match piece.next {
            Some(next) => from = next,
            None => return Ok(()),
        }
    }
}

/// Items that were read from one snapshot.
struct Piece {
    items: Vec<(UserKey, UserValue)>,
    /// Where the next piece begins, if this is not the last.
    next: Option<Vec<u8>>,
}

impl Piece {
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
        let mut items = Entries::new(snapshot.range(keyspace, from.to_vec()..), 0);
        let mut undone = copy.map(|(copy, table)| {
            let first = copy.progress.key(table, from);
            let end = copy.progress.key(table, &[]);
            let prefix_len = end.len();
            let range = first..after_prefix(end);
            Entries::new(snapshot.range(&shared.keyspaces.undo, range), prefix_len)
        });
        let mut piece = Vec::new();
        let (mut entries, mut bytes) = (0, 0);
        loop {
            let item = items.peek()?;
            let undo = match &mut undone {
                Some(undone) => undone.peek()?,
                None => None,
            };
            let key = match (item, undo) {
                (None, None) => {
                    return Ok(Self {
                        items: piece,
                        next: None,
                    });
                }
                (Some((item, _)), Some((undo, _))) => item.min(undo),
                (Some((key, _)), None) | (None, Some((key, _))) => key,
            };
            if entries >= PIECE_ENTRIES_MAX || bytes >= PIECE_BYTES_MAX {
                let next = Some(key.to_vec());
                return Ok(Self { items: piece, next });
            }
            let key = key.clone();
            let current = items.take_if(&key);
            let value = match undone.as_mut().and_then(|undone| undone.take_if(&key)) {
                Some(undo) => was(&undo)?,
                None => current,
            };
            entries += 1;
            if let Some(value) = value {
                bytes += key.len() + value.len();
                piece.push((key, value));
            }
        }
    }
}

/// What an item was, by its undo record.
fn was(undo: &UserValue) -> Result<Option<UserValue>, StoreError> {
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

/// A walk whose next entry can be looked at.
struct Entries<'k> {
    walk: Iter<'k>,
    /// What stands before the items' keys.
    prefix_len: usize,
    next: Option<(UserKey, UserValue)>,
    is_read: bool,
}

impl<'k> Entries<'k> {
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

    /// The value of the entry that was looked at, if it has this key.
    fn take_if(&mut self, key: &UserKey) -> Option<UserValue> {
        let (_, value) = self.next.take_if(|(next, _)| next == key)?;
        self.is_read = false;
        Some(value)
    }
}

/// Removes the undo records of copies that have ended.
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
            .take(REMOVED_AT_ONCE)
            .map(|guard| guard.key())
            .collect::<Result<_, vault::Error>>()
            .map_err(unavailable)?;
        let Some(last) = keys.last() else {
            return Ok(());
        };
        // IMPORTANT: read after the records were: a copy is known before it has any.
        let running: Vec<_> = shared.copies.now().iter().map(|copy| copy.id).collect();
        from = match running.iter().find(|id| last.starts_with(*id)) {
            // All of a running copy's records are passed over.
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
