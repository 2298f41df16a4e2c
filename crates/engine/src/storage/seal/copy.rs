//! Copies a data directory entry by entry, sealed with a new keyring or unsealed. This seals a plain store,
//! removes old data keys, or makes a sealed store plain again.

use std::path::Path;

use crate::archive::backup::BackupError;
use crate::archive::table_backups;
use crate::archive::unfinished::{Unfinished, io};
use crate::catalogue::keyspaces::Keyspaces;
use crate::commit::writer::CommitRecord;
use crate::error::OpenError;
use crate::options::Options;
use crate::storage::directory;
use crate::storage::extra_files;
use crate::storage::integrity::marks::Marks;
use crate::storage::integrity::verify::{self, Verified, VerifyScope};
use crate::storage::integrity::view::{self, View};
use crate::storage::layout;
use crate::storage::permissions;
use crate::storage::seal::file::{self, FileKeys};
use crate::storage::seal::master::MasterKey;
use crate::storage::vault::{self, Database, PersistMode};

/// The maximum size of one batch.
const BATCH_BYTES_MAX: usize = 1024 * 1024;

/// The result of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Copied {
    pub keyspaces: u64,
    pub entries: u64,
    /// Files of table backups.
    pub backups: u64,
}

/// Copies the data directory `source`, which no process may have open, to `target`, which must not exist. The
/// copy includes everything, also the change log and the backups of tables. It appears only once it is
/// complete; the source stays unchanged.
///
/// `options` apply to both; their master key is that of `source`, and `target_key` is that of the copy.
/// Without it, the copy is not sealed. `files` are names of other components' files in the directory, which
/// are copied unchanged.
///
/// # Errors
/// Fails if `source` is open, damaged or sealed with another key, or `target` exists or cannot be written.
pub fn copy_sealed(
    source: &Path,
    target: &Path,
    options: &Options,
    target_key: Option<MasterKey>,
    files: &[&str],
) -> Result<Copied, BackupError> {
    if directory::read_format(source)?.is_none() {
        return Err(OpenError::NotADataDirectory {
            path: source.to_owned(),
            reason: "it has no FORMAT file".to_owned(),
        }
        .into());
    }
    let unfinished = Unfinished::folder(target)?;
    let target_options = Options {
        master_key: target_key,
        ..options.clone()
    };
    let copied = copy(source, options, unfinished.path(), &target_options)?;
    extra_files::copy_files(source, unfinished.path(), files)
        .map_err(|(path, error)| io(&path)(error))?;
    unfinished.finish()?;
    Ok(copied)
}

fn copy(
    source: &Path,
    source_options: &Options,
    target: &Path,
    target_options: &Options,
) -> Result<Copied, BackupError> {
    // The locks are held until both are closed.
    let _source_lock = directory::lock_existing(source)?;
    let view = open_source(source, source_options)?;
    let from = &view.database;
    let (_target_lock, to, verified) = open_target(target, target_options)?;
    let marks = Marks::open(target, &verified, None).map_err(io(target))?;
    let mut copied = Copied::default();
    for name in from.keyspace_names() {
        copied.entries += copy_keyspace(from, &to, &name).map_err(storage)?;
        copied.keyspaces += 1;
    }
    copied.backups = copy_backups(from, source, &to, target)?;
    to.persist(PersistMode::SyncAll).map_err(storage)?;
    finish(from, &to, target, &marks)?;
    Ok(copied)
}

/// Writes and marks the commit record, which makes the copy a valid store.
fn finish(from: &Database, to: &Database, target: &Path, marks: &Marks) -> Result<(), BackupError> {
    let meta = from.keyspace(layout::META_KEYSPACE).map_err(storage)?;
    let record = meta.get(layout::COMMIT_KEY).map_err(storage)?;
    if let Some(record) = record.and_then(|bytes| CommitRecord::decode(&bytes)) {
        // Pages and changes continue the numbers of the source.
        marks.rebase(record.commit).map_err(io(target))?;
        let keyspaces = Keyspaces::open(to).map_err(storage)?;
        let record = record.next();
        keyspaces
            .write_opening_record(to, record)
            .map_err(storage)?;
        marks.record(record.commit).map_err(io(target))?;
    }
    marks
        .refresh(to)
        .and_then(|()| marks.sync())
        .map_err(io(target))
}

fn open_source(path: &Path, options: &Options) -> Result<View, OpenError> {
    let inspected = directory::inspect(path, options)?;
    let is_outdated = !inspected.format.is_current;
    let verified = verify::verify(path, is_outdated, inspected.store, VerifyScope::Start)?;
    view::open(path, &verified, options, inspected.sealer)
}

fn open_target(
    path: &Path,
    options: &Options,
) -> Result<(directory::LockedDirectory, Database, Verified), BackupError> {
    let prepared = directory::prepare(path, options.master_key.as_ref())?;
    let store = path.join(layout::STORE_DIR);
    let verified = verify::verify(
        path,
        prepared.is_outdated,
        prepared.store_id(),
        VerifyScope::Start,
    )?;
    let sealer = prepared.sealer(path, options);
    let database = Database::open(&store, options, sealer).map_err(storage)?;
    Ok((prepared, database, verified))
}

fn copy_keyspace(from: &Database, to: &Database, name: &str) -> Result<u64, vault::Error> {
    let (source, target) = (from.keyspace(name)?, to.keyspace(name)?);
    let mut entries = 0;
    let mut batch = to.batch();
    let mut bytes = 0;
    for guard in source.iter() {
        let (key, value) = guard.into_inner()?;
        if name == layout::META_KEYSPACE && &*key == layout::COMMIT_KEY {
            continue;
        }
        bytes += key.len() + value.len();
        entries += 1;
        batch.insert(&target, key, value);
        if bytes >= BATCH_BYTES_MAX {
            // Durability follows at the end: until then, nobody uses the copy.
            std::mem::replace(&mut batch, to.batch()).commit(PersistMode::Buffer)?;
            bytes = 0;
        }
    }
    batch.commit(PersistMode::Buffer)?;
    Ok(entries)
}

fn copy_backups(
    from: &Database,
    source: &Path,
    to: &Database,
    target: &Path,
) -> Result<u64, BackupError> {
    let (source, target) = (
        source.join(table_backups::FOLDER),
        target.join(table_backups::FOLDER),
    );
    let files = match std::fs::read_dir(&source) {
        Ok(files) => files,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(io(&source)(error)),
    };
    permissions::create_folder(&target).map_err(io(&target))?;
    let mut copied = 0;
    for file in files {
        let file = file.map_err(io(&source))?;
        let path = file.path();
        let is_backup = path
            .extension()
            .is_some_and(|extension| extension == table_backups::EXTENSION);
        if !is_backup {
            continue;
        }
        let copy = target.join(file.file_name());
        let mut reader = file::open(&path, FileKeys::Store(from.sealer()))?;
        let mut writer = file::create(&copy, to.sealer())?;
        std::io::copy(&mut reader, &mut writer).map_err(io(&path))?;
        writer.finish().map_err(io(&copy))?;
        copied += 1;
    }
    std::fs::File::open(&target)
        .and_then(|folder| folder.sync_all())
        .map_err(io(&target))?;
    Ok(copied)
}

fn storage(error: vault::Error) -> BackupError {
    match error {
        vault::Error::Seal(error) => BackupError::Seal(error),
        other => BackupError::Open(OpenError::Storage(other.to_string())),
    }
}
