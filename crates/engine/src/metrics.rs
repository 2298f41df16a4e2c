//! Counters of what the engine does, for whoever shows them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

#[derive(Debug, Default)]
pub(crate) struct Metrics {
    commits: AtomicU64,
    commit_bytes: AtomicU64,
    commit_micros: AtomicU64,
    flush_wait_micros: AtomicU64,
    expired: AtomicU64,
    changes_trimmed: AtomicU64,
}

/// Counters since the engine was opened, and sizes as they are now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MetricsSnapshot {
    /// Groups written.
    pub commits: u64,
    pub commit_bytes: u64,
    /// Time spent writing and syncing groups.
    pub commit_micros: u64,
    /// Time that groups waited for the key-value store to flush.
    pub flush_wait_micros: u64,
    /// Items removed because their time had come.
    pub expired: u64,
    /// Changes dropped from the log because they were too old.
    pub changes_trimmed: u64,
    pub queued_bytes: u64,
    pub write_buffer_bytes: u64,
    pub cache_bytes: u64,
    pub disk_bytes: u64,
}

impl Metrics {
    pub(crate) fn committed(&self, bytes: usize, took: Duration) {
        self.commits.fetch_add(1, Ordering::Relaxed);
        self.commit_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        self.commit_micros
            .fetch_add(micros(took), Ordering::Relaxed);
    }

    pub(crate) fn waited_for_flush(&self, took: Duration) {
        self.flush_wait_micros
            .fetch_add(micros(took), Ordering::Relaxed);
    }

    pub(crate) fn expired(&self, count: u64) {
        self.expired.fetch_add(count, Ordering::Relaxed);
    }

    pub(crate) fn changes_trimmed(&self, count: u64) {
        self.changes_trimmed.fetch_add(count, Ordering::Relaxed);
    }

    /// The counters; the sizes are for the caller to fill in.
    pub(crate) fn snapshot(&self) -> MetricsSnapshot {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        MetricsSnapshot {
            commits: read(&self.commits),
            commit_bytes: read(&self.commit_bytes),
            commit_micros: read(&self.commit_micros),
            flush_wait_micros: read(&self.flush_wait_micros),
            expired: read(&self.expired),
            changes_trimmed: read(&self.changes_trimmed),
            ..MetricsSnapshot::default()
        }
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
