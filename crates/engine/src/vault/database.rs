//! The key-value store as a whole, how its keyspaces are made, and how it is reopened: the key-value store
//! takes no more writes once one has failed, and only opening it again tells what is on disk.

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

use crate::layout;
use crate::options::Options;
use crate::permissions;
use crate::seal::sealer::Sealer;
use crate::vault::files;
use crate::vault::keyspace::{Handle, Slot, Walks};
use crate::vault::{Batch, Error, Keyspace, PersistMode, Snapshot};
use crate::writer::CommitRecord;

/// Journals may take this much before what they hold is forced into the tables' own files; it
/// bounds what a start after a crash has to read again.
const JOURNAL_BYTES_MAX: u64 = 128 * 1024 * 1024;

/// A keyspace's share of the write buffer before it is flushed.
const MEMTABLE_BYTES: u64 = 16 * 1024 * 1024;
/// The same of what expires, which is appended: flushing it early costs no merging.
const EXPIRY_MEMTABLE_BYTES: u64 = 8 * 1024 * 1024;

/// So many flushed files are merged into the first level below them at once. Merging half as many costs the
/// workers over a third more CPU time, as the level is written anew each time.
const FLUSHED_FILES: u8 = 8;

/// Files that compactions make are about this large. `FLUSHED_FILES` of them are what the first level may
/// hold: it should be little more than what comes in. Flushed files are 16 MiB and compress to a third.
const FILE_BYTES: u64 = 8 * 1024 * 1024;

/// The lock file of the key-value store.
const LOCK_FILE: &str = "lock";

/// The key-value store keeps at least so many files open.
const OPEN_FILES_MIN: usize = 10;
/// How often closing looks whether reads have ended.
const CLOSE_POLL: Duration = Duration::from_millis(1);

/// Room for entries that a new batch has.
const BATCH_ENTRIES: usize = 64;

/// Clones share it. It outlives a reopening, and so do its keyspaces.
#[derive(Clone)]
pub(crate) struct Database {
    place: Arc<Place>,
    sealer: Option<Arc<Sealer>>,
}

struct Place {
    path: PathBuf,
    cache_bytes: u64,
    workers: usize,
    open_files_max: usize,
    generation: AtomicU64,
    current: RwLock<Option<Opened>>,
    slots: Mutex<Slots>,
    walks: Arc<Walks>,
    /// Whether the store that was closed last is still in use.
    used: Mutex<Option<Box<IsUsed>>>,
}

type IsUsed = dyn Fn() -> bool + Send;

/// The key-value store's own handle, and how often it was opened before.
#[derive(Clone)]
pub(super) struct Opened {
    generation: u64,
    inner: fjall::Database,
}

/// The keyspaces that someone uses.
#[derive(Default)]
struct Slots {
    by_name: HashMap<String, Weak<Slot>>,
    /// Those of deleted keyspaces that are still read.
    deleted: Vec<Weak<Slot>>,
}

impl Database {
    /// Opens or makes the store at `path`. With a sealer, values are sealed.
    pub(crate) fn open(
        path: &Path,
        options: &Options,
        sealer: Option<Arc<Sealer>>,
    ) -> Result<Self, Error> {
        Self::open_with(path, options, sealer, options.workers.max(1))
    }

    /// The same, without threads that flush and compact: for a store that is only read.
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
        let place = Place {
            path: path.to_owned(),
            cache_bytes: options.cache_bytes,
            workers,
            open_files_max: options.open_files_max.max(OPEN_FILES_MIN),
            generation: AtomicU64::default(),
            current: RwLock::default(),
            slots: Mutex::default(),
            walks: Arc::default(),
            used: Mutex::default(),
        };
        let inner = place.open()?;
        let generation = 0;
        *place.write() = Some(Opened { generation, inner });
        Ok(Self {
            place: Arc::new(place),
            sealer,
        })
    }

    /// Closes the store: until [`Database::reopen`], all reads and writes fail. Waits for reads that have
    /// begun, up to `wait_max`; whether they have ended.
    pub(crate) fn close(&self, wait_max: Duration) -> bool {
        for (_, slot) in self.place.lock_slots().in_use() {
            slot.replace(None);
        }
        let closed = self.place.write().take();
        if let Some(Opened { inner, .. }) = closed {
            // All that has the store open refers to it.
            let used = Arc::downgrade(&inner.supervisor.keyspaces);
            *self.place.lock_used() = Some(Box::new(move || used.strong_count() > 0));
        }
        let started = Instant::now();
        loop {
            let is_used = self.place.lock_used().as_ref().is_some_and(|used| used());
            if !is_used || started.elapsed() >= wait_max {
                return !is_used;
            }
            std::thread::sleep(CLOSE_POLL);
        }
    }

    /// Opens the store that was closed, if it has the group `acknowledged`. Keyspaces that are in use can be
    /// used again.
    pub(crate) fn reopen(&self, acknowledged: u64) -> Result<(), Error> {
        let inner = self.place.open()?;
        let meta = open_keyspace(&inner, layout::META_KEYSPACE)?;
        let record = meta.get(layout::COMMIT_KEY)?;
        let record = record.and_then(|bytes| CommitRecord::decode(&bytes));
        if record.map_or(0, |record| record.commit) < acknowledged {
            return Err(Error::Incomplete);
        }
        let generation = self.place.next_generation();
        let slots = self.place.lock_slots();
        let mut handles = Vec::new();
        for (name, slot) in slots.in_use() {
            // Making an empty keyspace in the place of one that is gone would hide the loss.
            if let Some(name) = name
                && inner.keyspace_exists(name)
            {
                let inner = open_keyspace(&inner, name)?;
                handles.push((slot, Handle { generation, inner }));
            }
        }
        *self.place.write() = Some(Opened { generation, inner });
        for (slot, handle) in handles {
            slot.replace(Some(handle));
        }
        Ok(())
    }

    pub(super) fn opened(&self) -> Result<Opened, Error> {
        self.place.read().clone().ok_or(Error::Closed)
    }

    /// What seals values, and files that are to be as safe.
    pub(crate) fn sealer(&self) -> Option<&Sealer> {
        self.sealer.as_deref()
    }

    /// Opens or makes a keyspace.
    pub(crate) fn keyspace(&self, name: &str) -> Result<Keyspace, Error> {
        let Opened { generation, inner } = self.opened()?;
        let sealer = self.sealer_of(name);
        let mut slots = self.place.lock_slots();
        let known = slots.by_name.get(name).and_then(Weak::upgrade);
        let slot = match known {
            Some(slot) => slot,
            None => {
                let inner = open_keyspace(&inner, name)?;
                let handle = Handle { generation, inner };
                let slot = Slot::new(name, handle, Arc::clone(&self.place.walks));
                let slot = Arc::new(slot);
                slots.by_name.insert(name.to_owned(), Arc::downgrade(&slot));
                slot
            }
        };
        Ok(Keyspace { slot, sealer })
    }

    /// A keyspace that is in use.
    pub(super) fn keyspace_in_use(&self, name: &str) -> Option<Keyspace> {
        let slot = self.place.lock_slots().by_name.get(name)?.upgrade()?;
        let sealer = self.sealer_of(name);
        Some(Keyspace { slot, sealer })
    }

    fn sealer_of(&self, name: &str) -> Option<Arc<Sealer>> {
        // IMPORTANT: the only keyspace whose values are not sealed, since commit records are read
        // before the store is open. What is put there must tell nothing of anyone's data.
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

    /// The names of all keyspaces by their numbers.
    pub(crate) fn keyspace_numbers(&self) -> Result<BTreeMap<u64, String>, Error> {
        let opened = self.opened()?;
        let numbered = opened.keyspaces().into_iter().filter_map(|keyspace| {
            let number = files::keyspace_number(keyspace.path())?;
            Some((number, keyspace.name().to_string()))
        });
        Ok(numbered.collect())
    }

    /// Of each keyspace whose newest value in a journal is only in memory, and not about to be flushed: the version
    /// of its list of table files. `newest` has the sequence numbers and keys of these values by the keyspaces'
    /// numbers.
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
            // IMPORTANT: the version is read first: a flush that happens meanwhile makes a newer one.
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
        // What is in memory counts as buffered until it is flushed, also when its keyspace is gone.
        keyspace.rotate_memtable()?;
        let handle = keyspace.slot.handle()?;
        self.opened()?.inner.delete_keyspace(handle.inner)?;
        let mut slots = self.place.lock_slots();
        slots.by_name.remove(keyspace.name());
        slots.deleted.retain(|slot| slot.strong_count() > 0);
        slots.deleted.push(Arc::downgrade(&keyspace.slot));
        Ok(())
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        let opened = self.place.read();
        let inner = opened.as_ref();
        Snapshot::new(inner.map(|opened| (opened.generation, opened.inner.snapshot())))
    }

    pub(crate) fn batch(&self) -> Batch {
        let inner = self.opened().ok().map(|Opened { generation, inner }| {
            let inner = fjall::OwnedWriteBatch::with_capacity(inner, BATCH_ENTRIES);
            (generation, inner)
        });
        Batch::new(inner, self.sealer.clone())
    }

    pub(crate) fn persist(&self, mode: PersistMode) -> Result<(), Error> {
        Ok(self.opened()?.inner.persist(mode)?)
    }

    /// Fails if a flush or a merge has failed in one of the key-value store's own threads, where no
    /// caller was told.
    pub(crate) fn check_workers(&self) -> Result<(), Error> {
        self.persist(PersistMode::Buffer)
    }

    /// The number that the next change gets; 0 while the store is closed.
    pub(crate) fn next_sequence(&self) -> u64 {
        let opened = self.opened();
        opened.map_or(0, |opened| opened.inner.supervisor.seqno.get())
    }

    /// Leaves out the numbers before `next`.
    pub(crate) fn skip_to_sequence(&self, next: u64) {
        if let Ok(opened) = self.opened() {
            opened.inner.supervisor.seqno.fetch_max(next);
        }
    }

    pub(crate) fn write_buffer_bytes(&self) -> u64 {
        let opened = self.opened();
        opened.map_or(0, |opened| opened.inner.write_buffer_size())
    }

    /// Whether what is buffered is becoming less. The key-value store flushes a keyspace when that has
    /// reached its own limit, however much all of them have together: where nothing is being flushed and
    /// they have more than `limit`, the largest is set aside for it.
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

    /// The most entries that were read from one snapshot.
    pub(crate) fn snapshot_entries_max(&self) -> u64 {
        self.place.walks.entries_max()
    }
}

impl Place {
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

    fn read(&self) -> RwLockReadGuard<'_, Option<Opened>> {
        self.current.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Option<Opened>> {
        self.current.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_used(&self) -> MutexGuard<'_, Option<Box<IsUsed>>> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_slots(&self) -> MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Opened {
    pub(super) fn keyspaces(&self) -> Vec<fjall::Keyspace> {
        let keyspaces = self.inner.supervisor.keyspaces.read();
        let keyspaces = keyspaces.unwrap_or_else(PoisonError::into_inner);
        keyspaces.values().cloned().collect()
    }
}

impl Slots {
    /// The keyspaces that someone uses, with their names unless they are deleted.
    fn in_use(&self) -> Vec<(Option<&str>, Arc<Slot>)> {
        let named = self.by_name.iter();
        let named = named.map(|(name, slot)| (Some(name.as_str()), slot));
        let deleted = self.deleted.iter().map(|slot| (None, slot));
        named
            .chain(deleted)
            .filter_map(|(name, slot)| Some((name, slot.upgrade()?)))
            .collect()
    }
}

/// The key-value store does not open without its lock file, which is empty: a copy that leaves out lock files is
/// complete all the same.
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

/// What expires is only ever read in order: no filters, and blocks that compress well.
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
        // IMPORTANT: a file that compaction moves to another level keeps what it pinned, so that pinning at any level makes
        // memory grow with the data. Indexes and filters are in the cache only, which has a limit.
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
    use crate::seal::master::MasterKey;
    use crate::vault::UserValue;

    fn options() -> Options {
        let key = MasterKey::parse(&format!("{}0", "d".repeat(63))).unwrap();
        Options {
            master_key: Some(key),
            background_sweep: false,
            workers: 1,
            ..Options::default()
        }
    }

    /// Makes a sealed store of two items and hands it, closed, to someone who has the disk and no key.
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
        // As a start of ours does it.
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
            assert!(error.contains("does not open"), "{id}: {error}");
        }
        let report = engine.check().await.unwrap();
        assert_eq!(report.problems, ids.len() as u64);
        for id in ids {
            let name = format!("item {{\"id\":{{\"S\":\"{id}\"}}}} does not open");
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

    /// lsm-tree issue 315: a point read looked at an older file first where the key ranges of three files overlap.
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
    async fn values_that_were_swapped_on_disk_are_noticed_and_named() {
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
    async fn a_value_that_was_replaced_by_a_plain_one_is_noticed_and_named() {
        let directory = tempfile::tempdir().unwrap();
        let engine = tampered_with(directory.path(), |raw, items| {
            let item = Item::new().with("id", "one").with("of", "an intruder");
            let table = TableSchema::new("things", "id", KeyKind::S);
            let key = layout::item_key(item.get("id").unwrap(), None);
            let mut batch = raw.batch();
            batch.insert(items, key, crate::record::encode(&item, &table.key));
            batch.commit(PersistMode::SyncAll).unwrap();
        })
        .await;
        assert_noticed(&engine, &["one"]).await;
        assert!(get(&engine, "two").await.unwrap().is_some());
    }

    #[tokio::test]
    async fn a_value_that_was_emptied_is_noticed() {
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
        // Enough files for compaction, which moves them, for their keys do not overlap.
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
