//! The keyspaces that are there besides those of tables and indexes.

use crate::error::OpenError;
use crate::journal;
use crate::layout;
use crate::vault::{self, Database, Keyspace, PersistMode};
use crate::writer::CommitRecord;

/// More numbers than keyspaces, flushes and compactions can take without a write in between.
const LEAP: u64 = 1 << 20;

pub(crate) struct Keyspaces {
    pub(crate) catalogue: Keyspace,
    pub(crate) meta: Keyspace,
    pub(crate) expiry: Keyspace,
    pub(crate) expiry_pages: Keyspace,
    pub(crate) changes: Keyspace,
    pub(crate) tokens: Keyspace,
    /// What items were before changes that a running copy must not show.
    pub(crate) undo: Keyspace,
}

impl Keyspaces {
    pub(crate) fn open(database: &Database) -> Result<Self, vault::Error> {
        let open = |name| database.keyspace(name);
        Ok(Self {
            catalogue: open(layout::CATALOGUE_KEYSPACE)?,
            meta: open(layout::META_KEYSPACE)?,
            expiry: open(layout::EXPIRY_KEYSPACE)?,
            expiry_pages: open(layout::EXPIRY_PAGES_KEYSPACE)?,
            changes: open(layout::CHANGES_KEYSPACE)?,
            tokens: open(layout::TOKENS_KEYSPACE)?,
            undo: open(layout::UNDO_KEYSPACE)?,
        })
    }

    /// The newest commit record, if there is one.
    pub(crate) fn last_commit(&self) -> Result<Option<CommitRecord>, OpenError> {
        let record = self.meta.get(layout::COMMIT_KEY);
        match record.map_err(|error| OpenError::Storage(error.to_string()))? {
            Some(bytes) => CommitRecord::decode(&bytes)
                .map(Some)
                .ok_or_else(|| OpenError::DamagedCatalogue("the commit record".to_owned())),
            None => Ok(None),
        }
    }

    /// Writes the first group of this life, so that the next one starts behind what [`leap`] left
    /// free.
    pub(crate) fn land(
        &self,
        database: &Database,
        record: CommitRecord,
    ) -> Result<(), vault::Error> {
        // A killed store may have a backlog from its start.
        database.wait_for_backlog(|| false)?;
        let mut batch = database.batch();
        batch.insert(&self.meta, layout::COMMIT_KEY, record.encode());
        batch.commit(PersistMode::SyncData)
    }

    /// Whether a keyspace belongs to the engine itself and not to a table.
    pub(crate) fn is_own(name: &str) -> bool {
        [
            layout::CATALOGUE_KEYSPACE,
            layout::META_KEYSPACE,
            layout::EXPIRY_KEYSPACE,
            layout::EXPIRY_PAGES_KEYSPACE,
            layout::CHANGES_KEYSPACE,
            layout::TOKENS_KEYSPACE,
            layout::UNDO_KEYSPACE,
        ]
        .contains(&name)
    }
}

/// Leaves out sequence numbers of the key-value store that its last life may have used.
///
/// IMPORTANT: the store numbers its changes, and its list of keyspaces, unlike their contents, does
/// not count when it finds out where it had got to. Without the leap, a keyspace made now could get
/// a lower number than the removal of an older one in its place: the list would then say that it is
/// gone, and the next start would delete it with all that is in it.
///
/// `last` is that of the last batch in the journals. The store also looks into its lists of files,
/// whose damage it does not always see: a number that can not come next is refused here, before
/// anything is written with it that the next start would refuse.
pub(crate) fn leap(database: &Database, last: Option<u64>) -> Result<(), OpenError> {
    let next = database.next_sequence().saturating_add(LEAP);
    if !journal::follows(last, next) {
        return Err(OpenError::Storage(format!(
            "a list of files is damaged: it counts up to {next}, the journals to {}",
            last.unwrap_or_default()
        )));
    }
    database.skip_to_sequence(next);
    Ok(())
}
