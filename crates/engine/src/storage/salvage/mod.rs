//! Copies everything readable of a damaged data directory into a new one. The damaged directory is only read.
//!
//! Tables are created from the catalogue, and their items are written one by one, which builds the indexes.
//! Items that cannot be decoded are skipped. Change logs are not copied: streams and histories start again.

mod source;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use homeport_item::schema::TableSchema;

use crate::archive::backup::BackupError;
use crate::archive::records::{self, ArchiveRecord as _};
use crate::archive::table_backups::{self, TableBackup};
use crate::archive::unfinished::{Unfinished, io};
use crate::catalogue::TABLE_PREFIX;
use crate::catalogue::keyspaces::Keyspaces;
use crate::catalogue::table::TableRecord;
use crate::commit::commit_clock;
use crate::engine::Engine;
use crate::error::TableError;
use crate::options::Options;
use crate::shared::stopped;
use crate::storage::directory;
use crate::storage::extra_files;
use crate::storage::integrity::set_aside;
use crate::storage::layout;
use crate::storage::permissions;
use crate::storage::record::{self, Record};
use crate::storage::seal::file::{self, FileKeys};
use crate::storage::seal::keyring::Keyring;
use crate::storage::seal::sealer::Sealer;
use source::{DamagedStore, SalvagedEntry};

/// Items that are written at once.
const CHUNK_ITEMS: usize = 500;
/// Problems that a report describes; further ones are only counted.
const DESCRIBED_MAX: usize = 1000;

/// What was copied, and what is missing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SalvageReport {
    pub tables: u64,
    pub items: u64,
    /// Backups of tables.
    pub backups: u64,
    /// Items with a readable key but an unreadable value.
    pub unreadable_items: u64,
    /// EntryIter of the folder `set-aside`, which are not copied.
    pub set_aside: Vec<String>,
    /// The number of problems.
    pub problems: u64,
    /// Descriptions of the first problems.
    pub descriptions: Vec<String>,
}

impl SalvageReport {
    /// Whether nothing is known to be missing.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.problems == 0
    }

    fn problem(&mut self, description: String) {
        self.problems += 1;
        if self.descriptions.len() < DESCRIBED_MAX {
            self.descriptions.push(description);
        }
    }
}

/// Copies everything readable of the data directory `from`, which no process may have open, to `to`, which
/// must not exist or be inside `from`. The copy appears only once it is complete.
///
/// `options` apply to the copy. If `from` is sealed, their master key decrypts it, and the copy is sealed
/// with the same key. `files` are names of other components' files in the directory, which are copied
/// unchanged.
///
/// # Errors
/// Fails if `to` exists or cannot be written, `from` is not a data directory, another process has it open, or
/// it is sealed and the key is missing or wrong.
pub async fn salvage(
    from: &Path,
    to: &Path,
    options: Options,
    files: &[&str],
) -> Result<SalvageReport, BackupError> {
    if is_inside(to, from).map_err(io(to))? {
        let reason = "the copy would be inside the damaged data directory";
        return Err(io(to)(std::io::Error::other(reason)));
    }
    let unfinished = Unfinished::folder(to)?;
    let _lock = directory::lock_existing(from)?;
    let sealer = sealer(from, &options)?;
    let source = DamagedStore::open(from, sealer).map_err(io(from))?;
    let report = copy(source, from, unfinished.path(), options).await?;
    // IMPORTANT: before the rename, because a copy that looks complete must have its secrets.
    extra_files::copy_files(from, unfinished.path(), files)
        .map_err(|(path, error)| io(&path)(error))?;
    unfinished.finish()?;
    Ok(report)
}

/// Whether a path that does not exist yet would be inside a directory.
fn is_inside(path: &Path, directory: &Path) -> std::io::Result<bool> {
    let directory = directory.canonicalize()?;
    let path = std::path::absolute(path)?;
    let existing = path.ancestors().skip(1).find(|parent| parent.exists());
    match existing {
        Some(parent) => Ok(parent.canonicalize()?.starts_with(directory)),
        None => Ok(false),
    }
}

/// The sealer of a sealed directory. A keyring shows that it is sealed, because its `FORMAT` may be lost.
fn sealer(from: &Path, options: &Options) -> Result<Option<Arc<Sealer>>, BackupError> {
    let says_sealed = matches!(directory::read_format(from), Ok(Some(format)) if format.is_sealed);
    if !says_sealed && Keyring::read_unverified(from)?.is_none() {
        return Ok(None);
    }
    let keyring = directory::unlock(from, options.master_key.as_ref())?;
    let sealer = options.master_key.clone().map(|master| {
        let clock = Arc::clone(&options.clock);
        Arc::new(Sealer::new(from, keyring, master, clock))
    });
    Ok(sealer)
}

async fn copy(
    mut source: DamagedStore,
    from: &Path,
    target: &Path,
    options: Options,
) -> Result<SalvageReport, BackupError> {
    let mut report = SalvageReport::default();
    let catalogue = read_catalogue(&mut source, &mut report);
    let commit_ms = read_commit_time(&mut source, &mut report);
    let engine = Engine::create_from(target, options, commit_ms).await?;
    let mut used: BTreeSet<String> = BTreeSet::new();
    for record in &catalogue.tables {
        used.extend(record.keyspace_names());
        copy_table(&engine, &mut source, record, &mut report).await?;
    }
    copy_backups(&engine, &source, from, catalogue.backups, &mut report).await?;
    let (named, unnamed) = source.keyspaces().map_err(io(target))?;
    for name in named {
        if !Keyspaces::is_own(&name) && !used.contains(&name) {
            let entries = count(&mut source, &name);
            if entries > 0 {
                report.problem(format!(
                    "keyspace \"{name}\" has {entries} entries of a table or index that the catalogue does not name"
                ));
            }
        }
    }
    for number in unnamed {
        report.problem(format!(
            "the folder of keyspace {number} has table files, but its name is lost"
        ));
    }
    for damage in std::mem::take(&mut source.damage) {
        report.problem(damage);
    }
    report.set_aside = set_aside::list(from).map_err(io(from))?;
    Ok(report)
}

/// The readable part of the catalogue.
#[derive(Default)]
struct ReadableCatalogue {
    tables: Vec<TableRecord>,
    backups: Vec<TableBackup>,
}

fn read_catalogue(source: &mut DamagedStore, report: &mut SalvageReport) -> ReadableCatalogue {
    let mut catalogue = ReadableCatalogue::default();
    let Some(entries) = source.entries(layout::CATALOGUE_KEYSPACE) else {
        report.problem("the catalogue of tables is missing".to_owned());
        return catalogue;
    };
    for found in entries {
        let (key, value) = match found {
            SalvagedEntry::Entry(key, value) => (key, value),
            SalvagedEntry::Unopened(key) => {
                let key = String::from_utf8_lossy(&key);
                report.problem(format!(
                    "the entry {key} of the catalogue cannot be decrypted"
                ));
                continue;
            }
            SalvagedEntry::Gap { damage, .. } => {
                report.problem(format!("the catalogue of tables: {damage}"));
                continue;
            }
        };
        let read = if key.starts_with(TABLE_PREFIX) {
            serde_json::from_slice(&value).map(|table| catalogue.tables.push(table))
        } else if key.starts_with(TableBackup::PREFIX) {
            serde_json::from_slice(&value).map(|backup| catalogue.backups.push(backup))
        } else {
            Ok(())
        };
        if let Err(error) = read {
            let key = String::from_utf8_lossy(&key);
            report.problem(format!(
                "the entry {key} of the catalogue cannot be read: {error}"
            ));
        }
    }
    catalogue
}

/// The commit time of the damaged store; old versions did not record it.
fn read_commit_time(source: &mut DamagedStore, report: &mut SalvageReport) -> Option<i64> {
    let mut is_damaged = true;
    if let Some(entries) = source.entries(layout::META_KEYSPACE) {
        is_damaged = false;
        for found in entries {
            match found {
                SalvagedEntry::Entry(key, value) if &*key == layout::TIME_KEY => {
                    match commit_clock::decode(&value) {
                        Ok(commit_ms) => return Some(commit_ms),
                        Err(_) => is_damaged = true,
                    }
                }
                SalvagedEntry::Entry(..) => {}
                SalvagedEntry::Unopened(_) | SalvagedEntry::Gap { .. } => is_damaged = true,
            }
        }
    }
    if is_damaged {
        report.problem(
            "the time of the last commit is lost; check this machine's clock before you serve the copy".to_owned(),
        );
    }
    None
}

async fn copy_table(
    engine: &Engine,
    source: &mut DamagedStore,
    record: &TableRecord,
    report: &mut SalvageReport,
) -> Result<(), BackupError> {
    let name = &record.schema.name;
    // Copied items are not changes, so the stream is enabled at the end.
    let schema = TableSchema {
        stream: None,
        ..record.schema.clone()
    };
    let created = engine.create_table_with(schema, record.settings.clone());
    if !accepted(created.await, name, "cannot be created", report)? {
        return Ok(());
    }
    report.tables += 1;
    let table = Arc::clone(engine.shared().catalogue.now().get(name)?);
    match source.entries(&record.keyspace_name()) {
        None => report.problem(format!("table {name}: its items are missing")),
        Some(entries) => {
            let mut chunk = Vec::new();
            for found in entries {
                match found {
                    SalvagedEntry::Entry(key, value) => {
                        let item = Record::new(&record.schema.key, &key, &value)
                            .and_then(|record| record.to_item());
                        match item.map(|item| table.encode(&item)) {
                            Ok(Ok(encoded)) => chunk.push(encoded),
                            Ok(Err(error)) => report.problem(format!(
                                "table {name}: the item {} cannot be written: {error}",
                                name_of(record, &key)
                            )),
                            Err(_) => unreadable(record, &key, report),
                        }
                    }
                    SalvagedEntry::Unopened(key) => unreadable(record, &key, report),
                    SalvagedEntry::Gap { after, damage } => {
                        let after = after.map(|key| name_of(record, &key));
                        let after = after.as_deref().unwrap_or("the beginning");
                        report.problem(format!(
                            "table {name}: items after {after} are missing or outdated: {damage}"
                        ));
                    }
                }
                if chunk.len() == CHUNK_ITEMS {
                    report.items += CHUNK_ITEMS as u64;
                    engine
                        .load_items(&table, std::mem::take(&mut chunk))
                        .await?;
                }
            }
            report.items += chunk.len() as u64;
            engine.load_items(&table, chunk).await?;
        }
    }
    if record.schema.stream.is_some() {
        let set = engine.set_stream(name, record.schema.stream).await;
        accepted(set, name, "has no stream", report)?;
    }
    if let Some(history) = record.history {
        let set = engine.set_history(name, Some(history.period_days)).await;
        accepted(set, name, "has no point-in-time recovery", report)?;
    }
    Ok(())
}

/// Whether the new store accepts part of a table's record; if not, that is reported as a problem. A store
/// that cannot be written ends the salvage.
fn accepted<T>(
    result: Result<T, TableError>,
    table: &str,
    problem: &str,
    report: &mut SalvageReport,
) -> Result<bool, BackupError> {
    match result {
        Ok(_) => Ok(true),
        Err(error @ TableError::Store(_)) => Err(error.into()),
        Err(error) => {
            report.problem(format!("table {table:?} {problem}: {error}"));
            Ok(false)
        }
    }
}

/// Copies the backups of single tables in the catalogue.
async fn copy_backups(
    engine: &Engine,
    source: &DamagedStore,
    from: &Path,
    backups: Vec<TableBackup>,
    report: &mut SalvageReport,
) -> Result<(), BackupError> {
    let shared = engine.shared();
    let folder = shared.directory.join(table_backups::FOLDER);
    if !backups.is_empty() {
        permissions::create_folder(&folder).map_err(io(&folder))?;
    }
    for backup in backups {
        let path = table_backups::path_in(from, &backup.id);
        let copy = table_backups::path_in(&shared.directory, &backup.id);
        let mut file = match file::open(&path, FileKeys::Store(source.sealer())) {
            Ok(file) => file,
            Err(error) => {
                report.problem(format!("backup {}: {error}", backup.id));
                continue;
            }
        };
        let mut writer = file::create(&copy, shared.database.sealer())?;
        if let Err(error) = std::io::copy(&mut file, &mut writer) {
            report.problem(format!("backup {}: {}: {error}", backup.id, path.display()));
            std::fs::remove_file(&copy).map_err(io(&copy))?;
            continue;
        }
        writer.finish().map_err(io(&copy))?;
        let kept = shared.exclusive(|committer| records::save(committer, backup, &[]));
        kept.await.map_err(|_| stopped())??;
        report.backups += 1;
    }
    Ok(())
}

fn unreadable(table: &TableRecord, key: &[u8], report: &mut SalvageReport) {
    report.unreadable_items += 1;
    report.problem(format!(
        "table {}: the item {} cannot be read",
        table.schema.name,
        name_of(table, key)
    ));
}

/// An item's key as JSON.
fn name_of(table: &TableRecord, key: &[u8]) -> String {
    let empty = record::encode(&homeport_item::Item::new(), &table.schema.key);
    Record::new(&table.schema.key, key, &empty)
        .and_then(|record| record.key_item())
        .ok()
        .and_then(|key| serde_json::to_string(&key).ok())
        .unwrap_or_else(|| hex::encode(key))
}

fn count(source: &mut DamagedStore, keyspace: &str) -> u64 {
    let entries = source.entries(keyspace).into_iter().flatten();
    entries.fold(0, |count, found| match found {
        SalvagedEntry::Gap { .. } => count,
        SalvagedEntry::Entry(..) | SalvagedEntry::Unopened(_) => count + 1,
    })
}

#[cfg(test)]
mod tests {
    use homeport_item::{Item, KeyKind};
    use homeport_store::{Put, Store as _};

    use super::*;
    use crate::catalogue;
    use crate::storage::vault::PersistMode;

    #[tokio::test]
    async fn refused_table_does_not_stop_the_salvage() {
        let parent = tempfile::tempdir().unwrap();
        let data = parent.path().join("data");
        let engine = Engine::open(&data, Options::for_tests()).unwrap();
        for name in ["bad", "good"] {
            let table = TableSchema::new(name, "id", KeyKind::S);
            engine.create_table(table).await.unwrap();
            let item = Item::new().with("id", "a");
            engine.put(Put::new(name, item)).await.unwrap();
        }
        let shared = engine.shared();
        let table = Arc::clone(shared.catalogue.now().get("bad").unwrap());
        let mut record = table.record.clone();
        let (key, _) = catalogue::table_entry(&record);
        record.schema.name = "not a name!".to_owned();
        let (_, value) = catalogue::table_entry(&record);
        let mut batch = shared.database.batch();
        batch.insert(&shared.keyspaces.catalogue, key, value);
        batch.commit(PersistMode::SyncAll).unwrap();
        drop((table, engine));
        let salvaged = parent.path().join("salvaged");
        let report = salvage(&data, &salvaged, Options::for_tests(), &[])
            .await
            .unwrap();
        assert_eq!((report.tables, report.items), (1, 1), "{report:?}");
        let texts = report.descriptions.join("\n");
        assert!(
            texts.contains("\"not a name!\" cannot be created"),
            "{texts}"
        );
    }

    #[tokio::test]
    async fn salvage_lists_set_aside_data() {
        let parent = tempfile::tempdir().unwrap();
        let data = parent.path().join("data");
        drop(Engine::open(&data, Options::for_tests()).unwrap());
        let folder = data.join(set_aside::SET_ASIDE_FOLDER);
        std::fs::create_dir_all(folder.join("t7-9")).unwrap();
        let salvaged = parent.path().join("salvaged");
        let report = salvage(&data, &salvaged, Options::for_tests(), &[])
            .await
            .unwrap();
        assert_eq!(report.set_aside, ["t7-9"]);
    }
}
