//! Directories as paths, for systems without directory descriptors. Symbolic links are refused when they are
//! met; one that replaces a folder afterwards is not noticed.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use super::{EntryKind, check_name};

/// A directory. Clones share it.
#[derive(Debug, Clone)]
pub struct Folder(PathBuf);

impl Folder {
    /// Opens the directory at a path that the operator has set; links in that path are followed.
    ///
    /// # Errors
    /// Fails if there is no readable directory.
    pub fn open(path: &Path) -> io::Result<Self> {
        std::fs::read_dir(path)?;
        Ok(Self(path.to_owned()))
    }

    /// Opens a directory in this one.
    ///
    /// # Errors
    /// Fails if there is no directory with this name, for example because it is a symbolic link.
    pub fn folder(&self, name: &str) -> io::Result<Self> {
        check_name(name)?;
        let path = self.0.join(name);
        match std::fs::symlink_metadata(&path)?.is_dir() {
            true => Ok(Self(path)),
            false => Err(io::Error::from(io::ErrorKind::NotADirectory)),
        }
    }

    /// Opens a directory in this one, and creates it if it is missing.
    pub(crate) fn make_folder(&self, name: &str) -> io::Result<Self> {
        check_name(name)?;
        match std::fs::create_dir(self.0.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            _ => self.folder(name),
        }
    }

    /// Creates a file that must not exist yet.
    pub(crate) fn create_file(&self, name: &str) -> io::Result<File> {
        check_name(name)?;
        File::create_new(self.0.join(name))
    }

    /// Opens the regular file at a path below this directory, whose components are separated by `/`.
    pub(crate) fn open_file(&self, path: &str) -> io::Result<File> {
        let (folder, name) = self.locate(path)?;
        let path = folder.0.join(name);
        match std::fs::symlink_metadata(&path)?.is_file() {
            true => File::open(path),
            false => Err(io::Error::from(io::ErrorKind::InvalidInput)),
        }
    }

    /// The names in this directory with their kinds. Names that are not UTF-8 are skipped.
    ///
    /// # Errors
    /// Fails if the directory cannot be read.
    pub fn entries(&self) -> io::Result<Vec<(String, EntryKind)>> {
        let mut entries = Vec::new();
        for entry in std::fs::read_dir(&self.0)? {
            let entry = entry?;
            let found = entry.file_type()?;
            let kind = match (found.is_dir(), found.is_file()) {
                (true, _) => EntryKind::Folder,
                (_, true) => EntryKind::File,
                _ => EntryKind::Other,
            };
            if let Ok(name) = entry.file_name().into_string() {
                entries.push((name, kind));
            }
        }
        Ok(entries)
    }

    /// Directory entries cannot be synced on these systems.
    pub(crate) fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}
