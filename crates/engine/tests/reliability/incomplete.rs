//! Data directories with missing, cut, damaged or foreign files. Such a store is either refused or complete;
//! it is never served in part.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};

use homeport_engine::{Engine, OpenError, Options};
use homeport_store::Store;

use crate::copy::copy_directory;
use crate::damage::{files_below, flip};
use crate::verify::{self, Kept};
use crate::workload;

const FIRST: u64 = workload::NUMBERS_PER_WRITER + 1;
const JOURNAL: &str = "store/0.jnl";
const SECOND_JOURNAL: &str = "store/1.jnl";
/// Transactions whose items are in table files, and others that are only in the journal.
const FLUSHED: u64 = 24;
const JOURNALED: u64 = 24;

pub(crate) fn options(kept: Kept) -> Options {
    Options {
        master_key: kept.master_key(),
        ..verify::options()
    }
}

/// Fills a data directory and closes it. Returns a length of the journal in the middle of the writes that are
/// in no table file.
pub(crate) fn fill(directory: &Path, kept: Kept) -> u64 {
    verify::runtime().block_on(async {
        let engine = Engine::open(directory, options(kept)).unwrap();
        engine.ensure_tables(&workload::tables()).await.unwrap();
        for number in FIRST..FIRST + FLUSHED {
            workload::write(&engine, number).await.unwrap();
        }
        engine.compact().await.unwrap();
        drop(engine);
        // Opened again, the journal has no preallocated space.
        let engine = Engine::open(directory, options(kept)).unwrap();
        let mut middle = 0;
        for number in FIRST + FLUSHED..FIRST + FLUSHED + JOURNALED {
            workload::write(&engine, number).await.unwrap();
            if number == FIRST + FLUSHED + JOURNALED / 2 {
                middle = fs::metadata(directory.join(JOURNAL)).unwrap().len();
            }
        }
        middle
    })
}

/// Splits the journal as if it had been rotated at this length.
pub(crate) fn split_journal(directory: &Path, at: u64) {
    let journal = fs::read(directory.join(JOURNAL)).unwrap();
    let (first, second) = journal.split_at(usize::try_from(at).unwrap());
    // The first one still has some preallocated space.
    fs::write(directory.join(JOURNAL), [first, &[0; 4096]].concat()).unwrap();
    fs::write(directory.join(SECOND_JOURNAL), second).unwrap();
}

fn acknowledged() -> Vec<u64> {
    (FIRST..FIRST + FLUSHED + JOURNALED).collect()
}

/// A filled directory, an older copy of it, another store, and a place for copies.
struct Stores {
    room: tempfile::TempDir,
    kept: Kept,
}

impl Stores {
    fn new(kept: Kept) -> Self {
        let room = tempfile::tempdir().unwrap();
        fill(&room.path().join("data"), kept);
        fill(&room.path().join("other"), kept);
        Self { room, kept }
    }

    /// Uses two journals in each directory.
    fn with_two_journals() -> Self {
        let room = tempfile::tempdir().unwrap();
        for name in ["data", "other"] {
            let middle = fill(&room.path().join(name), Kept::Plain);
            split_journal(&room.path().join(name), middle);
        }
        let kept = Kept::Plain;
        Self { room, kept }
    }

    /// Keeps the current data directory, and writes more.
    fn make_older_copy(&self) {
        copy_directory(&self.data(), &self.room.path().join("older"));
        verify::runtime().block_on(async {
            let engine = self.open(&self.data()).unwrap();
            for number in FIRST + FLUSHED + JOURNALED..FIRST + FLUSHED + 2 * JOURNALED {
                workload::write(&engine, number).await.unwrap();
            }
            engine.compact().await.unwrap();
            workload::write(&engine, FIRST + FLUSHED + 2 * JOURNALED)
                .await
                .unwrap();
        });
    }

    fn data(&self) -> PathBuf {
        self.room.path().join("data")
    }

    fn other(&self) -> PathBuf {
        self.room.path().join("other")
    }

    fn copy(&self) -> PathBuf {
        let copy = self.room.path().join("copy");
        let _ = fs::remove_dir_all(&copy);
        copy_directory(&self.data(), &copy);
        copy
    }

    fn open(&self, directory: &Path) -> Result<Engine, OpenError> {
        Engine::open(directory, options(self.kept))
    }

    /// Opens a damaged copy: it is either refused and unchanged, or complete. Returns whether it was refused.
    fn expect_refused_or_whole(&self, copy: &Path, context: &str) -> bool {
        self.expect_refused_or(copy, &acknowledged(), context)
    }

    fn expect_refused_or(&self, copy: &Path, acknowledged: &[u64], context: &str) -> bool {
        let before = contents_of(copy);
        match self.open(copy) {
            Err(error) => {
                let text = error.to_string();
                assert!(text.len() > 40, "{context}: {text}");
                assert!(contents_of(copy) == before, "{context}: changed");
                true
            }
            Ok(engine) => {
                println!("{context}: whole");
                verify::runtime().block_on(verify::check(&engine, acknowledged));
                false
            }
        }
    }

    fn refusal(&self, copy: &Path) -> String {
        match self.open(copy) {
            Err(error) => error.to_string(),
            Ok(_) => panic!("opened"),
        }
    }
}

/// All files with their contents, except locks.
pub(crate) fn contents_of(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let files = files_below(directory).into_iter();
    files
        .filter(|path| !is_lock(path))
        .map(|path| (path.clone(), fs::read(&path).unwrap()))
        .collect()
}

fn is_lock(path: &Path) -> bool {
    let name = path.file_name().unwrap().to_string_lossy();
    name.eq_ignore_ascii_case("lock")
}

/// One file of each kind.
fn kinds(directory: &Path) -> BTreeMap<String, PathBuf> {
    let mut kinds = BTreeMap::new();
    for path in files_below(directory) {
        let inside = path.strip_prefix(directory).unwrap().to_owned();
        if is_lock(&path) || fs::metadata(&path).unwrap().len() == 0 {
            continue;
        }
        let kind: Vec<String> = inside
            .components()
            .map(|part| part.as_os_str().to_string_lossy().into_owned())
            .map(|part| match part.trim_start_matches('v').parse::<u64>() {
                Ok(0) => part,
                Ok(_) => part.trim_end_matches(char::is_numeric).to_owned() + "N",
                Err(_) => part,
            })
            .collect();
        kinds.insert(kind.join("/"), inside);
    }
    kinds
}

#[test]
fn damaged_store_is_refused_or_complete() {
    let stores = Stores::new(Kept::Plain);
    let kinds = kinds(&stores.data());
    for kind in ["MARK", "CONTENTS", "FORMAT", "store/version", "store/0.jnl"] {
        assert!(kinds.contains_key(kind), "{kind} is not in {kinds:?}");
    }
    let mut refused = 0;
    for (kind, inside) in &kinds {
        for (damage, apply) in damages() {
            let copy = stores.copy();
            apply(&copy.join(inside), &stores.other().join(inside));
            let context = format!("{kind} {damage}");
            refused += u32::from(stores.expect_refused_or_whole(&copy, &context));
        }
    }
    println!("{refused} of {} refused", kinds.len() * damages().len());
}

#[test]
fn damaged_sealed_store_is_refused_or_complete() {
    let stores = Stores::new(Kept::Sealed);
    for inside in ["FORMAT", "keyring", "MARK", "store/0.jnl"] {
        for (damage, apply) in damages() {
            let copy = stores.copy();
            apply(&copy.join(inside), &stores.other().join(inside));
            stores.expect_refused_or_whole(&copy, &format!("{inside} {damage}"));
        }
    }
}

type Apply = Box<dyn Fn(&Path, &Path)>;

/// The damage of a file; the second path is the same file of another store.
fn damages() -> Vec<(&'static str, Apply)> {
    let mut damages: Vec<(&'static str, Apply)> = vec![
        (
            "removed",
            Box::new(|path, _| fs::remove_file(path).unwrap()),
        ),
        (
            "swapped",
            Box::new(|path, other| {
                if other.exists() {
                    fs::copy(other, path).unwrap();
                }
            }),
        ),
    ];
    for (name, per_mille) in [
        ("emptied", 0),
        ("cut to half", 500),
        ("cut to 99.9 %", 999),
        ("cut by a byte", 1000),
    ] {
        damages.push((name, Box::new(move |path, _| cut(path, per_mille))));
    }
    for (name, per_mille) in [
        ("flipped early", 20),
        ("flipped", 500),
        ("flipped late", 950),
    ] {
        damages.push((
            name,
            Box::new(move |path, _| {
                let len = fs::metadata(path).unwrap().len();
                flip(path, len * per_mille / 1000, 2);
            }),
        ));
    }
    damages
}

pub(crate) fn cut(path: &Path, per_mille: u64) {
    let file = OpenOptions::new().write(true).open(path).unwrap();
    let len = file.metadata().unwrap().len();
    file.set_len((len * per_mille / 1000).min(len - 1)).unwrap();
}

#[test]
fn damaged_rotated_journals_are_refused_or_complete() {
    let stores = Stores::with_two_journals();
    for inside in [JOURNAL, SECOND_JOURNAL] {
        for (damage, apply) in damages() {
            let copy = stores.copy();
            apply(&copy.join(inside), &stores.other().join(inside));
            let context = format!("{inside} {damage}");
            let refused = stores.expect_refused_or_whole(&copy, &context);
            // The end of the first one is preallocated space.
            let is_lost = match damage {
                "removed" | "swapped" | "emptied" | "cut to half" => true,
                _ => inside == SECOND_JOURNAL && damage.starts_with("cut"),
            };
            assert!(refused || !is_lost, "{context}");
        }
    }
    assert!(!stores.expect_refused_or_whole(&stores.copy(), "whole"));
}

#[test]
fn files_of_an_older_copy_are_refused_or_complete() {
    let stores = Stores::new(Kept::Plain);
    stores.make_older_copy();
    let acknowledged: Vec<u64> = (FIRST..=FIRST + FLUSHED + 2 * JOURNALED).collect();
    let older = stores.room.path().join("older");
    for path in files_below(&older) {
        let inside = path.strip_prefix(&older).unwrap();
        let newer = fs::read(stores.data().join(inside)).ok();
        if newer.is_none_or(|newer| newer == fs::read(&path).unwrap()) {
            continue;
        }
        let copy = stores.copy();
        fs::copy(&path, copy.join(inside)).unwrap();
        stores.expect_refused_or(&copy, &acknowledged, &inside.display().to_string());
    }
    let copy = stores.copy();
    fs::copy(older.join(JOURNAL), copy.join(JOURNAL)).unwrap();
    assert!(stores.refusal(&copy).contains("was acknowledged"));
}

#[test]
fn missing_lock_files_do_not_matter() {
    let stores = Stores::new(Kept::Plain);
    let copy = stores.copy();
    for name in ["LOCK", "store/lock"] {
        fs::remove_file(copy.join(name)).unwrap();
    }
    let report = homeport_engine::check_directory(&copy, &options(Kept::Plain)).unwrap();
    assert_eq!(report.problems, 0, "{report:?}");
    assert!(!copy.join("store/lock").exists());
    assert!(!stores.expect_refused_or_whole(&copy, "without locks"));
}

#[test]
fn missing_journal_is_refused_with_advice() {
    let stores = Stores::new(Kept::Plain);
    let copy = stores.copy();
    fs::remove_file(copy.join("store/0.jnl")).unwrap();
    let refusal = stores.refusal(&copy);
    for part in [
        "the journal is missing",
        "homeport salvage",
        "restore a backup",
    ] {
        assert!(refusal.contains(part), "{refusal}");
    }
    // Nothing is created in its place, so it is refused as long as it is missing.
    assert_eq!(stores.refusal(&copy), refusal);
    fs::copy(stores.data().join("store/0.jnl"), copy.join("store/0.jnl")).unwrap();
    assert!(!stores.expect_refused_or_whole(&copy, "put back"));
}

#[test]
fn cut_journal_is_refused_with_counts() {
    let stores = Stores::new(Kept::Plain);
    for per_mille in [500, 900, 990, 999] {
        let copy = stores.copy();
        cut(&copy.join("store/0.jnl"), per_mille);
        let refusal = stores.refusal(&copy);
        assert!(refusal.contains("was acknowledged"), "{refusal}");
    }
}

#[test]
fn journal_of_another_store_is_refused() {
    let stores = Stores::new(Kept::Plain);
    // This includes a journal with more commits.
    verify::runtime().block_on(async {
        let engine = stores.open(&stores.other()).unwrap();
        for number in FIRST + 1000..FIRST + 1100 {
            workload::write(&engine, number).await.unwrap();
        }
    });
    let copy = stores.copy();
    fs::copy(stores.other().join("store/0.jnl"), copy.join("store/0.jnl")).unwrap();
    let refusal = stores.refusal(&copy);
    assert!(refusal.contains("another store"), "{refusal}");
}

#[test]
fn missing_keyspace_is_refused() {
    let stores = Stores::new(Kept::Plain);
    for folder in fs::read_dir(stores.data().join("store/keyspaces")).unwrap() {
        let inside = folder.unwrap().path();
        let inside = inside.strip_prefix(stores.data()).unwrap().to_owned();
        let copy = stores.copy();
        fs::remove_dir_all(copy.join(&inside)).unwrap();
        let before = contents_of(&copy);
        println!("{}: {}", inside.display(), stores.refusal(&copy));
        assert!(contents_of(&copy) == before, "{}", inside.display());
    }
}

#[test]
fn older_directory_gets_a_mark() {
    let stores = Stores::new(Kept::Plain);
    let copy = stores.copy();
    fs::remove_file(copy.join("MARK")).unwrap();
    fs::remove_file(copy.join("CONTENTS")).unwrap();
    fs::write(copy.join("FORMAT"), "homeport 3\n").unwrap();
    assert!(!stores.expect_refused_or_whole(&copy, "older"));
    assert_eq!(
        fs::read_to_string(copy.join("FORMAT")).unwrap(),
        "homeport 5\n"
    );
    assert!(!stores.expect_refused_or_whole(&copy, "marked"));
    fs::remove_file(copy.join("MARK")).unwrap();
    // This includes a directory with an older file FORMAT.
    for format in ["homeport 5\n", "homeport 3\n"] {
        fs::write(copy.join("FORMAT"), format).unwrap();
        let refusal = stores.refusal(&copy);
        assert!(refusal.contains("the file MARK is missing"), "{refusal}");
    }
}
