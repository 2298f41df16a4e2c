//! The key-value store as a whole, and how its keyspaces are made.

use std::path::Path;
use std::sync::Arc;

use fjall::config::{BlockSizePolicy, CompressionPolicy, FilterPolicy};
use fjall::{CompressionType, KeyspaceCreateOptions};

use crate::layout;
use crate::options::Options;
use crate::seal::sealer::Sealer;
use crate::vault::{Batch, Error, Keyspace, PersistMode, Snapshot};

/// Journals may take this much before what they hold is forced into the tables' own files; it
/// bounds what a start after a crash has to read again.
const JOURNAL_BYTES_MAX: u64 = 128 * 1024 * 1024;

/// A keyspace's share of the write buffer before it is flushed.
const MEMTABLE_BYTES: u64 = 16 * 1024 * 1024;

/// Room for entries that a new batch has.
const BATCH_ENTRIES: usize = 64;

#[derive(Clone)]
pub(crate) struct Database {
    inner: fjall::Database,
    sealer: Option<Arc<Sealer>>,
}

impl Database {
    /// Opens or makes the store at `path`. With a sealer, values are sealed.
    pub(crate) fn open(
        path: &Path,
        options: &Options,
        sealer: Option<Arc<Sealer>>,
    ) -> Result<Self, Error> {
        let inner = fjall::Database::builder(path)
            .cache_size(options.cache_bytes)
            .max_journaling_size(JOURNAL_BYTES_MAX)
            .worker_threads(options.workers.max(1))
            .manual_journal_persist(true)
            .open()?;
        Ok(Self { inner, sealer })
    }

    /// What seals values, and files that are to be as safe.
    pub(crate) fn sealer(&self) -> Option<&Sealer> {
        self.sealer.as_deref()
    }

    /// Opens or makes a keyspace.
    pub(crate) fn keyspace(&self, name: &str) -> Result<Keyspace, Error> {
        let inner = match name {
            layout::EXPIRY_KEYSPACE => self.inner.keyspace(name, expiry_options),
            _ => self.inner.keyspace(name, options),
        }?;
        // IMPORTANT: the only keyspace whose values are not sealed, since commit records are read
        // before the store is open. What is put there must tell nothing of anyone's data.
        let is_open = name == layout::META_KEYSPACE;
        let sealer = self.sealer.clone().filter(|_| !is_open);
        Ok(Keyspace { inner, sealer })
    }

    pub(crate) fn keyspace_names(&self) -> Vec<String> {
        let names = self.inner.list_keyspace_names();
        names.iter().map(ToString::to_string).collect()
    }

    pub(crate) fn delete_keyspace(&self, keyspace: Keyspace) -> Result<(), Error> {
        Ok(self.inner.delete_keyspace(keyspace.inner)?)
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        Snapshot(self.inner.snapshot())
    }

    pub(crate) fn batch(&self) -> Batch {
        let inner = fjall::OwnedWriteBatch::with_capacity(self.inner.clone(), BATCH_ENTRIES);
        Batch::new(inner, self.sealer.clone())
    }

    pub(crate) fn persist(&self, mode: PersistMode) -> Result<(), Error> {
        Ok(self.inner.persist(mode)?)
    }

    /// The number that the next change gets.
    pub(crate) fn next_sequence(&self) -> u64 {
        self.inner.supervisor.seqno.get()
    }

    /// Leaves out the numbers before `next`.
    pub(crate) fn skip_to_sequence(&self, next: u64) {
        self.inner.supervisor.seqno.fetch_max(next);
    }

    pub(crate) fn write_buffer_bytes(&self) -> u64 {
        self.inner.write_buffer_size()
    }

    pub(crate) fn cache_bytes(&self) -> u64 {
        self.inner.cache_size()
    }

    pub(crate) fn disk_bytes(&self) -> u64 {
        self.inner.disk_space().unwrap_or(0)
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
