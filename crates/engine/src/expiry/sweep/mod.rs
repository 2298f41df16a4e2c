//! The sweeper thread: it deletes expired items, old changes and old client tokens, sorts quiet windows, and
//! releases journals that idle keyspaces keep. It writes through the committer in small chunks.
//!
//! It deletes nothing while the wall clock is implausibly far ahead (see [`crate::commit::commit_clock`]).

mod expired;
mod idle_journals;
mod old_changes;
mod old_tokens;
mod running_window;

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use homeport_store::StoreError;

use crate::archive::copying;
use crate::changes::streams;
use crate::expiry::sorting;
use crate::shared::{Shared, run_exclusive};

/// Entries per commit of the sweeper.
const CHUNK: usize = 256;
/// How often the sweeper runs.
const SWEEP_EVERY: Duration = Duration::from_secs(1);

/// The result of one pass of the sweeper.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Swept {
    pub expired: u64,
    pub changes_trimmed: u64,
    pub tokens: u64,
}

/// The sweeper's state between passes, so that it does not read again what it has deleted.
#[derive(Default)]
pub(crate) struct Sweeper {
    expired: expired::SweptWindows,
    running_window: running_window::RunningWindow,
    changes: old_changes::TrimPositions,
    tokens: old_tokens::DeletedTokens,
    journals: idle_journals::IdleJournals,
}

/// Sweeps until the engine closes.
pub(crate) fn run(shared: &Arc<Shared>) {
    while !shared.stopping.load(Ordering::Acquire) {
        std::thread::park_timeout(SWEEP_EVERY);
        // Sweeping writes, so it would fail without space on the disk.
        if shared.options.background_sweep
            && shared
                .latch
                .check()
                .and_then(|()| shared.disk_space.check_deletes())
                .is_ok()
            && let Err(error) = sweep(shared, SweepMode::Background)
            && !shared.stopping.load(Ordering::Acquire)
        {
            tracing::warn!(%error, "sweeping failed; it is retried");
        }
    }
}

/// How a pass finds expired items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SweepMode {
    /// On disk in the windows that are over, and in memory for the running one.
    Background,
    /// On disk in all windows, including the running one.
    AllWindows,
}

/// One pass over everything that is due.
pub(crate) fn sweep(shared: &Arc<Shared>, due: SweepMode) -> Result<Swept, StoreError> {
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
    // A failure of one part must not keep the others from running.
    let streams = streams::maintain_streams(shared);
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

/// The first position between `from`, which is unreadable, and `to` that is readable: the end of a damaged
/// block. If there are two damaged blocks, it may skip the data between them.
fn first_readable(from: u64, to: u64, is_damaged: impl Fn(u64) -> bool) -> u64 {
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
    fn expired(&mut self, shared: &Shared, due: SweepMode) -> Result<u64, StoreError> {
        match due {
            SweepMode::AllWindows => expired::sweep_all(shared),
            SweepMode::Background => {
                let over = self.expired.sweep_windows(shared);
                let running = self.running_window.sweep(shared);
                Ok(over? + running?)
            }
        }
    }
}
