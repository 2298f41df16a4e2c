//! Updates the mark and the list of contents while a store is open.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::storage::integrity::contents::Contents;
use crate::storage::integrity::mark::{self, Mark, MarkFile, StoreId};
use crate::storage::integrity::verify::Verified;
use crate::storage::journal;
use crate::storage::layout;
use crate::storage::vault::Database;

#[derive(Debug)]
pub(crate) struct Marks {
    directory: PathBuf,
    file: Mutex<MarkFile>,
    contents: Mutex<Contents>,
}

impl Marks {
    /// Creates the mark and the list of contents of a directory that has neither. Its commits begin after
    /// `base`.
    fn create(directory: &Path, base: u64, store: Option<StoreId>) -> io::Result<Self> {
        let store = match store {
            Some(store) => store,
            None => StoreId::random()?,
        };
        let contents = Contents::new(store);
        contents.write(directory)?;
        let mark = Mark {
            store,
            base,
            commit: base,
            contents: contents.generation,
        };
        // IMPORTANT: write the mark last, because it promises that the list exists.
        let file = MarkFile::create(directory, mark)?;
        Ok(Self {
            directory: directory.to_owned(),
            file: Mutex::new(file),
            contents: Mutex::new(contents),
        })
    }

    /// Like [`Self::create`] for a new directory, whose commit numbers no other store uses. `store` is the id
    /// in its keyring, if it is sealed.
    pub(crate) fn create_new(directory: &Path, store: Option<StoreId>) -> io::Result<Self> {
        Self::create(directory, mark::random_distance()?, store)
    }

    /// Opens the verified files, or creates them for a directory that an older Homeport wrote.
    pub(crate) fn open(
        directory: &Path,
        verified: &Verified,
        store: Option<StoreId>,
    ) -> io::Result<Self> {
        let Some((generation, mark, contents)) = &verified.marked else {
            let first = verified.journals.first();
            let base = first.map_or(0, |first| first.synced_commit);
            return Self::create(directory, base, store);
        };
        let file = MarkFile::open(directory, *generation, *mark)?;
        Ok(Self {
            directory: directory.to_owned(),
            file: Mutex::new(file),
            contents: Mutex::new(contents.clone()),
        })
    }

    /// The data directory.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    pub(crate) fn mark(&self) -> Mark {
        lock(&self.file).mark
    }

    /// Sets the number after which a store without commits begins.
    pub(crate) fn rebase(&self, base: u64) -> io::Result<()> {
        let mut file = lock(&self.file);
        let mark = Mark {
            base,
            commit: base,
            ..file.mark
        };
        file.write(mark)
    }

    /// Records that a commit is on disk.
    ///
    /// IMPORTANT: only after the sync of the journal has returned.
    pub(crate) fn record(&self, commit: u64) -> io::Result<()> {
        let mut file = lock(&self.file);
        let mark = Mark {
            commit,
            ..file.mark
        };
        file.write(mark)
    }

    /// Records that a keyspace is about to be deleted, so that its folder may be missing.
    pub(crate) fn forget_keyspace(&self, number: u64) -> io::Result<()> {
        let mut contents = lock(&self.contents);
        let mut next = contents.clone();
        next.keyspaces.remove(&number);
        next.deleted.insert(number);
        self.replace(&mut contents, next)
    }

    /// Forgets which keyspaces were deleted: while opening, the key-value store has deleted their folders.
    pub(crate) fn forget_deleted(&self) {
        lock(&self.contents).deleted.clear();
    }

    /// Updates the list of contents.
    pub(crate) fn refresh(&self, database: &Database) -> io::Result<()> {
        let mut contents = lock(&self.contents);
        let mut next = contents.clone();
        next.keyspaces = database.keyspace_numbers().map_err(io::Error::other)?;
        next.keyspaces
            .retain(|number, _| !contents.deleted.contains(number));
        let listed = journal::journals_in(&self.directory.join(layout::STORE_DIR))?;
        if let Some(((active, _), sealed)) = listed.split_last() {
            next.active_journal = *active;
            next.sealed_journals
                .retain(|number, _| sealed.iter().any(|(listed, _)| listed == number));
            for (number, path) in sealed {
                if !next.sealed_journals.contains_key(number) {
                    let newest = match journal::newest_values(path) {
                        Ok(newest) => newest,
                        // It was deleted in the meantime.
                        Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                        Err(error) => return Err(error),
                    };
                    let unflushed = database.unflushed(&newest).map_err(io::Error::other)?;
                    next.sealed_journals.insert(*number, unflushed);
                }
            }
        }
        if next == *contents {
            return Ok(());
        }
        self.replace(&mut contents, next)
    }

    /// Syncs the mark.
    pub(crate) fn sync(&self) -> io::Result<()> {
        let unsynced = lock(&self.file).take_unsynced()?;
        match unsynced {
            Some(file) => file.sync_data(),
            None => Ok(()),
        }
    }

    fn replace(&self, contents: &mut Contents, mut next: Contents) -> io::Result<()> {
        next.generation = contents.generation + 1;
        next.write(&self.directory)?;
        let mut file = lock(&self.file);
        let mark = Mark {
            contents: next.generation,
            ..file.mark
        };
        *contents = next;
        file.write(mark)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
