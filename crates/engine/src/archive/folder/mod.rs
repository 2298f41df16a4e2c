//! Directories that are opened one component at a time, without following symbolic links.
//!
//! A path that is checked first and used later can be replaced in between. An open directory cannot: whatever
//! is created or read through it stays inside it.

#[cfg(not(unix))]
mod other;
#[cfg(unix)]
mod unix;

use std::io;

#[cfg(not(unix))]
pub use other::Folder;
#[cfg(unix)]
pub use unix::Folder;

/// The kind of a directory entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EntryKind {
    Folder,
    File,
    /// A symbolic link, a pipe or anything else.
    Other,
}

impl Folder {
    /// The directory and the name of a file at a path below this directory, whose components are separated by `/`.
    fn locate<'p>(&self, path: &'p str) -> io::Result<(Self, &'p str)> {
        let mut folder = self.clone();
        let mut name = path;
        while let Some((part, rest)) = name.split_once('/') {
            folder = folder.folder(part)?;
            name = rest;
        }
        check_name(name)?;
        Ok((folder, name))
    }
}

/// Checks that a name is a single path component.
fn check_name(name: &str) -> io::Result<()> {
    let is_component = !matches!(name, "" | "." | "..")
        && !name.contains(|letter| std::path::is_separator(letter) || letter == '\0');
    match is_component {
        true => Ok(()),
        false => Err(io::Error::from(io::ErrorKind::InvalidInput)),
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::io::Write as _;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn symbolic_links_are_never_followed() {
        let directory = tempfile::tempdir().expect("a directory");
        let outside = tempfile::tempdir().expect("a directory");
        std::fs::write(outside.path().join("file"), b"x").expect("a file");
        symlink(outside.path(), directory.path().join("link")).expect("a link");
        symlink(outside.path().join("file"), directory.path().join("file")).expect("a link");
        symlink(outside.path().join("new"), directory.path().join("new")).expect("a link");
        let folder = Folder::open(directory.path()).expect("a folder");
        assert!(folder.folder("link").is_err());
        assert!(folder.make_folder("link").is_err());
        assert!(folder.open_file("link/file").is_err());
        assert!(folder.open_file("file").is_err());
        assert!(folder.create_file("new").is_err());
        for name in ["", ".", "..", "a/b", "../x"] {
            assert!(folder.make_folder(name).is_err(), "{name}");
            assert!(folder.create_file(name).is_err(), "{name}");
        }
        let left: Vec<_> = std::fs::read_dir(outside.path()).expect("read").collect();
        assert_eq!(left.len(), 1);
        let mut entries = folder.entries().expect("entries");
        entries.sort();
        let names: Vec<&str> = entries.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["file", "link", "new"]);
        assert!(entries.iter().all(|(_, kind)| *kind == EntryKind::Other));
    }

    #[test]
    fn replaced_folder_does_not_redirect_writes() {
        let directory = tempfile::tempdir().expect("a directory");
        let outside = tempfile::tempdir().expect("a directory");
        let folder = Folder::open(directory.path()).expect("a folder");
        let inner = folder.make_folder("inner").expect("a folder");
        let path = directory.path().join("inner");
        std::fs::rename(&path, directory.path().join("moved")).expect("moved");
        symlink(outside.path(), &path).expect("a link");
        let mut file = inner.create_file("file").expect("a file");
        file.write_all(b"x").expect("written");
        inner.sync().expect("synced");
        assert_eq!(std::fs::read_dir(outside.path()).expect("read").count(), 0);
        assert!(directory.path().join("moved/file").is_file());
        assert!(inner.open_file("file").is_ok());
    }
}
