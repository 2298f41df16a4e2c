//! The keyspaces that are there besides those of tables and indexes, and how keyspaces are made.

use fjall::config::{BlockSizePolicy, CompressionPolicy, FilterPolicy};
use fjall::{CompressionType, Database, Keyspace, KeyspaceCreateOptions};

use crate::layout;

/// A keyspace's share of the write buffer before it is flushed.
const MEMTABLE_BYTES: u64 = 16 * 1024 * 1024;

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
