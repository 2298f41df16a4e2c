//! Free space on the disk, and what may be written with little of it left.
//!
//! Two reserves keep the disk from running full in the middle of a write:
//!
//! | free space | what is written |
//! | --- | --- |
//! | at least `Options::disk_reserve_bytes` | everything |
//! | at least a quarter of it | deletes, expiry, trimming, changes of the catalogue: they free space or cost little |
//! | less | nothing |
//!
//! The free space is read every second and whenever [`LOOK_AFTER_BYTES`] were written.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use homeport_store::StoreError;

/// The share of the reserve that is kept for deletes and upkeep.
const UPKEEP_SHARE: u64 = 4;
/// Bytes written after which the free space is read again.
const LOOK_AFTER_BYTES: u64 = 4 * 1024 * 1024;

/// Reports the free space of a disk.
pub trait Disk: std::fmt::Debug + Send + Sync {
    /// Bytes that may still be written below `directory`, if that is known.
    fn free_bytes(&self, directory: &Path) -> Option<u64>;
}

/// The operating system's answer.
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

/// How much room there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Room {
    Enough,
    /// Only deletes and upkeep are written.
    Short,
    /// Nothing is written.
    Exhausted,
}

#[derive(Debug)]
pub(crate) struct DiskRoom {
    disk: Arc<dyn Disk>,
    directory: PathBuf,
    reserve_bytes: u64,
    room: AtomicU8,
    free_bytes: AtomicU64,
    /// Written since the free space was read.
    written_bytes: AtomicU64,
}

impl DiskRoom {
    /// Watches the disk of `directory`; a reserve of 0 switches this off.
    pub(crate) fn new(disk: Arc<dyn Disk>, directory: &Path, reserve_bytes: u64) -> Self {
        let room = Self {
            disk,
            directory: directory.to_owned(),
            reserve_bytes,
            room: AtomicU8::new(Room::Enough as u8),
            free_bytes: AtomicU64::new(u64::MAX),
            written_bytes: AtomicU64::new(0),
        };
        room.look();
        room
    }

    /// Reads the free space.
    pub(crate) fn look(&self) {
        self.written_bytes.store(0, Ordering::Relaxed);
        // A disk that cannot be measured refuses nothing.
        let Some(free_bytes) = self.disk.free_bytes(&self.directory) else {
            return;
        };
        self.free_bytes.store(free_bytes, Ordering::Relaxed);
        let room = if free_bytes >= self.reserve_bytes {
            Room::Enough
        } else if free_bytes >= self.reserve_bytes / UPKEEP_SHARE {
            Room::Short
        } else {
            Room::Exhausted
        };
        if self.room.swap(room as u8, Ordering::AcqRel) == room as u8 {
            return;
        }
        let reserve_bytes = self.reserve_bytes;
        match room {
            Room::Enough => tracing::info!(
                free_bytes,
                reserve_bytes,
                "the disk has enough free space: all writes are accepted"
            ),
            Room::Short => tracing::error!(
                free_bytes,
                reserve_bytes,
                "the disk is nearly full: only reads and deletes are accepted until there is more free space"
            ),
            Room::Exhausted => tracing::error!(
                free_bytes,
                reserve_bytes,
                "the disk is full: only reads are accepted until there is more free space"
            ),
        }
    }

    /// Counts what was written, so that the free space is read again in time.
    pub(crate) fn wrote(&self, bytes: usize) {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        let before = self.written_bytes.fetch_add(bytes, Ordering::Relaxed);
        if before.saturating_add(bytes) >= LOOK_AFTER_BYTES {
            self.look();
        }
    }

    pub(crate) fn now(&self) -> Room {
        match self.room.load(Ordering::Acquire) {
            room if room == Room::Enough as u8 => Room::Enough,
            room if room == Room::Short as u8 => Room::Short,
            _ => Room::Exhausted,
        }
    }

    /// The free space, where it is known.
    pub(crate) fn free_bytes(&self) -> Option<u64> {
        let bytes = self.free_bytes.load(Ordering::Relaxed);
        (bytes < u64::MAX).then_some(bytes)
    }

    /// Whether anything may be written.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        match self.now() {
            Room::Enough => Ok(()),
            _ => Err(StoreError::Unavailable(
                "the disk is nearly full: free space or delete data; writes are refused until there is room"
                    .to_owned(),
            )),
        }
    }

    /// Whether deletes and upkeep may be written.
    pub(crate) fn check_upkeep(&self) -> Result<(), StoreError> {
        match self.now() {
            Room::Exhausted => Err(StoreError::Unavailable(
                "the disk is full: free space; writes and deletes are refused until there is room"
                    .to_owned(),
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
        let room = DiskRoom::new(Arc::clone(&disk) as _, Path::new("."), 1000);
        let at = |free_bytes| {
            disk.0.store(free_bytes, Ordering::Relaxed);
            room.look();
            (room.check().is_ok(), room.check_upkeep().is_ok())
        };
        assert_eq!(at(1000), (true, true));
        assert_eq!(at(999), (false, true));
        assert_eq!(at(250), (false, true));
        assert_eq!(at(249), (false, false));
        assert!(room.check().unwrap_err().is_transient());
        assert_eq!(at(1000), (true, true));
    }

    #[test]
    fn written_bytes_cause_another_look() {
        let disk = Arc::new(Measured(AtomicU64::new(1000)));
        let room = DiskRoom::new(Arc::clone(&disk) as _, Path::new("."), 1000);
        disk.0.store(10, Ordering::Relaxed);
        room.wrote(1024);
        assert_eq!(room.now(), Room::Enough);
        room.wrote(4 * 1024 * 1024);
        assert_eq!(room.now(), Room::Exhausted);
    }

    #[test]
    fn the_system_measures_a_directory() {
        let directory = tempfile::tempdir().unwrap();
        let room = DiskRoom::new(Arc::new(SystemDisk), directory.path(), u64::MAX);
        assert_eq!(room.now(), Room::Exhausted);
        assert!(room.free_bytes().is_some());
    }
}
