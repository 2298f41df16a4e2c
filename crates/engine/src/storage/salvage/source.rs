//! Reads what is readable of a damaged store: each table file and journal separately. Nothing here writes,
//! and no damage stops the reading.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::storage::integrity::contents::Contents;
use crate::storage::integrity::mark::{self, Mark};
use crate::storage::journal::{self, JournalChange};
use crate::storage::layout;
use crate::storage::seal::sealer::Sealer;
use crate::storage::vault::files::{self, FileDamage, StoredEntry, TableFile};
use crate::storage::vault::{UserKey, UserValue};

/// Journals with commits further from the mark than this belong to another store.
const COMMIT_DISTANCE_MAX: u64 = 1 << 32;

/// Consecutive unreadable blocks after which the rest of a file is skipped.
const ERRORS_MAX: usize = 10_000;

/// A key's newest state in the journals: its sequence number, and its value unless it was deleted.
type KeyState = (u64, Option<UserValue>);

/// The readable parts of a store.
pub(crate) struct DamagedStore {
    store: PathBuf,
    /// Keyspace numbers by name.
    numbers: BTreeMap<String, u64>,
    /// The entries of each keyspace in the journals.
    journals: BTreeMap<u64, BTreeMap<UserKey, KeyState>>,
    sealer: Option<Arc<Sealer>>,
    /// Descriptions of what cannot be read.
    pub(crate) damage: Vec<String>,
}

/// An entry of a keyspace, or a gap.
pub(crate) enum SalvagedEntry {
    Entry(UserKey, UserValue),
    /// A value that cannot be decrypted with the master key.
    Unopened(UserKey),
    /// EntryIter after a key, or from the beginning, are missing. If another file has an older entry of a
    /// missing key, that entry is found instead.
    Gap {
        after: Option<UserKey>,
        damage: String,
    },
}

impl DamagedStore {
    /// Opens the readable parts of a data directory. `sealer` decrypts its values.
    pub(crate) fn open(directory: &Path, sealer: Option<Arc<Sealer>>) -> std::io::Result<Self> {
        let store = directory.join(layout::STORE_DIR);
        let mut damage = Vec::new();
        let mark = match mark::read(directory) {
            Ok(mark) => mark.map(|(_, mark)| mark),
            Err(error) => {
                damage.push(format!("the file {}: {error}", mark::MARK_FILE));
                None
            }
        };
        let contents = Contents::read(directory).unwrap_or_else(|error| {
            damage.push(format!("the list of contents: {error}"));
            None
        });
        let mut names = contents.map_or_else(BTreeMap::new, |contents| contents.keyspaces);
        for (number, name) in &names {
            if !files::folder_of(&store, *number).exists() {
                damage.push(format!("keyspace \"{name}\": its folder is missing"));
            }
        }
        match files::keyspace_names(&store) {
            // The names in the store itself are newer.
            Ok(found) => names.extend(found),
            Err(error) => damage.push(format!("the names of keyspaces: {error}")),
        }
        let journals = read_journals(&store, mark.as_ref(), &mut damage)?;
        Ok(Self {
            store,
            numbers: names
                .into_iter()
                .map(|(number, name)| (name, number))
                .collect(),
            journals,
            sealer,
            damage,
        })
    }

    /// The sealer of values and files, if they are sealed.
    pub(crate) fn sealer(&self) -> Option<&Sealer> {
        self.sealer.as_deref()
    }

    /// The names of all keyspaces, and the numbers of folders without a known name.
    pub(crate) fn keyspaces(&self) -> std::io::Result<(Vec<String>, Vec<u64>)> {
        let named: Vec<u64> = self.numbers.values().copied().collect();
        let folders = files::keyspace_folders(&self.store)?;
        let unnamed = folders
            .into_iter()
            .filter(|(number, folder)| {
                *number != 0 && !named.contains(number) && files::has_table_files(folder)
            })
            .map(|(number, _)| number);
        Ok((self.numbers.keys().cloned().collect(), unnamed.collect()))
    }

    /// All readable entries of a keyspace in key order; `None` if there is no such keyspace.
    pub(crate) fn entries(
        &mut self,
        name: &str,
    ) -> Option<impl Iterator<Item = SalvagedEntry> + use<>> {
        let number = *self.numbers.get(name)?;
        let folder = files::folder_of(&self.store, number);
        let tables = self.table_files(name, &folder);
        let newest = self.journals.remove(&number).unwrap_or_default();
        let mut gaps = Vec::new();
        let mut sources: Vec<EntryIter> = Vec::new();
        for table in &tables {
            match table.entries(None) {
                Ok(entries) => sources.push(Box::new(entries)),
                Err(damage) => gaps.push(SalvagedEntry::Gap {
                    after: None,
                    damage: format!("nothing of {damage} can be read"),
                }),
            }
        }
        sources.push(Box::new(newest.into_iter().map(
            |(key, (sequence, value))| {
                Ok(StoredEntry {
                    key,
                    sequence,
                    value,
                })
            },
        )));
        let sealer = self
            .sealer
            .clone()
            .filter(|_| name != layout::META_KEYSPACE);
        let name = name.to_owned();
        let merged = MergedEntries::new(sources).map(move |found| match (found, &sealer) {
            (SalvagedEntry::Entry(key, value), Some(sealer)) if !value.is_empty() => {
                match sealer.open(&name, &key, &value) {
                    Some(value) => SalvagedEntry::Entry(key, value),
                    None => SalvagedEntry::Unopened(key),
                }
            }
            (found, _) => found,
        });
        Some(gaps.into_iter().chain(merged))
    }

    /// The existing table files of a keyspace.
    fn table_files(&mut self, name: &str, folder: &Path) -> Vec<TableFile> {
        match files::listed_tables(folder) {
            Ok(listed) => {
                let (there, missing): (Vec<_>, Vec<_>) =
                    listed.into_iter().partition(|table| table.path.exists());
                for table in missing {
                    let path = table.path.display();
                    self.damage
                        .push(format!("keyspace \"{name}\": {path} is missing"));
                }
                for table in &there {
                    if let Err(damage) = table.verify() {
                        self.damage.push(format!(
                            "keyspace \"{name}\": {damage}; its readable entries are copied, but may be outdated or belong to another store"
                        ));
                    }
                }
                there
            }
            Err(_) if !folder.exists() => Vec::new(),
            Err(error) => {
                self.damage.push(format!(
                    "keyspace \"{name}\": {error}; all table files in its folder are read instead, so recently deleted entries may reappear"
                ));
                files::all_tables(folder)
            }
        }
    }
}

/// EntryIter of a file or of the journals, in key order.
type EntryIter = Box<dyn Iterator<Item = Result<StoredEntry, FileDamage>>>;

/// Key, sequence number, source and value of an entry; for equal keys, the newest comes first.
type HeapEntry = (UserKey, Reverse<u64>, usize, Option<UserValue>);

/// Merges entries of several sources, keeping the newest state of each key.
struct MergedEntries {
    sources: Vec<EntryIter>,
    /// The next entry of each source.
    next: BinaryHeap<Reverse<HeapEntry>>,
    gaps: Vec<SalvagedEntry>,
    last: Option<UserKey>,
}

impl MergedEntries {
    fn new(sources: Vec<EntryIter>) -> Self {
        let count = sources.len();
        let mut merged = Self {
            sources,
            next: BinaryHeap::new(),
            gaps: Vec::new(),
            last: None,
        };
        for at in 0..count {
            merged.advance(at);
        }
        merged
    }

    fn advance(&mut self, at: usize) {
        let mut last_damage = None;
        // A file that fails repeatedly is not read further.
        for entry in self.sources[at].by_ref().take(ERRORS_MAX) {
            match entry {
                Ok(entry) => {
                    let StoredEntry {
                        key,
                        sequence,
                        value,
                    } = entry;
                    self.next.push(Reverse((key, Reverse(sequence), at, value)));
                    break;
                }
                Err(damage) if last_damage.as_ref() == Some(&damage) => {}
                Err(damage) => {
                    self.gaps.push(SalvagedEntry::Gap {
                        after: self.last.clone(),
                        damage: damage.to_string(),
                    });
                    last_damage = Some(damage);
                }
            }
        }
    }
}

impl Iterator for MergedEntries {
    type Item = SalvagedEntry;

    fn next(&mut self) -> Option<SalvagedEntry> {
        loop {
            if let Some(gap) = self.gaps.pop() {
                return Some(gap);
            }
            let Reverse((key, _, at, value)) = self.next.pop()?;
            let is_older = self.last.as_ref() == Some(&key);
            if !is_older {
                self.last = Some(key.clone());
            }
            self.advance(at);
            if !is_older && let Some(value) = value {
                return Some(SalvagedEntry::Entry(key, value));
            }
        }
    }
}

/// The newest state of all keys in the journals. Damaged parts are skipped.
fn read_journals(
    store: &Path,
    mark: Option<&Mark>,
    damage: &mut Vec<String>,
) -> std::io::Result<BTreeMap<u64, BTreeMap<UserKey, KeyState>>> {
    let mut keyspaces: BTreeMap<u64, BTreeMap<UserKey, KeyState>> = BTreeMap::new();
    let listed = journal::journals_in(store)?;
    for pair in listed.windows(2) {
        for number in pair[0].0 + 1..pair[1].0 {
            damage.push(format!("the journal {number}.jnl is missing"));
        }
    }
    if listed.is_empty() {
        damage.push("all journals are missing".to_owned());
    }
    let mut last_commit = None;
    for (_, path) in listed {
        let bytes = match std::fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) => {
                damage.push(format!("{}: {error}", path.display()));
                continue;
            }
        };
        if let Some(mark) = mark
            && let Some(commit) = journal::commits(&bytes).next()
            && (commit.commit <= mark.base
                || commit.commit > mark.commit.saturating_add(COMMIT_DISTANCE_MAX))
        {
            damage.push(format!(
                "{}: skipped a journal of another store",
                path.display()
            ));
            continue;
        }
        let mut offset = 0;
        while offset < bytes.len() {
            let Some(start) = journal::next_batch(&bytes, offset) else {
                if !journal::is_zeros(&bytes[offset..]) {
                    damage.push(format!(
                        "{}: nothing from byte {offset} on can be read",
                        path.display()
                    ));
                }
                break;
            };
            if start > offset {
                damage.push(format!(
                    "{}: bytes {offset} to {start} cannot be read",
                    path.display()
                ));
            }
            let mut changes = Vec::new();
            let batch = journal::batch_with(&bytes[start..], &mut |entry| {
                changes.push((entry.keyspace, entry.change.to_state()));
            });
            let Some(batch) = batch else { break };
            last_commit = batch.commit.map(|record| record.commit).or(last_commit);
            for (keyspace, change) in changes {
                let newest = keyspaces.entry(keyspace).or_default();
                match change {
                    None => newest.clear(),
                    Some((key, Ok(value))) => {
                        let found = newest.entry(key).or_default();
                        if batch.sequence >= found.0 {
                            *found = (batch.sequence, value);
                        }
                    }
                    Some((_, Err(error))) => {
                        damage.push(format!("{}: a value: {error}", path.display()));
                    }
                }
            }
            offset = start + batch.len;
        }
    }
    if let Some(mark) = mark
        && mark.commit > mark.base
        && last_commit.is_none_or(|last| last < mark.commit)
    {
        let last = last_commit.unwrap_or(mark.base);
        let lost = mark.commit - last.min(mark.commit);
        damage.push(match last_commit {
            Some(_) => {
                format!("the last {lost} commits, each of one or more writes, are in no journal")
            }
            None => {
                "the journals have no commits: writes that were in no table file yet are missing"
                    .to_owned()
            }
        });
    }
    Ok(keyspaces)
}

/// A key's value, if it was not removed, or why it cannot be read.
type State = Result<Option<UserValue>, String>;

impl JournalChange<'_> {
    /// The key with its new value; nothing, where the keyspace is emptied.
    fn to_state(&self) -> Option<(UserKey, State)> {
        match self {
            JournalChange::Clear => None,
            JournalChange::Remove { key } => Some((UserKey::from(*key), Ok(None))),
            JournalChange::Insert {
                key,
                stored,
                uncompressed_len,
            } => {
                let value = match uncompressed_len {
                    None => Ok(Some(UserValue::from(*stored))),
                    Some(len) => lz4_flex::decompress(stored, *len)
                        .map(|value| Some(UserValue::from(value)))
                        .map_err(|error| error.to_string()),
                };
                Some((UserKey::from(*key), value))
            }
        }
    }
}
