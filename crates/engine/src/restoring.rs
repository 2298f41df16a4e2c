//! Tables that are being made from a backup or from another table's past.
//!
//! Such a table is in memory alone until all of it is there, and then enters the catalogue in one
//! commit. A crash before leaves keyspaces that nobody names, which the next start drops: nothing is
//! half restored, and a restore can simply be asked for again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard};

use homeport_item::schema::TableSchema;
use homeport_store::StoreError;

use crate::backup::BackupError;
use crate::catalogue::{self, Catalogue};
use crate::committer::Committer;
use crate::error::{TableError, unavailable};
use crate::group::Mutation;
use crate::history::Past;
use crate::shared::{Shared, stopped};
use crate::table::{Table, TableDescription, TableRecord};
use crate::tables;
use crate::vault::{UserKey, UserValue};

/// Tables that may be restored at one time.
pub(crate) const RESTORES_MAX: usize = 50;
/// What one commit of a restore covers; small, so that other writers hardly wait.
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
    #[error("changes of table {0:?} are not kept to be undone")]
    HistoryOff(String),
    #[error("only moments from {earliest_ms} to {latest_ms} can be restored")]
    OutOfReach { earliest_ms: i64, latest_ms: i64 },
    #[error("more than {RESTORES_MAX} tables are being restored")]
    TooMany,
    #[error("the target's keys are not those of the source")]
    DifferentKeys,
    #[error(transparent)]
    Backup(#[from] BackupError),
    #[error(transparent)]
    Table(#[from] TableError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The tables that are being made.
#[derive(Debug, Default)]
pub(crate) struct Restoring(Mutex<BTreeMap<String, Restore>>);

#[derive(Debug)]
struct Restore {
    description: TableDescription,
    backup: Option<String>,
}

impl Restoring {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Restore>> {
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

/// The table that is to be made.
#[derive(Debug, Clone)]
pub struct NewTable {
    pub schema: TableSchema,
    /// What a protocol keeps with the table.
    pub settings: String,
}

/// Begins to make a table. `open` is called on the committer's thread, where nothing changes
/// meanwhile, and `fill` in a thread of its own with what `open` found.
pub(crate) async fn begin<S: Send + 'static>(
    shared: &Shared,
    target: NewTable,
    backup: Option<String>,
    open: impl FnOnce(&Committer) -> Result<S, RestoreError> + Send + 'static,
    fill: impl FnOnce(S, &mut Filler) -> Result<(), RestoreError> + Send + 'static,
) -> Result<TableDescription, RestoreError> {
    target.schema.check().map_err(TableError::from)?;
    shared.room.check()?;
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
    fill: impl FnOnce(S, &mut Filler) -> Result<(), RestoreError> + Send + 'static,
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
    // Restored items are no changes: whatever else the schema asks for is set up by who asked.
    let schema = TableSchema {
        stream: None,
        ..target.schema
    };
    let table = unlisted_table(committer, schema, target.settings)?;
    let description = TableDescription {
        is_restoring: true,
        ..TableDescription::of(&table)
    };
    let restore = Restore {
        description: description.clone(),
        backup,
    };
    shared.restoring.lock().insert(name.clone(), restore);
    let worker = Arc::clone(&shared);
    let spawned = std::thread::Builder::new()
        .name("homeport-restore".to_owned())
        .spawn(move || run(&worker, table, source, fill));
    match spawned {
        Ok(handle) => shared.keep_job(handle),
        Err(error) => {
            shared.restoring.remove(&name);
            return Err(unavailable(error).into());
        }
    }
    Ok(description)
}

/// Makes an empty table that is in no catalogue. A crash leaves only its keyspaces, which go with the
/// next start.
pub(crate) fn unlisted_table(
    committer: &mut Committer,
    schema: TableSchema,
    settings: String,
) -> Result<Arc<Table>, StoreError> {
    let shared = Arc::clone(&committer.shared);
    let mut catalogue = Catalogue::clone(&shared.catalogue.now());
    let now_ms = shared.times().commit_ms;
    let mut record = TableRecord::new(catalogue.next_id, schema, settings, now_ms);
    committer.furnish(&mut record)?;
    // No other table may ever have its id.
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
    fill: impl FnOnce(S, &mut Filler) -> Result<(), RestoreError>,
) {
    let mut filler = Filler::new(shared, Arc::clone(&table));
    let filled = fill(source, &mut filler).and_then(|()| filler.flush());
    let at_end = filler.at_end.take();
    let name = table.name().to_owned();
    let done = match filled {
        Ok(()) => {
            let table = Arc::clone(&table);
            run_exclusive(shared, move |committer| finish(committer, table))
        }
        Err(error) => Err(error),
    };
    if let Some(at_end) = at_end
        && !shared.stopping.load(Ordering::Acquire)
        && let Err(error) = run_exclusive(shared, at_end)
    {
        tracing::error!(
            table = name,
            error = &error as &dyn std::error::Error,
            "how a table was made could not be kept"
        );
    }
    let Err(error) = done else {
        return;
    };
    if shared.stopping.load(Ordering::Acquire) {
        // What was made so far goes when the store is opened the next time.
        return;
    }
    tracing::error!(
        table = name,
        error = &error as &dyn std::error::Error,
        "a table could not be restored"
    );
    let dropped = run_exclusive(shared, move |committer| {
        for keyspace in table.keyspaces() {
            committer.give_up(Arc::clone(keyspace));
        }
        Ok(())
    });
    shared.restoring.remove(&name);
    if let Err(error) = dropped {
        tracing::warn!(table = name, %error, "the room of a table that could not be restored is given back later");
    }
}

/// Puts a table that is whole into the catalogue.
fn finish(committer: &mut Committer, table: Arc<Table>) -> Result<(), RestoreError> {
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
    // In this order, so that the table is never in neither.
    shared.catalogue.replace(catalogue);
    shared.restoring.remove(&name);
    Ok(())
}

/// Writes the items of a table that is being made.
pub(crate) struct Filler {
    shared: Arc<Shared>,
    pub(crate) table: Arc<Table>,
    chunk: Chunk,
    at_end: Option<AtEnd>,
}

/// Items that are written in one commit.
#[derive(Default)]
pub(crate) struct Chunk {
    entries: Vec<(UserKey, Option<UserValue>)>,
    bytes: usize,
}

impl Chunk {
    /// Adds a new state of an item: its value, or nothing where it is removed.
    pub(crate) fn add(&mut self, key: UserKey, value: Option<UserValue>) {
        self.bytes += key.len() + value.as_ref().map_or(0, |value| value.len());
        self.entries.push((key, value));
    }

    pub(crate) fn is_full(&self) -> bool {
        self.entries.len() >= CHUNK_ITEMS_MAX || self.bytes >= CHUNK_BYTES_MAX
    }

    /// Writes the items as they are. An index skips those that do not match its key, as when it is built.
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

/// What is done when a table is whole, or will never be.
type AtEnd = Box<dyn FnOnce(&mut Committer) -> Result<(), RestoreError> + Send>;

impl Filler {
    pub(crate) fn new(shared: &Arc<Shared>, table: Arc<Table>) -> Self {
        Self {
            shared: Arc::clone(shared),
            table,
            chunk: Chunk::default(),
            at_end: None,
        }
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Does something on the committer's thread when the table is whole, or will never be.
    pub(crate) fn at_end(
        &mut self,
        work: impl FnOnce(&mut Committer) -> Result<(), RestoreError> + Send + 'static,
    ) {
        self.at_end = Some(Box::new(work));
    }

    /// Makes the table what another one was.
    pub(crate) fn fill_from(&mut self, past: &Past) -> Result<(), RestoreError> {
        past.fill(self)?;
        self.flush()
    }

    /// What the item with this key is to be from now on; none where there is to be none.
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
        self.shared.room.check()?;
        let chunk = std::mem::take(&mut self.chunk);
        let table = Arc::clone(&self.table);
        run_exclusive(&self.shared, move |committer| {
            Ok(chunk.write(committer, &table)?)
        })
    }
}

fn run_exclusive(
    shared: &Shared,
    work: impl FnOnce(&mut Committer) -> Result<(), RestoreError> + Send + 'static,
) -> Result<(), RestoreError> {
    shared
        .exclusive(work)
        .blocking_recv()
        .map_err(|_| RestoreError::Store(stopped()))?
}
