//! Whether there is room left on the disk. Running into a full disk in the middle of a write closes
//! the latch; this keeps a reserve, so that it does not come to that.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use homeport_store::StoreError;

#[derive(Debug)]
pub(crate) struct DiskRoom {
    directory: PathBuf,
    reserve_bytes: u64,
    is_short: AtomicBool,
}

impl DiskRoom {
    /// Looks at the disk of `directory`; 0 keeps no reserve.
    pub(crate) fn new(directory: &Path, reserve_bytes: u64) -> Self {
        let room = Self {
            directory: directory.to_owned(),
            reserve_bytes,
            is_short: AtomicBool::new(false),
        };
        room.look();
        room
    }

    /// Looks how much is free now.
    pub(crate) fn look(&self) {
        if self.reserve_bytes == 0 {
            return;
        }
        // What cannot be measured is not held against anyone.
        let Some(free_bytes) = free_bytes(&self.directory) else {
            return;
        };
        let is_short = free_bytes < self.reserve_bytes;
        if self.is_short.swap(is_short, Ordering::AcqRel) != is_short {
            if is_short {
                tracing::error!(free_bytes, "the disk is nearly full: refusing writes");
            } else {
                tracing::info!(
                    free_bytes,
                    "there is room on the disk again: writing goes on"
                );
            }
        }
    }

    pub(crate) fn check(&self) -> Result<(), StoreError> {
        if self.is_short.load(Ordering::Acquire) {
            return Err(StoreError::Unavailable(
                "the disk is nearly full: writes are refused until there is room again".to_owned(),
            ));
        }
        Ok(())
    }
}

#[cfg(unix)]
fn free_bytes(directory: &Path) -> Option<u64> {
    let disk = rustix::fs::statvfs(directory).ok()?;
    Some(disk.f_bavail.saturating_mul(disk.f_frsize))
}

#[cfg(not(unix))]
fn free_bytes(_: &Path) -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reserve_that_the_disk_cannot_hold_refuses_writes() {
        let directory = tempfile::tempdir().unwrap();
        let room = DiskRoom::new(directory.path(), u64::MAX);
        let refused = room.check().unwrap_err();
        assert!(refused.is_transient());
        assert!(refused.to_string().contains("nearly full"));
    }

    #[test]
    fn writing_goes_on_when_there_is_room_again() {
        let directory = tempfile::tempdir().unwrap();
        let mut room = DiskRoom::new(directory.path(), u64::MAX);
        room.reserve_bytes = 1;
        room.look();
        assert_eq!(room.check(), Ok(()));
    }
}
