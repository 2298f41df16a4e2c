//! Files and folders that are written under a temporary name and renamed once they are complete.

use std::fs::File;
use std::path::{Path, PathBuf};

use crate::archive::backup::BackupError;

/// The temporary file or folder of `target`; deleted when this is dropped before it is finished.
pub(crate) struct Unfinished {
    path: PathBuf,
    target: PathBuf,
    is_folder: bool,
}

impl Unfinished {
    /// A file that must not exist yet.
    pub(crate) fn file(target: &Path) -> Result<Self, BackupError> {
        Self::new(target, false)
    }

    /// A folder that must not exist yet. Deletes the leftovers of an earlier attempt.
    pub(crate) fn folder(target: &Path) -> Result<Self, BackupError> {
        let unfinished = Self::new(target, true)?;
        let path = &unfinished.path;
        if path.exists() {
            std::fs::remove_dir_all(path).map_err(io(path))?;
        }
        Ok(unfinished)
    }

    fn new(target: &Path, is_folder: bool) -> Result<Self, BackupError> {
        if target.exists() {
            return Err(BackupError::Exists(target.to_owned()));
        }
        let mut path = target.as_os_str().to_owned();
        path.push(".unfinished");
        Ok(Self {
            path: PathBuf::from(path),
            target: target.to_owned(),
            is_folder,
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Renames it to its target, durably.
    pub(crate) fn finish(self) -> Result<(), BackupError> {
        rename_durably(&self.path, &self.target)
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        // After `finish`, neither exists.
        let _ = match self.is_folder {
            true => std::fs::remove_dir_all(&self.path),
            false => std::fs::remove_file(&self.path),
        };
    }
}

/// Renames a complete file or folder to its final name, durably.
pub(crate) fn rename_durably(unfinished: &Path, path: &Path) -> Result<(), BackupError> {
    std::fs::rename(unfinished, path).map_err(io(path))?;
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    File::open(parent)
        .and_then(|directory| directory.sync_all())
        .map_err(io(parent))
}

/// An error about a path.
pub(crate) fn io(path: &Path) -> impl FnOnce(std::io::Error) -> BackupError + use<> {
    let path = path.to_owned();
    move |source| BackupError::Io { path, source }
}
