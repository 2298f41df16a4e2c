//! How an engine is opened.

use std::sync::Arc;

use homeport_store::{Clock, SystemClock};

use crate::disk_room::{Disk, SystemDisk};
use crate::seal::master::MasterKey;

/// When a write is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// After its group is on disk: an answered write survives a power cut.
    #[default]
    Sync,
    /// After its group is with the operating system, which is told to write it to disk every 50 ms:
    /// a power cut may take the last moments with it, a crash of the process does not.
    Relaxed,
}

/// Settings of an engine; the defaults suit a small machine.
#[derive(Debug, Clone)]
pub struct Options {
    pub durability: Durability,
    /// Memory for blocks read from disk.
    pub cache_bytes: u64,
    /// Memory for writes that are in the journal but not yet in the tables' own files, over all
    /// tables. Writes wait while it is exceeded.
    pub write_buffer_bytes: u64,
    /// Groups from this size on are written beside the committer, which meanwhile decides the next
    /// one; smaller ones are written sooner than handed over.
    pub write_beside_bytes: usize,
    /// Threads that flush and compact.
    pub workers: usize,
    /// Files of tables that are kept open. Others are opened when they are read.
    pub open_files_max: usize,
    /// Space that must stay free on the disk. With less, writes are refused until there is more; deletes and
    /// upkeep continue down to a quarter of it. 0 reserves nothing: a full disk then fails a write in the
    /// middle, and the store reopens itself when there is space.
    pub disk_reserve_bytes: u64,
    /// Reports the free space.
    pub disk: Arc<dyn Disk>,
    /// How long changes are kept for who reads the change log.
    pub change_retention_ms: i64,
    /// Sweep expired items and old changes in the background. Tests switch this off and call
    /// [`crate::Engine::sweep`].
    pub background_sweep: bool,
    /// With it, values and backups are sealed. A store is sealed when it is made, or it is not.
    pub master_key: Option<MasterKey>,
    pub clock: Arc<dyn Clock>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            durability: Durability::Sync,
            cache_bytes: 48 * 1024 * 1024,
            write_buffer_bytes: 64 * 1024 * 1024,
            write_beside_bytes: 64 * 1024,
            workers: 4,
            open_files_max: 900,
            disk_reserve_bytes: 256 * 1024 * 1024,
            disk: Arc::new(SystemDisk),
            change_retention_ms: 24 * 60 * 60 * 1000,
            background_sweep: true,
            master_key: None,
            clock: Arc::new(SystemClock),
        }
    }
}
