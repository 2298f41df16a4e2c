//! The data directory around the key-value store: its lock, its format, and whether it is sealed.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::path::Path;
use std::sync::Arc;

use crate::error::OpenError;
use crate::options::Options;
use crate::storage::integrity::mark::{self, StoreId};
use crate::storage::integrity::marks::Marks;
use crate::storage::layout::{
    FORMAT_FILE, FORMAT_VERSION, FORMAT_VERSION_BEFORE_MARK, FORMAT_VERSION_BEFORE_PAGES,
    SEALED_FORMAT_VERSION, SEALED_FORMAT_VERSION_BEFORE_MARK, SEALED_FORMAT_VERSION_BEFORE_PAGES,
    STORE_DIR,
};
use crate::storage::permissions;
use crate::storage::seal::error::SealError;
use crate::storage::seal::keyring::{KEYRING_FILE, Keyring};
use crate::storage::seal::master::MasterKey;
use crate::storage::seal::sealer::Sealer;

const LOCK_FILE: &str = "LOCK";
const FORMAT_PREFIX: &str = "homeport ";
/// The file that the key-value store writes last during creation, and its length.
const STORE_VERSION_FILE: &str = "version";
const STORE_VERSION_LEN: u64 = 4;

/// A data directory that is locked and may be opened.
#[derive(Debug)]
pub(crate) struct LockedDirectory {
    /// Held for as long as the directory is open.
    pub(crate) lock: File,
    /// The keyring of a sealed directory, with the master key.
    keyring: Option<(Keyring, MasterKey)>,
    /// Whether it was written in an older format, which had no mark.
    pub(crate) is_outdated: bool,
}

impl LockedDirectory {
    /// The sealer of the directory's values, if it is sealed.
    pub(crate) fn sealer(&self, path: &Path, options: &Options) -> Option<Arc<Sealer>> {
        let (keyring, master) = self.keyring.clone()?;
        tracing::info!(
            master_key = %keyring.fingerprint,
            data_keys = keyring.keys.len(),
            "the data directory is sealed"
        );
        let clock = Arc::clone(&options.clock);
        Some(Arc::new(Sealer::new(path, keyring, master, clock)))
    }

    /// The id in the keyring of a sealed directory.
    pub(crate) fn store_id(&self) -> Option<StoreId> {
        let (keyring, _) = self.keyring.as_ref()?;
        Some(StoreId(keyring.store))
    }

    /// Raises the directory to the newest format.
    pub(crate) fn raise_format(&self, path: &Path) -> Result<(), OpenError> {
        if self.is_outdated {
            tracing::info!(
                "the data directory is now in a new format; older versions of Homeport refuse it"
            );
            write_format(path, self.keyring.is_some())?;
        }
        Ok(())
    }
}

/// The format of a data directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Format {
    pub(crate) is_sealed: bool,
    /// Whether directories are still written in this format.
    pub(crate) is_current: bool,
}

/// Creates the directory if it is missing, takes its lock, and checks its format and its key.
pub(crate) fn prepare(
    path: &Path,
    master: Option<&MasterKey>,
) -> Result<LockedDirectory, OpenError> {
    if !path.exists() {
        permissions::create_folder(path)?;
    }
    if permissions::is_shared(path)? {
        return Err(OpenError::NotADataDirectory {
            path: path.to_owned(),
            reason: permissions::SHARED_REASON.to_owned(),
        });
    }
    let lock = lock(path)?;
    let format = read_format(path)?;
    let keyring = match format {
        None => make(path, master)?,
        Some(format) => keyring_of(path, format, master)?,
    };
    // Only now: until here, the directory could belong to another program.
    permissions::tighten_directory(path)?;
    Ok(LockedDirectory {
        lock,
        keyring: keyring.zip(master.cloned()),
        is_outdated: format.is_some_and(|format| !format.is_current),
    })
}

/// Takes the lock of an existing directory.
pub(crate) fn lock(path: &Path) -> Result<File, OpenError> {
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).write(true);
    permissions::make_private(&mut options);
    let lock = options.open(path.join(LOCK_FILE))?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(TryLockError::WouldBlock) => Err(OpenError::Locked(path.to_owned())),
        Err(TryLockError::Error(error)) => Err(error.into()),
    }
}

/// Takes the lock of a directory that is only read, without creating a lock file.
pub(crate) fn lock_existing(path: &Path) -> Result<Option<File>, OpenError> {
    let lock = match File::open(path.join(LOCK_FILE)) {
        Ok(lock) => lock,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    match lock.try_lock() {
        Ok(()) => Ok(Some(lock)),
        Err(TryLockError::WouldBlock) => Err(OpenError::Locked(path.to_owned())),
        Err(TryLockError::Error(error)) => Err(error.into()),
    }
}

/// A directory that is only read.
pub(crate) struct Inspected {
    pub(crate) format: Format,
    /// The id in the keyring of a sealed directory.
    pub(crate) store: Option<StoreId>,
    /// The sealer of its values, if it is sealed.
    pub(crate) sealer: Option<Arc<Sealer>>,
}

/// Checks the format and the key of a directory, without changing it.
pub(crate) fn inspect(path: &Path, options: &Options) -> Result<Inspected, OpenError> {
    let format = read_format(path)?.ok_or_else(|| foreign(path, "the file FORMAT is missing"))?;
    let keyring = keyring_of(path, format, options.master_key.as_ref())?;
    let store = keyring.as_ref().map(|keyring| StoreId(keyring.store));
    let sealer = keyring.zip(options.master_key.clone());
    let sealer = sealer.map(|(keyring, master)| {
        Arc::new(Sealer::new(
            path,
            keyring,
            master,
            Arc::clone(&options.clock),
        ))
    });
    Ok(Inspected {
        format,
        store,
        sealer,
    })
}

/// The keyring of a directory in this format, if it is sealed.
fn keyring_of(
    path: &Path,
    format: Format,
    master: Option<&MasterKey>,
) -> Result<Option<Keyring>, OpenError> {
    if format.is_sealed {
        return Ok(Some(unlock(path, master)?));
    }
    if path.join(KEYRING_FILE).exists() {
        return Err(foreign(
            path,
            "it has a keyring, but its FORMAT file says that it is not sealed",
        ));
    }
    if master.is_some() {
        return Err(SealError::NotSealed(path.to_owned()).into());
    }
    Ok(None)
}

/// The format of a directory, if it is a Homeport data directory.
pub(crate) fn read_format(path: &Path) -> Result<Option<Format>, OpenError> {
    let text = match fs::read_to_string(path.join(FORMAT_FILE)) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let found = text
        .trim_end()
        .strip_prefix(FORMAT_PREFIX)
        .and_then(|version| version.parse::<u32>().ok());
    let (is_sealed, is_current) = match found {
        Some(FORMAT_VERSION) => (false, true),
        Some(SEALED_FORMAT_VERSION) => (true, true),
        Some(FORMAT_VERSION_BEFORE_MARK | FORMAT_VERSION_BEFORE_PAGES) => (false, false),
        Some(SEALED_FORMAT_VERSION_BEFORE_MARK | SEALED_FORMAT_VERSION_BEFORE_PAGES) => {
            (true, false)
        }
        Some(found) if found > SEALED_FORMAT_VERSION => {
            return Err(OpenError::NewerFormat {
                path: path.to_owned(),
                found,
                known: SEALED_FORMAT_VERSION,
            });
        }
        _ => {
            return Err(foreign(
                path,
                "its FORMAT file is damaged or not Homeport's; if the rest of the directory is Homeport's, copy everything readable to a new data directory with \"homeport salvage\"",
            ));
        }
    };
    Ok(Some(Format {
        is_sealed,
        is_current,
    }))
}

/// Turns an empty directory into a data directory; sealed if a key is given.
fn make(path: &Path, master: Option<&MasterKey>) -> Result<Option<Keyring>, OpenError> {
    if path.join(STORE_DIR).exists() {
        return Err(foreign(
            path,
            "it has a store, but the file FORMAT is missing; put it back, copy everything readable to a new data directory with \"homeport salvage\", or restore a backup",
        ));
    }
    if mark::read(path)?.is_some_and(|(_, mark)| mark.commit > mark.base) {
        return Err(foreign(
            path,
            "its file MARK says that data was stored, but the folder store and the file FORMAT are missing; put them back, or restore a backup",
        ));
    }
    let Some(master) = master else {
        // A keyring alone is left over from an interrupted creation of a sealed directory.
        if let Some(keyring) = Keyring::read_unverified(path)? {
            return Err(key_missing(path, &keyring).into());
        }
        // IMPORTANT: write the mark first, because the format promises that there is one.
        Marks::create_new(path, None)?;
        write_format(path, false)?;
        return Ok(None);
    };
    let keyring = match Keyring::open(path, master)? {
        Some(keyring) => keyring,
        None => {
            let keyring = Keyring::new(master)?;
            // IMPORTANT: write the keyring first, so that a directory whose format says sealed can be opened.
            keyring.write(path, master)?;
            keyring
        }
    };
    Marks::create_new(path, Some(StoreId(keyring.store)))?;
    write_format(path, true)?;
    Ok(Some(keyring))
}

/// The keyring of a sealed directory.
pub(crate) fn unlock(path: &Path, master: Option<&MasterKey>) -> Result<Keyring, SealError> {
    let keyring = match master {
        Some(master) => Keyring::open(path, master)?,
        None => match Keyring::read_unverified(path)? {
            Some(keyring) => return Err(key_missing(path, &keyring)),
            None => None,
        },
    };
    keyring.ok_or_else(|| SealError::KeyringMissing(path.to_owned()))
}

fn key_missing(path: &Path, keyring: &Keyring) -> SealError {
    SealError::KeyMissing {
        path: path.to_owned(),
        wanted: keyring.fingerprint,
    }
}

fn foreign(path: &Path, reason: &str) -> OpenError {
    OpenError::NotADataDirectory {
        path: path.to_owned(),
        reason: reason.to_owned(),
    }
}

/// Writes the format file atomically.
fn write_format(path: &Path, is_sealed: bool) -> Result<(), OpenError> {
    let version = if is_sealed {
        SEALED_FORMAT_VERSION
    } else {
        FORMAT_VERSION
    };
    let line = format!("{FORMAT_PREFIX}{version}\n");
    permissions::replace_file(&path.join(FORMAT_FILE), "FORMAT.new", line.as_bytes())?;
    Ok(())
}

/// Deletes a store whose creation was interrupted, so that it can be created again.
///
/// During creation the key-value store writes its version last, and cannot open a store without it. Nothing
/// can have been stored by then. This checks it anyway, and never deletes a store that is not provably empty.
pub(crate) fn remove_unfinished_store(path: &Path) -> Result<(), OpenError> {
    let store = path.join(STORE_DIR);
    if !store.exists() || is_store_finished(&store)? {
        return Ok(());
    }
    if !is_empty(&store)? {
        return Err(foreign(path, "its store has data but no version"));
    }
    fs::remove_dir_all(&store)?;
    Ok(())
}

/// Whether the creation of a store was completed.
pub(crate) fn is_store_finished(store: &Path) -> Result<bool, OpenError> {
    match fs::metadata(store.join(STORE_VERSION_FILE)) {
        Ok(file) => Ok(file.len() >= STORE_VERSION_LEN),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Whether a store contains only what its creation leaves: no keyspace, and journals of zero bytes only.
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
    fn second_process_learns_the_directory_is_locked() {
        let directory = tempfile::tempdir().unwrap();
        let lock = prepare(directory.path(), None).unwrap();
        assert!(matches!(
            prepare(directory.path(), None),
            Err(OpenError::Locked(_))
        ));
        drop(lock);
        prepare(directory.path(), None).unwrap();
    }

    #[test]
    fn lost_store_and_format_are_not_replaced() {
        let directory = tempfile::tempdir().unwrap();
        drop(crate::Engine::open(directory.path(), Options::default()).unwrap());
        fs::remove_file(directory.path().join(FORMAT_FILE)).unwrap();
        fs::remove_dir_all(directory.path().join(STORE_DIR)).unwrap();
        let error = prepare(directory.path(), None).unwrap_err();
        assert!(error.to_string().contains("put them back"), "{error}");
        assert!(!directory.path().join(STORE_DIR).exists());
    }

    #[test]
    fn newer_format_is_refused_unchanged() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join(FORMAT_FILE), "homeport 99\n").unwrap();
        let error = prepare(directory.path(), None).unwrap_err();
        assert!(matches!(error, OpenError::NewerFormat { found: 99, .. }));
        assert!(error.to_string().contains("newer Homeport"));
    }

    #[test]
    fn older_format_is_raised() {
        let directory = tempfile::tempdir().unwrap();
        let format = directory.path().join(FORMAT_FILE);
        for older in ["homeport 1\n", "homeport 3\n"] {
            fs::write(&format, older).unwrap();
            let opened = prepare(directory.path(), None).unwrap();
            assert_eq!(fs::read_to_string(&format).unwrap(), older);
            opened.raise_format(directory.path()).unwrap();
            assert_eq!(fs::read_to_string(&format).unwrap(), "homeport 5\n");
        }
    }

    #[test]
    fn older_format_stays_without_the_key() {
        let directory = tempfile::tempdir().unwrap();
        let master = MasterKey::parse(&format!("{}0", "d".repeat(63))).unwrap();
        drop(prepare(directory.path(), Some(&master)).unwrap());
        let format = directory.path().join(FORMAT_FILE);
        assert_eq!(fs::read_to_string(&format).unwrap(), "homeport 6\n");
        fs::write(&format, "homeport 2\n").unwrap();
        prepare(directory.path(), None).unwrap_err();
        assert_eq!(fs::read_to_string(&format).unwrap(), "homeport 2\n");
        let opened = prepare(directory.path(), Some(&master)).unwrap();
        opened.raise_format(directory.path()).unwrap();
        assert_eq!(fs::read_to_string(&format).unwrap(), "homeport 6\n");
    }

    #[test]
    fn directory_of_another_program_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join(FORMAT_FILE), "mysql\n").unwrap();
        assert!(matches!(
            prepare(directory.path(), None),
            Err(OpenError::NotADataDirectory { .. })
        ));
    }

    #[test]
    fn only_interrupted_creations_are_deleted() {
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
