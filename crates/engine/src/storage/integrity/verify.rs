//! Verifies that a data directory is complete, before the key-value store opens it. Nothing here writes.
//!
//! The key-value store does not report missing files: without a journal it starts a new one, and it deletes
//! keyspaces whose names or lists are missing. So missing files must be found first.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::commit::writer::CommitRecord;
use crate::error::OpenError;
use crate::storage::directory;
use crate::storage::integrity::contents::{CONTENTS_FILE, Contents};
use crate::storage::integrity::mark::{self, MARK_FILE, Mark, StoreId};
use crate::storage::journal::{self, Journals};
use crate::storage::layout;
use crate::storage::vault::UserKey;
use crate::storage::vault::files::{self, FileDamage, TableFile};

/// Table files are read completely at each start up to this total size; `check` reads all of them.
const VERIFIED_AT_START_BYTES: u64 = 256 * 1024 * 1024;

/// The contents of a complete data directory.
#[derive(Debug, Default)]
pub(crate) struct Verified {
    pub(crate) journals: Journals,
    /// The generation of the mark, the mark, and the list of contents; `None` if the directory was written by
    /// a version of Homeport without marks.
    pub(crate) marked: Option<(u64, Mark, Contents)>,
    /// All table files.
    pub(crate) tables: Vec<TableFile>,
    /// Keyspace folders with data that the key-value store does not list, and would delete.
    pub(crate) unnamed: Vec<PathBuf>,
    /// Whether there is no store yet, or one whose creation was interrupted.
    pub(crate) is_unfinished: bool,
}

/// How many table files are read completely.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum VerifyScope {
    /// As many as a start has time for.
    Start,
    /// None, because the caller reads them.
    None,
}

/// Compares the directory with its mark and its list of contents, which may only be missing if
/// `may_be_unmarked`. `keyring` is the store's id in the keyring of a sealed directory.
pub(crate) fn verify(
    directory: &Path,
    may_be_unmarked: bool,
    keyring: Option<StoreId>,
    scope: VerifyScope,
) -> Result<Verified, OpenError> {
    let damaged = |damage: String| OpenError::Damaged {
        path: directory.to_owned(),
        damage,
    };
    let marked = read_marks(directory, may_be_unmarked)?.map_err(damaged)?;
    if let (Some((_, mark, _)), Some(keyring)) = (&marked, keyring)
        && mark.store != keyring
    {
        return Err(damaged(
            "the file MARK and the keyring belong to different stores".to_owned(),
        ));
    }
    let store = directory.join(layout::STORE_DIR);
    if !directory::is_store_finished(&store)? {
        return match &marked {
            Some((_, mark, _)) if mark.commit > mark.base => Err(damaged(format!(
                "{} or its file \"version\" is missing, and with it the journals",
                store.display()
            ))),
            _ => Ok(Verified {
                marked,
                is_unfinished: true,
                ..Verified::default()
            }),
        };
    }
    if let Some(stray) = files::stray_entry(&store)? {
        return Err(OpenError::StrayEntry(stray));
    }
    let contents = marked.as_ref().map(|(_, _, contents)| contents);
    let named = named_keyspaces(&store, contents)?.map_err(damaged)?;
    let unnamed = unnamed_folders(&store, &named, contents)?;
    if scope == VerifyScope::Start {
        verify_tables(&named).map_err(|damage| damaged(damage.to_string()))?;
    }
    let journals = journal::survey(&store)?;
    check_numbers(&journals, &store).map_err(damaged)?;
    if let Some((_, mark, contents)) = &marked {
        check_journals(mark, contents, &journals, &named).map_err(damaged)?;
    }
    Ok(Verified {
        journals,
        marked,
        unnamed,
        tables: named
            .into_values()
            .flat_map(|keyspace| keyspace.tables)
            .collect(),
        is_unfinished: false,
    })
}

/// Checks again once the store is open: its newest commit must reach the mark.
pub(crate) fn reaches_mark(directory: &Path, commit: u64, mark: Mark) -> Result<(), OpenError> {
    if commit >= mark.commit {
        return Ok(());
    }
    Err(OpenError::Damaged {
        path: directory.to_owned(),
        damage: format!(
            "its newest commit is {commit}, but commit {} was acknowledged",
            mark.commit
        ),
    })
}

type MarkAndContents = Option<(u64, Mark, Contents)>;

/// Reads the mark and the list of contents; an inner error describes their damage.
fn read_marks(
    directory: &Path,
    may_be_unmarked: bool,
) -> Result<Result<MarkAndContents, String>, OpenError> {
    let mark = match mark::read(directory) {
        Err(error) if error.kind() == std::io::ErrorKind::InvalidData => {
            return Ok(Err(format!("the file {MARK_FILE} is damaged: {error}")));
        }
        mark => mark?,
    };
    let contents = match Contents::read(directory) {
        Err(error) if error.kind() == std::io::ErrorKind::InvalidData => {
            return Ok(Err(format!("the file {CONTENTS_FILE} is damaged: {error}")));
        }
        contents => contents?,
    };
    Ok(match (mark, contents) {
        // The list is written before the mark when an older directory gets both.
        (None, contents) if may_be_unmarked && contents.as_ref().is_none_or(Contents::is_new) => {
            Ok(None)
        }
        (None, _) => Err(format!(
            "the file {MARK_FILE} is missing, which says how far the journals must reach"
        )),
        (Some(_), None) => Err(format!(
            "the file {CONTENTS_FILE} is missing, which says which keyspaces there must be"
        )),
        (Some((_, mark)), Some(contents)) if !contents.is_of(mark.store) => Err(format!(
            "the files {MARK_FILE} and {CONTENTS_FILE} belong to different stores"
        )),
        (Some((_, mark)), Some(contents)) if contents.generation < mark.contents => Err(format!(
            "the file {CONTENTS_FILE} is an older version of itself"
        )),
        (Some((generation, mark)), Some(contents)) => Ok(Some((generation, mark, contents))),
    })
}

/// A keyspace with all of its files.
#[derive(Debug)]
struct ListedKeyspace {
    name: String,
    /// The version of its list of table files.
    version: u64,
    tables: Vec<TableFile>,
}

/// All keyspaces that the store lists, which must include those of `contents`.
fn named_keyspaces(
    store: &Path,
    contents: Option<&Contents>,
) -> Result<Result<BTreeMap<u64, ListedKeyspace>, String>, OpenError> {
    let folders = files::keyspace_folders(store)?;
    let expected = contents.map(|contents| &contents.keyspaces);
    let has_names = folders
        .get(&0)
        .is_some_and(|folder| files::is_complete(folder));
    if !has_names {
        // A crash during the creation of a store may leave this; then nothing else exists.
        let has_data = folders
            .values()
            .any(|folder| files::has_table_files(folder));
        if has_data || expected.is_some_and(|expected| !expected.is_empty()) {
            let names = files::folder_of(store, 0);
            return Ok(Err(format!(
                "{}: the names of the keyspaces are missing",
                names.display()
            )));
        }
        return Ok(Ok(BTreeMap::new()));
    }
    let names = match files::keyspace_names(store) {
        Ok(names) => names,
        Err(damage) => return Ok(Err(damage.to_string())),
    };
    for (number, name) in expected.into_iter().flatten() {
        if names.get(number) != Some(name) {
            return Ok(Err(format!(
                "keyspace {number}, \"{name}\", is missing in the store's list of keyspaces"
            )));
        }
    }
    let mut named = BTreeMap::new();
    for (number, name) in names {
        let folder = files::folder_of(store, number);
        let listed = files::list_version(&folder)
            .and_then(|version| Ok((version, files::table_files(&folder)?)));
        let (version, tables) = match listed {
            Ok(listed) => listed,
            Err(damage) => return Ok(Err(format!("keyspace \"{name}\": {damage}"))),
        };
        let keyspace = ListedKeyspace {
            name,
            version,
            tables,
        };
        named.insert(number, keyspace);
    }
    Ok(Ok(named))
}

/// Folders with table files that the store would delete, except those of keyspaces that the engine deleted.
fn unnamed_folders(
    store: &Path,
    named: &BTreeMap<u64, ListedKeyspace>,
    contents: Option<&Contents>,
) -> Result<Vec<PathBuf>, OpenError> {
    let Some(contents) = contents else {
        return Ok(Vec::new());
    };
    let folders = files::keyspace_folders(store)?;
    Ok(folders
        .into_iter()
        .filter(|(number, folder)| {
            *number != 0
                && !named.contains_key(number)
                && !contents.deleted.contains(number)
                && files::has_table_files(folder)
        })
        .map(|(_, folder)| folder)
        .collect())
}

/// Reads table files completely, starting with those of the engine's own keyspaces.
fn verify_tables(named: &BTreeMap<u64, ListedKeyspace>) -> Result<(), FileDamage> {
    let mut left = VERIFIED_AT_START_BYTES;
    // Keyspaces are numbered in the order of their creation.
    for table in named.values().flat_map(|keyspace| &keyspace.tables) {
        match left.checked_sub(table.len()) {
            Some(rest) => left = rest,
            None => {
                // A file that is not read now must at least be a table file.
                table.last_sequence()?;
                continue;
            }
        }
        table.verify()?;
    }
    Ok(())
}

/// Journals are numbered without gaps, and there is always at least one.
fn check_numbers(journals: &Journals, store: &Path) -> Result<(), String> {
    let numbers: Vec<u64> = journals.files.iter().map(|file| file.number).collect();
    for pair in numbers.windows(2) {
        if pair[1] != pair[0] + 1 {
            return Err(missing_journal(store, pair[0] + 1));
        }
    }
    if numbers.is_empty() {
        return Err(format!(
            "{}: the journal is missing; what is in table files can still be read",
            store.display()
        ));
    }
    Ok(())
}

fn missing_journal(store: &Path, number: u64) -> String {
    let path = store.join(format!("{number}.jnl"));
    format!(
        "{}: the journal is missing; the other journals and the table files can still be read",
        path.display()
    )
}

/// Checks that the journals reach from the contents of the table files to the mark.
fn check_journals(
    mark: &Mark,
    contents: &Contents,
    journals: &Journals,
    named: &BTreeMap<u64, ListedKeyspace>,
) -> Result<(), String> {
    let (Some(oldest), Some(newest)) = (journals.files.first(), journals.files.last()) else {
        return Ok(());
    };
    let store = newest.path.parent().unwrap_or(Path::new(""));
    if newest.number < contents.active_journal {
        return Err(missing_journal(store, contents.active_journal));
    }
    let sealed = contents.sealed_journals.iter();
    for (number, versions) in sealed.filter(|(number, _)| **number < oldest.number) {
        for (keyspace, version) in versions {
            // The flush before the journal's deletion creates a newer version.
            if named
                .get(keyspace)
                .is_some_and(|keyspace| keyspace.version <= *version)
            {
                return Err(missing_journal(store, *number));
            }
        }
    }
    if mark.commit == mark.base {
        return Ok(());
    }
    let flushed = || match named.values().find(|keyspace| keyspace.is_meta()) {
        Some(meta) => meta.flushed_commit(),
        None => Ok(None),
    };
    match (journals.first(), journals.last()) {
        (Some(first), Some(last)) => {
            let is_first_ever = first.synced_commit <= mark.base;
            if !is_first_ever && flushed()?.is_none_or(|commit| commit < first.synced_commit) {
                return Err(format!(
                    "{}: the journal begins with commit {}, and an older journal is missing, or it is the journal of another store",
                    oldest.path.display(),
                    first.commit
                ));
            }
            if last.commit < mark.commit || (is_first_ever && mark.commit < first.commit) {
                return Err(format!(
                    "{}: the journal has commits {} to {}, but commit {} was acknowledged: the journal was cut off, or it is the journal of another store; what it has can still be read",
                    newest.path.display(),
                    first.commit,
                    last.commit,
                    mark.commit
                ));
            }
        }
        _ => {
            if flushed()?.is_none_or(|commit| commit < mark.commit) {
                return Err(format!(
                    "{}: the journal is empty, but commit {} was acknowledged; what is in table files can still be read",
                    newest.path.display(),
                    mark.commit
                ));
            }
        }
    }
    Ok(())
}

impl ListedKeyspace {
    fn is_meta(&self) -> bool {
        self.name == layout::META_KEYSPACE
    }

    /// The newest commit in the keyspace's table files.
    fn flushed_commit(&self) -> Result<Option<u64>, String> {
        let key = UserKey::from(layout::COMMIT_KEY);
        let mut newest: Option<(u64, u64)> = None;
        for table in &self.tables {
            let entries = table.entries(Some(key.clone()..=key.clone()));
            for entry in entries.map_err(|damage| damage.to_string())? {
                let entry = entry.map_err(|damage| damage.to_string())?;
                let record = entry.value.and_then(|value| CommitRecord::decode(&value));
                if let Some(record) = record {
                    newest = newest.max(Some((entry.sequence, record.commit)));
                }
            }
        }
        Ok(newest.map(|(_, commit)| commit))
    }
}

#[cfg(test)]
#[path = "../../../tests/reliability/copy.rs"]
mod copy;

#[cfg(test)]
mod tests {
    use homeport_item::schema::TableSchema;
    use homeport_item::{Item, KeyKind};
    use homeport_store::{Delete, Put, Store as _};

    use super::copy::copy_directory;
    use super::*;
    use crate::engine::{self, Engine};
    use crate::options::Options;
    use crate::shared::Shared;

    async fn filled(directory: &Path) -> Engine {
        let engine = Engine::open(directory, Options::for_tests()).unwrap();
        let table = TableSchema::new("things", "id", KeyKind::S);
        engine.create_table(table).await.unwrap();
        put(&engine, "one").await;
        engine
    }

    async fn put(engine: &Engine, id: &str) {
        let item = Item::new().with("id", id);
        engine.put(Put::new("things", item)).await.unwrap();
    }

    fn journal_of(directory: &Path, number: u64) -> PathBuf {
        let store = directory.join(layout::STORE_DIR);
        store.join(format!("{number}.jnl"))
    }

    fn flush(shared: &Shared, name: &str) {
        let keyspace = shared.database.keyspace(name).unwrap();
        engine::flush(shared, &keyspace).unwrap();
    }

    /// A data directory as a killed process leaves it, after the key-value store has started a second
    /// journal.
    struct Rotated {
        image: tempfile::TempDir,
        sealed_len: usize,
        sealed: BTreeMap<u64, u64>,
    }

    impl Rotated {
        /// Starts the second journal.
        fn begin(engine: &Engine) -> Self {
            let shared = engine.shared();
            let first = journal_of(&shared.directory, 0);
            let newest = journal::newest_values(&first).unwrap();
            let journals = journal::survey(first.parent().unwrap()).unwrap();
            Self {
                image: tempfile::tempdir().unwrap(),
                sealed_len: usize::try_from(journals.files[0].whole_len).unwrap(),
                sealed: shared.database.unflushed(&newest).unwrap(),
            }
        }

        /// Copies the data directory with the second journal, but without the first one.
        fn kill(&self, engine: &Engine) -> &Path {
            let (from, to) = (&engine.shared().directory, self.image.path());
            copy_directory(from, to);
            std::fs::remove_file(journal_of(to, 0)).unwrap();
            let first = journal_of(from, 0);
            let journals = journal::survey(first.parent().unwrap()).unwrap();
            let len = usize::try_from(journals.files[0].whole_len).unwrap();
            let bytes = std::fs::read(first).unwrap();
            std::fs::write(journal_of(to, 1), &bytes[self.sealed_len..len]).unwrap();
            let mut contents = Contents::read(to).unwrap().unwrap();
            contents.sealed_journals.insert(0, self.sealed.clone());
            contents.active_journal = 1;
            contents.write(to).unwrap();
            to
        }
    }

    #[tokio::test]
    async fn missing_full_journal_is_refused_after_later_writes() {
        let directory = tempfile::tempdir().unwrap();
        let engine = filled(directory.path()).await;
        let rotated = Rotated::begin(&engine);
        assert!(!rotated.sealed.is_empty());
        put(&engine, "two").await;
        // The commit record has reached a table file, but the item has not.
        flush(engine.shared(), layout::META_KEYSPACE);
        let image = rotated.kill(&engine);
        let error = verify(image, false, None, VerifyScope::Start).unwrap_err();
        assert!(error.to_string().contains("0.jnl"), "{error}");
    }

    #[tokio::test]
    async fn removed_full_journal_of_deleted_items_is_accepted() {
        let directory = tempfile::tempdir().unwrap();
        let engine = filled(directory.path()).await;
        let shared = engine.shared();
        let rotated = Rotated::begin(&engine);
        let item = Item::new().with("id", "one");
        engine.delete(Delete::new("things", item)).await.unwrap();
        for name in shared.database.keyspace_names() {
            flush(shared, &name);
            let keyspace = shared.database.keyspace(&name).unwrap();
            keyspace.major_compact().unwrap();
        }
        let again = Rotated::begin(&engine);
        assert_eq!(again.sealed, BTreeMap::new());
        for rotated in [rotated, again] {
            verify(rotated.kill(&engine), false, None, VerifyScope::Start).unwrap();
        }
    }

    #[tokio::test]
    async fn stray_entries_are_refused_by_name() {
        let directory = tempfile::tempdir().unwrap();
        drop(filled(directory.path()).await);
        for stray in [
            "keyspaces/lost+found",
            "keyspaces/007",
            "x.jnl",
            "9.jnl",
            "9.JNL",
        ] {
            let path = directory.path().join(layout::STORE_DIR).join(stray);
            std::fs::create_dir(&path).unwrap();
            let refused = Engine::open(directory.path(), Options::for_tests()).unwrap_err();
            let text = refused.to_string();
            assert!(text.contains(stray) && text.contains("move it"), "{text}");
            std::fs::remove_dir(&path).unwrap();
        }
        std::fs::write(directory.path().join("store/keyspaces/.DS_Store"), "").unwrap();
        drop(Engine::open(directory.path(), Options::for_tests()).unwrap());
    }
}
