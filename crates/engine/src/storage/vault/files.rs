//! The files of the key-value store, read without opening it. Nothing here writes.
//!
//! Opening the store deletes files that its lists do not name. So the lists are verified first, using
//! checksums that the store writes but does not verify itself. The layout is that of lsm-tree 3; see
//! `docs/engine-format.md`.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lsm_tree::{Cache, Checksum, Table, ValueType};
use xxhash_rust::xxh3::{Xxh3, xxh3_128};

use crate::storage::vault::{UserKey, UserValue};

/// The folder of all keyspaces inside a store.
pub(crate) const KEYSPACES_FOLDER: &str = "keyspaces";
/// The keyspace with the names of the others.
const NAMES_KEYSPACE: u64 = 0;
/// Prefix of the keys that map a keyspace's number to its name.
const NAME_PREFIX: u8 = b'n';
const CURRENT_FILE: &str = "current";
pub(crate) const TABLES_FOLDER: &str = "tables";
/// Version number, checksum, kind of checksum.
const CURRENT_LEN: usize = 8 + 16 + 1;
const BUFFER_BYTES: usize = 256 * 1024;

/// The damage of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileDamage {
    pub(crate) path: PathBuf,
    pub(crate) reason: String,
}

impl FileDamage {
    fn new(path: &Path, reason: impl std::fmt::Display) -> Self {
        Self {
            path: path.to_owned(),
            reason: reason.to_string(),
        }
    }
}

impl std::fmt::Display for FileDamage {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}: {}", self.path.display(), self.reason)
    }
}

/// A table file in a keyspace's list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TableFile {
    pub(crate) path: PathBuf,
    checksum: u128,
    sequence_offset: u64,
}

/// An entry of a table file.
pub(crate) struct StoredEntry {
    pub(crate) key: UserKey,
    pub(crate) sequence: u64,
    /// `None` if the entry is a tombstone.
    pub(crate) value: Option<UserValue>,
}

/// The keyspace folders in a store, by number.
pub(crate) fn keyspace_folders(store: &Path) -> std::io::Result<BTreeMap<u64, PathBuf>> {
    let numbered = numbered_entries(&store.join(KEYSPACES_FOLDER), "")?;
    Ok(numbered.into_iter().collect())
}

/// The entries of a folder whose names are a number and `suffix`, in order; none if there is no folder.
pub(crate) fn numbered_entries(
    folder: &Path,
    suffix: &str,
) -> std::io::Result<Vec<(u64, PathBuf)>> {
    let mut numbered = Vec::new();
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(numbered),
        Err(error) => return Err(error),
    };
    for entry in entries {
        let path = entry?.path();
        let number = path
            .file_name()
            .and_then(|name| name.to_str()?.strip_suffix(suffix)?.parse().ok());
        if let Some(number) = number {
            numbered.push((number, path));
        }
    }
    numbered.sort_unstable();
    Ok(numbered)
}

/// Finds an entry that the key-value store would fail on: a folder of keyspaces whose name is not a number,
/// or a journal that is not a file or whose name is not a number.
pub(crate) fn stray_entry(store: &Path) -> std::io::Result<Option<PathBuf>> {
    for entry in std::fs::read_dir(store)? {
        let entry = entry?;
        let name = entry.file_name();
        let is_stray = match name.to_str() {
            None => true,
            Some(name) => match name.rsplit_once('.') {
                Some((number, extension)) if extension.eq_ignore_ascii_case("jnl") => {
                    extension != "jnl" || !is_number(number) || !entry.file_type()?.is_file()
                }
                _ => false,
            },
        };
        if is_stray {
            return Ok(Some(entry.path()));
        }
    }
    let entries = match std::fs::read_dir(store.join(KEYSPACES_FOLDER)) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    for entry in entries {
        let entry = entry?;
        let is_numbered = entry.file_name().to_str().is_some_and(is_number);
        if !is_numbered && !entry.file_type()?.is_file() {
            return Ok(Some(entry.path()));
        }
    }
    Ok(None)
}

/// Whether the text is a number in the form in which the key-value store writes it.
fn is_number(text: &str) -> bool {
    text.parse::<u64>()
        .is_ok_and(|number| number.to_string() == text)
}

/// Whether the creation of a keyspace folder was completed.
pub(crate) fn is_complete(folder: &Path) -> bool {
    folder.join(CURRENT_FILE).exists()
}

/// Whether a keyspace folder contains table files, listed or not.
pub(crate) fn has_table_files(folder: &Path) -> bool {
    std::fs::read_dir(folder.join(TABLES_FOLDER)).is_ok_and(|mut entries| entries.next().is_some())
}

/// The names of all keyspaces by number, as the store would read them.
pub(crate) fn keyspace_names(store: &Path) -> Result<BTreeMap<u64, String>, FileDamage> {
    let folder = folder_of(store, NAMES_KEYSPACE);
    let mut newest: BTreeMap<u64, (u64, Option<String>)> = BTreeMap::new();
    for table in table_files(&folder)? {
        table.verify()?;
        for entry in table.entries(None)? {
            let entry = entry?;
            let Some((&NAME_PREFIX, number)) = entry.key.split_first() else {
                continue;
            };
            let Ok(number) = number.try_into().map(u64::from_be_bytes) else {
                return Err(FileDamage::new(&table.path, "a keyspace number is damaged"));
            };
            let name = entry
                .value
                .map(|name| String::from_utf8_lossy(&name).into_owned());
            let found = newest.entry(number).or_default();
            if entry.sequence >= found.0 {
                *found = (entry.sequence, name);
            }
        }
    }
    let named = newest.into_iter();
    Ok(named
        .filter_map(|(number, (_, name))| name.map(|name| (number, name)))
        .collect())
}

/// The number of the keyspace with this folder.
pub(crate) fn keyspace_number(folder: &Path) -> Option<u64> {
    folder.file_name()?.to_str()?.parse().ok()
}

pub(crate) fn folder_of(store: &Path, keyspace: u64) -> PathBuf {
    store.join(KEYSPACES_FOLDER).join(keyspace.to_string())
}

/// The table files of a keyspace, all of which must exist.
pub(crate) fn table_files(folder: &Path) -> Result<Vec<TableFile>, FileDamage> {
    let files = listed_tables(folder)?;
    for file in &files {
        if !file.path.exists() {
            return Err(FileDamage::new(&file.path, "the file is missing"));
        }
    }
    Ok(files)
}

/// The version of a keyspace's list of table files. Each flush and each compaction creates a newer one.
pub(crate) fn list_version(folder: &Path) -> Result<u64, FileDamage> {
    current_list(folder).map(|(version, _)| version)
}

/// The version of a keyspace's list of table files, and its checksum.
fn current_list(folder: &Path) -> Result<(u64, u128), FileDamage> {
    let current = folder.join(CURRENT_FILE);
    let bytes = read(&current)?;
    let mut fields = FieldReader(&bytes);
    match (fields.u64(), fields.u128()) {
        (Some(version), Some(checksum)) if bytes.len() == CURRENT_LEN => Ok((version, checksum)),
        _ => Err(damaged_list(&current)),
    }
}

fn damaged_list(path: &Path) -> FileDamage {
    FileDamage::new(path, "the list of table files is damaged")
}

/// The table files in a keyspace's list.
pub(crate) fn listed_tables(folder: &Path) -> Result<Vec<TableFile>, FileDamage> {
    let (version, checksum) = current_list(folder)?;
    let list = folder.join(format!("v{version}"));
    let bytes = read(&list)?;
    let section = sfa::Reader::from_reader(&mut std::io::Cursor::new(&bytes))
        .ok()
        .and_then(|archive| {
            let entry = archive.toc().section(b"tables")?;
            let start = usize::try_from(entry.pos()).ok()?;
            let end = start.checked_add(usize::try_from(entry.len()).ok()?)?;
            bytes.get(start..end).map(<[u8]>::to_vec)
        })
        .ok_or_else(|| damaged_list(&list))?;
    let tables = parse_tables(folder, &section).ok_or_else(|| damaged_list(&list))?;
    if xxh3_128(&bytes) != checksum && !is_rewritten(&tables) {
        return Err(FileDamage::new(
            &list,
            "the list of table files does not match the checksum in the file \"current\"",
        ));
    }
    Ok(tables)
}

/// Whether a list of table files without a matching checksum was rewritten by the store, and is not damaged.
///
/// If the sync after renaming "current" fails, the store rewrites a list with the same number, and may end
/// before it writes the new checksum. All files in such a list are intact. A damaged list names a file that
/// is missing or whose own checksum differs.
fn is_rewritten(tables: &[TableFile]) -> bool {
    !tables.is_empty()
        && tables
            .iter()
            .all(|table| table.sequence_offset == 0 && table.verify().is_ok())
}

/// All table files in a keyspace's folder, for when the list is lost.
pub(crate) fn all_tables(folder: &Path) -> Vec<TableFile> {
    let Ok(entries) = std::fs::read_dir(folder.join(TABLES_FOLDER)) else {
        return Vec::new();
    };
    let mut tables: Vec<TableFile> = entries
        .flatten()
        .map(|entry| TableFile {
            path: entry.path(),
            checksum: 0,
            sequence_offset: 0,
        })
        .collect();
    tables.sort_by(|one, other| one.path.cmp(&other.path));
    tables
}

fn parse_tables(folder: &Path, section: &[u8]) -> Option<Vec<TableFile>> {
    let mut fields = FieldReader(section);
    let mut tables = Vec::new();
    for _level in 0..fields.u8()? {
        for _run in 0..fields.u8()? {
            for _table in 0..fields.u32()? {
                let number = fields.u64()?;
                // The kind of checksum; only one exists.
                (fields.u8()? == 0).then_some(())?;
                let checksum = fields.u128()?;
                let sequence_offset = fields.u64()?;
                tables.push(TableFile {
                    path: folder.join(TABLES_FOLDER).join(number.to_string()),
                    checksum,
                    sequence_offset,
                });
            }
        }
    }
    fields.0.is_empty().then_some(tables)
}

impl TableFile {
    pub(crate) fn len(&self) -> u64 {
        std::fs::metadata(&self.path).map_or(0, |file| file.len())
    }

    /// Reads the whole file and verifies its checksum.
    pub(crate) fn verify(&self) -> Result<(), FileDamage> {
        let io = |error: std::io::Error| FileDamage::new(&self.path, error);
        let mut file = File::open(&self.path).map_err(io)?;
        let mut hasher = Xxh3::new();
        let mut buffer = vec![0; BUFFER_BYTES];
        loop {
            let read = file.read(&mut buffer).map_err(io)?;
            if read == 0 {
                break;
            }
            hasher.update(&buffer[..read]);
        }
        if hasher.digest128() != self.checksum {
            return Err(FileDamage::new(
                &self.path,
                "the table file does not match the checksum that it was written with",
            ));
        }
        Ok(())
    }

    /// The newest sequence number in the file.
    pub(crate) fn last_sequence(&self) -> Result<u64, FileDamage> {
        Ok(self.open()?.get_highest_seqno())
    }

    /// The entries of the file in key order. An unreadable block gives an error, and reading continues after
    /// it.
    pub(crate) fn entries(
        &self,
        range: Option<RangeInclusive<UserKey>>,
    ) -> Result<impl Iterator<Item = Result<StoredEntry, FileDamage>> + use<>, FileDamage> {
        let table = self.open()?;
        let path = self.path.clone();
        let entries: Box<dyn Iterator<Item = lsm_tree::Result<lsm_tree::InternalValue>>> =
            match range {
                Some(range) => Box::new(table.range(range)),
                None => Box::new(table.iter()),
            };
        Ok(entries.map(move |entry| {
            // The iterator reads from the file, so the table must outlive it.
            let _ = &table;
            let entry = entry.map_err(|error| FileDamage::new(&path, error))?;
            let is_value = entry.key.value_type == ValueType::Value;
            Ok(StoredEntry {
                key: entry.key.user_key,
                sequence: entry.key.seqno,
                value: is_value.then_some(entry.value),
            })
        }))
    }

    fn open(&self) -> Result<Table, FileDamage> {
        Table::recover(
            self.path.clone(),
            Checksum::from_raw(self.checksum),
            self.sequence_offset,
            0,
            Arc::new(Cache::with_capacity_bytes(0)),
            None,
            false,
            false,
        )
        .map_err(|error| FileDamage::new(&self.path, error))
    }
}

fn read(path: &Path) -> Result<Vec<u8>, FileDamage> {
    std::fs::read(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => FileDamage::new(path, "the file is missing"),
        _ => FileDamage::new(path, error),
    })
}

/// A reader of consecutive little-endian numbers.
struct FieldReader<'a>(&'a [u8]);

impl FieldReader<'_> {
    fn take<const LEN: usize>(&mut self) -> Option<[u8; LEN]> {
        let (taken, rest) = self.0.split_first_chunk::<LEN>()?;
        self.0 = rest;
        Some(*taken)
    }

    fn u8(&mut self) -> Option<u8> {
        self.take::<1>().map(|[byte]| byte)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    fn u128(&mut self) -> Option<u128> {
        self.take().map(u128::from_le_bytes)
    }
}

#[cfg(test)]
mod tests {
    use fjall::{Database, KeyspaceCreateOptions};

    use super::*;

    /// A store with one keyspace, whose entries are in table files.
    fn written_by_the_store() -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        let database = Database::builder(directory.path()).open().unwrap();
        let gone = database.keyspace("gone", KeyspaceCreateOptions::default);
        let things = database.keyspace("things", KeyspaceCreateOptions::default);
        let things = things.unwrap();
        things.insert("a", "first").unwrap();
        things.insert("b", "second").unwrap();
        things.rotate_memtable_and_wait().unwrap();
        things.remove("a").unwrap();
        things.rotate_memtable_and_wait().unwrap();
        database.delete_keyspace(gone.unwrap()).unwrap();
        drop((things, database));
        directory
    }

    #[test]
    fn files_of_the_store_are_read() {
        let directory = written_by_the_store();
        let names = keyspace_names(directory.path()).unwrap();
        assert_eq!(names, BTreeMap::from([(2, "things".to_owned())]));
        let tables = table_files(&folder_of(directory.path(), 2)).unwrap();
        let mut entries = Vec::new();
        for table in &tables {
            table.verify().unwrap();
            for entry in table.entries(None).unwrap() {
                let entry = entry.unwrap();
                assert!(entry.sequence <= table.last_sequence().unwrap());
                entries.push((entry.key.to_vec(), entry.value.map(|value| value.to_vec())));
            }
        }
        entries.sort();
        assert!(entries.contains(&(b"b".to_vec(), Some(b"second".to_vec()))));
        assert!(entries.contains(&(b"a".to_vec(), None)));
    }

    /// The file "current" and the list of table files that it names.
    fn lists(folder: &Path) -> [PathBuf; 2] {
        let current = folder.join(CURRENT_FILE);
        let version = FieldReader(&std::fs::read(&current).unwrap())
            .u64()
            .unwrap();
        [current, folder.join(format!("v{version}"))]
    }

    #[test]
    fn damaged_byte_of_a_list_changes_no_table() {
        let directory = written_by_the_store();
        let folder = folder_of(directory.path(), 2);
        let tables = table_files(&folder).unwrap();
        assert!(!tables.is_empty());
        let mut refused = 0;
        for path in lists(&folder) {
            let whole = std::fs::read(&path).unwrap();
            for at in 0..whole.len() {
                let mut damaged = whole.clone();
                damaged[at] ^= 0x04;
                std::fs::write(&path, &damaged).unwrap();
                match table_files(&folder) {
                    Ok(found) => assert_eq!(found, tables, "byte {at} of {}", path.display()),
                    Err(_) => refused += 1,
                }
            }
            std::fs::write(&path, &whole).unwrap();
        }
        // The version in "current", and all fields of the tables in the list.
        assert!(refused > 8 + 33 * tables.len(), "{refused}");
    }

    #[test]
    fn list_rewritten_after_a_failed_sync_is_read() {
        let directory = written_by_the_store();
        let folder = folder_of(directory.path(), 2);
        let tables = table_files(&folder).unwrap();
        let [current, _] = lists(&folder);
        let mut bytes = std::fs::read(&current).unwrap();
        // The checksum of the previous list.
        bytes[8] ^= 0xff;
        std::fs::write(&current, &bytes).unwrap();
        assert_eq!(table_files(&folder).unwrap(), tables);
        // A damaged file in the list is still detected.
        let mut table = std::fs::read(&tables[0].path).unwrap();
        table[20] ^= 1;
        std::fs::write(&tables[0].path, &table).unwrap();
        assert!(table_files(&folder).is_err());
    }

    #[test]
    fn damaged_or_missing_table_file_is_detected() {
        let directory = written_by_the_store();
        let folder = folder_of(directory.path(), 2);
        let table = table_files(&folder).unwrap().remove(0);
        let whole = std::fs::read(&table.path).unwrap();
        for at in (0..whole.len()).step_by(7) {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x20;
            std::fs::write(&table.path, &damaged).unwrap();
            assert!(table.verify().is_err(), "byte {at}");
        }
        std::fs::remove_file(&table.path).unwrap();
        let damage = table_files(&folder).unwrap_err();
        assert!(
            damage.to_string().contains("the file is missing"),
            "{damage}"
        );
    }
}
