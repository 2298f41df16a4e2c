//! Files that were modified on disk after they were written.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use homeport_engine::{Durability, Engine, OpenError, Options};
use homeport_store::Store;

use crate::child::{Plan, Role};
use crate::copy::copy_directory;
use crate::dice::{self, Dice};
use crate::verify;
use crate::workload;

const TRANSACTIONS: u64 = 12;
const MARK: &str = "MARK";
const FIRST: u64 = workload::NUMBERS_PER_WRITER + 1;
/// Bytes of a batch's head that its checksum does not cover: its sequence number.
const SEQUENCE_AT: std::ops::Range<u64> = 5..13;

/// A closed data directory whose journal groups are known.
struct Written {
    room: tempfile::TempDir,
    journal: PathBuf,
    /// The end of each transaction in the journal; the first entry is the start of the first transaction.
    ends: Vec<u64>,
    /// The mark at that time.
    marks: Vec<Vec<u8>>,
}

impl Written {
    fn new(durability: Durability) -> Self {
        let room = tempfile::tempdir().unwrap();
        let options = || Options {
            durability,
            ..verify::options()
        };
        let directory = room.path().join("data");
        let mut ends = Vec::new();
        let mut marks = Vec::new();
        let mark = directory.join(MARK);
        let journal = verify::runtime().block_on(async {
            let engine = Engine::open(&directory, options()).unwrap();
            engine.ensure_tables(&workload::tables()).await.unwrap();
            drop(engine);
            // Opened again, the journal has no preallocated space, so its length is meaningful.
            let engine = Engine::open(&directory, options()).unwrap();
            let journal = active_journal(&directory);
            let len = || fs::metadata(&journal).unwrap().len();
            ends.push(len());
            marks.push(fs::read(&mark).unwrap());
            for number in FIRST..FIRST + TRANSACTIONS {
                workload::write(&engine, number).await.unwrap();
                ends.push(len());
                marks.push(fs::read(&mark).unwrap());
            }
            journal
        });
        Self {
            room,
            journal,
            ends,
            marks,
        }
    }

    /// A copy to be damaged.
    fn copy(&self) -> Copy {
        let directory = self.room.path().join("copy");
        let _ = fs::remove_dir_all(&directory);
        copy_directory(&self.room.path().join("data"), &directory);
        let inside = self.journal.strip_prefix(self.room.path().join("data"));
        let journal = directory.join(inside.unwrap());
        Copy { directory, journal }
    }

    /// The mark before the last transaction was on disk.
    fn mark_before_last(&self) -> &[u8] {
        &self.marks[self.marks.len() - 2]
    }

    fn last(&self) -> std::ops::Range<u64> {
        self.group(self.ends.len() - 2)
    }

    /// The position of a transaction in the journal.
    fn group(&self, at: usize) -> std::ops::Range<u64> {
        self.ends[at]..self.ends[at + 1]
    }
}

struct Copy {
    directory: PathBuf,
    journal: PathBuf,
}

impl Copy {
    fn open(&self) -> Result<Engine, OpenError> {
        Engine::open(&self.directory, verify::options())
    }

    /// Restores an earlier mark, as a power cut right after the write may leave it.
    fn set_mark(&self, mark: &[u8]) {
        fs::write(self.directory.join(MARK), mark).unwrap();
    }

    /// Opens the store and expects exactly the first `count` transactions.
    fn expect_first(&self, count: u64, context: &str) {
        let engine = self
            .open()
            .unwrap_or_else(|error| panic!("{context}: {error}"));
        verify::runtime().block_on(expect_first(&engine, count, context));
    }

    fn expect_refused(&self, context: &str) {
        match self.open() {
            Err(OpenError::DamagedJournal { .. } | OpenError::Damaged { .. }) => {}
            Err(other) => panic!("{context}: {other}"),
            Ok(_) => panic!("{context}: opened"),
        }
    }

    fn flip(&self, at: u64, bit: u32) {
        flip(&self.journal, at, bit);
    }
}

async fn expect_first(engine: &Engine, count: u64, context: &str) {
    let numbers: Vec<u64> = (FIRST..FIRST + count).collect();
    verify::check(engine, &numbers).await;
    let newest = workload::newest_mark(engine, 1).await;
    assert_eq!(newest, FIRST + count - 1, "{context}");
}

pub(crate) fn flip(path: &Path, at: u64, bit: u32) {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .open(path)
        .unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[byte[0] ^ (1 << bit)], at).unwrap();
}

fn active_journal(directory: &Path) -> PathBuf {
    files_below(&directory.join("store"))
        .into_iter()
        .filter(|path| path.extension().is_some_and(|extension| extension == "jnl"))
        .max()
        .unwrap()
}

pub(crate) fn files_below(directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(files_below(&path));
        } else {
            files.push(path);
        }
    }
    files.sort();
    files
}

fn seeded() -> Dice {
    let seed = dice::seed();
    println!("HOMEPORT_SEED={seed}");
    Dice::new(seed)
}

#[test]
fn torn_last_group_is_only_accepted_before_the_mark() {
    let mut dice = seeded();
    let written = Written::new(Durability::Sync);
    let last = written.last();
    let mut lengths = vec![last.start + 1, last.start + 13, last.end - 1];
    lengths.extend((0..15).map(|_| last.start + dice.next() % (last.end - last.start)));
    for len in lengths {
        let copy = written.copy();
        let file = OpenOptions::new().write(true).open(&copy.journal).unwrap();
        file.set_len(len).unwrap();
        let context = format!("cut to {len} of {last:?}");
        copy.expect_refused(&context);
        copy.set_mark(written.mark_before_last());
        copy.expect_first(TRANSACTIONS - 1, &context);
    }
}

#[test]
fn garbage_after_the_last_group_is_cut_off() {
    let mut dice = seeded();
    let written = Written::new(Durability::Sync);
    let last = written.last();
    for round in 0..12 {
        let copy = written.copy();
        let garbage: Vec<u8> = match round {
            0 => vec![0; 10_000],
            1 => vec![1],
            2 => b"\x01\x01\x00\x00\x00".to_vec(),
            // The start of a group, as if it had been written twice.
            3 => fs::read(&copy.journal).unwrap()[last.start as usize..last.end as usize - 5]
                .to_vec(),
            _ => (0..1 + dice.below(3000))
                .map(|_| dice.next() as u8)
                .collect(),
        };
        let file = OpenOptions::new().write(true).open(&copy.journal).unwrap();
        file.write_all_at(&garbage, last.end).unwrap();
        copy.expect_first(TRANSACTIONS, &format!("garbage {round}"));
    }
}

#[test]
fn flipped_bit_in_the_last_group_gives_no_wrong_data() {
    let mut dice = seeded();
    let written = Written::new(Durability::Sync);
    let last = written.last();
    let mut places: Vec<u64> = (last.start..last.start + 20).collect();
    places.extend((0..15).map(|_| last.start + dice.next() % (last.end - last.start)));
    places.extend(last.end - 13..last.end);
    for at in places {
        let copy = written.copy();
        let bit = dice.below(8) as u32;
        copy.flip(at, bit);
        let context = format!("bit {bit} of byte {} in {last:?}", at - last.start);
        if !SEQUENCE_AT.contains(&(at - last.start)) {
            copy.expect_refused(&context);
            copy.set_mark(written.mark_before_last());
            copy.expect_first(TRANSACTIONS - 1, &context);
        }
    }
}

#[test]
fn flipped_bit_in_the_last_seqno_gives_no_wrong_data() {
    let written = Written::new(Durability::Sync);
    let last = written.last();
    for bit in [0, 1, 2, 3, 4, 20, 21, 22, 23, 31, 33, 40, 55, 62, 63] {
        let copy = written.copy();
        copy.flip(last.start + SEQUENCE_AT.start + bit / 8, (bit % 8) as u32);
        // A plausible number may be accepted; then nothing else changes.
        let engine = match copy.open() {
            Err(OpenError::DamagedJournal { .. }) => continue,
            opened => opened.unwrap(),
        };
        verify::runtime().block_on(async {
            let newest = workload::newest_mark(&engine, 1).await;
            let context = format!("bit {bit}");
            assert!(newest >= FIRST + TRANSACTIONS - 2, "{context}");
            expect_first(&engine, newest - FIRST + 1, &context).await;
            workload::write(&engine, newest + 1).await.unwrap();
            expect_first(&engine, newest - FIRST + 2, &context).await;
        });
    }
}

#[test]
fn damage_before_the_last_group_is_refused() {
    let mut dice = seeded();
    let written = Written::new(Durability::Sync);
    for _ in 0..30 {
        let copy = written.copy();
        let group = written.group(dice.below(TRANSACTIONS as usize - 1));
        let at = group.start + dice.next() % (group.end - group.start);
        let bit = dice.below(8) as u32;
        copy.flip(at, bit);
        let context = format!("bit {bit} of byte {} in {group:?}", at - group.start);
        if SEQUENCE_AT.contains(&(at - group.start)) {
            match copy.open() {
                Err(OpenError::DamagedJournal { .. }) => {}
                Err(other) => panic!("{context}: {other}"),
                Ok(engine) => {
                    verify::runtime().block_on(expect_first(&engine, TRANSACTIONS, &context));
                }
            }
        } else {
            copy.expect_refused(&context);
        }
    }
}

/// With a wrong previous number, the last group would look like an unsynced end.
#[test]
fn flipped_seqno_does_not_lose_the_next_group() {
    let written = Written::new(Durability::Sync);
    let group = written.group(TRANSACTIONS as usize - 2);
    for bit in 0..64 {
        let copy = written.copy();
        copy.flip(group.start + SEQUENCE_AT.start + bit / 8, (bit % 8) as u32);
        match copy.open() {
            Err(OpenError::DamagedJournal { .. }) => {}
            Err(other) => panic!("bit {bit}: {other}"),
            Ok(engine) => {
                let context = format!("bit {bit}");
                verify::runtime().block_on(expect_first(&engine, TRANSACTIONS, &context));
            }
        }
    }
}

#[test]
fn journal_with_a_damaged_start_is_refused() {
    for durability in [Durability::Sync, Durability::Relaxed] {
        let written = Written::new(durability);
        let copy = written.copy();
        copy.flip(20, 1);
        copy.expect_refused(&format!("{durability:?}"));
    }
}

/// The numbers of the commit records in a journal, each with the commit that it knows to be on disk.
fn commit_records(journal: &Path) -> Vec<(u64, u64)> {
    let bytes = fs::read(journal).unwrap();
    let key = b"homeport.commit";
    let number = |at: usize| u64::from_be_bytes(bytes[at..at + 8].try_into().unwrap());
    (0..bytes.len().saturating_sub(key.len() + 24))
        .filter(|at| bytes[*at..].starts_with(key))
        .map(|at| (number(at + key.len()), number(at + key.len() + 8)))
        .collect()
}

#[test]
fn relaxed_store_opens_without_its_damaged_unsynced_end() {
    let written = Written::new(Durability::Relaxed);
    let records = commit_records(&written.journal);
    let (newest, _) = *records.last().unwrap();
    let synced = records.iter().map(|(_, synced)| *synced).max().unwrap();
    let oldest = newest + 1 - TRANSACTIONS;
    println!("commits {oldest} to {newest}, known to be on disk: {synced}");
    let mut opened = 0;
    for commit in oldest..=newest {
        let copy = written.copy();
        let kept = commit - oldest;
        copy.set_mark(&written.marks[0]);
        copy.flip(written.group(kept as usize).start + 40, 3);
        if commit <= synced {
            copy.expect_refused(&format!("commit {commit}"));
        } else if kept > 0 {
            opened += 1;
            copy.expect_first(kept, &format!("commit {commit}"));
        }
    }
    assert!(opened > 0, "every commit was known to be on disk");
}

#[test]
fn damaged_table_files_never_give_wrong_data() {
    let mut dice = seeded();
    let room = tempfile::tempdir().unwrap();
    let directory = room.path().join("data");
    verify::runtime().block_on(async {
        let engine = Engine::open(&directory, verify::options()).unwrap();
        engine.ensure_tables(&workload::tables()).await.unwrap();
        for number in FIRST..FIRST + 40 {
            workload::write(&engine, number).await.unwrap();
        }
        engine.compact().await.unwrap();
    });
    // Without the journal, nothing can be recovered from it.
    let tables: Vec<_> = files_below(&directory.join("store/keyspaces"))
        .into_iter()
        .filter(|path| fs::metadata(path).unwrap().len() > 0)
        .collect();
    let mut noticed = 0;
    for round in 0..40 {
        let copy = room.path().join("copy");
        let _ = fs::remove_dir_all(&copy);
        copy_directory(&directory, &copy);
        let path = dice.pick(&tables);
        let damaged = copy.join(path.strip_prefix(&directory).unwrap());
        let at = dice.next() % fs::metadata(path).unwrap().len();
        let bit = dice.below(8) as u32;
        flip(&damaged, at, bit);
        println!(
            "round {round}: bit {bit} of byte {at} in {}",
            damaged.display()
        );
        // In a separate process: the key-value store panics on some damage in its lists of files and ends the
        // process. That serves no wrong data either.
        let told = room.path().join("told");
        let output = Plan::new(Role::ReadAll, &copy, &told).run();
        let errors = String::from_utf8_lossy(&output.stderr);
        for line in errors.lines().filter(|line| line.contains("panicked at")) {
            assert!(
                !line.contains("crates/"),
                "round {round}: we panicked: {errors}"
            );
        }
        if String::from_utf8_lossy(&output.stdout).contains("outcome: whole") {
            assert!(output.status.success(), "round {round}: {errors}");
            let engine = Engine::open(&copy, verify::options()).unwrap();
            verify::runtime().block_on(expect_first(&engine, 40, &format!("round {round}")));
        } else {
            noticed += 1;
        }
    }
    assert!(noticed > 0, "no damage was ever noticed");
}
