//! The thread that watches the free space on the disk, reopens the store after a failure, and syncs where durability is
//! relaxed. It is not the sweeper's thread, which may be busy for long.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::options::Durability;
use crate::reopen::Reopener;
use crate::shared::Shared;
use crate::vault::PersistMode;

/// How often the room on the disk is measured.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How often relaxed durability syncs.
const SYNC_EVERY: Duration = Duration::from_millis(50);

/// Watches until the engine closes.
pub(crate) fn run(shared: &Arc<Shared>) {
    let relaxed = shared.options.durability == Durability::Relaxed;
    let pause = if relaxed { SYNC_EVERY } else { LOOK_EVERY };
    let mut since_look = Duration::ZERO;
    let mut reopener = Reopener::default();
    while !shared.stopping.load(Ordering::Acquire) {
        std::thread::park_timeout(pause);
        if relaxed {
            sync(shared);
        }
        since_look += pause;
        if since_look >= LOOK_EVERY {
            since_look = Duration::ZERO;
            shared.room.look();
            reopener.tick(shared);
            // While writes fail, the store may be closed.
            if shared.latch.check().is_ok() {
                keep_marks(shared);
            }
        }
    }
}

/// Syncs the mark and updates the list of contents. A list that is older than the store checks less at the next start and
/// is no damage: it is tried again.
pub(crate) fn keep_marks(shared: &Shared) {
    let kept = shared.marks.refresh(&shared.database);
    if let Err(error) = kept.and_then(|()| shared.marks.sync()) {
        tracing::warn!(%error, "cannot update the list of contents; trying again");
    }
}

/// Makes durable what has been written, where that is not done at once.
pub(crate) fn sync(shared: &Shared) {
    let written = shared.written_commit.load(Ordering::Acquire);
    if written == shared.synced_commit.load(Ordering::Acquire) {
        return;
    }
    match shared.database.persist(PersistMode::SyncData) {
        // A failure has refused writes already.
        Ok(()) => drop(shared.note_synced(written)),
        Err(error) => shared.write_failed(&error),
    }
}
