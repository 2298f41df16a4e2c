//! The steps of every opening of the store: the first one, and each reopening after a failed write.

use std::path::Path;

use crate::catalogue::keyspaces::{self, Keyspaces};
use crate::commit::writer::CommitRecord;
use crate::error::OpenError;
use crate::storage::integrity::marks::Marks;
use crate::storage::integrity::verify::{self, Verified};
use crate::storage::integrity::{mark, set_aside};
use crate::storage::layout;
use crate::storage::vault::{self, Database};

/// A store that was checked and opened.
pub(crate) struct OpenedStore {
    pub(crate) database: Database,
    pub(crate) keyspaces: Keyspaces,
    /// The first group of this opening.
    pub(crate) last: CommitRecord,
    /// Why that group could not be written: the disk is full. The store can still be read.
    pub(crate) unwritten: Option<String>,
}

impl OpenedStore {
    /// The newest group that is on disk, which a reopening must find again.
    pub(crate) fn commit_on_disk(&self) -> u64 {
        match self.unwritten {
            None => self.last.commit,
            Some(_) => self.last.synced_commit,
        }
    }
}

/// Opens a verified store. `open` opens the key-value store itself in the given folder.
pub(crate) fn open(
    marks: &Marks,
    verified: &Verified,
    open: impl FnOnce(&Path) -> Result<Database, OpenError>,
) -> Result<OpenedStore, OpenError> {
    let storage = |error: vault::Error| OpenError::Storage(error.to_string());
    let directory = marks.directory();
    verified.journals.cut_unfinished()?;
    set_aside_unnamed(directory, verified)?;
    let database = open(&directory.join(layout::STORE_DIR))?;
    marks.forget_deleted();
    keyspaces::skip_used_seqnos(&database, verified.journals.last_sequence)?;
    let keyspaces = Keyspaces::open(&database).map_err(storage)?;
    let last = keyspaces
        .last_commit()?
        .unwrap_or_else(|| CommitRecord::before_first(marks.mark().base));
    verify::reaches_mark(directory, last.commit, marks.mark())?;
    let last = match verified.marked {
        Some(_) => last.next(),
        // Start with numbers that no other store's journals contain.
        None => CommitRecord {
            commit: last.commit + 1 + mark::random_distance()?,
            ..last.next()
        },
    };
    let written = keyspaces
        .write_opening_record(&database, last)
        .map_err(|error| error.to_string())
        .and_then(|()| marks.record(last.commit).map_err(|error| error.to_string()));
    Ok(OpenedStore {
        database,
        keyspaces,
        last,
        unwritten: written.err(),
    })
}

/// Moves keyspace folders that the key-value store does not list, because it would delete them.
fn set_aside_unnamed(directory: &Path, verified: &Verified) -> Result<(), OpenError> {
    for folder in &verified.unnamed {
        let number = folder.file_name().unwrap_or_default().to_string_lossy();
        let place = set_aside::move_folder(directory, folder, &format!("keyspace-{number}"))?;
        tracing::warn!(
            folder = %folder.display(),
            place = %place.display(),
            "set aside a keyspace that the key-value store does not list"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    use crate::engine::Engine;
    use crate::options::Options;
    use crate::storage::integrity::verify::VerifyScope;

    #[test]
    fn unwritten_opening_record_is_not_on_disk() {
        let directory = tempfile::tempdir().unwrap();
        let options = Options::for_tests();
        drop(Engine::open(directory.path(), options.clone()).unwrap());
        let verified = verify::verify(directory.path(), false, None, VerifyScope::None).unwrap();
        let marks = Marks::open(directory.path(), &verified, None).unwrap();
        let before = marks.mark().commit;
        let opened = open(&marks, &verified, |store| {
            let database = Database::open(store, &options, None).unwrap();
            // A flush fails, like on a full disk, and with it every later write.
            let keyspaces = std::fs::read_dir(store.join("keyspaces")).unwrap();
            for keyspace in keyspaces {
                let tables = keyspace.unwrap().path().join("tables");
                let _ = std::fs::rename(&tables, tables.with_extension("aside"));
            }
            let meta = database.keyspace(layout::META_KEYSPACE).unwrap();
            assert!(meta.rotate_memtable().unwrap());
            let started = Instant::now();
            while database.check_workers().is_ok() {
                assert!(started.elapsed() < Duration::from_secs(30));
                std::thread::sleep(Duration::from_millis(1));
            }
            Ok(database)
        });
        let opened = opened.unwrap();
        assert!(opened.unwritten.is_some());
        assert_eq!(opened.commit_on_disk(), before);
    }
}
