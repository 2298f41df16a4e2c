//! Kinds of files in a data directory, and ways to damage one.

use std::io;
use std::path::{Path, PathBuf};

use homeport_simulate::SeededRandom;

/// Files without client data: locks, addresses of a running server, secrets.
const NO_DATA: [&str; 8] = [
    "LOCK",
    "lock",
    "address",
    "dynamodb-address",
    "admin-token",
    "api-key-pepper",
    "rules-http-secret",
    "user-jwt-secret",
];

/// Kinds of files that every directory eventually has.
pub(crate) const FILE_KINDS: [&str; 10] = [
    "FORMAT",
    "MARK",
    "CONTENTS",
    "keyring",
    "backup",
    "newest journal",
    "older journal",
    "table file",
    "list of table files",
    "version of the store",
];

/// Kinds of files that `homeport check` verifies completely. In the others some damage is harmless: MARK has a spare slot,
/// journals have an end that was not synced, and FORMAT ends with a line break.
const CHECKED_WHOLE: [&str; 6] = [
    "CONTENTS",
    "keyring",
    "backup",
    "table file",
    "list of table files",
    "version of the store",
];

/// The names of all kinds of damage.
pub(crate) fn damage_names() -> impl Iterator<Item = &'static str> {
    Damage::ALL.into_iter().map(Damage::name)
}

/// A file and its kind.
#[derive(Debug, Clone)]
pub(super) struct Victim {
    pub(super) path: PathBuf,
    pub(super) kind: &'static str,
}

impl Victim {
    /// Whether `homeport check` must detect any damage, if the store uses the file.
    pub(super) fn is_checked_whole(&self) -> bool {
        CHECKED_WHOLE.contains(&self.kind)
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Damage {
    Remove,
    /// Keeps this many thousandths.
    Truncate(u64),
    CutLastByte,
    FlipBit,
}

impl Damage {
    pub(super) const ALL: [Self; 6] = [
        Self::Remove,
        Self::Truncate(0),
        Self::Truncate(500),
        Self::Truncate(999),
        Self::CutLastByte,
        Self::FlipBit,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Remove => "removed",
            Self::Truncate(0) => "emptied",
            Self::Truncate(500) => "cut to 50 %",
            Self::Truncate(_) => "cut to 99.9 %",
            Self::CutLastByte => "last byte cut",
            Self::FlipBit => "bit flipped",
        }
    }

    /// Damages a non-empty file. Zeros at its end count as preallocated.
    pub(super) fn apply(self, path: &Path, random: &mut SeededRandom) -> io::Result<()> {
        if matches!(self, Self::Remove) {
            return std::fs::remove_file(path);
        }
        let mut bytes = std::fs::read(path)?;
        let len = used_len(&bytes);
        match self {
            Self::Remove => {}
            Self::Truncate(thousandths) => {
                let kept = len as u64 * thousandths / 1000;
                bytes.truncate(usize::try_from(kept).unwrap_or(usize::MAX));
            }
            Self::CutLastByte => bytes.truncate(len.saturating_sub(1)),
            Self::FlipBit => bytes[random.below(len)] ^= 1 << random.below(8),
        }
        std::fs::write(path, bytes)
    }
}

/// The length of a file without zeros at its end.
fn used_len(bytes: &[u8]) -> usize {
    let last = bytes.iter().rposition(|byte| *byte != 0);
    last.map_or(0, |at| at + 1)
}

/// All files with data, in a fixed order.
pub(super) fn victims(data_dir: &Path) -> io::Result<Vec<Victim>> {
    let files = files(data_dir)?;
    let newest_journal = files.iter().filter_map(|path| journal_number(path)).max();
    let mut victims = Vec::new();
    for path in files {
        let relative = path.strip_prefix(data_dir).unwrap_or(&path);
        let Some(kind) = kind_of(relative, newest_journal) else {
            continue;
        };
        if used_len(&std::fs::read(&path)?) > 0 {
            victims.push(Victim { path, kind });
        }
    }
    Ok(victims)
}

fn journal_number(path: &Path) -> Option<u64> {
    let name = path.file_name()?.to_str()?;
    name.strip_suffix(".jnl")?.parse().ok()
}

fn kind_of(relative: &Path, newest_journal: Option<u64>) -> Option<&'static str> {
    let name = relative.file_name()?.to_str()?;
    let parts: Vec<&str> = relative.iter().filter_map(|part| part.to_str()).collect();
    Some(match parts[..] {
        _ if NO_DATA.contains(&name) => return None,
        ["FORMAT"] => "FORMAT",
        ["MARK"] => "MARK",
        ["CONTENTS"] => "CONTENTS",
        ["keyring"] => "keyring",
        ["backups", _] => "backup",
        ["store", _] if name.ends_with(".jnl") => {
            if journal_number(relative) == newest_journal {
                "newest journal"
            } else {
                "older journal"
            }
        }
        ["store", "keyspaces", _, "tables", ..] => "table file",
        ["store", "keyspaces", ..] => "list of table files",
        ["store", ..] => "version of the store",
        [_] => "other file",
        _ => return None,
    })
}

/// All files below a folder, sorted by path.
pub(super) fn files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                folders.push(entry.path());
            } else {
                found.push(entry.path());
            }
        }
    }
    found.sort();
    Ok(found)
}

/// The contents of a folder, for comparison, without locks.
pub(super) fn content(folder: &Path) -> io::Result<Vec<(PathBuf, Vec<u8>)>> {
    let mut all = Vec::new();
    for path in files(folder)? {
        let name = path.file_name().and_then(|name| name.to_str());
        if !name.is_some_and(|name| name.eq_ignore_ascii_case("lock")) {
            let bytes = std::fs::read(&path)?;
            all.push((path, bytes));
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_damage_changes_the_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        for damage in Damage::ALL {
            for content in [&b"x"[..], b"some bytes", b"preallocated\0\0\0\0"] {
                std::fs::write(&path, content).unwrap();
                damage.apply(&path, &mut SeededRandom::new([1])).unwrap();
                let left = std::fs::read(&path).ok();
                assert_ne!(left.as_deref(), Some(content), "{}", damage.name());
            }
        }
    }

    #[test]
    fn files_are_classified_by_kind() {
        let directory = tempfile::tempdir().unwrap();
        let files = [
            ("FORMAT", "FORMAT"),
            ("MARK", "MARK"),
            ("CONTENTS", "CONTENTS"),
            ("keyring", "keyring"),
            ("backups/1.backup", "backup"),
            ("store/9.jnl", "older journal"),
            ("store/10.jnl", "newest journal"),
            ("store/version", "version of the store"),
            ("store/keyspaces/3/v7", "list of table files"),
            ("store/keyspaces/3/tables/5", "table file"),
        ];
        for folder in ["backups", "store/keyspaces/3/tables"] {
            std::fs::create_dir_all(directory.path().join(folder)).unwrap();
        }
        for name in files.map(|(name, _)| name).iter().chain(&["LOCK"]) {
            std::fs::write(directory.path().join(name), "x").unwrap();
        }
        std::fs::write(directory.path().join("store/11.jnl.empty"), "").unwrap();
        let found = victims(directory.path()).unwrap();
        assert_eq!(found.len(), files.len());
        let mut kinds = files.map(|(_, kind)| kind);
        let mut all = FILE_KINDS;
        kinds.sort_unstable();
        all.sort_unstable();
        assert_eq!(kinds, all);
        for (name, kind) in files {
            let path = directory.path().join(name);
            let victim = found.iter().find(|victim| victim.path == path).unwrap();
            assert_eq!(victim.kind, kind, "{name}");
        }
    }
}
