//! Power cuts: the possible contents of a disk when the machine stops at any moment.
//!
//! A kill does not show this, because the page cache survives the process. So a child's disk operations and
//! acknowledgements are recorded in order. Then the disk is built as a cut at a random moment could leave it:
//! synced data is present, and [`Survival`] decides about the rest. File creations, renames and deletions are
//! assumed to happen in order and to be durable with the next sync of anything, as in journaling file
//! systems.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use crate::child::{Plan, Role};
use crate::dice::{self, Dice};
use crate::faulty_disk::FaultyDisk;
use crate::verify::{self, Kept};

const CUTS: u64 = 7;
/// The unit that disks write atomically.
const SECTOR_BYTES: usize = 512;
const PAGE_BYTES: usize = 4096;

/// The fate of writes that no completed sync covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Survival {
    /// All are lost.
    Lose,
    /// They survive up to some moment, the last one in part.
    Prefix,
    /// Each page survives by chance.
    Random,
}

#[test]
fn power_cut_without_unsynced_writes_loses_nothing_acknowledged() {
    cut_power(Survival::Lose, Kept::Plain);
}

#[test]
fn power_cut_with_a_torn_write_loses_nothing_acknowledged() {
    cut_power(Survival::Prefix, Kept::Plain);
}

#[test]
fn power_cut_with_random_pages_loses_nothing_acknowledged() {
    cut_power(Survival::Random, Kept::Plain);
}

#[test]
fn power_cut_of_a_sealed_store_loses_nothing_acknowledged() {
    for survival in [Survival::Lose, Survival::Prefix, Survival::Random] {
        cut_power(survival, Kept::Sealed);
    }
}

/// If the mark were ahead of its journal, the store would be refused, which is the worst failure of a mark.
/// Relaxed durability loses the longest part of journals.
#[test]
fn power_cut_never_leaves_the_mark_ahead() {
    let seed = dice::seed();
    println!("HOMEPORT_SEED={seed}");
    let mut dice = Dice::new(seed);
    let room = tempfile::tempdir().unwrap();
    let recording = Recording::relaxed(room.path());
    for survival in [Survival::Lose, Survival::Prefix, Survival::Random] {
        for cut in 0..CUTS / 2 {
            let at = dice.below(recording.events.len()) + 1;
            let image = room.path().join(format!("image-{cut}"));
            recording.image(at, survival, &mut dice, &image);
            println!("cut {cut} after event {at}");
            verify::check_directory(&image, Kept::Plain, &[]);
            std::fs::remove_dir_all(&image).unwrap();
        }
    }
}

fn cut_power(survival: Survival, kept: Kept) {
    let seed = dice::seed();
    println!("HOMEPORT_SEED={seed}");
    let mut dice = Dice::new(seed);
    let room = tempfile::tempdir().unwrap();
    let recording = Recording::make(room.path(), kept);
    println!("{} events recorded", recording.events.len());
    for cut in 0..dice::from_env("HOMEPORT_POWER_CUTS").unwrap_or(CUTS) {
        let at = dice.below(recording.events.len()) + 1;
        let image = room.path().join(format!("image-{cut}"));
        let acknowledged = recording.image(at, survival, &mut dice, &image);
        println!(
            "cut {cut} after event {at}: {} acknowledged",
            acknowledged.len()
        );
        verify::check_directory(&image, kept, &acknowledged);
        std::fs::remove_dir_all(&image).unwrap();
    }
}

/// All disk operations of a child in its data directory.
struct Recording {
    directory: PathBuf,
    events: Vec<Event>,
}

#[derive(Debug)]
enum Event {
    Created {
        file: u64,
        path: PathBuf,
    },
    Written {
        file: u64,
        at: usize,
        bytes: Vec<u8>,
        synced: bool,
    },
    Resized {
        file: u64,
        len: usize,
    },
    SyncBegun {
        file: u64,
        sync: u64,
    },
    SyncEnded {
        sync: u64,
    },
    Renamed {
        from: PathBuf,
        to: PathBuf,
    },
    Removed {
        path: PathBuf,
    },
    DirectoryMade {
        path: PathBuf,
    },
    /// All files in a directory at the time of its sync.
    Listed {
        path: PathBuf,
        files: BTreeMap<PathBuf, u64>,
    },
    Acknowledged(u64),
}

impl Recording {
    fn make(room: &Path, kept: Kept) -> Self {
        Self::of(room, |plan| plan.kept(kept))
    }

    fn relaxed(room: &Path) -> Self {
        Self::of(room, Plan::relaxed)
    }

    fn of(room: &Path, planned: impl Fn(Plan) -> Plan) -> Self {
        let directory = room.join("data");
        let told = room.join("told");
        let log = room.join("log");
        let disk = FaultyDisk::compile(room);
        // Two runs, so that cuts also happen while older data is opened.
        for _ in 0..2 {
            let plan = Plan::new(Role::Write, &directory, &told).writers(3, Some(45));
            let plan = planned(plan);
            let output = disk.recording(plan, &directory, &told, &log).run();
            assert!(output.status.success(), "{output:?}");
        }
        let events = parse(&std::fs::read(&log).unwrap());
        Self { directory, events }
    }

    /// Builds the disk after a cut after the first `at` events, and returns what had been acknowledged by
    /// then.
    fn image(&self, at: usize, survival: Survival, dice: &mut Dice, to: &Path) -> Vec<u64> {
        let events = &self.events[..at];
        let safe = Safe::of(events);
        let later = |dice: &mut Dice| safe.names + dice.below(at - safe.names + 1);
        let names_end = match survival {
            Survival::Lose => safe.names,
            _ => later(dice),
        };
        let writes_end = later(dice);
        let mut disk = Disk::default();
        let mut acknowledged = Vec::new();
        for (when, event) in events.iter().enumerate() {
            let named = when < names_end;
            let covered = |file: &u64| safe.files.get(file).is_some_and(|until| when < *until);
            match event {
                Event::Acknowledged(number) => acknowledged.push(*number),
                Event::DirectoryMade { path } => {
                    disk.directories.insert(path.clone());
                }
                Event::Created { file, path } => {
                    disk.contents.remove(file);
                    if named || covered(file) {
                        disk.names.insert(path.clone(), *file);
                    }
                }
                Event::Renamed { from, to } if named => disk.rename(from, to),
                Event::Removed { path } if named => {
                    disk.names.remove(path);
                }
                Event::Listed { path, files } if named => {
                    disk.names.retain(|name, _| name.parent() != Some(path));
                    disk.names
                        .extend(files.iter().map(|(name, file)| (name.clone(), *file)));
                }
                Event::Resized { file, len } if named || covered(file) => {
                    disk.contents.entry(*file).or_default().resize(*len, 0);
                }
                Event::Written {
                    file,
                    at,
                    bytes,
                    synced,
                } => {
                    for part in survivors(
                        survival,
                        *synced || covered(file),
                        when.cmp(&writes_end),
                        *at,
                        bytes.len(),
                        dice,
                    ) {
                        disk.write(*file, at + part.start, &bytes[part]);
                    }
                }
                _ => {}
            }
        }
        disk.put_down(&self.directory, to);
        acknowledged
    }
}

/// What the completed syncs among some events make durable.
struct Safe {
    /// For each file, everything before this event.
    files: HashMap<u64, usize>,
    /// File names from before this event.
    names: usize,
}

impl Safe {
    fn of(events: &[Event]) -> Self {
        let mut begun = HashMap::new();
        let mut files: HashMap<u64, usize> = HashMap::new();
        let mut names = 0;
        for (when, event) in events.iter().enumerate() {
            match event {
                // The number of a deleted file may be reused.
                Event::Created { file, .. } => {
                    files.remove(file);
                }
                Event::SyncBegun { file, sync } => {
                    begun.insert(*sync, (*file, when));
                }
                Event::SyncEnded { sync } => {
                    let (file, since) = begun[sync];
                    let until = files.entry(file).or_default();
                    *until = (*until).max(since);
                    names = names.max(since);
                }
                _ => {}
            }
        }
        Self { files, names }
    }
}

/// The parts of a write that are on the disk after the cut.
fn survivors(
    survival: Survival,
    safe: bool,
    against_cut: std::cmp::Ordering,
    at: usize,
    len: usize,
    dice: &mut Dice,
) -> Vec<std::ops::Range<usize>> {
    let whole = std::iter::once(0..len).collect();
    if safe {
        return whole;
    }
    match survival {
        Survival::Lose => Vec::new(),
        Survival::Prefix if against_cut.is_lt() => whole,
        Survival::Prefix if against_cut.is_eq() => {
            let kept = dice.below(len / SECTOR_BYTES + 1) * SECTOR_BYTES;
            std::iter::once(0..kept).collect()
        }
        Survival::Prefix => Vec::new(),
        Survival::Random => {
            let mut parts = Vec::new();
            let mut start = 0;
            while start < len {
                let page_end = ((at + start) / PAGE_BYTES + 1) * PAGE_BYTES - at;
                let end = page_end.min(len);
                if dice.one_in(2) {
                    parts.push(start..end);
                }
                start = end;
            }
            parts
        }
    }
}

/// A disk under construction.
#[derive(Default)]
struct Disk {
    directories: BTreeSet<PathBuf>,
    names: BTreeMap<PathBuf, u64>,
    contents: HashMap<u64, Vec<u8>>,
}

impl Disk {
    fn write(&mut self, file: u64, at: usize, bytes: &[u8]) {
        let content = self.contents.entry(file).or_default();
        let end = at + bytes.len();
        if content.len() < end {
            content.resize(end, 0);
        }
        content[at..end].copy_from_slice(bytes);
    }

    fn rename(&mut self, from: &Path, to: &Path) {
        if let Some(file) = self.names.remove(from) {
            self.names.insert(to.to_owned(), file);
        }
    }

    fn put_down(&self, from: &Path, to: &Path) {
        let place = |path: &Path| to.join(path.strip_prefix(from).unwrap());
        std::fs::create_dir_all(to).unwrap();
        for directory in &self.directories {
            std::fs::create_dir_all(place(directory)).unwrap();
        }
        for (path, file) in &self.names {
            let path = place(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            let content = self.contents.get(file).map_or(&[][..], Vec::as_slice);
            put_down_sparsely(&path, content);
        }
    }
}

/// Writes a file without its trailing zeros, of which a journal has many.
fn put_down_sparsely(path: &Path, content: &[u8]) {
    let zeros = [0; PAGE_BYTES];
    let used = content
        .chunks(PAGE_BYTES)
        .rposition(|page| *page != zeros[..page.len()])
        .map_or(0, |page| ((page + 1) * PAGE_BYTES).min(content.len()));
    std::fs::write(path, &content[..used]).unwrap();
    let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
    file.set_len(content.len() as u64).unwrap();
}

/// Reads the log that `faultdisk.c` writes.
fn parse(mut log: &[u8]) -> Vec<Event> {
    let mut events = Vec::new();
    while let Some((head, rest)) = log.split_first_chunk::<24>() {
        let len = u32::from_le_bytes(head[4..8].try_into().unwrap()) as usize;
        let file = u64::from_le_bytes(head[8..16].try_into().unwrap());
        let at = u64::from_le_bytes(head[16..24].try_into().unwrap());
        let (bytes, rest) = rest.split_at(len);
        log = rest;
        let len = usize::try_from(at).unwrap();
        events.push(match head[0] {
            b'A' => Event::Acknowledged(u64::from_be_bytes(bytes.try_into().unwrap())),
            b'C' => Event::Created {
                file,
                path: texts(bytes).remove(0),
            },
            b'D' => listed(bytes),
            b'E' => Event::SyncEnded { sync: at },
            b'M' => Event::DirectoryMade {
                path: texts(bytes).remove(0),
            },
            b'N' => {
                let mut both = texts(bytes);
                let to = both.remove(1);
                Event::Renamed {
                    from: both.remove(0),
                    to,
                }
            }
            b'S' => Event::SyncBegun { file, sync: at },
            b'T' => Event::Resized { file, len },
            b'U' => Event::Removed {
                path: texts(bytes).remove(0),
            },
            b'W' => Event::Written {
                file,
                at: len,
                bytes: bytes.to_vec(),
                synced: head[1] != 0,
            },
            other => panic!("an unknown event {other}"),
        });
    }
    events
}

fn texts(bytes: &[u8]) -> Vec<PathBuf> {
    bytes
        .split(|byte| *byte == 0)
        .map(|text| PathBuf::from(std::str::from_utf8(text).unwrap()))
        .collect()
}

fn listed(bytes: &[u8]) -> Event {
    let end = |bytes: &[u8]| bytes.iter().position(|byte| *byte == 0).unwrap();
    let path = texts(&bytes[..end(bytes)]).remove(0);
    let mut rest = &bytes[end(bytes) + 1..];
    let mut files = BTreeMap::new();
    while let Some((file, name)) = rest.split_first_chunk::<8>() {
        let name_end = end(name);
        let name_path = path.join(std::str::from_utf8(&name[..name_end]).unwrap());
        files.insert(name_path, u64::from_le_bytes(*file));
        rest = &name[name_end + 1..];
    }
    Event::Listed { path, files }
}
