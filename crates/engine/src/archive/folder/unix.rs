//! Directories as descriptors: every component is opened relative to the previous one.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::{EntryKind, check_name};

const OPEN_FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::CLOEXEC);
/// Opening a named pipe must not block.
const OPEN_FILE: OFlags = OFlags::RDONLY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK)
    .union(OFlags::CLOEXEC);
const CREATE_FILE: OFlags = OFlags::WRONLY
    .union(OFlags::CREATE)
    .union(OFlags::EXCL)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);
const FOLDER_MODE: Mode = Mode::RWXU;
const FILE_MODE: Mode = Mode::RUSR.union(Mode::WUSR);

/// An open directory. Clones share it.
#[derive(Debug, Clone)]
pub struct Folder(Arc<OwnedFd>);

impl Folder {
    /// Opens the directory at a path that the operator has set; links in that path are followed.
    ///
    /// # Errors
    /// Fails if there is no readable directory.
    pub fn open(path: &Path) -> io::Result<Self> {
        let opened = rustix::fs::open(path, OPEN_FOLDER, Mode::empty())?;
        Ok(Self(Arc::new(opened)))
    }

    /// Opens a directory in this one.
    ///
    /// # Errors
    /// Fails if there is no directory with this name, for example because it is a symbolic link.
    pub fn folder(&self, name: &str) -> io::Result<Self> {
        check_name(name)?;
        let flags = OPEN_FOLDER.union(OFlags::NOFOLLOW);
        let opened = rustix::fs::openat(&self.0, name, flags, Mode::empty())?;
        Ok(Self(Arc::new(opened)))
    }

    /// Opens a directory in this one, and creates it if it is missing.
    pub(crate) fn make_folder(&self, name: &str) -> io::Result<Self> {
        check_name(name)?;
        match rustix::fs::mkdirat(&self.0, name, FOLDER_MODE) {
            Ok(()) | Err(Errno::EXIST) => self.folder(name),
            Err(error) => Err(error.into()),
        }
    }

    /// Creates a file that must not exist yet.
    pub(crate) fn create_file(&self, name: &str) -> io::Result<File> {
        check_name(name)?;
        let created = rustix::fs::openat(&self.0, name, CREATE_FILE, FILE_MODE)?;
        Ok(File::from(created))
    }

    /// Opens the regular file at a path below this directory, whose components are separated by `/`.
    pub(crate) fn open_file(&self, path: &str) -> io::Result<File> {
        let (folder, name) = self.locate(path)?;
        let opened = rustix::fs::openat(&folder.0, name, OPEN_FILE, Mode::empty())?;
        let file = File::from(opened);
        match file.metadata()?.is_file() {
            true => Ok(file),
            false => Err(io::Error::from(io::ErrorKind::InvalidInput)),
        }
    }

    /// The names in this directory with their kinds. Names that are not UTF-8 are skipped.
    ///
    /// # Errors
    /// Fails if the directory cannot be read.
    pub fn entries(&self) -> io::Result<Vec<(String, EntryKind)>> {
        let mut entries = Vec::new();
        for entry in Dir::read_from(&self.0)? {
            let entry = entry?;
            let Ok(name) = entry.file_name().to_str() else {
                continue;
            };
            if matches!(name, "." | "..") {
                continue;
            }
            // Not every file system reports the kind of an entry.
            let kind = match entry.file_type() {
                FileType::Unknown => {
                    let found = rustix::fs::statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW)?;
                    FileType::from_raw_mode(found.st_mode)
                }
                kind => kind,
            };
            let kind = match kind {
                FileType::Directory => EntryKind::Folder,
                FileType::RegularFile => EntryKind::File,
                _ => EntryKind::Other,
            };
            entries.push((name.to_owned(), kind));
        }
        Ok(entries)
    }

    pub(crate) fn sync(&self) -> io::Result<()> {
        Ok(rustix::fs::fsync(&self.0)?)
    }
}
