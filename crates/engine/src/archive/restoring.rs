//! Tables that are being restored from a backup, from files, or from another table's history.
//!
//! Such a table exists only in memory until it is complete, and then enters the catalogue in one commit. A
//! crash before that leaves keyspaces without a table, which the next start deletes: no table is ever half
//! restored, and a restore can simply be repeated.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard};

use homeport_item::schema::TableSchema;
use homeport_store::StoreError;

use crate::archive::backup::BackupError;
use crate::archive::history::PastState;
use crate::catalogue::table::{Table, TableDescription, TableRecord};
use crate::catalogue::tables;
use crate::catalogue::{self, Catalogue};
use crate::commit::committer::Committer;
use crate::commit::group::Mutation;
use crate::error::{TableError, unavailable};
use crate::shared::{Shared, run_exclusive, stopped};
use crate::storage::vault::{UserKey, UserValue};

/// The number of tables that may be restored at one time.
pub(crate) const RESTORES_MAX: usize = 50;
/// Limits of one commit of a restore; small, so that other writers hardly wait.
const CHUNK_ITEMS_MAX: usize = 512;
const CHUNK_BYTES_MAX: usize = 512 * 1024;

/// Why a table cannot be restored.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    #[error("table {0:?} already exists")]
    TargetExists(String),
    #[error("table {0:?} does not exist")]
    SourceMissing(String),
    #[error("there is no backup {0:?}")]
    BackupMissing(String),
    #[error("history is disabled for table {0:?}")]
    HistoryOff(String),
    #[error("only moments from {earliest_ms} to {latest_ms} can be restored")]
    OutOfReach { earliest_ms: i64, latest_ms: i64 },
    #[error("too many restores are running (at most {RESTORES_MAX}); try again later")]
    TooMany,
    #[error("the keys of the target differ from those of the source")]
    DifferentKeys,
    #[error(transparent)]
    Backup(#[from] BackupError),
    #[error(transparent)]
    Table(#[from] TableError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The tables that are being restored.
#[derive(Debug, Default)]
pub(crate) struct Restoring(Mutex<BTreeMap<String, RunningRestore>>);

#[derive(Debug)]
struct RunningRestore {
    description: TableDescription,
    backup: Option<String>,
}

impl Restoring {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, RunningRestore>> {
        self.0
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub(crate) fn has(&self, table: &str) -> bool {
        self.lock().contains_key(table)
    }

    pub(crate) fn uses_backup(&self, id: &str) -> bool {
        let restores = self.lock();
        restores
            .values()
            .any(|restore| restore.backup.as_deref() == Some(id))
    }

    pub(crate) fn names(&self) -> BTreeSet<String> {
        self.lock().keys().cloned().collect()
    }

    pub(crate) fn describe(&self, table: &str) -> Option<TableDescription> {
        let restores = self.lock();
        restores
            .get(table)
            .map(|restore| restore.description.clone())
    }

    fn remove(&self, table: &str) {
        self.lock().remove(table);
    }
}

/// A table to create.
#[derive(Debug, Clone)]
pub struct NewTable {
    pub schema: TableSchema,
    /// Opaque settings that a protocol stores with the table.
    pub settings: String,
}

/// Starts restoring a table. `open` runs on the committer's thread, where nothing changes in the meantime;
/// `fill` runs on a thread of its own with the result of `open`.
pub(crate) async fn begin<S: Send + 'static>(
    shared: &Shared,
    target: NewTable,
    backup: Option<String>,
    open: impl FnOnce(&Committer) -> Result<S, RestoreError> + Send + 'static,
    fill: impl FnOnce(S, &mut TableFiller) -> Result<(), RestoreError> + Send + 'static,
) -> Result<TableDescription, RestoreError> {
    target.schema.check().map_err(TableError::from)?;
    shared.disk_space.check()?;
    shared
        .exclusive(move |committer| start(committer, target, backup, open, fill))
        .await
        .map_err(|_| RestoreError::Store(stopped()))?
}

fn start<S: Send + 'static>(
    committer: &mut Committer,
    target: NewTable,
    backup: Option<String>,
    open: impl FnOnce(&Committer) -> Result<S, RestoreError>,
    fill: impl FnOnce(S, &mut TableFiller) -> Result<(), RestoreError> + Send + 'static,
) -> Result<TableDescription, RestoreError> {
    let shared = Arc::clone(&committer.shared);
    let catalogue = shared.catalogue.now();
    let name = target.schema.name.clone();
    if catalogue.get(&name).is_ok() || shared.restoring.has(&name) {
        return Err(RestoreError::TargetExists(name));
    }
    if shared.restoring.lock().len() >= RESTORES_MAX {
        return Err(RestoreError::TooMany);
    }
    let source = open(committer)?;
    // Restored items are not changes; the caller enables a stream afterwards.
    let schema = TableSchema {
        stream: None,
        ..target.schema
    };
    let table = unlisted_table(committer, schema, target.settings)?;
    let description = TableDescription {
        is_restoring: true,
        ..TableDescription::of(&table)
    };
    let restore = RunningRestore {
        description: description.clone(),
        backup,
    };
    shared.restoring.lock().insert(name.clone(), restore);
    let worker = Arc::clone(&shared);
    let spawned = shared.spawn_job("homeport-restore", move || {
        run(&worker, table, source, fill);
    });
    if let Err(error) = spawned {
        shared.restoring.remove(&name);
        return Err(error.into());
    }
    Ok(description)
}

/// Creates an empty table outside the catalogue. A crash leaves only its keyspaces, which the next start
/// deletes.
pub(crate) fn unlisted_table(
    committer: &mut Committer,
    schema: TableSchema,
    settings: String,
) -> Result<Arc<Table>, StoreError> {
    let shared = Arc::clone(&committer.shared);
    let mut catalogue = Catalogue::clone(&shared.catalogue.now());
    let now_ms = shared.times().commit_ms;
    let mut record = TableRecord::new(catalogue.next_id, schema, settings, now_ms);
    committer.assign_spare_keyspaces(&mut record)?;
    // No other table may ever get its id.
    catalogue.next_id += 1;
    let (key, value) = catalogue::next_id_entry(catalogue.next_id);
    committer.write(|group| {
        group.insert(&shared.keyspaces.catalogue, key.into(), value.into());
        tables::note_unused(group, &shared, record.keyspace_names());
        Ok(())
    })?;
    shared.catalogue.replace(catalogue);
    let table = catalogue::open_table(&shared.database, record, None).map_err(unavailable)?;
    Ok(Arc::new(table))
}

fn run<S>(
    shared: &Arc<Shared>,
    table: Arc<Table>,
    source: S,
    fill: impl FnOnce(S, &mut TableFiller) -> Result<(), RestoreError>,
) {
    let mut filler = TableFiller::new(shared, Arc::clone(&table));
    let filled = fill(source, &mut filler).and_then(|()| filler.flush());
    let on_completion = filler.on_completion.take();
    let name = table.name().to_owned();
    let done = match filled {
        Ok(()) => {
            let table = Arc::clone(&table);
            run_exclusive(shared, move |committer| publish_table(committer, table))
        }
        Err(error) => Err(error),
    };
    if let Some(on_completion) = on_completion
        && !shared.stopping.load(Ordering::Acquire)
        && let Err(error) = run_exclusive(shared, on_completion)
    {
        tracing::error!(
            table = name,
            error = &error as &dyn std::error::Error,
            "cannot record the end of a transfer"
        );
    }
    let Err(error) = done else {
        return;
    };
    if shared.stopping.load(Ordering::Acquire) {
        // The next start deletes the unfinished table.
        return;
    }
    tracing::error!(
        table = name,
        error = &error as &dyn std::error::Error,
        "a table could not be restored"
    );
    let dropped = run_exclusive(shared, move |committer| {
        for keyspace in table.keyspaces() {
            committer.retire_keyspace(Arc::clone(keyspace));
        }
        Ok::<_, StoreError>(())
    });
    shared.restoring.remove(&name);
    if let Err(error) = dropped {
        tracing::warn!(table = name, %error, "the space of a table that could not be restored is freed by the next start");
    }
}

/// Adds a complete table to the catalogue.
fn publish_table(committer: &mut Committer, table: Arc<Table>) -> Result<(), RestoreError> {
    let shared = Arc::clone(&committer.shared);
    let mut catalogue = Catalogue::clone(&shared.catalogue.now());
    let (key, value) = catalogue::table_entry(&table.record);
    committer.write(|group| {
        group.insert(&shared.keyspaces.catalogue, key.into(), value.into());
        tables::note_used(group, &shared, table.record.keyspace_names());
        Ok(())
    })?;
    let name = table.name().to_owned();
    catalogue.insert(table);
    // In this order, so that the table is always in one of them.
    shared.catalogue.replace(catalogue);
    shared.restoring.remove(&name);
    Ok(())
}

/// Writes the items of a table that is being restored.
pub(crate) struct TableFiller {
    shared: Arc<Shared>,
    pub(crate) table: Arc<Table>,
    chunk: Chunk,
    on_completion: Option<CompletionWork>,
}

/// Items that are written in one commit.
#[derive(Default)]
pub(crate) struct Chunk {
    entries: Vec<(UserKey, Option<UserValue>)>,
    bytes: usize,
}

impl Chunk {
    /// Adds the new state of an item: its value, or `None` to delete it.
    pub(crate) fn add(&mut self, key: UserKey, value: Option<UserValue>) {
        self.bytes += key.len() + value.as_ref().map_or(0, |value| value.len());
        self.entries.push((key, value));
    }

    pub(crate) fn is_full(&self) -> bool {
        self.entries.len() >= CHUNK_ITEMS_MAX || self.bytes >= CHUNK_BYTES_MAX
    }

    /// Writes the items unchanged. An index skips items that do not match its key, as when it is built.
    pub(crate) fn write(self, committer: &mut Committer, table: &Table) -> Result<(), StoreError> {
        committer.write(|group| {
            for (key, new) in self.entries {
                let old = group.load(table, &key)?;
                group.apply(Mutation {
                    table,
                    key,
                    old,
                    old_expired: false,
                    new,
                })?;
            }
            Ok(())
        })
    }
}

/// Work to do once a table is complete or has failed.
type CompletionWork = Box<dyn FnOnce(&mut Committer) -> Result<(), RestoreError> + Send>;

impl TableFiller {
    pub(crate) fn new(shared: &Arc<Shared>, table: Arc<Table>) -> Self {
        Self {
            shared: Arc::clone(shared),
            table,
            chunk: Chunk::default(),
            on_completion: None,
        }
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Runs `work` on the committer's thread once the table is complete or has failed.
    pub(crate) fn on_completion(
        &mut self,
        work: impl FnOnce(&mut Committer) -> Result<(), RestoreError> + Send + 'static,
    ) {
        self.on_completion = Some(Box::new(work));
    }

    /// Fills the table with an earlier state of another one.
    pub(crate) fn fill_with(&mut self, past: &PastState) -> Result<(), RestoreError> {
        past.fill(self)?;
        self.flush()
    }

    /// Sets the item with this key; `None` deletes it.
    pub(crate) fn set(
        &mut self,
        key: UserKey,
        value: Option<UserValue>,
    ) -> Result<(), RestoreError> {
        self.chunk.add(key, value);
        if self.chunk.is_full() {
            return self.flush();
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), RestoreError> {
        if self.shared.stopping.load(Ordering::Acquire) {
            return Err(stopped().into());
        }
        self.shared.disk_space.check()?;
        let chunk = std::mem::take(&mut self.chunk);
        let table = Arc::clone(&self.table);
        run_exclusive(&self.shared, move |committer| {
            Ok(chunk.write(committer, &table)?)
        })
    }
}
