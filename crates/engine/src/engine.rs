//! The public API of the engine: opening, closing, and the operations beyond the `Store` trait.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;

use homeport_item::schema::{IndexSchema, StreamView, TableSchema};
use homeport_store::{BatchGet, BatchGetOutput, Clock, Get, Query, Scan, StoreError};

use crate::archive::backup::{BackupError, BackupSummary};
use crate::archive::copying::TableCopy;
use crate::archive::restoring::Chunk;
use crate::archive::{backup, table_backups};
use crate::catalogue::table::{Table, TableDescription, TableSize, TableView};
use crate::catalogue::{Catalogue, SharedCatalogue};
use crate::catalogue::{jobs, size, tables};
use crate::changes::log::{self, ChangePage};
use crate::commit::commit_clock::{self, ClockStatus, CommitClock};
use crate::commit::committer::Committer;
use crate::commit::writer::CommitRecord;
use crate::error::{OpenError, TableError, unavailable};
use crate::expiry::sorting;
use crate::expiry::sweep::{self, SweepMode, Swept};
use crate::metrics::MetricsSnapshot;
use crate::options::Options;
use crate::read::{Attributes, StoredPage};
use crate::shared::{RecoveredState, Shared, run_exclusive, stopped};
use crate::storage::check::{CheckReport, ConcurrentWrites};
use crate::storage::directory;
use crate::storage::disk_space::SpaceLevel;
use crate::storage::integrity::marks::Marks;
use crate::storage::integrity::verify::{self, VerifyScope};
use crate::storage::opening::{self, OpenedStore};
use crate::storage::record::StoredItem;
use crate::storage::vault::{self, Database, Keyspace, UserKey, UserValue};
use crate::storage::{check, layout, watch};
use crate::threads;

/// How often compacting checks whether a flush is complete.
const FLUSH_POLL: Duration = Duration::from_millis(1);
/// The maximum number of changes that one call returns.
pub const CHANGES_PAGE_MAX: usize = 1000;
/// The maximum number of changes that one call reads, including those kept only for a table's history, which
/// it skips.
const CHANGES_READ_MAX: usize = 10_000;

/// What a store can currently do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// Everything.
    Ready,
    /// Reads and deletes, because the disk is nearly full.
    DiskShort,
    /// Reads, because the disk is full.
    DiskFull,
    /// Reads, until the store has reopened itself after a failed write; with the reason.
    WritesFailed(String),
    /// Nothing, until the store has reopened itself; with the error of the last attempt.
    Closed(String),
    /// Reads, until the process is restarted; with the reason.
    NeedsRestart(String),
}

/// An open store. Clones share it; it closes when the last one is dropped.
#[derive(Clone)]
pub struct Engine {
    handle: Arc<EngineHandle>,
}

struct EngineHandle {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

impl Drop for EngineHandle {
    fn drop(&mut self) {
        self.shared.stopping.store(true, Ordering::Release);
        for job in self.shared.take_jobs() {
            let _ = job.join();
        }
        self.shared.stop_committer();
        for thread in self.threads.drain(..) {
            thread.thread().unpark();
            let _ = thread.join();
        }
        // One may have been started while the others were being joined.
        for job in self.shared.take_jobs() {
            let _ = job.join();
        }
        // The committer may have written after the last sync.
        watch::sync(&self.shared);
        watch::update_marks(&self.shared);
    }
}

impl Engine {
    /// Opens the data directory at `path`, creating it if it is missing.
    ///
    /// # Errors
    /// Fails if another process has it open, or it is damaged, unreadable or unwritable.
    pub fn open(path: impl AsRef<Path>, options: Options) -> Result<Self, OpenError> {
        Self::open_since(path.as_ref(), options, None)
    }

    /// Creates a data directory for data that was written elsewhere until `commit_ms`, its commit time. If
    /// the wall clock is implausibly far ahead of that time, it has to be confirmed before anything expires.
    /// Without `commit_ms`, the wall clock is trusted.
    pub(crate) async fn create_from(
        path: &Path,
        options: Options,
        commit_ms: Option<i64>,
    ) -> Result<Self, BackupError> {
        let engine = Self::open_since(path, options, commit_ms)?;
        // Even a store without tables records the time.
        let written = engine.shared().exclusive(Committer::write_time);
        written.await.map_err(|_| stopped())??;
        Ok(engine)
    }

    /// Opens a data directory. `commit_ms` is used if the directory has no commit time.
    fn open_since(
        path: &Path,
        options: Options,
        commit_ms: Option<i64>,
    ) -> Result<Self, OpenError> {
        let opened = directory::prepare(path, options.master_key.as_ref())?;
        let keyring = opened.store_id();
        let verified = verify::verify(path, opened.is_outdated, keyring, VerifyScope::Start)?;
        if verified.is_unfinished {
            directory::remove_unfinished_store(path)?;
        }
        let marks = Marks::open(path, &verified, keyring)?;
        let storage = |error: vault::Error| OpenError::Storage(error.to_string());
        let sealer = opened.sealer(path, &options);
        let store = opening::open(&marks, &verified, |store| {
            // IMPORTANT: before anything is written that older versions would drop, and after the mark.
            opened.raise_format(path)?;
            Database::open(store, &options, sealer).map_err(storage)
        })?;
        let on_disk = store.commit_on_disk();
        let OpenedStore {
            database,
            keyspaces,
            last,
            unwritten,
        } = store;
        let record = keyspaces.meta.get(layout::TIME_KEY).map_err(storage)?;
        let commit_ms = match record {
            Some(record) => Some(commit_clock::decode(&record)?),
            None => commit_ms,
        };
        let commit_clock = CommitClock::new(commit_ms, options.clock.now_ms());
        let catalogue = Catalogue::load(&database, &keyspaces)?;
        let unfinished: Vec<_> = catalogue
            .tables()
            .filter(|table| table.has_job())
            .map(|table| table.id())
            .collect();
        let shared = Shared::new(
            options,
            database,
            keyspaces,
            SharedCatalogue::new(catalogue),
            RecoveredState {
                record: last,
                on_disk,
                clock: commit_clock,
            },
            marks,
            opened.lock,
        );
        let shared = Arc::new(shared);
        if let Some(reason) = unwritten {
            // It can be read, and is reopened once it can be written.
            shared.latch.close(&reason);
        }
        tables::drop_unused_keyspaces(&shared, verified.marked.is_none());
        watch::update_marks(&shared);
        table_backups::drop_orphans(&shared);
        let committer = Committer::new(Arc::clone(&shared), last)?;
        let threads = vec![
            threads::spawn(&shared, "homeport-commit", move |_| committer.run())?,
            threads::spawn(&shared, "homeport-sweep", sweep::run)?,
            threads::spawn(&shared, "homeport-watch", watch::run)?,
        ];
        for table in unfinished {
            jobs::start(&shared, table);
        }
        Ok(Self {
            handle: Arc::new(EngineHandle { shared, threads }),
        })
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.handle.shared
    }

    /// Creates a table.
    ///
    /// # Errors
    /// Fails if it exists or its schema is invalid.
    pub async fn create_table(&self, schema: TableSchema) -> Result<TableDescription, TableError> {
        self.shared().create_table(schema, String::new()).await
    }

    /// Creates a table with the opaque settings of a protocol.
    ///
    /// # Errors
    /// Fails if it exists or its schema is invalid.
    pub async fn create_table_with(
        &self,
        schema: TableSchema,
        settings: String,
    ) -> Result<TableDescription, TableError> {
        self.shared().create_table(schema, settings).await
    }

    /// Changes the settings that a protocol stores with a table, atomically: nothing else changes between the
    /// settings that `change` sees and those it returns.
    ///
    /// # Errors
    /// Fails if the table does not exist, or `change` fails.
    pub async fn change_settings<E: From<TableError> + Send + 'static>(
        &self,
        table: &str,
        change: impl FnOnce(&str) -> Result<String, E> + Send + 'static,
    ) -> Result<(), E> {
        self.shared()
            .change_settings(table.to_owned(), change)
            .await
    }

    /// Deletes a table with all its contents.
    ///
    /// # Errors
    /// Fails if it does not exist.
    pub async fn delete_table(&self, name: &str) -> Result<TableDescription, TableError> {
        self.delete_table_if(name, |_| Ok(())).await
    }

    /// Deletes a table with all its contents unless `check` fails, atomically: nothing changes between the
    /// settings that `check` sees and the deletion.
    ///
    /// # Errors
    /// Fails if it does not exist, or `check` fails.
    pub async fn delete_table_if<E: From<TableError> + Send + 'static>(
        &self,
        name: &str,
        check: impl FnOnce(&str) -> Result<(), E> + Send + 'static,
    ) -> Result<TableDescription, E> {
        self.shared().delete_table(name.to_owned(), check).await
    }

    /// Adds an index. Existing items are added to it in the background; until then, it cannot be read.
    ///
    /// Fails if the table does not exist, already has such an index, or cannot have it.
    /// When the table does not exist, has such an index, or cannot have it.
    pub async fn add_index(&self, table: &str, index: IndexSchema) -> Result<(), TableError> {
        self.shared().add_index(table.to_owned(), index).await
    }

    /// Deletes an index.
    ///
    /// # Errors
    /// Fails if the table or the index does not exist.
    pub async fn delete_index(&self, table: &str, index: &str) -> Result<(), TableError> {
        self.shared()
            .delete_index(table.to_owned(), index.to_owned())
            .await
    }

    /// Sets or clears the attribute with the items' expiry.
    ///
    /// # Errors
    /// Fails if the table does not exist, or has another TTL attribute that was not cleared before.
    pub async fn set_ttl(&self, table: &str, attribute: Option<&str>) -> Result<(), TableError> {
        self.shared()
            .set_ttl(table.to_owned(), attribute.map(str::to_owned))
            .await
    }

    /// Enables or disables the table's stream.
    ///
    /// # Errors
    /// Fails if the table does not exist.
    pub async fn set_stream(
        &self,
        table: &str,
        stream: Option<StreamView>,
    ) -> Result<(), TableError> {
        self.shared().set_stream(table.to_owned(), stream).await
    }

    /// Describes a table.
    ///
    /// # Errors
    /// Fails if it does not exist.
    pub fn describe_table(&self, name: &str) -> Result<TableDescription, TableError> {
        self.shared().describe_table(name)
    }

    /// The current version of a table.
    ///
    /// # Errors
    /// Fails if it does not exist.
    pub fn table(&self, name: &str) -> Result<TableView, StoreError> {
        self.shared().catalogue.table(name).map(TableView)
    }

    /// The sizes of a table and its indexes: counted if that is quick, otherwise estimated.
    ///
    /// # Errors
    /// Fails if it does not exist or cannot be read.
    pub async fn table_size(&self, name: &str) -> Result<TableSize, StoreError> {
        let shared = Arc::clone(self.shared());
        let table = shared.catalogue.table(name)?;
        tokio::task::spawn_blocking(move || size::of_table(&shared, &table))
            .await
            .map_err(|_| stopped())?
    }

    /// The names of all tables, sorted.
    #[must_use]
    pub fn table_names(&self) -> Vec<String> {
        // In this order, because a table that finishes restoring in between is then in both.
        let mut names = self.shared().restoring.names();
        let catalogue = self.shared().catalogue.now();
        names.extend(catalogue.tables().map(|table| table.name().to_owned()));
        names.into_iter().collect()
    }

    /// Reads an item, which is decoded on demand.
    ///
    /// # Errors
    /// Fails if the table does not exist or the key is invalid.
    pub fn get_stored(&self, request: &Get) -> Result<Option<StoredItem>, StoreError> {
        self.shared().get(request)
    }

    /// Reads several items from one snapshot, in the order of the requests, decoded on demand. The caller
    /// applies the projections.
    ///
    /// # Errors
    /// Fails if a table does not exist or a key is invalid.
    pub fn get_stored_together(
        &self,
        requests: &[Get],
    ) -> Result<Vec<Option<StoredItem>>, StoreError> {
        self.shared().transact_get(requests)
    }

    /// Reads a page of a query, with items that are decoded on demand. The caller applies the projection.
    ///
    /// # Errors
    /// Fails if the table or index does not exist or the request is invalid.
    pub fn query_stored(&self, request: &Query) -> Result<StoredPage, StoreError> {
        self.shared().query(request, Attributes::Projected)
    }

    /// Like [`Engine::query_stored`], with a choice of attributes.
    ///
    /// # Errors
    /// Like [`Engine::query_stored`]; also fails if a global index does not carry all attributes.
    pub fn query_stored_with(
        &self,
        request: &Query,
        attributes: Attributes,
    ) -> Result<StoredPage, StoreError> {
        self.shared().query(request, attributes)
    }

    /// Reads a page of a scan, with items that are decoded on demand. The caller applies the projection.
    ///
    /// # Errors
    /// Fails if the table or index does not exist or the request is invalid.
    pub fn scan_stored(&self, request: &Scan) -> Result<StoredPage, StoreError> {
        self.shared().scan(request, Attributes::Projected)
    }

    /// Like [`Engine::scan_stored`], with a choice of attributes.
    ///
    /// # Errors
    /// Like [`Engine::scan_stored`]; also fails if a global index does not carry all attributes.
    pub fn scan_stored_with(
        &self,
        request: &Scan,
        attributes: Attributes,
    ) -> Result<StoredPage, StoreError> {
        self.shared().scan(request, attributes)
    }

    pub(crate) fn batch_get_now(&self, request: &BatchGet) -> Result<BatchGetOutput, StoreError> {
        self.shared().batch_get(request)
    }

    /// Reads up to `limit` changes of a table from sequence number `from` on; 0 is the oldest kept. Damaged
    /// changes are skipped.
    ///
    /// # Errors
    /// Fails if the table does not exist or the log cannot be read.
    pub fn changes(&self, table: &str, from: u64, limit: usize) -> Result<ChangePage, StoreError> {
        let shared = self.shared();
        let table = shared.catalogue.table(table)?;
        let limit = limit.min(CHANGES_PAGE_MAX);
        let snapshot = shared.database.snapshot();
        let trimmed = snapshot
            .get(&shared.keyspaces.meta, layout::trimmed_key(table.id()))
            .map_err(unavailable)?
            .map(|last| sequence_of(&last))
            .transpose()?;
        let range = layout::change_key(table.id(), from)..=layout::change_key(table.id(), u64::MAX);
        let mut page = ChangePage {
            next: from,
            trimmed_to: trimmed
                .filter(|last| from > 0 && from <= *last)
                .map(|last| last + 1),
            ..ChangePage::default()
        };
        let entries = snapshot.range(&shared.keyspaces.changes, range);
        for (position, guard) in entries.enumerate() {
            if page.changes.len() >= limit || position >= CHANGES_READ_MAX {
                return Ok(page);
            }
            let logged = log::read(&table.key, guard)?;
            page.next = logged.sequence + 1;
            page.has_damage |= logged.is_damaged;
            page.changes.extend(logged.change);
        }
        if page.changes.len() < limit {
            // This table has no more changes before the next change of any table.
            let record = snapshot.get(&shared.keyspaces.meta, layout::COMMIT_KEY);
            page.next = page.next.max(next_change_in(record)?);
        }
        Ok(page)
    }

    /// Whether changes of a table have been trimmed from the log.
    pub(crate) fn has_trimmed(&self, table: &str) -> Result<bool, StoreError> {
        let shared = self.shared();
        let key = layout::trimmed_key(shared.catalogue.table(table)?.id());
        shared.keyspaces.meta.contains_key(key).map_err(unavailable)
    }

    /// The sequence number of the next change of any table.
    #[must_use]
    pub fn next_change(&self) -> u64 {
        *self.shared().last_change.borrow()
    }

    /// Like [`Engine::next_change`], read from the store.
    pub(crate) fn readable_end(&self) -> Result<u64, StoreError> {
        next_change_in(self.shared().keyspaces.meta.get(layout::COMMIT_KEY))
    }

    /// Waits until the log has grown beyond `from`, the `next` of a page of [`Engine::changes`]. Changes of
    /// other tables may end the wait.
    pub async fn wait_for_changes(&self, from: u64) {
        let mut last = self.shared().last_change.subscribe();
        // An error means that the engine is closing: there is nothing to wait for.
        let _ = last.wait_for(|next| *next > from).await;
    }

    /// Deletes what is due now: expired items, old changes, old client tokens. The engine does this in the
    /// background unless that is disabled. Nothing is deleted while the time has to be confirmed
    /// ([`Engine::clock_status`]).
    ///
    /// # Errors
    /// Fails if the store cannot be read or written.
    pub async fn sweep(&self) -> Result<Swept, StoreError> {
        let shared = Arc::clone(self.shared());
        tokio::task::spawn_blocking(move || sweep::sweep(&shared, SweepMode::AllWindows))
            .await
            .map_err(|_| stopped())?
    }

    /// The state of the clocks, and whether the time has to be confirmed.
    #[must_use]
    pub fn clock_status(&self) -> ClockStatus {
        let shared = self.shared();
        shared.commit_clock.status(shared.options.clock.now_ms())
    }

    /// A clock for deleting old data: it ignores unconfirmed clock jumps.
    #[must_use]
    pub fn removal_clock(&self) -> Arc<dyn Clock> {
        Arc::new(RemovalClock(self.clone()))
    }

    /// Confirms that the wall clock is right: expiry and trimming resume, also after a restart.
    ///
    /// # Errors
    /// Fails if the confirmed time cannot be written.
    pub async fn confirm_time(&self) -> Result<ClockStatus, StoreError> {
        let confirm = self.shared().exclusive(|committer| {
            let shared = &committer.shared;
            shared.commit_clock.confirm(shared.options.clock.now_ms());
            committer.write_time()
        });
        confirm.await.map_err(|_| stopped())??;
        Ok(self.clock_status())
    }

    /// What the store can currently do.
    #[must_use]
    pub fn condition(&self) -> Condition {
        let shared = self.shared();
        if let Some(failure) = shared.latch.failure() {
            return match failure.reopen_error {
                _ if failure.needs_restart => Condition::NeedsRestart(failure.reason),
                Some(error) => Condition::Closed(error),
                None => Condition::WritesFailed(failure.reason),
            };
        }
        match shared.disk_space.now() {
            SpaceLevel::Enough => Condition::Ready,
            SpaceLevel::Low => Condition::DiskShort,
            SpaceLevel::Exhausted => Condition::DiskFull,
        }
    }

    /// Counters and sizes.
    #[must_use]
    pub fn metrics(&self) -> MetricsSnapshot {
        let shared = self.shared();
        MetricsSnapshot {
            queued_bytes: shared.queued_bytes(),
            write_buffer_bytes: shared.database.write_buffer_bytes(),
            cache_bytes: shared.database.cache_bytes(),
            disk_bytes: shared.database.disk_bytes(),
            disk_free_bytes: shared.disk_space.free_bytes().unwrap_or(0),
            reopened: shared.latch.reopened(),
            snapshot_entries_max: shared.database.snapshot_entries_max(),
            ..shared.metrics.snapshot()
        }
    }

    /// Rewrites everything on disk in its smallest form. This takes long and is never required; it is for
    /// measurements and before copying a directory.
    ///
    /// # Errors
    /// Fails if the store cannot be read or written.
    pub async fn compact(&self) -> Result<(), StoreError> {
        let shared = Arc::clone(self.shared());
        tokio::task::spawn_blocking(move || {
            sorting::sort_all(&shared)?;
            for name in shared.database.keyspace_names() {
                let keyspace = shared.database.keyspace(&name).map_err(unavailable)?;
                flush(&shared, &keyspace)?;
                keyspace.major_compact().map_err(unavailable)?;
            }
            Ok(())
        })
        .await
        .map_err(|_| stopped())?
    }

    /// Checks that items, index entries and expiry entries agree. ConcurrentWrites continue in the meantime; tables
    /// that are altered or deleted are skipped.
    ///
    /// # Errors
    /// Fails if the store cannot be read.
    pub async fn check(&self) -> Result<CheckReport, StoreError> {
        let shared = Arc::clone(self.shared());
        tokio::task::spawn_blocking(move || {
            let (catalogue, copy) = run_exclusive(&shared, |committer| {
                let catalogue = committer.shared.catalogue.now();
                let tables: Vec<_> = catalogue.tables().cloned().collect();
                Ok::<_, StoreError>((catalogue, TableCopy::begin(committer, &tables)))
            })?;
            let writes = ConcurrentWrites {
                copy: &copy,
                catalogue: &shared.catalogue,
            };
            let (database, keyspaces) = (&shared.database, &shared.keyspaces);
            check::check(&catalogue, database, keyspaces, Some(&writes))
        })
        .await
        .map_err(|_| stopped())?
    }

    /// Backs up all tables, as they are at one moment, to a new file. ConcurrentWrites continue in the meantime.
    ///
    /// # Errors
    /// Fails if the file exists or cannot be written, or the store cannot be read.
    pub async fn backup(&self, path: impl AsRef<Path>) -> Result<BackupSummary, BackupError> {
        let shared = Arc::clone(self.shared());
        let path = path.as_ref().to_owned();
        tokio::task::spawn_blocking(move || backup::backup(&shared, &path))
            .await
            .map_err(|_| BackupError::Store(stopped()))?
    }

    /// ConcurrentWrites restored items into a table unchanged, including items that lack index keys.
    pub(crate) async fn load_items(
        &self,
        table: &Arc<Table>,
        items: Vec<(UserKey, UserValue)>,
    ) -> Result<(), StoreError> {
        let mut items = items.into_iter().peekable();
        let mut chunk = Chunk::default();
        while let Some((key, value)) = items.next() {
            chunk.add(key, Some(value));
            if !chunk.is_full() && items.peek().is_some() {
                continue;
            }
            self.shared().disk_space.check()?;
            let (chunk, table) = (std::mem::take(&mut chunk), Arc::clone(table));
            let written = self
                .shared()
                .exclusive(move |committer| chunk.write(committer, &table));
            written.await.map_err(|_| stopped())??;
        }
        Ok(())
    }
}

#[derive(Debug)]
struct RemovalClock(Engine);

impl Clock for RemovalClock {
    fn now_ms(&self) -> i64 {
        self.0.shared().times().removal_ms()
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Engine")
            .field("tables", &self.table_names())
            .finish_non_exhaustive()
    }
}

/// Flushes a keyspace's memtable to table files. The key-value store's own call for this waits forever after
/// a failed flush.
pub(crate) fn flush(shared: &Shared, keyspace: &Keyspace) -> Result<(), StoreError> {
    if !keyspace.rotate_memtable().map_err(unavailable)? {
        return Ok(());
    }
    while keyspace.has_unflushed() {
        if shared.stopping.load(Ordering::Acquire) {
            return Err(stopped());
        }
        shared.notice_failure()?;
        std::thread::sleep(FLUSH_POLL);
    }
    Ok(())
}

/// The sequence number of the next change, from a commit record.
fn next_change_in(record: Result<Option<UserValue>, vault::Error>) -> Result<u64, StoreError> {
    let record = record.map_err(unavailable)?;
    let record = record.and_then(|bytes| CommitRecord::decode(&bytes));
    Ok(record.map_or(0, |record| record.next_change))
}

pub(crate) fn sequence_of(key: &[u8]) -> Result<u64, StoreError> {
    key.last_chunk::<8>()
        .filter(|_| key.len() == 12)
        .map(|sequence| u64::from_be_bytes(*sequence))
        .ok_or_else(|| unavailable("a change's key is damaged"))
}
