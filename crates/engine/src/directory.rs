//! The data directory around the key-value store: its lock and its format.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::Write as _;
use std::path::Path;

use crate::error::OpenError;
use crate::layout::{FORMAT_FILE, FORMAT_VERSION, STORE_DIR};

const LOCK_FILE: &str = "LOCK";
const FORMAT_PREFIX: &str = "homeport ";
/// The file that the key-value store writes last when it is made, and how long it is then.
const STORE_VERSION_FILE: &str = "version";
const STORE_VERSION_LEN: u64 = 4;

/// Makes the directory if there is none, takes its lock and checks its format. The lock is held
/// for as long as the returned file is open.
pub(crate) fn prepare(path: &Path) -> Result<File, OpenError> {
    fs::create_dir_all(path)?;
    let lock = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path.join(LOCK_FILE))?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(OpenError::Locked(path.to_owned())),
        Err(TryLockError::Error(error)) => return Err(error.into()),
    }
    check_format(path)?;
    Ok(lock)
}

fn check_format(path: &Path) -> Result<(), OpenError> {
    let foreign = |reason: &str| OpenError::NotADataDirectory {
        path: path.to_owned(),
        reason: reason.to_owned(),
    };
    let file = path.join(FORMAT_FILE);
    match fs::read_to_string(&file) {
        Ok(text) => {
            let found = text
                .trim_end()
                .strip_prefix(FORMAT_PREFIX)
                .and_then(|version| version.parse::<u32>().ok())
                .ok_or_else(|| foreign("its FORMAT file says nothing that Homeport would write"))?;
            if found > FORMAT_VERSION {
                return Err(OpenError::NewerFormat {
                    path: path.to_owned(),
                    found,
                    known: FORMAT_VERSION,
                });
            }
            Ok(())
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            if path.join(STORE_DIR).exists() {
                return Err(foreign("it has a store but no FORMAT file"));
            }
            write_format(path)
        }
        Err(error) => Err(error.into()),
    }
}

/// Writes the format before anything else, whole or not at all.
fn write_format(path: &Path) -> Result<(), OpenError> {
    let unfinished = path.join("FORMAT.new");
    let mut file = File::create(&unfinished)?;
    writeln!(file, "{FORMAT_PREFIX}{FORMAT_VERSION}")?;
    file.sync_all()?;
    fs::rename(&unfinished, path.join(FORMAT_FILE))?;
    File::open(path)?.sync_all()?;
    Ok(())
}

/// Removes a store whose making was cut off, so that it can be made anew.
///
/// The key-value store writes its version last of all when it is made, and cannot open what lacks
/// it. Nothing can have been stored by then; this is checked all the same, for what is not
/// provably empty is never removed.
pub(crate) fn remove_unfinished_store(path: &Path) -> Result<(), OpenError> {
    let store = path.join(STORE_DIR);
    if !store.exists() || is_finished(&store)? {
        return Ok(());
    }
    if !is_empty(&store)? {
        return Err(OpenError::NotADataDirectory {
            path: path.to_owned(),
            reason: "its store has data but no version".to_owned(),
        });
    }
    fs::remove_dir_all(&store)?;
    Ok(())
}

fn is_finished(store: &Path) -> Result<bool, OpenError> {
    match fs::metadata(store.join(STORE_VERSION_FILE)) {
        Ok(file) => Ok(file.len() >= STORE_VERSION_LEN),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Whether there is nothing in a store but what making one leaves: no keyspace, and journals
/// without a byte in them.
fn is_empty(store: &Path) -> Result<bool, OpenError> {
    for entry in fs::read_dir(store)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            if fs::read_dir(entry.path())?.next().is_some() {
                return Ok(false);
            }
        } else if entry.path().extension().is_some_and(|kind| kind == "jnl") {
            let journal = fs::read(entry.path())?;
            if journal.iter().any(|byte| *byte != 0) {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_process_is_told_who_has_the_directory() {
        let directory = tempfile::tempdir().unwrap();
        let lock = prepare(directory.path()).unwrap();
        assert!(matches!(
            prepare(directory.path()),
            Err(OpenError::Locked(_))
        ));
        drop(lock);
        prepare(directory.path()).unwrap();
    }

    #[test]
    fn a_newer_format_is_refused_and_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join(FORMAT_FILE), "homeport 99\n").unwrap();
        let error = prepare(directory.path()).unwrap_err();
        assert!(matches!(error, OpenError::NewerFormat { found: 99, .. }));
        assert!(error.to_string().contains("newer Homeport"));
    }

    #[test]
    fn a_directory_of_something_else_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join(FORMAT_FILE), "mysql\n").unwrap();
        assert!(matches!(
            prepare(directory.path()),
            Err(OpenError::NotADataDirectory { .. })
        ));
    }

    #[test]
    fn a_store_whose_making_was_cut_off_is_removed_and_no_other() {
        let directory = tempfile::tempdir().unwrap();
        let store = directory.path().join(STORE_DIR);
        fs::create_dir_all(store.join("keyspaces")).unwrap();
        fs::write(store.join("0.jnl"), [0; 64]).unwrap();
        fs::write(store.join(STORE_VERSION_FILE), b"FJ").unwrap();
        remove_unfinished_store(directory.path()).unwrap();
        assert!(!store.exists());
        fs::create_dir_all(store.join("keyspaces/1")).unwrap();
        assert!(remove_unfinished_store(directory.path()).is_err());
        fs::remove_dir(store.join("keyspaces/1")).unwrap();
        fs::write(store.join("0.jnl"), [0, 0, 7]).unwrap();
        assert!(remove_unfinished_store(directory.path()).is_err());
        assert!(store.exists());
    }
}
