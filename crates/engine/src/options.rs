//! The options of an engine.

use std::sync::Arc;

use homeport_store::{Clock, SystemClock};

use crate::storage::disk_space::{Disk, SystemDisk};
use crate::storage::seal::master::MasterKey;

/// When a write is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// After its group is on disk: an answered write survives a power cut.
    #[default]
    Sync,
    /// After its group is handed to the operating system, which syncs it to disk every 50 ms. A power cut may
    /// lose the last moments; a crash of the process does not.
    Relaxed,
}

/// Settings of an engine; the defaults suit a small machine.
#[derive(Debug, Clone)]
pub struct Options {
    pub durability: Durability,
    /// Memory for blocks read from disk.
    pub cache_bytes: u64,
    /// Memory for writes of all tables that are in the journal but not yet in table files. Writes wait while
    /// it is exceeded.
    pub write_buffer_bytes: u64,
    /// Groups of at least this size are written on the writer thread while the committer decides the next
    /// group; smaller ones are written faster than handed over.
    pub background_write_min_bytes: usize,
    /// Threads for flushes and compactions.
    pub workers: usize,
    /// Table files that are kept open. Others are opened for each read.
    pub open_files_max: usize,
    /// Space that must stay free on the disk. Below it, writes are refused; deletes and maintenance continue
    /// down to a quarter of it. 0 disables the reserve: a full disk then fails a write in the middle, and the
    /// store reopens itself once there is space.
    pub disk_reserve_bytes: u64,
    /// Reports the free space.
    pub disk: Arc<dyn Disk>,
    /// How long changes are kept for readers of the change log.
    pub change_retention_ms: i64,
    /// Delete expired items and old changes in the background. Tests disable this and call
    /// [`crate::Engine::sweep`].
    pub background_sweep: bool,
    /// With a master key, values and backups are sealed. A store is sealed at its creation or never.
    pub master_key: Option<MasterKey>,
    pub clock: Arc<dyn Clock>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            durability: Durability::Sync,
            cache_bytes: 48 * 1024 * 1024,
            write_buffer_bytes: 64 * 1024 * 1024,
            background_write_min_bytes: 64 * 1024,
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

#[cfg(test)]
impl Options {
    /// Nothing runs in the background that a test does not start.
    pub(crate) fn for_tests() -> Self {
        Self {
            background_sweep: false,
            workers: 1,
            ..Self::default()
        }
    }

    pub(crate) fn with_clock<C: Clock>(self, clock: &Arc<C>) -> Self {
        let clock = Arc::clone(clock) as _;
        Self { clock, ..self }
    }
}
