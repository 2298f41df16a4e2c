//! The key-value store: how its keyspaces are created, and how it is reopened. It refuses writes after a
//! failed one, and only reopening it shows what is on disk.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, Weak,
};
use std::time::{Duration, Instant};

use fjall::AbstractTree as _;
use fjall::compaction::Leveled;
use fjall::config::{BlockSizePolicy, CompressionPolicy, FilterPolicy, PinningPolicy};
use fjall::{CompressionType, KeyspaceCreateOptions};

use crate::commit::writer::CommitRecord;
use crate::options::Options;
use crate::storage::layout;
use crate::storage::permissions;
use crate::storage::seal::sealer::Sealer;
use crate::storage::vault::files;
use crate::storage::vault::keyspace::{Handle, HandleSlot, SnapshotReads};
use crate::storage::vault::{Batch, Error, Keyspace, PersistMode, Snapshot};

/// The size of the journals at which their contents are flushed to table files; it bounds what a start after
/// a crash must read.
const JOURNAL_BYTES_MAX: u64 = 128 * 1024 * 1024;

/// The size at which a keyspace's memtable is flushed.
const MEMTABLE_BYTES: u64 = 16 * 1024 * 1024;
/// The same for expiry keyspaces, which are appended to, so that early flushes cost no compaction.
const EXPIRY_MEMTABLE_BYTES: u64 = 8 * 1024 * 1024;

/// The number of flushed files that are compacted into the first level at once. Compacting half as many costs
/// over a third more CPU time, because the level is rewritten each time.
const FLUSHED_FILES: u8 = 8;

/// The approximate size of compacted files. The first level may hold `FLUSHED_FILES` of them, which should be
/// little more than the incoming data: flushed files are 16 MiB and compress to a third.
const FILE_BYTES: u64 = 8 * 1024 * 1024;

/// The lock file of the key-value store.
const LOCK_FILE: &str = "lock";

/// The minimum of open files that the key-value store accepts.
const OPEN_FILES_MIN: usize = 10;
/// How often closing checks whether reads have ended.
const CLOSE_POLL: Duration = Duration::from_millis(1);

/// The initial capacity of a batch.
const BATCH_ENTRIES: usize = 64;

/// Clones share the store. It and its keyspaces outlive a reopening.
#[derive(Clone)]
pub(crate) struct Database {
    state: Arc<DatabaseState>,
    sealer: Option<Arc<Sealer>>,
}

struct DatabaseState {
    path: PathBuf,
    cache_bytes: u64,
    workers: usize,
    open_files_max: usize,
    generation: AtomicU64,
    current: RwLock<Option<OpenDatabase>>,
    slots: Mutex<KeyspaceSlots>,
    reads: Arc<SnapshotReads>,
    /// Whether the previously closed store is still in use.
    used: Mutex<Option<Box<IsUsed>>>,
}

type IsUsed = dyn Fn() -> bool + Send;

/// The key-value store's own handle, and the number of times it was opened before.
#[derive(Clone)]
pub(super) struct OpenDatabase {
    generation: u64,
    inner: fjall::Database,
}

/// The keyspaces in use.
#[derive(Default)]
struct KeyspaceSlots {
    by_name: HashMap<String, Weak<HandleSlot>>,
    /// Deleted keyspaces that are still being read.
    deleted: Vec<Weak<HandleSlot>>,
}

impl Database {
    /// Opens or creates the store at `path`. With a sealer, values are sealed.
    pub(crate) fn open(
        path: &Path,
        options: &Options,
        sealer: Option<Arc<Sealer>>,
    ) -> Result<Self, Error> {
        Self::open_with(path, options, sealer, options.workers.max(1))
    }

    /// Like [`Database::open`], but without threads for flushes and compactions: for a store that is only
    /// read.
    pub(crate) fn open_idle(
        path: &Path,
        options: &Options,
        sealer: Option<Arc<Sealer>>,
    ) -> Result<Self, Error> {
        Self::open_with(path, options, sealer, 0)
    }

    fn open_with(
        path: &Path,
        options: &Options,
        sealer: Option<Arc<Sealer>>,
        workers: usize,
    ) -> Result<Self, Error> {
        let state = DatabaseState {
            path: path.to_owned(),
            cache_bytes: options.cache_bytes,
            workers,
            open_files_max: options.open_files_max.max(OPEN_FILES_MIN),
            generation: AtomicU64::default(),
            current: RwLock::default(),
            slots: Mutex::default(),
            reads: Arc::default(),
            used: Mutex::default(),
        };
        let inner = state.open()?;
        let generation = 0;
        *state.write() = Some(OpenDatabase { generation, inner });
        Ok(Self {
            state: Arc::new(state),
            sealer,
        })
    }

    /// Closes the store: until [`Database::reopen`], all reads and writes fail. Waits up to `wait_max` for
    /// running reads, and returns whether they have ended.
    pub(crate) fn close(&self, wait_max: Duration) -> bool {
        for (_, slot) in self.state.lock_slots().in_use() {
            slot.replace(None);
        }
        let closed = self.state.write().take();
        if let Some(OpenDatabase { inner, .. }) = closed {
            // Everything that keeps the store open refers to this.
            let used = Arc::downgrade(&inner.supervisor.keyspaces);
            *self.state.lock_used() = Some(Box::new(move || used.strong_count() > 0));
        }
        let started = Instant::now();
        loop {
            let is_used = self.state.lock_used().as_ref().is_some_and(|used| used());
            if !is_used || started.elapsed() >= wait_max {
                return !is_used;
            }
            std::thread::sleep(CLOSE_POLL);
        }
    }

    /// Opens the closed store again if it contains the group `acknowledged`. Keyspaces in use become usable
    /// again.
    pub(crate) fn reopen(&self, acknowledged: u64) -> Result<(), Error> {
        let inner = self.state.open()?;
        let meta = open_keyspace(&inner, layout::META_KEYSPACE)?;
        let record = meta.get(layout::COMMIT_KEY)?;
        let record = record.and_then(|bytes| CommitRecord::decode(&bytes));
        if record.map_or(0, |record| record.commit) < acknowledged {
            return Err(Error::Incomplete);
        }
        let generation = self.state.next_generation();
        let slots = self.state.lock_slots();
        let mut handles = Vec::new();
        for (name, slot) in slots.in_use() {
            // Creating an empty keyspace in place of a missing one would hide the loss.
            if let Some(name) = name
                && inner.keyspace_exists(name)
            {
                let inner = open_keyspace(&inner, name)?;
                handles.push((slot, Handle { generation, inner }));
            }
        }
        *self.state.write() = Some(OpenDatabase { generation, inner });
        for (slot, handle) in handles {
            slot.replace(Some(handle));
        }
        Ok(())
    }

    pub(super) fn opened(&self) -> Result<OpenDatabase, Error> {
        self.state.read().clone().ok_or(Error::Closed)
    }

    /// The sealer of values, and of files that need the same protection.
    pub(crate) fn sealer(&self) -> Option<&Sealer> {
        self.sealer.as_deref()
    }

    /// Opens or creates a keyspace.
    pub(crate) fn keyspace(&self, name: &str) -> Result<Keyspace, Error> {
        let OpenDatabase { generation, inner } = self.opened()?;
        let sealer = self.sealer_of(name);
        let mut slots = self.state.lock_slots();
        let known = slots.by_name.get(name).and_then(Weak::upgrade);
        let slot = match known {
            Some(slot) => slot,
            None => {
                let inner = open_keyspace(&inner, name)?;
                let handle = Handle { generation, inner };
                let slot = HandleSlot::new(name, handle, Arc::clone(&self.state.reads));
                let slot = Arc::new(slot);
                slots.by_name.insert(name.to_owned(), Arc::downgrade(&slot));
                slot
            }
        };
        Ok(Keyspace { slot, sealer })
    }

    /// A keyspace that is in use.
    pub(super) fn keyspace_in_use(&self, name: &str) -> Option<Keyspace> {
        let slot = self.state.lock_slots().by_name.get(name)?.upgrade()?;
        let sealer = self.sealer_of(name);
        Some(Keyspace { slot, sealer })
    }

    fn sealer_of(&self, name: &str) -> Option<Arc<Sealer>> {
        // IMPORTANT: the only keyspace whose values are not sealed, because commit records are read before
        // the store is open. Its contents must not reveal any user data.
        let is_open = name == layout::META_KEYSPACE;
        self.sealer.clone().filter(|_| !is_open)
    }

    pub(crate) fn keyspace_names(&self) -> Vec<String> {
        let Ok(opened) = self.opened() else {
            return Vec::new();
        };
        let names = opened.inner.list_keyspace_names();
        names.iter().map(ToString::to_string).collect()
    }

    /// The names of all keyspaces, by number.
    pub(crate) fn keyspace_numbers(&self) -> Result<BTreeMap<u64, String>, Error> {
        let opened = self.opened()?;
        let numbered = opened.keyspaces().into_iter().filter_map(|keyspace| {
            let number = files::keyspace_number(keyspace.path())?;
            Some((number, keyspace.name().to_string()))
        });
        Ok(numbered.collect())
    }

    /// The keyspaces whose newest value in a journal is only in the active memtable, each with the version of
    /// its list of table files. `newest` has the sequence numbers and keys of these values, by keyspace
    /// number.
    pub(crate) fn unflushed(
        &self,
        newest: &BTreeMap<u64, (u64, Vec<u8>)>,
    ) -> Result<BTreeMap<u64, u64>, Error> {
        let mut unflushed = BTreeMap::new();
        for keyspace in self.opened()?.keyspaces() {
            let number = files::keyspace_number(keyspace.path());
            let value = number.and_then(|number| Some((number, newest.get(&number)?)));
            let Some((number, (sequence, key))) = value else {
                continue;
            };
            // IMPORTANT: read the version first: a flush in the meantime creates a newer one.
            let version = keyspace.tree.current_version().id();
            let memtable = keyspace.tree.active_memtable();
            let newest = memtable.get(key, sequence.saturating_add(1));
            if newest.is_some_and(|entry| entry.key.seqno == *sequence) {
                unflushed.insert(number, version);
            }
        }
        Ok(unflushed)
    }

    pub(crate) fn has_keyspace(&self, name: &str) -> bool {
        self.opened()
            .is_ok_and(|opened| opened.inner.keyspace_exists(name))
    }

    pub(crate) fn delete_keyspace(&self, keyspace: Keyspace) -> Result<(), Error> {
        // Memory counts as buffered until it is flushed, even after its keyspace is deleted.
        keyspace.rotate_memtable()?;
        let handle = keyspace.slot.handle()?;
        self.opened()?.inner.delete_keyspace(handle.inner)?;
        let mut slots = self.state.lock_slots();
        slots.by_name.remove(keyspace.name());
        slots.deleted.retain(|slot| slot.strong_count() > 0);
        slots.deleted.push(Arc::downgrade(&keyspace.slot));
        Ok(())
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        let opened = self.state.read();
        let inner = opened.as_ref();
        Snapshot::new(inner.map(|opened| (opened.generation, opened.inner.snapshot())))
    }

    pub(crate) fn batch(&self) -> Batch {
        let inner = self
            .opened()
            .ok()
            .map(|OpenDatabase { generation, inner }| {
                let inner = fjall::OwnedWriteBatch::with_capacity(inner, BATCH_ENTRIES);
                (generation, inner)
            });
        Batch::new(inner, self.sealer.clone())
    }

    pub(crate) fn persist(&self, mode: PersistMode) -> Result<(), Error> {
        Ok(self.opened()?.inner.persist(mode)?)
    }

    /// Fails if a flush or a compaction has failed in one of the key-value store's own threads, which report
    /// to no caller.
    pub(crate) fn check_workers(&self) -> Result<(), Error> {
        self.persist(PersistMode::Buffer)
    }

    /// The sequence number of the next change; 0 while the store is closed.
    pub(crate) fn next_sequence(&self) -> u64 {
        let opened = self.opened();
        opened.map_or(0, |opened| opened.inner.supervisor.seqno.get())
    }

    /// Skips the sequence numbers before `next`.
    pub(crate) fn skip_to_sequence(&self, next: u64) {
        if let Ok(opened) = self.opened() {
            opened.inner.supervisor.seqno.fetch_max(next);
        }
    }

    pub(crate) fn write_buffer_bytes(&self) -> u64 {
        let opened = self.opened();
        opened.map_or(0, |opened| opened.inner.write_buffer_size())
    }

    /// Whether the write buffer is shrinking. The key-value store flushes a keyspace when that reaches its
    /// own limit, regardless of the total size of all keyspaces. If nothing is being flushed and the total is
    /// over `limit`, this flushes the largest memtable.
    pub(crate) fn is_making_room(&self, limit: u64) -> Result<bool, Error> {
        let mut active_bytes = 0;
        let mut largest: Option<(u64, fjall::Keyspace)> = None;
        for keyspace in self.opened()?.keyspaces() {
            if keyspace.tree.sealed_memtable_count() > 0 {
                return Ok(true);
            }
            let bytes = keyspace.tree.active_memtable().size();
            active_bytes += bytes;
            if largest.as_ref().is_none_or(|(most, _)| bytes > *most) {
                largest = Some((bytes, keyspace.clone()));
            }
        }
        match largest {
            Some((_, keyspace)) if active_bytes > limit => Ok(keyspace.rotate_memtable()?),
            _ => Ok(false),
        }
    }

    pub(crate) fn cache_bytes(&self) -> u64 {
        let opened = self.opened();
        opened.map_or(0, |opened| opened.inner.cache_size())
    }

    pub(crate) fn disk_bytes(&self) -> u64 {
        let opened = self.opened();
        opened.map_or(0, |opened| opened.inner.disk_space().unwrap_or(0))
    }

    /// The largest number of entries read from one snapshot.
    pub(crate) fn snapshot_entries_max(&self) -> u64 {
        self.state.reads.entries_max()
    }
}

impl DatabaseState {
    fn open(&self) -> Result<fjall::Database, Error> {
        restore_lock_file(&self.path).map_err(fjall::Error::from)?;
        Ok(fjall::Database::builder(&self.path)
            .cache_size(self.cache_bytes)
            .max_journaling_size(JOURNAL_BYTES_MAX)
            .max_cached_files(Some(self.open_files_max))
            .worker_threads_unchecked(self.workers)
            .manual_journal_persist(true)
            .open()?)
    }

    fn next_generation(&self) -> u64 {
        self.generation.fetch_add(1, Ordering::Relaxed) + 1
    }

    fn read(&self) -> RwLockReadGuard<'_, Option<OpenDatabase>> {
        self.current.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Option<OpenDatabase>> {
        self.current.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_used(&self) -> MutexGuard<'_, Option<Box<IsUsed>>> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_slots(&self) -> MutexGuard<'_, KeyspaceSlots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OpenDatabase {
    pub(super) fn keyspaces(&self) -> Vec<fjall::Keyspace> {
        let keyspaces = self.inner.supervisor.keyspaces.read();
        let keyspaces = keyspaces.unwrap_or_else(PoisonError::into_inner);
        keyspaces.values().cloned().collect()
    }
}

impl KeyspaceSlots {
    /// The keyspaces in use, with their names unless they are deleted.
    fn in_use(&self) -> Vec<(Option<&str>, Arc<HandleSlot>)> {
        let named = self.by_name.iter();
        let named = named.map(|(name, slot)| (Some(name.as_str()), slot));
        let deleted = self.deleted.iter().map(|slot| (None, slot));
        named
            .chain(deleted)
            .filter_map(|(name, slot)| Some((name, slot.upgrade()?)))
            .collect()
    }
}

/// Creates the key-value store's lock file if it is missing. The store does not open without it, but it is
/// empty, and a copy of a directory may lack lock files.
fn restore_lock_file(store: &Path) -> std::io::Result<()> {
    let lock = store.join(LOCK_FILE);
    if store.exists() && !lock.exists() {
        permissions::create_file(&lock)?;
    }
    Ok(())
}

fn open_keyspace(database: &fjall::Database, name: &str) -> Result<fjall::Keyspace, Error> {
    Ok(match name {
        layout::EXPIRY_KEYSPACE | layout::EXPIRY_PAGES_KEYSPACE => {
            database.keyspace(name, expiry_options)
        }
        _ => database.keyspace(name, options),
    }?)
}

/// Expiry lists are only read in order: no filters, and blocks that compress well.
fn expiry_options() -> KeyspaceCreateOptions {
    options()
        .filter_policy(FilterPolicy::disabled())
        .max_memtable_size(EXPIRY_MEMTABLE_BYTES)
        .data_block_size_policy(BlockSizePolicy::all(16 * 1024))
}

fn options() -> KeyspaceCreateOptions {
    KeyspaceCreateOptions::default()
        .compaction_strategy(Arc::new(
            Leveled::default()
                .with_l0_threshold(FLUSHED_FILES)
                .with_table_target_size(FILE_BYTES),
        ))
        .manual_journal_persist(true)
        .max_memtable_size(MEMTABLE_BYTES)
        .data_block_size_policy(BlockSizePolicy::all(4 * 1024))
        // IMPORTANT: a file that compaction moves to another level keeps its pinned blocks, so pinning at any
        // level makes memory grow with the data. Without pinning, indexes and filters are only in the cache,
        // which has a limit.
        .index_block_pinning_policy(PinningPolicy::disabled())
        .filter_block_pinning_policy(PinningPolicy::disabled())
        .data_block_compression_policy(CompressionPolicy::new([
            CompressionType::None,
            CompressionType::Lz4,
        ]))
}

#[cfg(test)]
mod tests {
    use homeport_item::schema::TableSchema;
    use homeport_item::{Item, KeyKind};
    use homeport_store::{Get, Put, Store as _};

    use super::*;
    use crate::engine::Engine;
    use crate::storage::seal::master::MasterKey;
    use crate::storage::vault::UserValue;

    fn options() -> Options {
        let key = MasterKey::parse(&format!("{}0", "d".repeat(63))).unwrap();
        Options {
            master_key: Some(key),
            background_sweep: false,
            workers: 1,
            ..Options::default()
        }
    }

    /// Creates a sealed store with two items and lets `tamper` change it without the key while it is closed.
    async fn tampered_with(directory: &Path, tamper: impl FnOnce(&Database, &Keyspace)) -> Engine {
        let engine = Engine::open(directory, options()).unwrap();
        let table = TableSchema::new("things", "id", KeyKind::S);
        engine.create_table(table).await.unwrap();
        for id in ["one", "two"] {
            let item = Item::new().with("id", id).with("of", id);
            engine.put(Put::new("things", item)).await.unwrap();
        }
        drop(engine);
        let store = directory.join(layout::STORE_DIR);
        let raw = Database::open(&store, &options(), None).unwrap();
        // Like a start of the engine does.
        raw.skip_to_sequence(raw.next_sequence() + (1 << 20));
        let items = raw.keyspace("t1").unwrap();
        tamper(&raw, &items);
        drop((items, raw));
        Engine::open(directory, options()).unwrap()
    }

    fn raw_entries(items: &Keyspace) -> Vec<(fjall::UserKey, UserValue)> {
        items
            .iter()
            .map(|guard| guard.into_inner().unwrap())
            .collect()
    }

    async fn get(engine: &Engine, id: &str) -> Result<Option<Item>, homeport_store::StoreError> {
        let key = Item::new().with("id", id);
        engine.get(Get::new("things", key)).await
    }

    async fn assert_noticed(engine: &Engine, ids: &[&str]) {
        for id in ids {
            let error = get(engine, id).await.unwrap_err().to_string();
            assert!(error.contains("cannot be decrypted"), "{id}: {error}");
        }
        let report = engine.check().await.unwrap();
        assert_eq!(report.problems, ids.len() as u64);
        for id in ids {
            let name = format!("item {{\"id\":{{\"S\":\"{id}\"}}}} cannot be decrypted");
            let is_named = report.descriptions.iter().any(|text| text.contains(&name));
            assert!(is_named, "{:?}", report.descriptions);
        }
    }

    fn flush(keyspace: &Keyspace) {
        assert!(keyspace.rotate_memtable().unwrap());
        let started = Instant::now();
        while keyspace.has_unflushed() {
            assert!(started.elapsed() < Duration::from_secs(30));
            std::thread::sleep(CLOSE_POLL);
        }
    }

    /// lsm-tree issue 315: a point read searched an older file first if the key ranges of three files
    /// overlap.
    #[test]
    fn point_reads_find_the_newest_of_overlapping_files() {
        let ranges = [["a", "c"], ["a", "z"], ["m", "p"]];
        for order in [
            [0, 1, 2],
            [0, 2, 1],
            [1, 0, 2],
            [1, 2, 0],
            [2, 0, 1],
            [2, 1, 0],
        ] {
            let directory = tempfile::tempdir().unwrap();
            let options = super::Options {
                workers: 1,
                ..options()
            };
            let mut newest = BTreeMap::new();
            let database = Database::open(directory.path(), &options, None).unwrap();
            let keyspace = database.keyspace("t1").unwrap();
            for file in order {
                let mut batch = database.batch();
                for key in ranges[file] {
                    let value = format!("{key} in {file}");
                    batch.insert(&keyspace, key, value.as_str());
                    newest.insert(key, value);
                }
                batch.commit(PersistMode::Buffer).unwrap();
                flush(&keyspace);
            }
            let assert_newest = |keyspace: &Keyspace| {
                for (key, value) in &newest {
                    let found = keyspace.get(key).unwrap().unwrap();
                    assert_eq!(&*found, value.as_bytes(), "{order:?}");
                }
            };
            assert_newest(&keyspace);
            drop((keyspace, database));
            let database = Database::open(directory.path(), &options, None).unwrap();
            assert_newest(&database.keyspace("t1").unwrap());
        }
    }

    #[tokio::test]
    async fn swapped_values_are_detected_and_named() {
        let directory = tempfile::tempdir().unwrap();
        let engine = tampered_with(directory.path(), |raw, items| {
            let entries = raw_entries(items);
            assert_eq!(entries.len(), 2);
            let mut batch = raw.batch();
            batch.insert(items, entries[0].0.clone(), entries[1].1.clone());
            batch.insert(items, entries[1].0.clone(), entries[0].1.clone());
            batch.commit(PersistMode::SyncAll).unwrap();
        })
        .await;
        assert_noticed(&engine, &["one", "two"]).await;
    }

    #[tokio::test]
    async fn plain_value_in_a_sealed_store_is_detected() {
        let directory = tempfile::tempdir().unwrap();
        let engine = tampered_with(directory.path(), |raw, items| {
            let item = Item::new().with("id", "one").with("of", "an intruder");
            let table = TableSchema::new("things", "id", KeyKind::S);
            let key = layout::item_key(item.get("id").unwrap(), None);
            let mut batch = raw.batch();
            batch.insert(
                items,
                key,
                crate::storage::record::encode(&item, &table.key),
            );
            batch.commit(PersistMode::SyncAll).unwrap();
        })
        .await;
        assert_noticed(&engine, &["one"]).await;
        assert!(get(&engine, "two").await.unwrap().is_some());
    }

    #[tokio::test]
    async fn emptied_value_is_detected() {
        let directory = tempfile::tempdir().unwrap();
        let engine = tampered_with(directory.path(), |raw, items| {
            let (key, _) = raw_entries(items).swap_remove(0);
            let mut batch = raw.batch();
            batch.insert(items, key, UserValue::from(&b""[..]));
            batch.commit(PersistMode::SyncAll).unwrap();
        })
        .await;
        let read = [get(&engine, "one").await, get(&engine, "two").await];
        assert_eq!(read.iter().filter(|read| read.is_err()).count(), 1);
        assert_eq!(engine.check().await.unwrap().problems, 1);
    }

    #[test]
    fn files_pin_no_index_or_filter_in_memory() {
        let directory = tempfile::tempdir().unwrap();
        let database = fjall::Database::builder(directory.path()).open().unwrap();
        let keyspace = database.keyspace("items", super::options).unwrap();
        // Enough files for a compaction, which only moves them because their keys do not overlap.
        for key in 0..FLUSHED_FILES {
            keyspace.insert([key], "value").unwrap();
            keyspace.rotate_memtable_and_wait().unwrap();
        }
        let version = keyspace.tree.current_version();
        assert_eq!(version.iter_tables().count(), usize::from(FLUSHED_FILES));
        for file in version.iter_tables() {
            assert_eq!(file.pinned_block_index_size(), 0);
            assert_eq!(file.pinned_filter_size(), 0);
        }
    }
}
