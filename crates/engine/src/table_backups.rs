//! Backups of single tables, kept with the store: a file each in the data directory, in the form of a
//! whole store's backup, and an entry of the catalogue that says what it holds.
//!
//! The file is whole and on disk before the entry is written, and the entry is gone before the file
//! is removed. A file without an entry is a leftover of a crash and is removed when the store opens.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard};

use homeport_item::schema::TableSchema;
use homeport_store::StoreError;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::backup::{self, BackupError};
use crate::catalogue::Catalogue;
use crate::commit_clock::Times;
use crate::committer::Committer;
use crate::copying::TableCopy;
use crate::permissions;
use crate::record;
use crate::restoring::{self, Filler, NewTable, RestoreError};
use crate::seal::file::FileKeys;
use crate::shared::{Shared, run_exclusive, stopped};
use crate::table::{Table, TableDescription};

/// Backups that may be written at one time.
const WRITTEN_AT_ONCE_MAX: usize = 50;
/// Backups that a store keeps.
const BACKUPS_MAX: usize = 10_000;
/// The folder within the data directory.
pub(crate) const FOLDER: &str = "backups";
pub(crate) const EXTENSION: &str = "backup";
pub(crate) const BACKUP_PREFIX: &[u8] = b"backup/";

/// A backup of a table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TableBackup {
    /// Names the backup: ids are in the order of their times.
    pub id: String,
    /// What who asked for it calls it; several may be called the same.
    pub name: String,
    pub taken_at_ms: i64,
    pub items: u64,
    /// What the items count for, as DynamoDB counts.
    pub item_bytes: u64,
    /// The size of the file.
    pub bytes: u64,
    /// Whether all of it is on disk. One that is not is gone after a crash.
    pub is_complete: bool,
    /// The table as it was.
    pub schema: TableSchema,
    pub settings: String,
    pub table_id: u32,
    pub table_created_at_ms: i64,
}

/// Why a backup cannot be made or removed.
#[derive(Debug, thiserror::Error)]
pub enum TableBackupError {
    #[error("table {0:?} does not exist")]
    TableMissing(String),
    #[error("there is no backup {0:?}")]
    Missing(String),
    #[error("the backup {0:?} is being written or restored")]
    InUse(String),
    #[error("there are too many backups")]
    TooMany,
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The backups that are being written.
#[derive(Debug, Default)]
pub(crate) struct RunningBackups(Mutex<BTreeMap<String, Arc<TableBackup>>>);

impl RunningBackups {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Arc<TableBackup>>> {
        self.0
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// All backups in the order of their ids, also those that are being written.
pub(crate) fn all(shared: &Shared) -> Vec<Arc<TableBackup>> {
    // In this order: one that is completed in between is then in both.
    let mut backups = shared.backups.lock().clone();
    let catalogue = shared.catalogue.now();
    for (id, backup) in &catalogue.backups {
        backups.insert(id.clone(), Arc::clone(backup));
    }
    backups.into_values().collect()
}

pub(crate) fn get(shared: &Shared, id: &str) -> Option<Arc<TableBackup>> {
    let running = shared.backups.lock().get(id).cloned();
    let catalogue = shared.catalogue.now();
    catalogue.backups.get(id).cloned().or(running)
}

/// Begins to back a table up, as it is at this moment.
pub(crate) async fn create(
    shared: &Shared,
    table: String,
    name: String,
) -> Result<Arc<TableBackup>, TableBackupError> {
    shared.latch.check()?;
    shared.room.check()?;
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
        return Err(TableBackupError::TableMissing(table));
    };
    let mut running = shared.backups.lock();
    if running.len() >= WRITTEN_AT_ONCE_MAX || catalogue.backups.len() >= BACKUPS_MAX {
        return Err(TableBackupError::TooMany);
    }
    let times = shared.times();
    let mut taken_at_ms = times.commit_ms;
    let mut id = backup_id(&table, &name, taken_at_ms);
    while running.contains_key(&id) || catalogue.backups.contains_key(&id) {
        taken_at_ms += 1;
        id = backup_id(&table, &name, taken_at_ms);
    }
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
    let spawned = std::thread::Builder::new()
        .name("homeport-backup".to_owned())
        .spawn(move || run(&worker, &begun, &copy, table, times));
    match spawned {
        Ok(handle) => shared.keep_job(handle),
        Err(error) => {
            shared.backups.lock().remove(&backup.id);
            return Err(crate::error::unavailable(error).into());
        }
    }
    Ok(backup)
}

/// The time, so that ids are in its order, and what tells backups of one moment apart.
fn backup_id(table: &Table, name: &str, taken_at_ms: i64) -> String {
    let told_apart = xxh3_64(format!("{}/{name}", table.id()).as_bytes());
    format!("{taken_at_ms:014}-{:08x}", told_apart >> 32)
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
    // IMPORTANT: the file stays when its entry could not be written. The entry may be there once the store has reopened
    // itself; if it is not, the next start removes the file.
    let kept = written.and_then(|complete| {
        run_exclusive(shared, move |committer| keep(committer, complete))
            .map_err(BackupError::Store)
    });
    if let Err(error) = kept
        && !shared.stopping.load(Ordering::Acquire)
    {
        tracing::error!(
            backup = backup.id,
            error = &error as &dyn std::error::Error,
            "a table could not be backed up"
        );
    }
    shared.backups.lock().remove(&backup.id);
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
    let io = |path: &Path| {
        let path = path.to_owned();
        move |source| BackupError::Io { path, source }
    };
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
    backup::rename_durably(&unfinished, path)?;
    Ok(TableBackup {
        items: summary.items,
        item_bytes: summary.item_bytes,
        bytes,
        is_complete: true,
        ..backup.clone()
    })
}

/// Puts a backup whose file is on disk into the catalogue.
pub(crate) fn keep(committer: &mut Committer, backup: TableBackup) -> Result<(), StoreError> {
    let shared = Arc::clone(&committer.shared);
    let mut catalogue = Catalogue::clone(&shared.catalogue.now());
    let value = serde_json::to_vec(&backup).expect("a backup's entry has string keys only");
    let key = key_of(&backup.id);
    committer.write(|group| {
        group.insert(&shared.keyspaces.catalogue, key.into(), value.into());
        Ok(())
    })?;
    catalogue
        .backups
        .insert(backup.id.clone(), Arc::new(backup));
    shared.catalogue.replace(catalogue);
    Ok(())
}

/// Removes a backup.
pub(crate) async fn delete(
    shared: &Shared,
    id: String,
) -> Result<Arc<TableBackup>, TableBackupError> {
    shared
        .exclusive(move |committer| forget(committer, &id))
        .await
        .map_err(|_| TableBackupError::Store(stopped()))?
}

fn forget(committer: &mut Committer, id: &str) -> Result<Arc<TableBackup>, TableBackupError> {
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
        group.remove(&shared.keyspaces.catalogue, key_of(id).into());
        Ok(())
    })?;
    shared.catalogue.replace(catalogue);
    let path = path_of(&shared, id);
    if let Err(error) = std::fs::remove_file(&path) {
        tracing::warn!(backup = id, %error, "the file of a deleted backup is removed with the next start");
    }
    Ok(backup)
}

/// Begins to make a table from a backup.
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

fn fill(path: PathBuf, filler: &mut Filler) -> Result<(), RestoreError> {
    let shared = Arc::clone(filler.shared());
    let keys = FileKeys::Store(shared.database.sealer());
    let contents = backup::read_contents(&path, keys)?;
    // What went wrong while writing is not the backup's fault, and is told as it is.
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

/// Reads the file of a backup in a data directory as a restore does.
///
/// # Errors
/// When it could not be restored.
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

/// Removes files of backups that the catalogue does not name.
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
            tracing::warn!(path = %path.display(), %error, "cannot remove the leftover of a backup now");
        }
    }
}

fn key_of(id: &str) -> Vec<u8> {
    [BACKUP_PREFIX, id.as_bytes()].concat()
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
    async fn file_stays_when_its_entry_is_in_doubt() {
        let directory = tempfile::tempdir().unwrap();
        let options = Options {
            background_sweep: false,
            ..Options::default()
        };
        let engine = Engine::open(directory.path(), options).unwrap();
        let schema = TableSchema::new("things", "id", KeyKind::S);
        engine.create_table(schema).await.unwrap();
        let shared = Arc::clone(engine.shared());
        // Writing the entry fails, and whether it is on disk cannot be known.
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
