//! Copies of data directories.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Copies a data directory as a process leaves it that is killed now.
///
/// An open key-value store removes and replaces files at any time, so a copy counts only if the files were the same
/// before and after it.
pub(crate) fn copy_directory(from: &Path, to: &Path) {
    for _ in 0..1_000 {
        let _ = fs::remove_dir_all(to);
        let copied = files(from).and_then(|before| {
            try_copy(from, to)?;
            Ok(files(from)? == before)
        });
        match copied {
            Ok(true) => return,
            Ok(false) => {}
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::NotFound, "{error}"),
        }
    }
    panic!("the files in {} never stay the same", from.display());
}

fn try_copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let path = entry?.path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            try_copy(&path, &target)?;
        } else {
            fs::copy(&path, &target)?;
        }
    }
    Ok(())
}

/// Length and modification time of each file below a directory.
fn files(directory: &Path) -> io::Result<BTreeMap<PathBuf, (u64, SystemTime)>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let metadata = fs::metadata(&path)?;
        if metadata.is_dir() {
            found.extend(files(&path)?);
        } else {
            found.insert(path, (metadata.len(), metadata.modified()?));
        }
    }
    Ok(found)
}
