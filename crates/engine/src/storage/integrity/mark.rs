//! The mark: a small file outside the journals that records which commit they must reach.
//!
//! It has two slots, which are written alternately, so that a torn write leaves the other one intact. A slot
//! is written after the sync of the journal has returned, so the mark is never ahead of the journal.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::Path;

use xxhash_rust::xxh3::xxh3_64;

use crate::storage::permissions::replace_file;

pub(crate) const MARK_FILE: &str = "MARK";
const MAGIC: &[u8; 8] = b"hp mark\x01";
/// The slots are in different pages and sectors.
const SLOT_DISTANCE: u64 = 4096;
const SLOTS: u64 = 2;
const SLOT_LEN: usize = 64;

/// The random id of a data directory, created with its mark.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct StoreId(pub(crate) [u8; 16]);

impl StoreId {
    pub(crate) fn random() -> io::Result<Self> {
        let mut id = [0; 16];
        fill_random(&mut id)?;
        Ok(Self(id))
    }
}

/// A random number below 2^48, far from those of other stores.
pub(crate) fn random_distance() -> io::Result<u64> {
    let mut bytes = [0; 8];
    fill_random(&mut bytes[..6])?;
    Ok(u64::from_le_bytes(bytes))
}

fn fill_random(bytes: &mut [u8]) -> io::Result<()> {
    use ring::rand::{SecureRandom as _, SystemRandom};
    SystemRandom::new()
        .fill(bytes)
        .map_err(|_| io::Error::other("cannot get random numbers from the operating system"))
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Mark {
    pub(crate) store: StoreId,
    /// The commit number before the first commit of the store.
    pub(crate) base: u64,
    /// The newest commit known to be on disk; `base` before the first commit.
    pub(crate) commit: u64,
    /// The minimum generation of the list of contents.
    pub(crate) contents: u64,
}

impl Mark {
    fn encode(&self, generation: u64) -> [u8; SLOT_LEN] {
        let mut bytes = [0; SLOT_LEN];
        bytes[..8].copy_from_slice(MAGIC);
        bytes[8..16].copy_from_slice(&generation.to_be_bytes());
        bytes[16..32].copy_from_slice(&self.store.0);
        bytes[32..40].copy_from_slice(&self.base.to_be_bytes());
        bytes[40..48].copy_from_slice(&self.commit.to_be_bytes());
        bytes[48..56].copy_from_slice(&self.contents.to_be_bytes());
        let checksum = xxh3_64(&bytes[..56]);
        bytes[56..].copy_from_slice(&checksum.to_be_bytes());
        bytes
    }

    /// A slot's generation and mark, if it is intact.
    fn decode(bytes: &[u8]) -> Option<(u64, Self)> {
        let bytes: &[u8; SLOT_LEN] = bytes.try_into().ok()?;
        let number = |at: usize| -> Option<u64> {
            let number = bytes.get(at..at + 8)?.try_into().ok()?;
            Some(u64::from_be_bytes(number))
        };
        if &bytes[..8] != MAGIC || number(56)? != xxh3_64(&bytes[..56]) {
            return None;
        }
        let mark = Self {
            store: StoreId(bytes[16..32].try_into().ok()?),
            base: number(32)?,
            commit: number(40)?,
            contents: number(48)?,
        };
        Some((number(8)?, mark))
    }
}

/// The newer slot of a mark file; `None` if there is no file. [`io::ErrorKind::InvalidData`] means that no
/// slot is intact.
pub(crate) fn read(directory: &Path) -> io::Result<Option<(u64, Mark)>> {
    let bytes = match fs::read(directory.join(MARK_FILE)) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let slot = |index: u64| {
        let start = usize::try_from(index * SLOT_DISTANCE).ok()?;
        Mark::decode(bytes.get(start..start + SLOT_LEN)?)
    };
    let newest = (0..SLOTS)
        .filter_map(slot)
        .max_by_key(|(generation, _)| *generation);
    newest.map(Some).ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::InvalidData,
            "both slots of the mark are damaged",
        )
    })
}

/// A mark file that is open for writing.
#[derive(Debug)]
pub(crate) struct MarkFile {
    file: File,
    generation: u64,
    pub(crate) mark: Mark,
    /// Whether something was written but not synced.
    is_dirty: bool,
}

impl MarkFile {
    /// Replaces the file atomically and syncs it.
    pub(crate) fn create(directory: &Path, mark: Mark) -> io::Result<Self> {
        // Write the full length now, so that later writes need no disk space.
        let mut bytes = vec![0; usize::try_from(SLOTS * SLOT_DISTANCE).map_err(io::Error::other)?];
        bytes[..SLOT_LEN].copy_from_slice(&mark.encode(0));
        let file = replace_file(&directory.join(MARK_FILE), "MARK.new", &bytes)?;
        Ok(Self {
            file,
            generation: 0,
            mark,
            is_dirty: false,
        })
    }

    /// Opens the file that `generation` and `mark` were read from.
    pub(crate) fn open(directory: &Path, generation: u64, mark: Mark) -> io::Result<Self> {
        let file = OpenOptions::new()
            .write(true)
            .open(directory.join(MARK_FILE))?;
        Ok(Self {
            file,
            generation,
            mark,
            is_dirty: false,
        })
    }

    /// Writes a newer mark into the older slot.
    pub(crate) fn write(&mut self, mark: Mark) -> io::Result<()> {
        let generation = self.generation + 1;
        let at = (generation % SLOTS) * SLOT_DISTANCE;
        write_at(&self.file, &mark.encode(generation), at)?;
        self.generation = generation;
        self.mark = mark;
        self.is_dirty = true;
        Ok(())
    }

    /// The file, if it needs a sync. The caller syncs it without holding a lock.
    pub(crate) fn take_unsynced(&mut self) -> io::Result<Option<File>> {
        if !self.is_dirty {
            return Ok(None);
        }
        let file = self.file.try_clone()?;
        self.is_dirty = false;
        Ok(Some(file))
    }
}

#[cfg(unix)]
fn write_at(file: &File, bytes: &[u8], at: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, at)
}

#[cfg(not(unix))]
fn write_at(mut file: &File, bytes: &[u8], at: u64) -> io::Result<()> {
    use std::io::{Seek as _, SeekFrom, Write as _};
    file.seek(SeekFrom::Start(at))?;
    file.write_all(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(commit: u64) -> Mark {
        Mark {
            store: StoreId([7; 16]),
            base: 3,
            commit,
            contents: 1,
        }
    }

    #[test]
    fn newer_slot_is_read() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(read(directory.path()).unwrap(), None);
        let mut file = MarkFile::create(directory.path(), mark(3)).unwrap();
        for commit in 4..9 {
            file.write(mark(commit)).unwrap();
            let (_, found) = read(directory.path()).unwrap().unwrap();
            assert_eq!(found, mark(commit));
        }
        drop(file);
        let (generation, found) = read(directory.path()).unwrap().unwrap();
        let mut file = MarkFile::open(directory.path(), generation, found).unwrap();
        file.write(mark(9)).unwrap();
        assert_eq!(read(directory.path()).unwrap().unwrap().1, mark(9));
    }

    #[test]
    fn torn_slot_leaves_the_other_one() {
        let directory = tempfile::tempdir().unwrap();
        let mut file = MarkFile::create(directory.path(), mark(3)).unwrap();
        file.write(mark(4)).unwrap();
        let path = directory.path().join(MARK_FILE);
        let whole = fs::read(&path).unwrap();
        let slot = usize::try_from(SLOT_DISTANCE).unwrap();
        for at in slot..slot + SLOT_LEN {
            let mut torn = whole.clone();
            torn[at] ^= 1;
            fs::write(&path, &torn).unwrap();
            assert_eq!(read(directory.path()).unwrap().unwrap().1, mark(3));
        }
        fs::write(&path, &whole[..10]).unwrap();
        let error = read(directory.path()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }
}
