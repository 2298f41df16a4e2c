//! Free disk space, and what may still be written when it runs low.
//!
//! Two reserves keep the disk from running full in the middle of a write:
//!
//! | free space | writes that are accepted |
//! | --- | --- |
//! | at least `Options::disk_reserve_bytes` | all |
//! | at least a quarter of it | deletes, expiry, trimming, changes of the catalogue: they free space or cost little |
//! | less | nothing |
//!
//! The free space is read every second and after every [`CHECK_EVERY_BYTES`] written.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use homeport_store::StoreError;

/// The reserve for deletes and maintenance is one part in this many of the whole reserve.
const DELETES_SHARE: u64 = 4;
/// Bytes written after which the free space is read again.
const CHECK_EVERY_BYTES: u64 = 4 * 1024 * 1024;

/// Reports the free space of a disk.
pub trait Disk: std::fmt::Debug + Send + Sync {
    /// Bytes that may still be written below `directory`, if known.
    fn free_bytes(&self, directory: &Path) -> Option<u64>;
}

/// The free space as reported by the operating system.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemDisk;

impl Disk for SystemDisk {
    #[cfg(unix)]
    fn free_bytes(&self, directory: &Path) -> Option<u64> {
        let disk = rustix::fs::statvfs(directory).ok()?;
        Some(disk.f_bavail.saturating_mul(disk.f_frsize))
    }

    #[cfg(not(unix))]
    fn free_bytes(&self, _: &Path) -> Option<u64> {
        None
    }
}

/// The level of free space.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SpaceLevel {
    Enough,
    /// Only deletes and maintenance are written.
    Low,
    /// Nothing is written.
    Exhausted,
}

#[derive(Debug)]
pub(crate) struct DiskSpace {
    disk: Arc<dyn Disk>,
    directory: PathBuf,
    reserve_bytes: u64,
    level: AtomicU8,
    free_bytes: AtomicU64,
    /// Written since the free space was last read.
    written_bytes: AtomicU64,
}

impl DiskSpace {
    /// Watches the disk of `directory`; a reserve of 0 disables all limits.
    pub(crate) fn new(disk: Arc<dyn Disk>, directory: &Path, reserve_bytes: u64) -> Self {
        let disk_space = Self {
            disk,
            directory: directory.to_owned(),
            reserve_bytes,
            level: AtomicU8::new(SpaceLevel::Enough as u8),
            free_bytes: AtomicU64::new(u64::MAX),
            written_bytes: AtomicU64::new(0),
        };
        disk_space.refresh();
        disk_space
    }

    /// Reads the free space.
    pub(crate) fn refresh(&self) {
        self.written_bytes.store(0, Ordering::Relaxed);
        // If the free space is unknown, nothing is refused.
        let Some(free_bytes) = self.disk.free_bytes(&self.directory) else {
            return;
        };
        self.free_bytes.store(free_bytes, Ordering::Relaxed);
        let level = if free_bytes >= self.reserve_bytes {
            SpaceLevel::Enough
        } else if free_bytes >= self.reserve_bytes / DELETES_SHARE {
            SpaceLevel::Low
        } else {
            SpaceLevel::Exhausted
        };
        if self.level.swap(level as u8, Ordering::AcqRel) == level as u8 {
            return;
        }
        let reserve_bytes = self.reserve_bytes;
        match level {
            SpaceLevel::Enough => tracing::info!(
                free_bytes,
                reserve_bytes,
                "the disk has enough free space: all writes are accepted"
            ),
            SpaceLevel::Low => tracing::error!(
                free_bytes,
                reserve_bytes,
                "the disk is nearly full: only reads and deletes are accepted until there is more free space"
            ),
            SpaceLevel::Exhausted => tracing::error!(
                free_bytes,
                reserve_bytes,
                "the disk is full: only reads are accepted until there is more free space"
            ),
        }
    }

    /// Counts written bytes, so that the free space is read again in time.
    pub(crate) fn note_written(&self, bytes: usize) {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        let before = self.written_bytes.fetch_add(bytes, Ordering::Relaxed);
        if before.saturating_add(bytes) >= CHECK_EVERY_BYTES {
            self.refresh();
        }
    }

    pub(crate) fn now(&self) -> SpaceLevel {
        match self.level.load(Ordering::Acquire) {
            level if level == SpaceLevel::Enough as u8 => SpaceLevel::Enough,
            level if level == SpaceLevel::Low as u8 => SpaceLevel::Low,
            _ => SpaceLevel::Exhausted,
        }
    }

    /// The free space, if known.
    pub(crate) fn free_bytes(&self) -> Option<u64> {
        let bytes = self.free_bytes.load(Ordering::Relaxed);
        (bytes < u64::MAX).then_some(bytes)
    }

    /// Fails unless all writes are accepted.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        match self.now() {
            SpaceLevel::Enough => Ok(()),
            _ => Err(StoreError::Unavailable(
                "the disk is nearly full; writes are refused: free space or delete data".to_owned(),
            )),
        }
    }

    /// Fails unless deletes and maintenance are accepted.
    pub(crate) fn check_deletes(&self) -> Result<(), StoreError> {
        match self.now() {
            SpaceLevel::Exhausted => Err(StoreError::Unavailable(
                "the disk is full; writes and deletes are refused: free space".to_owned(),
            )),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Measured(AtomicU64);

    impl Disk for Measured {
        fn free_bytes(&self, _: &Path) -> Option<u64> {
            Some(self.0.load(Ordering::Relaxed))
        }
    }

    #[test]
    fn each_reserve_refuses_more() {
        let disk = Arc::new(Measured(AtomicU64::new(1000)));
        let disk_space = DiskSpace::new(Arc::clone(&disk) as _, Path::new("."), 1000);
        let at = |free_bytes| {
            disk.0.store(free_bytes, Ordering::Relaxed);
            disk_space.refresh();
            (
                disk_space.check().is_ok(),
                disk_space.check_deletes().is_ok(),
            )
        };
        assert_eq!(at(1000), (true, true));
        assert_eq!(at(999), (false, true));
        assert_eq!(at(250), (false, true));
        assert_eq!(at(249), (false, false));
        assert!(disk_space.check().unwrap_err().is_transient());
        assert_eq!(at(1000), (true, true));
    }

    #[test]
    fn written_bytes_trigger_another_check() {
        let disk = Arc::new(Measured(AtomicU64::new(1000)));
        let disk_space = DiskSpace::new(Arc::clone(&disk) as _, Path::new("."), 1000);
        disk.0.store(10, Ordering::Relaxed);
        disk_space.note_written(1024);
        assert_eq!(disk_space.now(), SpaceLevel::Enough);
        disk_space.note_written(4 * 1024 * 1024);
        assert_eq!(disk_space.now(), SpaceLevel::Exhausted);
    }

    #[test]
    fn system_disk_reports_free_space() {
        let directory = tempfile::tempdir().unwrap();
        let disk_space = DiskSpace::new(Arc::new(SystemDisk), directory.path(), u64::MAX);
        assert_eq!(disk_space.now(), SpaceLevel::Exhausted);
        assert!(disk_space.free_bytes().is_some());
    }
}
