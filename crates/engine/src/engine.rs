//! The engine as its users hold it: opening, closing, and the operations that go beyond the seam.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;

use homeport_item::schema::{IndexSchema, StreamView, TableSchema};
use homeport_store::{BatchGet, BatchGetAnswer, Clock, Get, Query, Scan, StoreError};

use crate::backup::{BackupError, BackupSummary};
use crate::catalogue::{Catalogue, SharedCatalogue};
use crate::changes::{self, ChangePage};
use crate::check::{CheckReport, Writes};
use crate::commit_clock::{self, ClockStatus, CommitClock};
use crate::committer::Committer;
use crate::copying::TableCopy;
use crate::directory;
use crate::disk_room::Room;
use crate::error::{OpenError, TableError, unavailable};
use crate::integrity::marks::Marks;
use crate::integrity::verify::{self, Extent};
use crate::metrics::MetricsSnapshot;
use crate::opening::{self, OpenedStore};
use crate::options::Options;
use crate::read::{Attributes, StoredPage};
use crate::record::StoredItem;
use crate::restoring::Chunk;
use crate::shared::{LastCommit, Shared, run_exclusive, stopped};
use crate::sorting;
use crate::sweep::{self, Due, Swept};
use crate::table::{Table, TableDescription, TableExtent, TableView};
use crate::vault::{self, Database, Keyspace, UserKey, UserValue};
use crate::writer::CommitRecord;
use crate::{backup, check, extent, jobs, layout, table_backups, tables, threads, watch};

/// How often compacting looks whether a flush is done.
const FLUSH_POLL: Duration = Duration::from_millis(1);
/// Changes that one call may return.
pub const CHANGES_PAGE_MAX: usize = 1000;
/// Changes that one call looks at; those that are kept for a table's history alone are passed over.
const CHANGES_LOOKED_AT_MAX: usize = 10_000;

/// What a store can do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// Everything.
    Ready,
    /// Reads and deletes: the disk is nearly full.
    DiskShort,
    /// Reads: the disk is full.
    DiskFull,
    /// Reads, until the store has reopened itself after a failed write, for this reason.
    WritesFailed(String),
    /// Nothing, until the store has reopened itself: it does so now, or the last attempt failed, as the text says.
    Closed(String),
    /// Reads. The process has to be restarted.
    NeedsRestart(String),
}

/// An open store. Clones share it; it closes when the last one is dropped.
#[derive(Clone)]
pub struct Engine {
    handle: Arc<Handle>,
}

struct Handle {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

impl Drop for Handle {
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
        // One may have been started while the first were waited for.
        for job in self.shared.take_jobs() {
            let _ = job.join();
        }
        // The committer may have written after the last sync.
        watch::sync(&self.shared);
        watch::keep_marks(&self.shared);
    }
}

impl Engine {
    /// Opens the data directory at `path`, making it if there is none.
    ///
    /// # Errors
    /// When another process has it open, it is damaged, or it cannot be read and written.
    pub fn open(path: impl AsRef<Path>, options: Options) -> Result<Self, OpenError> {
        Self::open_since(path.as_ref(), options, None)
    }

    /// Makes a data directory for data that was written elsewhere until `commit_ms`, its commit time. A wall clock that
    /// is implausibly far ahead of it has to be confirmed before anything expires. Without `commit_ms`, the wall clock
    /// is taken for right.
    pub(crate) async fn create_from(
        path: &Path,
        options: Options,
        commit_ms: Option<i64>,
    ) -> Result<Self, BackupError> {
        let engine = Self::open_since(path, options, commit_ms)?;
        // Also a store without tables keeps the time.
        let written = engine.shared().exclusive(Committer::write_time);
        written.await.map_err(|_| stopped())??;
        Ok(engine)
    }

    /// Opens a data directory. `commit_ms` is the commit time of a directory that has none.
    fn open_since(
        path: &Path,
        options: Options,
        commit_ms: Option<i64>,
    ) -> Result<Self, OpenError> {
        let opened = directory::prepare(path, options.master_key.as_ref())?;
        let keyring = opened.store_id();
        let verified = verify::verify(path, opened.is_outdated, keyring, Extent::Start)?;
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
            LastCommit {
                record: last,
                on_disk,
                clock: commit_clock,
            },
            marks,
            opened.lock,
        );
        let shared = Arc::new(shared);
        if let Some(reason) = unwritten {
            // It can be read, and is reopened when it can be written.
            shared.latch.close(&reason);
        }
        tables::drop_unused_keyspaces(&shared, verified.marked.is_none());
        watch::keep_marks(&shared);
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
            handle: Arc::new(Handle { shared, threads }),
        })
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.handle.shared
    }

    /// Makes a table.
    ///
    /// # Errors
    /// When it exists or its schema cannot be.
    pub async fn create_table(&self, schema: TableSchema) -> Result<TableDescription, TableError> {
        self.shared().create_table(schema, String::new()).await
    }

    /// Makes a table with what a protocol keeps with it.
    ///
    /// # Errors
    /// When it exists or its schema cannot be.
    pub async fn create_table_with(
        &self,
        schema: TableSchema,
        settings: String,
    ) -> Result<TableDescription, TableError> {
        self.shared().create_table(schema, settings).await
    }

    /// Changes what a protocol keeps with a table. No other change of the table happens between the settings that `change`
    /// sees and those that it returns.
    ///
    /// # Errors
    /// When the table does not exist, or `change` fails.
    pub async fn change_settings<E: From<TableError> + Send + 'static>(
        &self,
        table: &str,
        change: impl FnOnce(&str) -> Result<String, E> + Send + 'static,
    ) -> Result<(), E> {
        self.shared()
            .change_settings(table.to_owned(), change)
            .await
    }

    /// Removes a table with everything in it.
    ///
    /// # Errors
    /// When it does not exist.
    pub async fn delete_table(&self, name: &str) -> Result<TableDescription, TableError> {
        self.delete_table_if(name, |_| Ok(())).await
    }

    /// Removes a table with everything in it, unless `check` refuses. No other change of the table happens between the
    /// settings that `check` sees and the removal.
    ///
    /// # Errors
    /// When it does not exist, or `check` fails.
    pub async fn delete_table_if<E: From<TableError> + Send + 'static>(
        &self,
        name: &str,
        check: impl FnOnce(&str) -> Result<(), E> + Send + 'static,
    ) -> Result<TableDescription, E> {
        self.shared().delete_table(name.to_owned(), check).await
    }

    /// Adds an index. Items that are there already are entered in the background; until all are,
    /// the index cannot be read.
    ///
    /// # Errors
    /// When the table does not exist, has such an index, or cannot have it.
    pub async fn add_index(&self, table: &str, index: IndexSchema) -> Result<(), TableError> {
        self.shared().add_index(table.to_owned(), index).await
    }

    /// Removes an index.
    ///
    /// # Errors
    /// When the table or the index does not exist.
    pub async fn delete_index(&self, table: &str, index: &str) -> Result<(), TableError> {
        self.shared()
            .delete_index(table.to_owned(), index.to_owned())
            .await
    }

    /// Sets or removes the attribute that holds the items' expiry.
    ///
    /// # Errors
    /// When the table does not exist, or has another such attribute that was not removed before.
    pub async fn set_ttl(&self, table: &str, attribute: Option<&str>) -> Result<(), TableError> {
        self.shared()
            .set_ttl(table.to_owned(), attribute.map(str::to_owned))
            .await
    }

    /// Sets what the change log keeps of the table's changes.
    ///
    /// # Errors
    /// When the table does not exist.
    pub async fn set_stream(
        &self,
        table: &str,
        stream: Option<StreamView>,
    ) -> Result<(), TableError> {
        self.shared().set_stream(table.to_owned(), stream).await
    }

    /// What is known about a table.
    ///
    /// # Errors
    /// When it does not exist.
    pub fn describe_table(&self, name: &str) -> Result<TableDescription, TableError> {
        self.shared().describe_table(name)
    }

    /// A table as it is now.
    ///
    /// # Errors
    /// When it does not exist.
    pub fn table(&self, name: &str) -> Result<TableView, StoreError> {
        self.shared().catalogue.table(name).map(TableView)
    }

    /// How much a table and its indexes hold: counted where that is quick, otherwise estimated.
    ///
    /// # Errors
    /// When it does not exist or cannot be read.
    pub async fn table_extent(&self, name: &str) -> Result<TableExtent, StoreError> {
        let shared = Arc::clone(self.shared());
        let table = shared.catalogue.table(name)?;
        tokio::task::spawn_blocking(move || extent::of_table(&shared, &table))
            .await
            .map_err(|_| stopped())?
    }

    /// The names of all tables, in order.
    #[must_use]
    pub fn table_names(&self) -> Vec<String> {
        // In this order: a table that becomes whole in between is then in both.
        let mut names = self.shared().restoring.names();
        let catalogue = self.shared().catalogue.now();
        names.extend(catalogue.tables().map(|table| table.name().to_owned()));
        names.into_iter().collect()
    }

    /// An item that is decoded when it is looked at.
    ///
    /// # Errors
    /// When the table does not exist or the key is not one of it.
    pub fn get_stored(&self, request: &Get) -> Result<Option<StoredItem>, StoreError> {
        self.shared().get(request)
    }

    /// Several items as they were at one moment, in the order of the requests, decoded when they
    /// are looked at; the requests' projections are left to the caller.
    ///
    /// # Errors
    /// When a table does not exist or a key is not one of it.
    pub fn get_stored_together(
        &self,
        requests: &[Get],
    ) -> Result<Vec<Option<StoredItem>>, StoreError> {
        self.shared().transact_get(requests)
    }

    /// A page of a query whose items are decoded when they are looked at; the request's projection
    /// is left to the caller.
    ///
    /// # Errors
    /// When the table or index does not exist or the request is not valid.
    pub fn query_stored(&self, request: &Query) -> Result<StoredPage, StoreError> {
        self.shared().query(request, Attributes::Projected)
    }

    /// The same, with the attributes that are asked for.
    ///
    /// # Errors
    /// As [`Engine::query_stored`], and when a global index does not carry all attributes.
    pub fn query_stored_with(
        &self,
        request: &Query,
        attributes: Attributes,
    ) -> Result<StoredPage, StoreError> {
        self.shared().query(request, attributes)
    }

    /// A page of a scan whose items are decoded when they are looked at; the request's projection
    /// is left to the caller.
    ///
    /// # Errors
    /// When the table or index does not exist or the request is not valid.
    pub fn scan_stored(&self, request: &Scan) -> Result<StoredPage, StoreError> {
        self.shared().scan(request, Attributes::Projected)
    }

    /// The same, with the attributes that are asked for.
    ///
    /// # Errors
    /// As [`Engine::scan_stored`], and when a global index does not carry all attributes.
    pub fn scan_stored_with(
        &self,
        request: &Scan,
        attributes: Attributes,
    ) -> Result<StoredPage, StoreError> {
        self.shared().scan(request, attributes)
    }

    pub(crate) fn batch_get_now(&self, request: &BatchGet) -> Result<BatchGetAnswer, StoreError> {
        self.shared().batch_get(request)
    }

    /// Up to `limit` changes of a table from sequence number `from` on; 0 is the oldest kept. Damaged changes are left out.
    ///
    /// # Errors
    /// When the table does not exist or the log cannot be read.
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
        for (looked_at, guard) in entries.enumerate() {
            if page.changes.len() >= limit || looked_at >= CHANGES_LOOKED_AT_MAX {
                return Ok(page);
            }
            let logged = changes::read(&table.key, guard)?;
            page.next = logged.sequence + 1;
            page.has_damage |= logged.is_damaged;
            page.changes.extend(logged.change);
        }
        if page.changes.len() < limit {
            // Nothing of this table is left before the next change of any.
            let record = snapshot.get(&shared.keyspaces.meta, layout::COMMIT_KEY);
            page.next = page.next.max(next_change_in(record)?);
        }
        Ok(page)
    }

    /// Whether changes of a table are gone from the log.
    pub(crate) fn has_trimmed(&self, table: &str) -> Result<bool, StoreError> {
        let shared = self.shared();
        let key = layout::trimmed_key(shared.catalogue.table(table)?.id());
        shared.keyspaces.meta.contains_key(key).map_err(unavailable)
    }

    /// The sequence number that the next change of any table gets.
    #[must_use]
    pub fn next_change(&self) -> u64 {
        *self.shared().last_change.borrow()
    }

    /// The same by what can be read.
    pub(crate) fn readable_end(&self) -> Result<u64, StoreError> {
        next_change_in(self.shared().keyspaces.meta.get(layout::COMMIT_KEY))
    }

    /// Waits until the log has grown past `from`, a sequence number that [`Engine::changes`]
    /// answered as the next one. Another table's change may end the wait.
    pub async fn wait_for_changes(&self, from: u64) {
        let mut last = self.shared().last_change.subscribe();
        // An error means that the engine is closing: there is nothing to wait for.
        let _ = last.wait_for(|next| *next > from).await;
    }

    /// Removes what is due now: expired items, old changes, used tokens. The engine does this in the
    /// background unless that is switched off. Nothing is removed while the time has to be confirmed
    /// ([`Engine::clock_status`]).
    ///
    /// # Errors
    /// When the store cannot be read or written.
    pub async fn sweep(&self) -> Result<Swept, StoreError> {
        let shared = Arc::clone(self.shared());
        tokio::task::spawn_blocking(move || sweep::sweep(&shared, Due::Now))
            .await
            .map_err(|_| stopped())?
    }

    /// What the clocks say, and whether the time has to be confirmed.
    #[must_use]
    pub fn clock_status(&self) -> ClockStatus {
        let shared = self.shared();
        shared.commit_clock.status(shared.options.clock.now_ms())
    }

    /// A clock to delete old data by: it ignores unconfirmed clock jumps.
    #[must_use]
    pub fn removal_clock(&self) -> Arc<dyn Clock> {
        Arc::new(RemovalClock(self.clone()))
    }

    /// Confirms that the wall clock is right: expiry and trimming resume, also after a restart.
    ///
    /// # Errors
    /// When the confirmed time cannot be written.
    pub async fn confirm_time(&self) -> Result<ClockStatus, StoreError> {
        let confirm = self.shared().exclusive(|committer| {
            let shared = &committer.shared;
            shared.commit_clock.confirm(shared.options.clock.now_ms());
            committer.write_time()
        });
        confirm.await.map_err(|_| stopped())??;
        Ok(self.clock_status())
    }

    /// What the store can do now.
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
        match shared.room.now() {
            Room::Enough => Condition::Ready,
            Room::Short => Condition::DiskShort,
            Room::Exhausted => Condition::DiskFull,
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
            disk_free_bytes: shared.room.free_bytes().unwrap_or(0),
            reopened: shared.latch.reopened(),
            snapshot_entries_max: shared.database.snapshot_entries_max(),
            ..shared.metrics.snapshot()
        }
    }

    /// Rewrites everything on disk in its smallest form. It takes long and is never needed; it is
    /// for measuring and for before a copy is made.
    ///
    /// # Errors
    /// When the store cannot be read or written.
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

    /// Verifies that items, index entries and expiry entries agree. Writes are accepted meanwhile; tables that are altered or
    /// deleted meanwhile are left out.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn check(&self) -> Result<CheckReport, StoreError> {
        let shared = Arc::clone(self.shared());
        tokio::task::spawn_blocking(move || {
            let (catalogue, copy) = run_exclusive(&shared, |committer| {
                let catalogue = committer.shared.catalogue.now();
                let tables: Vec<_> = catalogue.tables().cloned().collect();
                Ok((catalogue, TableCopy::begin(committer, &tables)))
            })?;
            let writes = Writes {
                copy: &copy,
                catalogue: &shared.catalogue,
            };
            let (database, keyspaces) = (&shared.database, &shared.keyspaces);
            check::check(&catalogue, database, keyspaces, Some(&writes))
        })
        .await
        .map_err(|_| stopped())?
    }

    /// Writes all tables, as they are at one moment, to a new file. Writes may go on meanwhile.
    ///
    /// # Errors
    /// When the file exists or cannot be written, or the store cannot be read.
    pub async fn backup(&self, path: impl AsRef<Path>) -> Result<BackupSummary, BackupError> {
        let shared = Arc::clone(self.shared());
        let path = path.as_ref().to_owned();
        tokio::task::spawn_blocking(move || backup::backup(&shared, &path))
            .await
            .map_err(|_| BackupError::Store(stopped()))?
    }

    /// Writes restored items into a table as they were stored, also those that its indexes skip.
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
            self.shared().room.check()?;
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

/// Moves what a keyspace has in memory into its own files. The store's own call for this waits for
/// ever where a flush has failed.
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

/// The sequence number that the next change gets, by a commit record.
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
