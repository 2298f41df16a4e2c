//! A view of a data directory: its store can be read as if it were open, without changing a single byte.
//!
//! Opening the key-value store writes files, so it is opened in a scratch folder of the system's temporary
//! directory (`TMPDIR`). There, table files are symbolic links into the data directory, and journals and
//! lists are copies. Nothing is flushed or compacted.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::catalogue::Catalogue;
use crate::catalogue::keyspaces::Keyspaces;
use crate::error::OpenError;
use crate::options::Options;
use crate::storage::integrity::mark;
use crate::storage::integrity::verify::{self, Verified};
use crate::storage::layout;
use crate::storage::permissions;
use crate::storage::seal::sealer::Sealer;
use crate::storage::vault::files::{self, KEYSPACES_FOLDER, TABLES_FOLDER};
use crate::storage::vault::{self, Database};

const VERSION_FILE: &str = "version";

pub(crate) struct View {
    pub(crate) catalogue: Catalogue,
    pub(crate) keyspaces: Keyspaces,
    pub(crate) database: Database,
    // Last, so that it is deleted when nothing is open in it any more.
    _scratch: Scratch,
}

/// Opens a view of the directory, which must be complete. `sealer` decrypts its values.
pub(crate) fn open(
    directory: &Path,
    verified: &Verified,
    options: &Options,
    sealer: Option<Arc<Sealer>>,
) -> Result<View, OpenError> {
    let temporary = |source: io::Error| OpenError::TemporaryDirectory {
        path: std::env::temp_dir(),
        source,
    };
    let scratch = Scratch::new().map_err(temporary)?;
    let store = scratch.0.join(layout::STORE_DIR);
    if !verified.is_unfinished {
        mirror(&directory.join(layout::STORE_DIR), &store, verified).map_err(temporary)?;
    }
    let storage = |error: vault::Error| OpenError::Storage(error.to_string());
    let database = Database::open_idle(&store, options, sealer).map_err(storage)?;
    let keyspaces = Keyspaces::open(&database).map_err(storage)?;
    if let (Some((_, mark, _)), Some(last)) = (&verified.marked, keyspaces.last_commit()?) {
        verify::reaches_mark(directory, last.commit, *mark)?;
    }
    let catalogue = Catalogue::load(&database, &keyspaces)?;
    Ok(View {
        catalogue,
        keyspaces,
        database,
        _scratch: scratch,
    })
}

fn mirror(store: &Path, to: &Path, verified: &Verified) -> io::Result<()> {
    permissions::create_folder(to)?;
    copy_if_there(&store.join(VERSION_FILE), &to.join(VERSION_FILE))?;
    // IMPORTANT: copies, not links. The key-value store cuts off everything after the last batch of each
    // journal.
    for journal in &verified.journals.files {
        let target = to.join(format!("{}.jnl", journal.number));
        copy_beginning(&journal.path, &target, journal.whole_len)?;
    }
    let keyspaces = to.join(KEYSPACES_FOLDER);
    permissions::create_folder(&keyspaces)?;
    let folders: BTreeMap<u64, PathBuf> = files::keyspace_folders(store)?;
    for (number, folder) in folders {
        // Other folders belong to keyspaces whose creation or deletion was interrupted.
        if !files::is_complete(&folder) {
            continue;
        }
        let target = keyspaces.join(number.to_string());
        permissions::create_folder(&target.join(TABLES_FOLDER))?;
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            if entry.file_type()?.is_file() {
                copy_if_there(&entry.path(), &target.join(entry.file_name()))?;
            }
        }
        let tables = match fs::read_dir(folder.join(TABLES_FOLDER)) {
            Ok(tables) => tables,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        for table in tables {
            let table = table?;
            let name = table.file_name();
            link(&table.path(), &target.join(TABLES_FOLDER).join(name))?;
        }
    }
    Ok(())
}

fn copy_if_there(from: &Path, to: &Path) -> io::Result<()> {
    match fs::copy(from, to) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        copied => copied.map(|_| ()),
    }
}

fn copy_beginning(from: &Path, to: &Path, len: u64) -> io::Result<()> {
    let mut target = permissions::create_file(to)?;
    io::copy(&mut File::open(from)?.take(len), &mut target).map(|_| ())
}

#[cfg(unix)]
fn link(from: &Path, to: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(fs::canonicalize(from)?, to)
}

#[cfg(not(unix))]
fn link(from: &Path, to: &Path) -> io::Result<()> {
    fs::copy(from, to).map(|_| ())
}

/// A folder that is deleted with everything in it; links are deleted, but not their targets.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> io::Result<Self> {
        let name = format!("homeport-view-{:012x}", mark::random_distance()?);
        let path = std::env::temp_dir().join(name);
        permissions::create_folder(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            tracing::warn!(folder = %self.0.display(), %error, "cannot remove a temporary folder");
        }
    }
}
