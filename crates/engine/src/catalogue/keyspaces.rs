//! The keyspaces of the engine itself, besides those of tables and indexes.

use crate::commit::writer::CommitRecord;
use crate::error::OpenError;
use crate::storage::journal;
use crate::storage::layout;
use crate::storage::vault::{self, Database, Keyspace, PersistMode};

/// More sequence numbers than keyspaces, flushes and compactions can use between two writes.
const SEQNO_SKIP: u64 = 1 << 20;

pub(crate) struct Keyspaces {
    pub(crate) catalogue: Keyspace,
    pub(crate) meta: Keyspace,
    pub(crate) expiry: Keyspace,
    pub(crate) expiry_pages: Keyspace,
    pub(crate) changes: Keyspace,
    pub(crate) tokens: Keyspace,
    /// Old values of items, for running copies that must not show later changes.
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

    /// Writes the first group of this run, so that the next run starts after the numbers that
    /// [`skip_used_seqnos`] skipped.
    pub(crate) fn write_opening_record(
        &self,
        database: &Database,
        record: CommitRecord,
    ) -> Result<(), vault::Error> {
        // A killed store may have a backlog right from its start.
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

/// Skips sequence numbers of the key-value store that its last run may have used.
///
/// IMPORTANT: the key-value store numbers all changes, but on opening it does not count the changes of its
/// list of keyspaces. Without the skip, a keyspace that is created now could get a lower number than the
/// deletion of an older one in its place. The list would then say that it is deleted, and the next start
/// would delete it with all its data.
///
/// `last` is the number of the last batch in the journals. The key-value store also uses the numbers in its
/// lists of files, whose damage it does not always detect. An implausible number is rejected here, before
/// anything is written with it that the next start would reject.
pub(crate) fn skip_used_seqnos(database: &Database, last: Option<u64>) -> Result<(), OpenError> {
    let next = database.next_sequence().saturating_add(SEQNO_SKIP);
    if !journal::follows(last, next) {
        return Err(OpenError::Storage(format!(
            "a list of files is damaged: it ends at number {next}, but the journals end at {}",
            last.unwrap_or_default()
        )));
    }
    database.skip_to_sequence(next);
    Ok(())
}
