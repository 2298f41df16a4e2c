//! Checks the key-value store's journals before the store opens them.
//!
//! On its own, the key-value store cuts a journal at the first entry that it cannot read, even if
//! acknowledged batches follow, and refuses a journal whose last batch was torn in the middle of an item. So
//! every batch is checked first. A damaged batch that a later batch knew to be on disk means that
//! acknowledged writes are lost, and opening is refused. Otherwise it is the unsynced end that a power cut
//! leaves, and the journal is cut there.
//!
//! The layout is that of fjall 3 journals, described in `docs/engine-format.md`; a test compares it with
//! journals that the key-value store wrote.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::Xxh3;

use crate::commit::writer::CommitRecord;
use crate::error::OpenError;
use crate::storage::layout::COMMIT_KEY;
use crate::storage::vault::files;

const TAG_START: u8 = 1;
const TAG_ITEM: u8 = 2;
const TAG_END: u8 = 3;
const TAG_CLEAR: u8 = 4;
const TRAILER: &[u8] = b"FJL\x03";
const VALUE_KINDS: u8 = 4;
const KIND_VALUE: u8 = 0;

/// Sequence numbers of consecutive batches differ by less than this.
const SEQUENCE_GAP_MAX: u64 = 1 << 32;

/// All journals of a store, checked but not changed.
#[derive(Debug, Default)]
pub(crate) struct Journals {
    pub(crate) files: Vec<JournalFile>,
    /// The sequence number of the last batch, if there is one.
    pub(crate) last_sequence: Option<u64>,
}

#[derive(Debug)]
pub(crate) struct JournalFile {
    pub(crate) number: u64,
    pub(crate) path: PathBuf,
    pub(crate) first: Option<CommitRecord>,
    pub(crate) last: Option<CommitRecord>,
    /// The total length of its complete batches.
    pub(crate) whole_len: u64,
    /// Whether an unfinished write follows them.
    is_torn: bool,
}

impl Journals {
    /// The first commit in the journals.
    pub(crate) fn first(&self) -> Option<CommitRecord> {
        self.files.iter().find_map(|file| file.first)
    }

    /// The last commit in the journals.
    pub(crate) fn last(&self) -> Option<CommitRecord> {
        self.files.iter().rev().find_map(|file| file.last)
    }

    /// Cuts unfinished writes off the journals. The last journal may end with one after a crash, and an
    /// earlier one after a write that failed because the disk was full.
    pub(crate) fn cut_unfinished(&self) -> Result<(), OpenError> {
        for file in self.files.iter().filter(|file| file.is_torn) {
            let offset = file.whole_len;
            tracing::warn!(journal = %file.path.display(), offset, "cutting off an unfinished write");
            let journal = OpenOptions::new().write(true).open(&file.path)?;
            journal.set_len(offset)?;
            journal.sync_all()?;
        }
        Ok(())
    }
}

/// Checks every journal in `store`, without changing any.
pub(crate) fn survey(store: &Path) -> Result<Journals, OpenError> {
    let listed = journals_in(store)?;
    let mut journals = Journals::default();
    for (at, (number, path)) in listed.iter().enumerate() {
        let bytes = std::fs::read(path)?;
        let scanned = scan(&bytes, journals.last_sequence, journals.last());
        journals.last_sequence = scanned.last_sequence;
        journals.files.push(JournalFile {
            number: *number,
            path: path.clone(),
            first: scanned.first,
            last: scanned.last,
            whole_len: scanned.whole_len as u64,
            is_torn: !scanned.ends_here,
        });
        if scanned.ends_here {
            continue;
        }
        let offset = scanned.whole_len;
        let damaged = || OpenError::DamagedJournal {
            path: path.clone(),
            offset: offset as u64,
        };
        let rest = &bytes[offset..];
        // A torn write leaves no complete batch. A complete batch that cannot follow the previous one means
        // that one of their sequence numbers is damaged although both were acknowledged, or that the journal
        // belongs to another store.
        if batch(rest).is_some() {
            return Err(damaged());
        }
        let last_commit = journals.last().map(|record| record.commit);
        if is_known_synced(commits(rest), last_commit) {
            return Err(damaged());
        }
        // IMPORTANT: the next journal must contain the very next commit; otherwise the damaged one was
        // written and is lost.
        let next = listed[at + 1..]
            .iter()
            .flat_map(|(_, path)| std::fs::read(path))
            .find_map(|bytes| commits(&bytes).next());
        if next.is_some_and(|next| last_commit.is_none_or(|last| next.commit != last + 1)) {
            return Err(damaged());
        }
    }
    Ok(journals)
}

/// The sequence number of a journal's first batch, if it has one.
pub(crate) fn first_sequence(path: &Path) -> std::io::Result<Option<u64>> {
    let mut header = Vec::new();
    File::open(path)?.take(13).read_to_end(&mut header)?;
    let mut reader = ByteReader {
        bytes: &header,
        at: 0,
    };
    let is_batch = reader.byte() == Some(TAG_START) && reader.u32().is_some();
    Ok(reader.u64().filter(|_| is_batch))
}

/// For each keyspace with values in a journal, the sequence number and key of the newest value.
pub(crate) fn newest_values(path: &Path) -> std::io::Result<BTreeMap<u64, (u64, Vec<u8>)>> {
    let bytes = std::fs::read(path)?;
    let mut newest: BTreeMap<u64, (u64, Vec<u8>)> = BTreeMap::new();
    let mut visit = |entry: JournalEntry<'_>| {
        if let JournalChange::Insert { key, .. } = entry.change {
            let (sequence, newest_key) = newest.entry(entry.keyspace).or_default();
            *sequence = entry.sequence;
            newest_key.clear();
            newest_key.extend_from_slice(key);
        }
    };
    let mut offset = 0;
    while let Some(batch) = batch_with(&bytes[offset..], &mut visit) {
        offset += batch.len;
    }
    Ok(newest)
}

/// Whether a batch may follow the last one, judging by their sequence numbers.
pub(crate) fn follows(last: Option<u64>, sequence: u64) -> bool {
    last.is_none_or(|last| sequence > last && sequence - last < SEQUENCE_GAP_MAX)
}

/// Whether a commit may follow the last one. Numbers increase by one; if numbers are skipped, the record
/// names the commit before it.
fn continues(last: Option<CommitRecord>, next: CommitRecord) -> bool {
    last.is_none_or(|last| {
        next.synced_commit <= last.commit
            && next.commit >= last.commit
            && (next.commit - last.commit <= 1 || next.synced_commit == last.commit)
    })
}

/// The journals of a store with their numbers, in order.
pub(crate) fn journals_in(store: &Path) -> std::io::Result<Vec<(u64, PathBuf)>> {
    files::numbered_entries(store, ".jnl")
}

struct JournalScan {
    first: Option<CommitRecord>,
    last: Option<CommitRecord>,
    last_sequence: Option<u64>,
    /// The total length of complete batches.
    whole_len: usize,
    /// Whether only preallocated zeros follow.
    ends_here: bool,
}

/// Reads batches until the end, preallocated zeros, or damage.
///
/// A batch's sequence number decides which of two values is newer, but its checksum does not cover it. So a
/// batch whose number cannot follow the previous one counts as damaged.
fn scan(
    bytes: &[u8],
    last_sequence: Option<u64>,
    last_commit: Option<CommitRecord>,
) -> JournalScan {
    let mut scanned = JournalScan {
        first: None,
        last: None,
        last_sequence,
        whole_len: 0,
        ends_here: false,
    };
    while let Some(batch) = batch(&bytes[scanned.whole_len..]) {
        let last = scanned.last.or(last_commit);
        if !follows(scanned.last_sequence, batch.sequence)
            || batch.commit.is_some_and(|commit| !continues(last, commit))
        {
            break;
        }
        scanned.last_sequence = Some(batch.sequence);
        scanned.first = scanned.first.or(batch.commit);
        scanned.last = batch.commit.or(scanned.last);
        scanned.whole_len += batch.len;
    }
    scanned.ends_here = is_zeros(&bytes[scanned.whole_len..]);
    scanned
}

/// Whether all bytes are zero; compares blocks, because a new journal consists of 64 MB of zeros.
pub(crate) fn is_zeros(bytes: &[u8]) -> bool {
    const ZEROS: [u8; 4096] = [0; 4096];
    bytes
        .chunks(ZEROS.len())
        .all(|block| *block == ZEROS[..block.len()])
}

/// Whether a later commit knew the one after `last_commit` to be on disk.
fn is_known_synced(later: impl Iterator<Item = CommitRecord>, last_commit: Option<u64>) -> bool {
    let mut lost = last_commit.map(|last| last + 1);
    for record in later {
        // Without a complete commit before the damage, only the one before the first that follows is known to
        // be lost.
        let first_lost = *lost.get_or_insert(record.commit.saturating_sub(1));
        if record.synced_commit >= first_lost {
            return true;
        }
    }
    false
}

/// The offset of the first complete batch at or after `offset`.
pub(crate) fn next_batch(bytes: &[u8], mut offset: usize) -> Option<usize> {
    loop {
        let rest = bytes.get(offset..)?;
        offset += rest.iter().position(|byte| *byte == TAG_START)?;
        if batch(&bytes[offset..]).is_some() {
            return Some(offset);
        }
        offset += 1;
    }
}

/// The commit records of complete batches anywhere in `bytes`.
pub(crate) fn commits(bytes: &[u8]) -> impl Iterator<Item = CommitRecord> + '_ {
    let mut offset = 0;
    std::iter::from_fn(move || {
        loop {
            let start = next_batch(bytes, offset)?;
            let batch = batch(&bytes[start..])?;
            offset = start + batch.len;
            if batch.commit.is_some() {
                return batch.commit;
            }
        }
    })
}

pub(crate) struct JournalBatch {
    pub(crate) len: usize,
    pub(crate) sequence: u64,
    pub(crate) commit: Option<CommitRecord>,
}

/// An entry of a batch.
pub(crate) struct JournalEntry<'a> {
    pub(crate) sequence: u64,
    pub(crate) keyspace: u64,
    pub(crate) change: JournalChange<'a>,
}

/// The change that an entry makes in its keyspace.
pub(crate) enum JournalChange<'a> {
    Insert {
        key: &'a [u8],
        /// The value as stored in the journal.
        stored: &'a [u8],
        /// Its length before compression, if it is compressed.
        uncompressed_len: Option<usize>,
    },
    Remove {
        key: &'a [u8],
    },
    Clear,
}

/// Decodes the batch at the start of `bytes`, if it is complete.
pub(crate) fn batch(bytes: &[u8]) -> Option<JournalBatch> {
    batch_with(bytes, &mut |_| {})
}

/// Like [`batch`], with a call for each entry; this includes entries of a batch that turns out to be damaged.
pub(crate) fn batch_with(
    bytes: &[u8],
    visit: &mut dyn FnMut(JournalEntry<'_>),
) -> Option<JournalBatch> {
    let mut reader = ByteReader { bytes, at: 0 };
    if reader.byte()? != TAG_START {
        return None;
    }
    let count = reader.u32()?;
    let sequence = reader.u64()?;
    let mut hasher = Xxh3::new();
    let mut commit = None;
    for _ in 0..count {
        let start = reader.at;
        match reader.byte()? {
            TAG_ITEM => {
                let kind = reader.byte()?;
                if kind >= VALUE_KINDS {
                    return None;
                }
                let compressed = match reader.byte()? {
                    0 => false,
                    1 => true,
                    _ => return None,
                };
                let keyspace = reader.u64()?;
                let key_len = usize::from(reader.u16()?);
                let uncompressed_len = reader.u32()? as usize;
                let value_len = reader.u32()? as usize;
                let key = reader.take(key_len)?;
                let value = reader.take(value_len)?;
                if key == COMMIT_KEY && !compressed {
                    commit = CommitRecord::decode(value);
                }
                let change = match kind {
                    KIND_VALUE => JournalChange::Insert {
                        key,
                        stored: value,
                        uncompressed_len: compressed.then_some(uncompressed_len),
                    },
                    _ => JournalChange::Remove { key },
                };
                visit(JournalEntry {
                    sequence,
                    keyspace,
                    change,
                });
            }
            TAG_CLEAR => visit(JournalEntry {
                sequence,
                keyspace: reader.u64()?,
                change: JournalChange::Clear,
            }),
            _ => return None,
        }
        hasher.update(&bytes[start..reader.at]);
    }
    if reader.byte()? != TAG_END {
        return None;
    }
    let checksum = reader.u64()?;
    if reader.take(TRAILER.len())? != TRAILER || checksum != hasher.digest() {
        return None;
    }
    Some(JournalBatch {
        len: reader.at,
        sequence,
        commit,
    })
}

struct ByteReader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> ByteReader<'a> {
    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let taken = self.bytes.get(self.at..self.at.checked_add(len)?)?;
        self.at += len;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|bytes| bytes[0])
    }

    fn u16(&mut self) -> Option<u16> {
        self.take(2)?.try_into().ok().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take(4)?.try_into().ok().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take(8)?.try_into().ok().map(u64::from_le_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fjall::{Database, KeyspaceCreateOptions, PersistMode};

    /// A journal that the key-value store wrote, covering everything that this module decodes.
    fn written_by_the_store() -> Vec<u8> {
        let directory = tempfile::tempdir().unwrap();
        let database = Database::builder(directory.path()).open().unwrap();
        let open = |name| database.keyspace(name, KeyspaceCreateOptions::default);
        let (meta, items) = (open("meta").unwrap(), open("items").unwrap());
        let noise: Vec<u8> = (0..20_000u32).map(|at| ((at * at) >> 7) as u8).collect();
        for commit in 1..=5 {
            let record = CommitRecord {
                commit,
                synced_commit: commit - 1,
                next_change: 0,
            };
            let mut batch = database.batch().durability(Some(PersistMode::SyncData));
            batch.insert(&items, commit.to_be_bytes(), "short");
            batch.insert(&items, "even", "compressible ".repeat(2000));
            batch.insert(&items, "uneven", noise.as_slice());
            batch.insert(&items, "empty", "");
            batch.remove(&items, "gone");
            batch.insert(&meta, COMMIT_KEY, record.encode());
            batch.commit().unwrap();
        }
        items.insert("alone", "x").unwrap();
        items.clear().unwrap();
        database.persist(PersistMode::SyncAll).unwrap();
        std::fs::read(directory.path().join("0.jnl")).unwrap()
    }

    #[test]
    fn damage_counts_if_a_later_commit_saw_the_loss() {
        let known = |records: &[(u64, u64)], last_commit| {
            let later = records.iter().map(|(commit, synced_commit)| CommitRecord {
                commit: *commit,
                synced_commit: *synced_commit,
                next_change: 0,
            });
            is_known_synced(later, last_commit)
        };
        assert!(!known(&[], Some(3)));
        assert!(known(&[(5, 4)], Some(3)));
        assert!(!known(&[(5, 3)], Some(3)));
        assert!(known(&[(5, 3), (6, 3), (7, 6)], Some(3)));
        // Without a complete commit before it, the first that follows tells what is missing.
        assert!(known(&[(2, 1)], None));
        assert!(!known(&[(2, 0)], None));
        assert!(known(&[(2, 0), (9, 5)], None));
    }

    #[test]
    fn commits_of_another_store_do_not_continue_a_journal() {
        let record = |commit, synced_commit| CommitRecord {
            commit,
            synced_commit,
            next_change: 0,
        };
        let last = Some(record(50, 49));
        assert!(continues(None, record(9, 8)));
        assert!(continues(last, record(51, 50)));
        assert!(continues(last, record(51, 44)));
        assert!(continues(last, record(9000, 50)));
        assert!(!continues(last, record(9000, 8999)));
        assert!(!continues(last, record(52, 51)));
        assert!(!continues(last, record(9, 8)));
    }

    #[test]
    fn journals_of_the_store_are_read_completely() {
        let bytes = written_by_the_store();
        let scanned = scan(&bytes, None, None);
        assert!(scanned.ends_here);
        assert_eq!(scanned.first.unwrap().commit, 1);
        assert_eq!(scanned.last.unwrap().commit, 5);
        let mut lens = Vec::new();
        let mut offset = 0;
        while let Some(batch) = batch(&bytes[offset..]) {
            offset += batch.len;
            lens.push(batch.len);
        }
        // Five commits, one single value, one cleared keyspace.
        assert_eq!(lens.len(), 7);
        assert!(lens[0] < 46_000, "the long value was not compressed");
        assert!(is_zeros(&bytes[offset..]));
        assert_eq!(commits(&bytes).count(), 5);
    }

    /// Journals with the given contents.
    fn written_as(contents: &[&[u8]]) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        for (number, bytes) in contents.iter().enumerate() {
            std::fs::write(directory.path().join(format!("{number}.jnl")), bytes).unwrap();
        }
        directory
    }

    #[test]
    fn full_journal_may_end_with_a_failed_write() {
        let bytes = written_by_the_store();
        let mut ends = vec![0];
        while let Some(batch) = batch(&bytes[*ends.last().unwrap()..]) {
            ends.push(ends.last().unwrap() + batch.len);
        }
        let torn = &bytes[..ends[3] - 5];
        // The disk was full, and the next write came after the journal was rotated.
        let retried = written_as(&[torn, &bytes[ends[2]..]]);
        let journals = survey(retried.path()).unwrap();
        assert_eq!(journals.last().unwrap().commit, 5);
        journals.cut_unfinished().unwrap();
        let cut = std::fs::read(retried.path().join("0.jnl")).unwrap();
        assert_eq!(cut, bytes[..ends[2]]);
        let empty = written_as(&[torn, &[0; 64]]);
        assert_eq!(survey(empty.path()).unwrap().last().unwrap().commit, 2);
        // The third write was acknowledged: the fourth one followed it.
        let lost = written_as(&[torn, &bytes[ends[3]..]]);
        assert!(survey(lost.path()).is_err());
    }

    #[test]
    fn newest_value_of_each_keyspace_is_found() {
        let bytes = written_by_the_store();
        let directory = written_as(&[&bytes]);
        let newest = newest_values(&directory.path().join("0.jnl")).unwrap();
        let keys: Vec<&[u8]> = newest.values().map(|(_, key)| key.as_slice()).collect();
        assert_eq!(keys, [COMMIT_KEY, b"alone"]);
    }

    #[test]
    fn every_flipped_byte_is_detected() {
        let bytes = written_by_the_store();
        let first = batch(&bytes).unwrap().len;
        let second = first + batch(&bytes[first..]).unwrap().len;
        // The third batch, with a stride that reaches every part of it.
        let third = second + batch(&bytes[second..]).unwrap().len;
        let mut damaged = bytes[..third].to_vec();
        for at in (second..third)
            .step_by(101)
            .chain(second..second + 64)
            .chain(third - 13..third)
        {
            if (second + 5..second + 13).contains(&at) {
                continue;
            }
            damaged[at] ^= 0x10;
            let scanned = scan(&damaged, None, None);
            assert!(!scanned.ends_here, "byte {}", at - second);
            assert_eq!(scanned.whole_len, second, "byte {}", at - second);
            assert_eq!(scanned.last.unwrap().commit, 2);
            damaged[at] ^= 0x10;
        }
    }
}
