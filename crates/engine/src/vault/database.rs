//! The key-value store as a whole, and how its keyspaces are made.

use std::path::Path;
use std::sync::{Arc, PoisonError};

use fjall::AbstractTree as _;
use fjall::compaction::Leveled;
use fjall::config::{BlockSizePolicy, CompressionPolicy, FilterPolicy};
use fjall::{CompressionType, KeyspaceCreateOptions};

use crate::layout;
use crate::options::Options;
use crate::seal::sealer::Sealer;
use crate::vault::{Batch, Error, Keyspace, PersistMode, Snapshot};

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

/// Room for entries that a new batch has.
const BATCH_ENTRIES: usize = 64;

#[derive(Clone)]
pub(crate) struct Database {
    inner: fjall::Database,
    sealer: Option<Arc<Sealer>>,
}

impl Database {
    /// Opens or makes the store at `path`. With a sealer, values are sealed.
    pub(crate) fn open(
        path: &Path,
        options: &Options,
        sealer: Option<Arc<Sealer>>,
    ) -> Result<Self, Error> {
        let inner = fjall::Database::builder(path)
            .cache_size(options.cache_bytes)
            .max_journaling_size(JOURNAL_BYTES_MAX)
            .worker_threads(options.workers.max(1))
            .manual_journal_persist(true)
            .open()?;
        Ok(Self { inner, sealer })
    }

    /// What seals values, and files that are to be as safe.
    pub(crate) fn sealer(&self) -> Option<&Sealer> {
        self.sealer.as_deref()
    }

    /// Opens or makes a keyspace.
    pub(crate) fn keyspace(&self, name: &str) -> Result<Keyspace, Error> {
        let inner = match name {
            layout::EXPIRY_KEYSPACE | layout::EXPIRY_PAGES_KEYSPACE => {
                self.inner.keyspace(name, expiry_options)
            }
            _ => self.inner.keyspace(name, options),
        }?;
        // IMPORTANT: the only keyspace whose values are not sealed, since commit records are read
        // before the store is open. What is put there must tell nothing of anyone's data.
        let is_open = name == layout::META_KEYSPACE;
        let sealer = self.sealer.clone().filter(|_| !is_open);
        Ok(Keyspace { inner, sealer })
    }

    pub(crate) fn keyspace_names(&self) -> Vec<String> {
        let names = self.inner.list_keyspace_names();
        names.iter().map(ToString::to_string).collect()
    }

    pub(crate) fn delete_keyspace(&self, keyspace: Keyspace) -> Result<(), Error> {
        // What is in memory counts as buffered until it is flushed, also when its keyspace is gone.
        keyspace.rotate_memtable()?;
        Ok(self.inner.delete_keyspace(keyspace.inner)?)
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        Snapshot(self.inner.snapshot())
    }

    pub(crate) fn batch(&self) -> Batch {
        let inner = fjall::OwnedWriteBatch::with_capacity(self.inner.clone(), BATCH_ENTRIES);
        Batch::new(inner, self.sealer.clone())
    }

    pub(crate) fn persist(&self, mode: PersistMode) -> Result<(), Error> {
        Ok(self.inner.persist(mode)?)
    }

    /// The number that the next change gets.
    pub(crate) fn next_sequence(&self) -> u64 {
        self.inner.supervisor.seqno.get()
    }

    /// Leaves out the numbers before `next`.
    pub(crate) fn skip_to_sequence(&self, next: u64) {
        self.inner.supervisor.seqno.fetch_max(next);
    }

    pub(crate) fn write_buffer_bytes(&self) -> u64 {
        self.inner.write_buffer_size()
    }

    /// Whether what is buffered is becoming less. The key-value store flushes a keyspace when that has
    /// reached its own limit, however much all of them have together: where nothing is being flushed and
    /// they have more than `limit`, the largest is set aside for it.
    pub(crate) fn is_making_room(&self, limit: u64) -> Result<bool, Error> {
        let mut active_bytes = 0;
        let mut largest: Option<(u64, fjall::Keyspace)> = None;
        {
            let keyspaces = self.inner.supervisor.keyspaces.read();
            for keyspace in keyspaces.unwrap_or_else(PoisonError::into_inner).values() {
                if keyspace.tree.sealed_memtable_count() > 0 {
                    return Ok(true);
                }
                let bytes = keyspace.tree.active_memtable().size();
                active_bytes += bytes;
                if largest.as_ref().is_none_or(|(most, _)| bytes > *most) {
                    largest = Some((bytes, keyspace.clone()));
                }
            }
        }
        match largest {
            Some((_, keyspace)) if active_bytes > limit => Ok(keyspace.rotate_memtable()?),
            _ => Ok(false),
        }
    }

    pub(crate) fn cache_bytes(&self) -> u64 {
        self.inner.cache_size()
    }

    pub(crate) fn disk_bytes(&self) -> u64 {
        self.inner.disk_space().unwrap_or(0)
    }
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
}
