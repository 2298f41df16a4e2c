//! Permissions of the data directory: only its owner may read it. Folders have mode 0700 and files 0600.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

use crate::archive::table_backups;
use crate::storage::integrity::set_aside::SET_ASIDE_FOLDER;
use crate::storage::layout::STORE_DIR;

/// Folders of a data directory whose entire contents belong to the engine.
const OWN_FOLDERS: [&str; 3] = [STORE_DIR, table_backups::FOLDER, SET_ASIDE_FOLDER];

/// Why a directory with the sticky bit is refused.
pub(crate) const SHARED_REASON: &str =
    "it is shared with other users (it has the sticky bit); choose a directory inside it";

/// Creates or truncates a file that only its owner may read.
///
/// # Errors
/// Fails if the file cannot be created or its permissions cannot be changed.
pub fn create_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    make_private(&mut options);
    let file = options.open(path)?;
    tighten(path)?;
    Ok(file)
}

/// Replaces a file atomically and durably by one that only its owner may read. Until then, the contents have
/// the name `unfinished` in the same folder. Returns the new file.
pub(crate) fn replace_file(path: &Path, unfinished: &str, contents: &[u8]) -> io::Result<File> {
    let unfinished = path.with_file_name(unfinished);
    let mut file = create_file(&unfinished)?;
    file.write_all(contents)?;
    file.sync_all()?;
    std::fs::rename(&unfinished, path)?;
    File::open(path.parent().unwrap_or(Path::new(".")))?.sync_all()?;
    Ok(file)
}

/// Creates a folder and its missing parents. Only the folder itself is made private.
pub(crate) fn create_folder(path: &Path) -> io::Result<()> {
    std::fs::create_dir_all(path)?;
    tighten(path).map(|_| ())
}

/// Whether other users keep files in a folder, like in `/tmp`: it has the sticky bit.
#[cfg(unix)]
pub(crate) fn is_shared(folder: &Path) -> io::Result<bool> {
    use std::os::unix::fs::PermissionsExt as _;
    const STICKY: u32 = 0o1000;
    Ok(std::fs::metadata(folder)?.permissions().mode() & STICKY != 0)
}

#[cfg(not(unix))]
pub(crate) fn is_shared(_: &Path) -> io::Result<bool> {
    Ok(false)
}

/// Makes all files and folders that this process creates from now on readable by their owner only, including
/// those created by other crates.
pub fn keep_new_files_private() {
    #[cfg(unix)]
    rustix::process::umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
}

/// Removes other users' permissions from a data directory, the files in it, and everything in the engine's
/// own folders. Returns how many entries had such permissions, and logs a warning if there were any. Other
/// folders, for example the operator's buckets or `lost+found`, keep their permissions, because other users
/// cannot reach them through the directory. Symbolic links are not followed.
///
/// # Errors
/// Fails if other users keep files in the directory, it cannot be read, or its permissions cannot be changed.
pub fn tighten_directory(directory: &Path) -> io::Result<u64> {
    if is_shared(directory)? {
        return Err(io::Error::other(SHARED_REASON));
    }
    let tightened = tighten_entries(directory)?;
    if tightened > 0 {
        tracing::warn!(
            path = %directory.display(),
            entries = tightened,
            "other users could read the data directory; its folders now have mode 0700 and its files 0600"
        );
    }
    Ok(tightened)
}

fn tighten_entries(directory: &Path) -> io::Result<u64> {
    let mut count = u64::from(tighten(directory)?);
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_file() {
            count += u64::from(tighten(&entry.path())?);
        } else if kind.is_dir() && OWN_FOLDERS.iter().any(|name| entry.file_name() == *name) {
            count += tighten_all(&entry.path())?;
        }
    }
    Ok(count)
}

/// The same for a folder and everything in it.
fn tighten_all(folder: &Path) -> io::Result<u64> {
    let mut count = u64::from(tighten(folder)?);
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            count += tighten_all(&entry.path())?;
        } else if kind.is_file() {
            count += u64::from(tighten(&entry.path())?);
        }
    }
    Ok(count)
}

/// Makes a new file readable by its owner only.
#[cfg(unix)]
pub(crate) fn make_private(options: &mut OpenOptions) {
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
}

#[cfg(not(unix))]
pub(crate) fn make_private(_: &mut OpenOptions) {}

/// Removes the permissions of group and others, and returns whether there were any. The owner's permissions
/// stay.
#[cfg(unix)]
fn tighten(path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::PermissionsExt as _;
    const OTHERS: u32 = 0o077;
    let found = match std::fs::metadata(path) {
        Ok(found) => found.permissions().mode() & 0o7777,
        // Another command may have deleted a file of its own.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    if found & OTHERS == 0 {
        return Ok(false);
    }
    match std::fs::set_permissions(path, std::fs::Permissions::from_mode(found & !OTHERS)) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            tracing::warn!(
                path = %path.display(),
                "cannot remove the permissions of other users: the file belongs to another user"
            );
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

#[cfg(not(unix))]
fn tighten(_: &Path) -> io::Result<bool> {
    Ok(false)
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::engine::Engine;
    use crate::options::Options;

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    fn assert_private(path: &Path) {
        let is_folder = path.is_dir();
        let expected = if is_folder { 0o700 } else { 0o600 };
        assert_eq!(mode(path), expected, "{}", path.display());
        if is_folder {
            for entry in std::fs::read_dir(path).unwrap() {
                assert_private(&entry.unwrap().path());
            }
        }
    }

    #[test]
    fn open_directories_are_tightened_at_start() {
        let parent = tempfile::tempdir().unwrap();
        let directory = parent.path().join("data");
        drop(Engine::open(&directory, Options::default()).unwrap());
        for path in [directory.clone(), directory.join("store")] {
            let open = std::fs::Permissions::from_mode(0o755);
            std::fs::set_permissions(path, open).unwrap();
        }
        let open = std::fs::Permissions::from_mode(0o644);
        std::fs::set_permissions(directory.join("FORMAT"), open).unwrap();
        assert!(tighten_directory(&directory).unwrap() >= 3);
        assert_private(&directory);
        assert_eq!(tighten_directory(&directory).unwrap(), 0);
    }

    #[test]
    fn foreign_files_keep_their_owners_permissions() {
        let parent = tempfile::tempdir().unwrap();
        let directory = parent.path();
        let set_mode = |path: &Path, mode| {
            let mode = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(path, mode).unwrap();
        };
        let (program, folder) = (directory.join("program"), directory.join("buckets"));
        std::fs::write(&program, "#!").unwrap();
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("export"), "").unwrap();
        set_mode(&program, 0o755);
        set_mode(&folder, 0o755);
        set_mode(&folder.join("export"), 0o644);
        drop(Engine::open(directory, Options::default()).unwrap());
        assert_eq!(mode(directory), 0o700);
        assert_eq!(mode(&program), 0o700);
        assert_eq!(mode(&folder), 0o755);
        assert_eq!(mode(&folder.join("export")), 0o644);
    }

    #[test]
    fn refused_directory_keeps_its_permissions() {
        let parent = tempfile::tempdir().unwrap();
        let directory = parent.path().join("data");
        std::fs::create_dir(&directory).unwrap();
        std::fs::write(directory.join("FORMAT"), "mysql\n").unwrap();
        for (path, mode) in [
            (directory.clone(), 0o755),
            (directory.join("FORMAT"), 0o644),
        ] {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        }
        Engine::open(&directory, Options::default()).unwrap_err();
        assert_eq!(mode(&directory), 0o755);
        assert_eq!(mode(&directory.join("FORMAT")), 0o644);
    }

    #[test]
    fn shared_directory_is_refused_unchanged() {
        let parent = tempfile::tempdir().unwrap();
        let shared = std::fs::Permissions::from_mode(0o1777);
        std::fs::set_permissions(parent.path(), shared).unwrap();
        let error = Engine::open(parent.path(), Options::default()).unwrap_err();
        assert!(error.to_string().contains("sticky bit"), "{error}");
        assert_eq!(mode(parent.path()), 0o777);
        assert_eq!(std::fs::read_dir(parent.path()).unwrap().count(), 0);
    }

    #[tokio::test]
    async fn new_directories_and_backups_are_private() {
        let parent = tempfile::tempdir().unwrap();
        let directory = parent.path().join("data");
        let engine = Engine::open(&directory, Options::default()).unwrap();
        let backup = parent.path().join("backup");
        engine.backup(&backup).await.unwrap();
        for path in [
            &directory,
            &directory.join("MARK"),
            &directory.join("CONTENTS"),
        ] {
            assert_eq!(mode(path) & 0o077, 0, "{}", path.display());
        }
        assert_private(&backup);
    }
}
