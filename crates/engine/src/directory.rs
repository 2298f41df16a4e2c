//! The data directory around the key-value store: its lock and its format.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::Write as _;
use std::path::Path;

use crate::error::OpenError;
use crate::layout::{FORMAT_FILE, FORMAT_VERSION, STORE_DIR};

const LOCK_FILE: &str = "LOCK";
const FORMAT_PREFIX: &str = "homeport ";

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
}
