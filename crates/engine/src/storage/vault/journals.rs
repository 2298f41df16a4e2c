//! Finds idle keyspaces, which can keep old journals on disk.

use fjall::AbstractTree as _;

use crate::storage::vault::{Database, Error, Keyspace};

impl Database {
    /// Keyspaces with empty memtables whose table files only have changes before `sequence`.
    ///
    /// The key-value store deletes a journal once all its keyspaces have table files at least as new as the
    /// journal. A compaction that drops the newest tombstones makes table files older, or leaves none; only a
    /// later change makes them newer again.
    pub(crate) fn idle_since(&self, sequence: u64) -> Result<Vec<Keyspace>, Error> {
        let keyspaces = self.opened()?.keyspaces();
        let idle = keyspaces.iter().filter(|keyspace| {
            let persisted = keyspace.tree.get_highest_persisted_seqno();
            keyspace.tree.get_highest_memtable_seqno().is_none()
                && persisted.is_none_or(|persisted| persisted < sequence)
        });
        Ok(idle
            .filter_map(|keyspace| self.keyspace_in_use(keyspace.name()))
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::{Duration, Instant};

    use homeport_item::schema::TableSchema;
    use homeport_item::{Item, KeyKind, Value};
    use homeport_store::{BatchWrite, Put, Store as _, WriteRequest};

    use crate::engine::{self, Engine};
    use crate::options::{Durability, Options};
    use crate::storage::journal;
    use crate::storage::layout;
    use crate::storage::vault::PersistMode;

    /// The limit in `cargo xtask soak`.
    const JOURNAL_BYTES_MAX: u64 = 512 * 1024 * 1024;

    /// Numbers and lengths of a store's journals.
    fn journals(directory: &Path) -> Vec<(u64, u64)> {
        let listed = journal::journals_in(&directory.join(layout::STORE_DIR)).unwrap();
        let with_len =
            |(number, path): (u64, std::path::PathBuf)| Some((number, path.metadata().ok()?.len()));
        listed.into_iter().filter_map(with_len).collect()
    }

    fn total_bytes(directory: &Path) -> u64 {
        journals(directory).iter().map(|(_, len)| len).sum()
    }

    /// Incompressible bytes.
    fn noise(len: usize) -> Vec<u8> {
        let mut state = 88_172_645_463_325_252_u64;
        let next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state.to_le_bytes()
        };
        std::iter::repeat_with(next).flatten().take(len).collect()
    }

    /// Overwrites items until the key-value store starts another journal.
    async fn fill_journal(engine: &Engine, noise: &[u8]) {
        let directory = &engine.shared().directory;
        let newest = journals(directory).last().unwrap().0;
        while journals(directory).last().unwrap().0 == newest {
            let writes = (0..20).map(|id| WriteRequest::Put {
                table: "busy".to_owned(),
                item: Item::new()
                    .with("id", format!("{id}"))
                    .with("noise", Value::B(noise.to_vec())),
            });
            let request = BatchWrite {
                writes: writes.collect(),
            };
            engine.batch_write(request).await.unwrap();
        }
    }

    /// fjall issue 288.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn emptied_keyspaces_do_not_keep_journals() {
        let directory = tempfile::tempdir().unwrap();
        let options = Options {
            durability: Durability::Relaxed,
            background_sweep: false,
            disk_reserve_bytes: 0,
            workers: 2,
            ..Options::default()
        };
        let engine = Engine::open(directory.path(), options.clone()).unwrap();
        let shared = engine.shared();
        for table in ["busy", "idle"] {
            let schema = TableSchema::new(table, "id", KeyKind::S);
            engine.create_table(schema).await.unwrap();
        }
        let item = Item::new().with("id", "one");
        engine.put(Put::new("idle", item)).await.unwrap();
        let undo = &shared.keyspaces.undo;
        let mut batch = shared.database.batch();
        batch.insert(undo, "a test", "a test");
        batch.commit(PersistMode::Buffer).unwrap();
        let mut batch = shared.database.batch();
        batch.remove(undo, "a test");
        batch.commit(PersistMode::Buffer).unwrap();
        let noise = noise(390 * 1024);
        fill_journal(&engine, &noise).await;
        // The idle table keeps the first journal until it is swept.
        engine::flush(shared, undo).unwrap();
        undo.major_compact().unwrap();
        assert_eq!(undo.disk_space(), 0);
        assert_eq!(journals(directory.path())[0].0, 0);
        for _ in 0..8 {
            fill_journal(&engine, &noise).await;
            // The second pass finds the same oldest journal.
            for _ in 0..2 {
                engine.sweep().await.unwrap();
            }
            let started = Instant::now();
            while total_bytes(directory.path()) > JOURNAL_BYTES_MAX {
                let kept = journals(directory.path());
                assert!(started.elapsed() < Duration::from_secs(10), "{kept:?}");
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
        drop(engine);
        let engine = Engine::open(directory.path(), options).unwrap();
        let report = engine.check().await.unwrap();
        assert_eq!((report.items, report.problems), (21, 0));
    }
}
