//! The keyspaces that are there besides those of tables and indexes, and how keyspaces are made.

use fjall::config::{BlockSizePolicy, CompressionPolicy, FilterPolicy};
use fjall::{CompressionType, Database, Keyspace, KeyspaceCreateOptions, PersistMode};

use crate::error::OpenError;
use crate::journal;
use crate::layout;
use crate::writer::CommitRecord;

/// A keyspace's share of the write buffer before it is flushed.
const MEMTABLE_BYTES: u64 = 16 * 1024 * 1024;

/// More numbers than keyspaces, flushes and compactions can take without a write in between.
const LEAP: u64 = 1 << 20;

pub(crate) struct Keyspaces {
    pub(crate) catalogue: Keyspace,
    pub(crate) meta: Keyspace,
    pub(crate) expiry: Keyspace,
    pub(crate) changes: Keyspace,
    pub(crate) tokens: Keyspace,
}

impl Keyspaces {
    pub(crate) fn open(database: &Database) -> Result<Self, fjall::Error> {
        let open = |name| open(database, name);
        Ok(Self {
            catalogue: open(layout::CATALOGUE_KEYSPACE)?,
            meta: open(layout::META_KEYSPACE)?,
            expiry: open(layout::EXPIRY_KEYSPACE)?,
            changes: open(layout::CHANGES_KEYSPACE)?,
            tokens: open(layout::TOKENS_KEYSPACE)?,
        })
    }

    /// Writes the first group of this life, so that the next one starts behind what [`leap`] left
    /// free.
    pub(crate) fn land(
        &self,
        database: &Database,
        record: CommitRecord,
    ) -> Result<(), fjall::Error> {
        let mut batch = database.batch().durability(Some(PersistMode::SyncData));
        batch.insert(&self.meta, layout::COMMIT_KEY, record.encode());
        batch.commit()
    }

    /// Whether a keyspace belongs to the engine itself and not to a table.
    pub(crate) fn is_own(name: &str) -> bool {
        [
            layout::CATALOGUE_KEYSPACE,
            layout::META_KEYSPACE,
            layout::EXPIRY_KEYSPACE,
            layout::CHANGES_KEYSPACE,
            layout::TOKENS_KEYSPACE,
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
    let counter = &database.supervisor.seqno;
    let next = counter.get().saturating_add(LEAP);
    if !journal::follows(last, next) {
        return Err(OpenError::Storage(format!(
            "a list of files is damaged: it counts up to {next}, the journals to {}",
            last.unwrap_or_default()
        )));
    }
    counter.fetch_max(next);
    Ok(())
}

/// Opens or makes a keyspace.
pub(crate) fn open(database: &Database, name: &str) -> Result<Keyspace, fjall::Error> {
    match name {
        layout::EXPIRY_KEYSPACE => database.keyspace(name, expiry_options),
        _ => database.keyspace(name, options),
    }
}

/// Expiry entries are only ever read in order: no filters, and blocks that compress well.
fn expiry_options() -> KeyspaceCreateOptions {
    options()
        .filter_policy(FilterPolicy::disabled())
        .data_block_size_policy(BlockSizePolicy::all(16 * 1024))
}

fn options() -> KeyspaceCreateOptions {
    KeyspaceCreateOptions::default()
        .manual_journal_persist(true)
        .max_memtable_size(MEMTABLE_BYTES)
        .data_block_size_policy(BlockSizePolicy::all(4 * 1024))
        .data_block_compression_policy(CompressionPolicy::new([
            CompressionType::None,
            CompressionType::Lz4,
        ]))
}
