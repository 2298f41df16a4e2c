//! The watch thread: it checks the free disk space, reopens the store after a failure, and syncs if
//! durability is relaxed. It is separate from the sweeper's thread, which may be busy for a long time.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::options::Durability;
use crate::shared::Shared;
use crate::storage::reopen::Reopener;
use crate::storage::vault::PersistMode;

/// How often the free disk space is read.
const CHECK_EVERY: Duration = Duration::from_secs(1);
/// How often relaxed durability syncs.
const SYNC_EVERY: Duration = Duration::from_millis(50);

/// Watches until the engine closes.
pub(crate) fn run(shared: &Arc<Shared>) {
    let relaxed = shared.options.durability == Durability::Relaxed;
    let pause = if relaxed { SYNC_EVERY } else { CHECK_EVERY };
    let mut since_check = Duration::ZERO;
    let mut reopener = Reopener::default();
    while !shared.stopping.load(Ordering::Acquire) {
        std::thread::park_timeout(pause);
        if relaxed {
            sync(shared);
        }
        since_check += pause;
        if since_check >= CHECK_EVERY {
            since_check = Duration::ZERO;
            shared.disk_space.refresh();
            reopener.tick(shared);
            // While writes fail, the store may be closed.
            if shared.latch.check().is_ok() {
                update_marks(shared);
            }
        }
    }
}

/// Syncs the mark and updates the list of contents. An outdated list only checks less at the next start, so a
/// failure is simply retried.
pub(crate) fn update_marks(shared: &Shared) {
    let kept = shared.marks.refresh(&shared.database);
    if let Err(error) = kept.and_then(|()| shared.marks.sync()) {
        tracing::warn!(%error, "updating the list of contents failed; it is retried");
    }
}

/// Syncs what was written but not synced yet.
pub(crate) fn sync(shared: &Shared) {
    let written = shared.written_commit.load(Ordering::Acquire);
    if written == shared.synced_commit.load(Ordering::Acquire) {
        return;
    }
    match shared.database.persist(PersistMode::SyncData) {
        // A failure has already closed the latch.
        Ok(()) => drop(shared.note_synced(written)),
        Err(error) => shared.write_failed(&error),
    }
}
