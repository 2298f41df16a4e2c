//! The sweeper: removes expired items, changes that are too old and client tokens that have served, has quiet
//! windows sorted, and has journals removed that idle keyspaces keep. Everything that it writes goes through the
//! committer in small pieces.
//!
//! It deletes nothing while the wall clock is implausibly far ahead (see [`crate::commit_clock`]).

mod expired;
mod kept_journals;
mod old_changes;
mod soon;
mod used_tokens;

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use homeport_store::StoreError;

use crate::copying;
use crate::shared::{Shared, run_exclusive};
use crate::sorting;
use crate::streams;

/// Entries that one commit of the sweeper covers.
const CHUNK: usize = 256;
/// How often the sweeper runs.
const SWEEP_EVERY: Duration = Duration::from_secs(1);

/// What one pass of the sweeper did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Swept {
    pub expired: u64,
    pub changes_trimmed: u64,
    pub tokens: u64,
}

/// What the sweeper remembers between passes, so that it does not read again what it has removed.
#[derive(Default)]
pub(crate) struct Sweeper {
    expired: expired::Progress,
    soon: soon::Progress,
    changes: old_changes::Positions,
    tokens: used_tokens::Progress,
    journals: kept_journals::Progress,
}

/// Sweeps until the engine closes.
pub(crate) fn run(shared: &Arc<Shared>) {
    while !shared.stopping.load(Ordering::Acquire) {
        std::thread::park_timeout(SWEEP_EVERY);
        // Sweeping writes: without any space on the disk, it would only fail.
        if shared.options.background_sweep
            && shared
                .latch
                .check()
                .and_then(|()| shared.room.check_upkeep())
                .is_ok()
            && let Err(error) = sweep(shared, Due::InTime)
            && !shared.stopping.load(Ordering::Acquire)
        {
            tracing::warn!(%error, "sweeping failed; trying again");
        }
    }
}

/// How a pass looks for expired items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Due {
    /// In the windows that are over, and of the running one in memory.
    InTime,
    /// By reading everything that may be due, also the running window.
    Now,
}

/// One pass over everything that is due.
pub(crate) fn sweep(shared: &Arc<Shared>, due: Due) -> Result<Swept, StoreError> {
    let mut sweeper = shared
        .sweeper
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    let times = shared.times();
    let copies = copying::sweep(shared);
    let journals = sweeper.journals.release(shared);
    if times.is_suspended {
        sorting::sort_quiet(shared).and(copies).and(journals)?;
        return Ok(Swept::default());
    }
    // A failure of one must not keep the others from running.
    let streams = streams::upkeep(shared);
    let expired = sweeper.expired(shared, due);
    let changes_trimmed = sweeper.changes.trim(shared, times.commit_ms);
    let tokens = sweeper.tokens.sweep(shared, times.commit_ms);
    let sorted = sorting::sort_quiet(shared);
    let persisted = if shared.commit_clock.is_persist_due(times) {
        run_exclusive(shared, |committer| committer.write_time())
    } else {
        Ok(())
    };
    let swept = Swept {
        expired: expired?,
        changes_trimmed: changes_trimmed?,
        tokens: tokens?,
    };
    streams
        .and(sorted)
        .and(persisted)
        .and(copies)
        .and(journals)?;
    Ok(swept)
}

/// The first place between `from`, which cannot be read, and `to` at which `is_damaged` is false: behind a damaged block.
/// What lies between two damaged blocks may be left out.
fn behind_damage(from: u64, to: u64, is_damaged: impl Fn(u64) -> bool) -> u64 {
    let (mut damaged, mut end) = (from, to);
    while damaged + 1 < end {
        let middle = damaged + (end - damaged) / 2;
        if is_damaged(middle) {
            damaged = middle;
        } else {
            end = middle;
        }
    }
    end
}

impl Sweeper {
    fn expired(&mut self, shared: &Shared, due: Due) -> Result<u64, StoreError> {
        match due {
            Due::Now => expired::sweep_all(shared),
            Due::InTime => {
                let over = self.expired.sweep_windows(shared);
                let soon = self.soon.sweep(shared);
                Ok(over? + soon?)
            }
        }
    }
}
