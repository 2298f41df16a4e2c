//! Releases journals that idle keyspaces keep on disk.

use std::sync::Arc;

use homeport_store::StoreError;

use crate::error::unavailable;
use crate::shared::{Shared, run_exclusive};
use crate::storage::journal;
use crate::storage::layout;

/// From this many journals on, idle keyspaces may be keeping the oldest one. The key-value store itself
/// flushes what the oldest journal needs from three journals on.
const JOURNALS_KEPT: usize = 5;

#[derive(Default)]
pub(super) struct IdleJournals {
    /// The oldest journal of the last pass, if there were too many.
    oldest: Option<u64>,
}

impl IdleJournals {
    /// Writes and flushes a tombstone in each idle keyspace if the oldest journal has been kept since the
    /// last pass.
    ///
    /// The key-value store does not report which keyspaces keep a journal, so idle keyspaces that do not are
    /// also written, once.
    pub(super) fn release(&mut self, shared: &Arc<Shared>) -> Result<(), StoreError> {
        let store = shared.directory.join(layout::STORE_DIR);
        let listed = journal::journals_in(&store).map_err(unavailable)?;
        let [(oldest, _), (_, second), ..] = listed.as_slice() else {
            return Ok(());
        };
        let kept = (listed.len() >= JOURNALS_KEPT).then_some(*oldest);
        let before = std::mem::replace(&mut self.oldest, kept);
        if kept.is_none() || kept != before {
            return Ok(());
        }
        // The key-value store may delete the second one at any time, together with the oldest.
        let Some(sequence) = journal::first_sequence(second).ok().flatten() else {
            return Ok(());
        };
        let idle = shared.database.idle_since(sequence).map_err(unavailable)?;
        if idle.is_empty() {
            return Ok(());
        }
        tracing::info!(
            keyspaces = idle.len(),
            "flushing idle keyspaces to remove old journals"
        );
        let keyspaces = idle.clone();
        run_exclusive(shared, move |committer| {
            committer.write(|group| {
                for keyspace in &keyspaces {
                    group.remove(keyspace, layout::UNUSED_KEY.into());
                }
                Ok(())
            })
        })?;
        for keyspace in idle {
            keyspace.rotate_memtable().map_err(unavailable)?;
        }
        Ok(())
    }
}
