//! A look at the key-value store's journals before it opens them.
//!
//! Left alone, the store below cuts a journal at the first entry that it cannot read, even where
//! whole batches follow that were acknowledged long ago, and refuses one whose last batch was torn
//! in the middle of an item. Here every batch is checked first. A damaged batch that some later one
//! says was on disk means that acknowledged writes are lost: opening is refused. Otherwise it is
//! the unsynced end that a power cut leaves, and the journal is cut there.
//!
//! The layout is that of fjall 3 journals; `docs/engine-format.md` writes it down, and a test holds
//! it against journals that the store itself wrote.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::Xxh3;

use crate::error::OpenError;
use crate::layout::COMMIT_KEY;
use crate::writer::CommitRecord;

const TAG_START: u8 = 1;
const TAG_ITEM: u8 = 2;
const TAG_END: u8 = 3;
const TAG_CLEAR: u8 = 4;
const TRAILER: &[u8] = b"FJL\x03";
const VALUE_KINDS: u8 = 4;

/// Sequence numbers of neighbouring batches lie closer together than this.
const SEQUENCE_LEAP_MAX: u64 = 1 << 32;

/// Checks every journal in `store`, and cuts an unsynced end off the last one. Returns the sequence
/// number of the last batch, if there is one.
pub(crate) fn check(store: &Path) -> Result<Option<u64>, OpenError> {
    let mut journals = journals_in(store)?;
    journals.sort_unstable();
    let last = journals.len().saturating_sub(1);
    let mut last_commit = None;
    let mut last_sequence = None;
    for (at, (_, path)) in journals.iter().enumerate() {
        let bytes = std::fs::read(path)?;
        let scanned = scan(&bytes, last_sequence);
        last_commit = scanned.last_commit.or(last_commit);
        last_sequence = scanned.last_sequence;
        let Some(offset) = scanned.damaged_at else {
            continue;
        };
        let damaged = || OpenError::DamagedJournal {
            path: path.clone(),
            offset: offset as u64,
        };
        let rest = &bytes[offset..];
        // A torn write leaves no whole batch. One that is whole and cannot follow the batch before
        // it means that either's sequence number has rotted, and both were acknowledged.
        if batch(rest).is_some() {
            return Err(damaged());
        }
        let later = later_commits(rest).chain(
            journals[at + 1..]
                .iter()
                .flat_map(|(_, path)| std::fs::read(path))
                .flat_map(|bytes| later_commits(&bytes).collect::<Vec<_>>()),
        );
        if is_known_synced(later, last_commit) || at != last {
            return Err(damaged());
        }
        tracing::warn!(journal = %path.display(), offset, "cutting off an unfinished write");
        cut(path, offset as u64)?;
    }
    Ok(last_sequence)
}

/// Whether a batch may follow the last one, by their sequence numbers.
pub(crate) fn follows(last: Option<u64>, sequence: u64) -> bool {
    last.is_none_or(|last| sequence > last && sequence - last < SEQUENCE_LEAP_MAX)
}

/// The journals of a store with their numbers.
fn journals_in(store: &Path) -> Result<Vec<(u64, PathBuf)>, OpenError> {
    let mut journals = Vec::new();
    let entries = match std::fs::read_dir(store) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(journals),
        Err(error) => return Err(error.into()),
    };
    for entry in entries {
        let path = entry?.path();
        let number = path
            .file_name()
            .and_then(|name| name.to_str())
            .and_then(|name| name.strip_suffix(".jnl"))
            .and_then(|number| number.parse().ok());
        if let Some(number) = number {
            journals.push((number, path));
        }
    }
    Ok(journals)
}

fn cut(path: &Path, len: u64) -> Result<(), OpenError> {
    let mut file = OpenOptions::new().write(true).open(path)?;
    file.set_len(len)?;
    file.flush()?;
    file.sync_all()?;
    Ok(())
}

#[derive(Debug, PartialEq, Eq)]
struct Scanned {
    /// The number of the last commit that is whole.
    last_commit: Option<u64>,
    last_sequence: Option<u64>,
    /// Where the first batch begins that is not.
    damaged_at: Option<usize>,
}

/// Reads batch after batch until the end, the zeros of room made in advance, or damage.
///
/// A batch's sequence number decides which of two values is newer, but its checksum does not cover
/// it: a batch whose number cannot follow the one before is damaged.
fn scan(bytes: &[u8], mut last_sequence: Option<u64>) -> Scanned {
    let mut offset = 0;
    let mut last_commit = None;
    while let Some(batch) = batch(&bytes[offset..]) {
        if !follows(last_sequence, batch.sequence) {
            break;
        }
        last_sequence = Some(batch.sequence);
        last_commit = batch.commit.map(|record| record.commit).or(last_commit);
        offset += batch.len;
    }
    let ends_here = is_zeros(&bytes[offset..]);
    Scanned {
        last_commit,
        last_sequence,
        damaged_at: (!ends_here).then_some(offset),
    }
}

/// Whether there is nothing but zeros; by blocks, since a new journal is 64 MB of them.
fn is_zeros(bytes: &[u8]) -> bool {
    const ZEROS: [u8; 4096] = [0; 4096];
    bytes
        .chunks(ZEROS.len())
        .all(|block| *block == ZEROS[..block.len()])
}

/// Whether a later commit says that the one after `last_commit` was on disk.
fn is_known_synced(later: impl Iterator<Item = CommitRecord>, last_commit: Option<u64>) -> bool {
    let mut lost = last_commit.map(|last| last + 1);
    for record in later {
        // Where no whole commit comes before the damage, the one before the first that follows is
        // the only one known to be lost.
        let first_lost = *lost.get_or_insert(record.commit.saturating_sub(1));
        if record.synced_commit >= first_lost {
            return true;
        }
    }
    false
}

/// The commit records of whole batches anywhere in `bytes`.
fn later_commits(bytes: &[u8]) -> impl Iterator<Item = CommitRecord> + '_ {
    let mut offset = 0;
    std::iter::from_fn(move || {
        while offset < bytes.len() {
            let found = bytes[offset..].iter().position(|byte| *byte == TAG_START)?;
            offset += found;
            if let Some(batch) = batch(&bytes[offset..]) {
                offset += batch.len;
                if batch.commit.is_some() {
                    return batch.commit;
                }
            } else {
                offset += 1;
            }
        }
        None
    })
}

struct Batch {
    len: usize,
    sequence: u64,
    commit: Option<CommitRecord>,
}

/// The batch at the front of `bytes`, if it is whole.
fn batch(bytes: &[u8]) -> Option<Batch> {
    let mut reader = Reader { bytes, at: 0 };
    if reader.byte()? != TAG_START {
        return None;
    }
    let count = reader.u32()?;
    let sequence = u64::from_le_bytes(reader.take(8)?.try_into().ok()?);
    let mut hasher = Xxh3::new();
    let mut commit = None;
    for _ in 0..count {
        let start = reader.at;
        match reader.byte()? {
            TAG_ITEM => {
                if reader.byte()? >= VALUE_KINDS {
                    return None;
                }
                let compressed = match reader.byte()? {
                    0 => false,
                    1 => true,
                    _ => return None,
                };
                reader.take(8)?;
                let key_len = usize::from(reader.u16()?);
                reader.take(4)?;
                let value_len = reader.u32()? as usize;
                let key = reader.take(key_len)?;
                let value = reader.take(value_len)?;
                if key == COMMIT_KEY && !compressed {
                    commit = CommitRecord::decode(value);
                }
            }
            TAG_CLEAR => {
                reader.take(8)?;
            }
            _ => return None,
        }
        hasher.update(&bytes[start..reader.at]);
    }
    if reader.byte()? != TAG_END {
        return None;
    }
    let checksum = u64::from_le_bytes(reader.take(8)?.try_into().ok()?);
    if reader.take(TRAILER.len())? != TRAILER || checksum != hasher.digest() {
        return None;
    }
    Some(Batch {
        len: reader.at,
        sequence,
        commit,
    })
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use fjall::{Database, KeyspaceCreateOptions, PersistMode};

    /// What the store itself writes, with all that this module must know of it.
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
    fn damage_counts_where_a_later_commit_knew_the_lost_one_on_disk() {
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
        // Without a whole commit before it, the first that follows tells what is missing.
        assert!(known(&[(2, 1)], None));
        assert!(!known(&[(2, 0)], None));
        assert!(known(&[(2, 0), (9, 5)], None));
    }

    #[test]
    fn journals_that_the_store_wrote_are_read_to_their_end() {
        let bytes = written_by_the_store();
        let scanned = scan(&bytes, None);
        assert_eq!(scanned.damaged_at, None);
        assert_eq!(scanned.last_commit, Some(5));
        let mut lens = Vec::new();
        let mut offset = 0;
        while let Some(batch) = batch(&bytes[offset..]) {
            offset += batch.len;
            lens.push(batch.len);
        }
        // Five commits, one value alone, one cleared keyspace.
        assert_eq!(lens.len(), 7);
        assert!(lens[0] < 46_000, "the long value was not compressed");
        assert!(is_zeros(&bytes[offset..]));
        assert_eq!(later_commits(&bytes).count(), 5);
    }

    #[test]
    fn every_flipped_byte_of_what_the_store_wrote_is_found() {
        let bytes = written_by_the_store();
        let first = batch(&bytes).unwrap().len;
        let second = first + batch(&bytes[first..]).unwrap().len;
        // The third batch, by a stride that meets every part of it.
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
            let scanned = scan(&damaged, None);
            assert_eq!(scanned.damaged_at, Some(second), "byte {}", at - second);
            assert_eq!(scanned.last_commit, Some(2));
            damaged[at] ^= 0x10;
        }
    }
}
