//! Backups of single tables, kept with the store. Each is a file in the data directory, in the format of a
//! backup of a whole store, with a record in the catalogue.
//!
//! The file is complete and on disk before the record is written, and the record is deleted before the file.
//! A file without a record is left over from a crash and is deleted when the store opens.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use homeport_item::schema::TableSchema;
use homeport_store::StoreError;
use serde::{Deserialize, Serialize};

use crate::archive::backup::{self, BackupError};
use crate::archive::copying::TableCopy;
use crate::archive::records::{self, ArchiveRecord, Records, RunningJobs};
use crate::archive::restoring::{self, NewTable, RestoreError, TableFiller};
use crate::archive::unfinished::{io, rename_durably};
use crate::catalogue::Catalogue;
use crate::catalogue::table::{Table, TableDescription};
use crate::commit::commit_clock::Times;
use crate::commit::committer::Committer;
use crate::shared::{Shared, run_exclusive, stopped};
use crate::storage::permissions;
use crate::storage::record;
use crate::storage::seal::file::FileKeys;

/// The number of backups that may be written at one time.
const RUNNING_MAX: usize = 50;
/// The number of backups that a store keeps.
const BACKUPS_MAX: usize = 10_000;
/// The folder inside the data directory.
pub(crate) const FOLDER: &str = "backups";
pub(crate) const EXTENSION: &str = "backup";

/// A backup of a table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TableBackup {
    /// The id of the backup; ids are in time order.
    pub id: String,
    /// The name chosen by the caller; several backups may share it.
    pub name: String,
    pub taken_at_ms: i64,
    pub items: u64,
    /// The size of the items, as DynamoDB counts it.
    pub item_bytes: u64,
    /// The size of the file.
    pub bytes: u64,
    /// Whether the backup is completely on disk. An incomplete backup does not survive a crash.
    pub is_complete: bool,
    /// The table's schema at the time of the backup.
    pub schema: TableSchema,
    pub settings: String,
    pub table_id: u32,
    pub table_created_at_ms: i64,
}

/// Why a backup cannot be created or deleted.
#[derive(Debug, thiserror::Error)]
pub enum TableBackupError {
    #[error("table {0:?} does not exist")]
    TableNotFound(String),
    #[error("there is no backup {0:?}")]
    Missing(String),
    #[error("the backup {0:?} is being written or restored")]
    InUse(String),
    #[error("there are too many backups; delete some first")]
    TooMany,
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl ArchiveRecord for TableBackup {
    const PREFIX: &'static [u8] = b"backup/";

    fn id(&self) -> &str {
        &self.id
    }

    fn running(shared: &Shared) -> &RunningJobs<Self> {
        &shared.backups
    }

    fn ended(catalogue: &Catalogue) -> &Records<Self> {
        &catalogue.backups
    }

    fn ended_mut(catalogue: &mut Catalogue) -> &mut Records<Self> {
        &mut catalogue.backups
    }
}

/// Starts a backup of a table in its current state.
pub(crate) async fn create(
    shared: &Shared,
    table: String,
    name: String,
) -> Result<Arc<TableBackup>, TableBackupError> {
    shared.latch.check()?;
    shared.disk_space.check()?;
    shared
        .exclusive(move |committer| begin(committer, table, name))
        .await
        .map_err(|_| TableBackupError::Store(stopped()))?
}

fn begin(
    committer: &Committer,
    table: String,
    name: String,
) -> Result<Arc<TableBackup>, TableBackupError> {
    let shared = &committer.shared;
    let catalogue = shared.catalogue.now();
    let Ok(table) = catalogue.get(&table).cloned() else {
        return Err(TableBackupError::TableNotFound(table));
    };
    let mut running = shared.backups.lock();
    if running.len() >= RUNNING_MAX || catalogue.backups.len() >= BACKUPS_MAX {
        return Err(TableBackupError::TooMany);
    }
    let times = shared.times();
    let hashed = format!("{}/{name}", table.id());
    let (taken_at_ms, id) = records::unused_id(&running, &catalogue, times.commit_ms, &hashed);
    let backup = Arc::new(TableBackup {
        id,
        name,
        taken_at_ms,
        items: 0,
        item_bytes: 0,
        bytes: 0,
        is_complete: false,
        schema: table.schema().clone(),
        settings: table.record.settings.clone(),
        table_id: table.id(),
        table_created_at_ms: table.record.created_at_ms,
    });
    let copy = TableCopy::begin(committer, std::slice::from_ref(&table));
    running.insert(backup.id.clone(), Arc::clone(&backup));
    drop(running);
    let (worker, begun) = (Arc::clone(shared), Arc::clone(&backup));
    let spawned = shared.spawn_job("homeport-backup", move || {
        run(&worker, &begun, &copy, table, times);
    });
    if let Err(error) = spawned {
        shared.backups.remove(&backup.id);
        return Err(error.into());
    }
    Ok(backup)
}

fn run(
    shared: &Arc<Shared>,
    backup: &TableBackup,
    copy: &TableCopy,
    table: Arc<Table>,
    times: Times,
) {
    let path = path_of(shared, &backup.id);
    let written = write(shared, backup, copy, table, times, &path);
    if written.is_err() && !shared.stopping.load(Ordering::Acquire) {
        for leftover in [unfinished(&path), path] {
            let _ = std::fs::remove_file(leftover);
        }
    }
    // IMPORTANT: the file stays if its record could not be written. The record may exist once the store has
    // reopened; if it does not, the next start deletes the file.
    let kept = written.and_then(|complete| {
        run_exclusive(shared, move |committer| {
            records::save(committer, complete, &[])
        })
        .map_err(BackupError::Store)
    });
    if let Err(error) = kept
        && !shared.stopping.load(Ordering::Acquire)
    {
        tracing::error!(
            backup = backup.id,
            error = &error as &dyn std::error::Error,
            "the backup of a table failed"
        );
    }
    shared.backups.remove(&backup.id);
}

fn write(
    shared: &Shared,
    backup: &TableBackup,
    copy: &TableCopy,
    table: Arc<Table>,
    times: Times,
    path: &Path,
) -> Result<TableBackup, BackupError> {
    let folder = shared.directory.join(FOLDER);
    permissions::create_folder(&folder).map_err(io(&folder))?;
    std::fs::File::open(&shared.directory)
        .and_then(|directory| directory.sync_all())
        .map_err(io(&shared.directory))?;
    let unfinished = unfinished(path);
    let tables = [table];
    let summary = backup::write_tables(shared, &unfinished, copy, &tables, times)?;
    let bytes = std::fs::metadata(&unfinished)
        .map_err(io(&unfinished))?
        .len();
    rename_durably(&unfinished, path)?;
    Ok(TableBackup {
        items: summary.items,
        item_bytes: summary.item_bytes,
        bytes,
        is_complete: true,
        ..backup.clone()
    })
}

/// Deletes a backup.
pub(crate) async fn delete(
    shared: &Shared,
    id: String,
) -> Result<Arc<TableBackup>, TableBackupError> {
    shared
        .exclusive(move |committer| delete_record(committer, &id))
        .await
        .map_err(|_| TableBackupError::Store(stopped()))?
}

fn delete_record(
    committer: &mut Committer,
    id: &str,
) -> Result<Arc<TableBackup>, TableBackupError> {
    let shared = Arc::clone(&committer.shared);
    let mut catalogue = Catalogue::clone(&shared.catalogue.now());
    let Some(backup) = catalogue.backups.remove(id) else {
        return Err(match shared.backups.lock().contains_key(id) {
            true => TableBackupError::InUse(id.to_owned()),
            false => TableBackupError::Missing(id.to_owned()),
        });
    };
    if shared.restoring.uses_backup(id) {
        return Err(TableBackupError::InUse(id.to_owned()));
    }
    committer.write(|group| {
        group.remove(
            &shared.keyspaces.catalogue,
            records::key::<TableBackup>(id).into(),
        );
        Ok(())
    })?;
    shared.catalogue.replace(catalogue);
    let path = path_of(&shared, id);
    if let Err(error) = std::fs::remove_file(&path) {
        tracing::warn!(backup = id, %error, "the file of a deleted backup will be deleted by the next start");
    }
    Ok(backup)
}

/// Starts restoring a table from a backup.
pub(crate) async fn restore(
    shared: &Shared,
    id: String,
    target: NewTable,
) -> Result<TableDescription, RestoreError> {
    let key = target.schema.key.clone();
    let from = id.clone();
    let open = move |committer: &Committer| {
        let shared = &committer.shared;
        let catalogue = shared.catalogue.now();
        let Some(backup) = catalogue.backups.get(&from) else {
            return Err(RestoreError::BackupMissing(from));
        };
        if backup.schema.key != key {
            return Err(RestoreError::DifferentKeys);
        }
        Ok(path_of(shared, &from))
    };
    restoring::begin(shared, target, Some(id), open, fill).await
}

fn fill(path: PathBuf, filler: &mut TableFiller) -> Result<(), RestoreError> {
    let shared = Arc::clone(filler.shared());
    let keys = FileKeys::Store(shared.database.sealer());
    let contents = backup::read_contents(&path, keys)?;
    // A failed write is not the backup's fault and is reported as it is.
    let mut failed = None;
    let read = backup::read_items(&path, keys, &contents, &mut |_, items| {
        for item in items {
            let key = filler.table.key_of(&item)?;
            let value = record::encode(&item, &filler.table.key);
            if let Err(error) = filler.set(key, Some(value)) {
                failed = Some(error);
                return Err(BackupError::Store(stopped()));
            }
        }
        Ok(())
    });
    match failed {
        Some(error) => Err(error),
        None => Ok(read.map(|_| ())?),
    }
}

/// Reads a backup's file in a data directory like a restore does.
///
/// # Errors
/// Fails if it could not be restored.
pub(crate) fn verify(
    directory: &Path,
    backup: &TableBackup,
    keys: FileKeys<'_>,
) -> Result<(), BackupError> {
    let path = path_in(directory, &backup.id);
    let contents = backup::read_contents(&path, keys)?;
    let items = backup::read_items(&path, keys, &contents, &mut |_, _| Ok(()))?;
    if items != backup.items {
        return Err(BackupError::Damaged(format!(
            "it has {items} items instead of {}",
            backup.items
        )));
    }
    Ok(())
}

/// Deletes backup files without a record in the catalogue.
pub(crate) fn drop_orphans(shared: &Shared) {
    let folder = shared.directory.join(FOLDER);
    let Ok(entries) = std::fs::read_dir(&folder) else {
        return;
    };
    let catalogue = shared.catalogue.now();
    let known: BTreeSet<PathBuf> = catalogue
        .backups
        .keys()
        .map(|id| path_of(shared, id))
        .collect();
    for path in entries.flatten().map(|entry| entry.path()) {
        if !known.contains(&path)
            && let Err(error) = std::fs::remove_file(&path)
        {
            tracing::warn!(path = %path.display(), %error, "cannot delete the leftover file of a backup");
        }
    }
}

fn path_of(shared: &Shared, id: &str) -> PathBuf {
    path_in(&shared.directory, id)
}

/// The file of a backup in a data directory.
pub(crate) fn path_in(directory: &Path, id: &str) -> PathBuf {
    directory.join(FOLDER).join(format!("{id}.{EXTENSION}"))
}

fn unfinished(path: &Path) -> PathBuf {
    path.with_extension("unfinished")
}

#[cfg(test)]
mod tests {
    use super::*;
    use homeport_item::KeyKind;

    use crate::engine::Engine;
    use crate::options::Options;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn file_stays_when_its_record_is_uncertain() {
        let directory = tempfile::tempdir().unwrap();
        let engine = Engine::open(directory.path(), Options::for_tests()).unwrap();
        let schema = TableSchema::new("things", "id", KeyKind::S);
        engine.create_table(schema).await.unwrap();
        let shared = Arc::clone(engine.shared());
        // Writing the record fails, and whether it is on disk cannot be known.
        let begun = shared.exclusive(|committer| {
            let begun = begin(committer, "things".to_owned(), "first".to_owned());
            committer.shared.latch.close_until_restart("a test");
            begun
        });
        let id = begun.await.unwrap().unwrap().id.clone();
        let wait = async {
            while !shared.backups.lock().is_empty() {
                tokio::time::sleep(std::time::Duration::from_millis(1)).await;
            }
        };
        let waited = tokio::time::timeout(std::time::Duration::from_secs(30), wait);
        waited.await.expect("ended in time");
        assert!(!shared.catalogue.now().backups.contains_key(&id));
        assert!(path_of(&shared, &id).exists());
        drop((shared, engine));
        drop(Engine::open(directory.path(), Options::default()).unwrap());
        let folder = std::fs::read_dir(directory.path().join(FOLDER)).unwrap();
        assert_eq!(folder.count(), 0);
    }
}
