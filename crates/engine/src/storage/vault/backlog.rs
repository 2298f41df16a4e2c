//! Pending flushes and compactions of the key-value store.
//!
//! IMPORTANT: with too many of them, the key-value store blocks writers in a loop that does not notice a
//! failed flush, so they would wait forever. Every writer waits here first. A store that was killed may have
//! this many right from its start.

use std::time::Duration;

use fjall::AbstractTree as _;

use crate::storage::vault::{Database, Error};

/// Memtables of a keyspace waiting for a flush, and files waiting for compaction, from which on writers wait.
/// The key-value store's own limits are 4 and 30.
const SEALED_MEMTABLES_MAX: usize = 3;
const UNMERGED_RUNS_MAX: usize = 26;
const POLL: Duration = Duration::from_millis(1);

impl Database {
    /// Waits until no keyspace has so large a backlog that the key-value store might block a writer, or until
    /// `is_stopping`. Returns whether there still is a backlog.
    ///
    /// # Errors
    /// Fails if a flush or a compaction has failed, or the store is closed.
    pub(crate) fn wait_for_backlog(&self, is_stopping: impl Fn() -> bool) -> Result<bool, Error> {
        while self.has_backlog()? {
            self.check_workers()?;
            if is_stopping() {
                return Ok(true);
            }
            std::thread::sleep(POLL);
        }
        Ok(false)
    }

    fn has_backlog(&self) -> Result<bool, Error> {
        Ok(self.opened()?.keyspaces().iter().any(|keyspace| {
            keyspace.tree.sealed_memtable_count() >= SEALED_MEMTABLES_MAX
                || keyspace.tree.l0_run_count() >= UNMERGED_RUNS_MAX
        }))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::mpsc;

    use homeport_item::schema::TableSchema;
    use homeport_item::{Item, KeyKind};
    use homeport_store::{Put, Store as _};

    use crate::catalogue::keyspaces::Keyspaces;
    use crate::engine::Engine;
    use crate::options::Options;
    use crate::storage::integrity::marks::Marks;
    use crate::storage::integrity::verify::{self, VerifyScope};
    use crate::storage::journal;
    use crate::storage::layout;
    use crate::storage::opening;
    use crate::storage::vault::{Keyspace, PersistMode};

    use super::*;

    const WAIT_MAX: Duration = Duration::from_secs(20);

    fn insert_and_seal(database: &Database, keyspace: &Keyspace) {
        let tree = &keyspace.slot.handle().unwrap().inner.tree;
        tree.insert("a test", "a test", database.next_sequence());
        tree.rotate_memtable().unwrap();
    }

    /// Seals four memtables that nothing flushes, until a flush fails a moment later.
    fn fill_backlog(database: &Database, keyspace: &Keyspace, store: &Path) {
        for _ in 0..4 {
            insert_and_seal(database, keyspace);
        }
        let (database, keyspace) = (database.clone(), keyspace.clone());
        let store = store.to_owned();
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(200));
            for keyspace in std::fs::read_dir(store.join("keyspaces")).unwrap() {
                let tables = keyspace.unwrap().path().join("tables");
                let _ = std::fs::rename(&tables, tables.with_extension("aside"));
            }
            let tree = &keyspace.slot.handle().unwrap().inner.tree;
            tree.insert("a test", "a test", database.next_sequence());
            keyspace.rotate_memtable().unwrap();
        });
    }

    fn within_time<T: Send + 'static>(run: impl FnOnce() -> T + Send + 'static) -> T {
        let (done, is_done) = mpsc::channel();
        std::thread::spawn(move || done.send(run()));
        is_done.recv_timeout(WAIT_MAX).expect("it hangs")
    }

    #[test]
    fn failed_flush_does_not_hang_opening() {
        let directory = tempfile::tempdir().unwrap();
        drop(Engine::open(directory.path(), Options::for_tests()).unwrap());
        let path = directory.path().to_owned();
        let unwritten = within_time(move || {
            let verified = verify::verify(&path, false, None, VerifyScope::None).unwrap();
            let marks = Marks::open(&path, &verified, None).unwrap();
            let opened = opening::open(&marks, &verified, |store| {
                let database = Database::open(store, &Options::for_tests(), None).unwrap();
                let meta = database.keyspace(layout::META_KEYSPACE).unwrap();
                fill_backlog(&database, &meta, store);
                Ok(database)
            });
            opened.unwrap().unwritten
        });
        assert!(unwritten.is_some());
    }

    #[test]
    fn failed_flush_does_not_hang_the_first_write() {
        let directory = tempfile::tempdir().unwrap();
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let engine = Engine::open(directory.path(), Options::for_tests()).unwrap();
        let schema = TableSchema::new("plain", "id", KeyKind::S);
        runtime.block_on(engine.create_table(schema)).unwrap();
        drop(engine);
        let engine = Engine::open(directory.path(), Options::for_tests()).unwrap();
        let shared = engine.shared();
        let table = shared.catalogue.table("plain").unwrap();
        let store = directory.path().join(layout::STORE_DIR);
        fill_backlog(&shared.database, &table.items, &store);
        let written = within_time(move || {
            let put = Put::new("plain", Item::new().with("id", "a"));
            runtime.block_on(engine.put(put)).map(|_| ())
        });
        assert!(written.is_err());
    }

    /// Seals the newest journal.
    fn seal_journal(store: &Path) {
        let (number, path) = journal::journals_in(store)
            .unwrap()
            .into_iter()
            .max()
            .unwrap();
        let mut bytes = std::fs::read(&path).unwrap();
        let end = bytes.iter().rposition(|byte| *byte != 0).unwrap();
        bytes.truncate(end + 1);
        std::fs::write(&path, bytes).unwrap();
        std::fs::write(store.join(format!("{}.jnl", number + 1)), b"").unwrap();
    }

    #[test]
    fn store_with_four_sealed_memtables_starts() {
        let directory = tempfile::tempdir().unwrap();
        drop(Engine::open(directory.path(), Options::for_tests()).unwrap());
        let store = directory.path().join(layout::STORE_DIR);
        for _ in 0..4 {
            seal_journal(&store);
            let database = Database::open_idle(&store, &Options::for_tests(), None).unwrap();
            let keyspaces = Keyspaces::open(&database).unwrap();
            let last = keyspaces.last_commit().unwrap().unwrap();
            let handle = keyspaces.meta.slot.handle().unwrap();
            if handle.inner.tree.sealed_memtable_count() < 4 {
                let mut batch = database.batch();
                batch.insert(&keyspaces.meta, layout::COMMIT_KEY, last.next().encode());
                batch.commit(PersistMode::SyncData).unwrap();
            }
        }
        let database = Database::open_idle(&store, &Options::for_tests(), None).unwrap();
        let meta = database.keyspace(layout::META_KEYSPACE).unwrap();
        let sealed = meta
            .slot
            .handle()
            .unwrap()
            .inner
            .tree
            .sealed_memtable_count();
        assert_eq!(sealed, 4);
        drop((meta, database));
        let path = directory.path().to_owned();
        let engine = within_time(move || Engine::open(path, Options::for_tests()).unwrap());
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let schema = TableSchema::new("plain", "id", KeyKind::S);
        runtime.block_on(engine.create_table(schema)).unwrap();
    }
}
