//! Counters of the engine's work.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Commit times are counted in buckets whose bounds grow by a quarter, starting at the first bound.
const FIRST_BOUND_MICROS: f64 = 50.0;
const BOUND_GROWTH: f64 = 1.25;
/// Enough for a minute; longer times count in the last bucket.
const BOUNDS: usize = 64;

#[derive(Debug)]
pub(crate) struct Metrics {
    commits: AtomicU64,
    /// The number of commits in each bucket of commit times.
    commit_times: [AtomicU64; BOUNDS],
    commit_bytes: AtomicU64,
    commit_micros: AtomicU64,
    flush_wait_micros: AtomicU64,
    expired: AtomicU64,
    changes_trimmed: AtomicU64,
}

/// Counters since the engine was opened, and current sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MetricsSnapshot {
    /// Groups written.
    pub commits: u64,
    pub commit_bytes: u64,
    /// Time spent writing and syncing groups.
    pub commit_micros: u64,
    /// The median commit time of a group, at most 25 % too high.
    pub commit_p50_micros: u64,
    /// The 99th percentile of commit times, at most 25 % too high.
    pub commit_p99_micros: u64,
    /// Time that groups waited for the key-value store to flush.
    pub flush_wait_micros: u64,
    /// Items deleted because they expired.
    pub expired: u64,
    /// Changes trimmed from the log.
    pub changes_trimmed: u64,
    pub queued_bytes: u64,
    pub write_buffer_bytes: u64,
    pub cache_bytes: u64,
    pub disk_bytes: u64,
    /// Free space on the disk; 0 if unknown.
    pub disk_free_bytes: u64,
    /// How often the store was reopened after a failed write.
    pub reopened: u64,
    /// The most entries read from one snapshot: an open snapshot holds memory.
    pub snapshot_entries_max: u64,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            commits: AtomicU64::default(),
            commit_times: std::array::from_fn(|_| AtomicU64::default()),
            commit_bytes: AtomicU64::default(),
            commit_micros: AtomicU64::default(),
            flush_wait_micros: AtomicU64::default(),
            expired: AtomicU64::default(),
            changes_trimmed: AtomicU64::default(),
        }
    }
}

impl Metrics {
    pub(crate) fn committed(&self, bytes: usize, took: Duration) {
        self.commits.fetch_add(1, Ordering::Relaxed);
        self.commit_times[bound_of(took)].fetch_add(1, Ordering::Relaxed);
        self.commit_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        self.commit_micros
            .fetch_add(micros(took), Ordering::Relaxed);
    }

    pub(crate) fn commit_bytes(&self) -> u64 {
        self.commit_bytes.load(Ordering::Relaxed)
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

    /// The counters; the caller fills in the sizes.
    pub(crate) fn snapshot(&self) -> MetricsSnapshot {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let times = self.commit_times.each_ref().map(read);
        MetricsSnapshot {
            commits: read(&self.commits),
            commit_p50_micros: quantile_micros(&times, 0.5),
            commit_p99_micros: quantile_micros(&times, 0.99),
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

/// The bucket of a time.
fn bound_of(took: Duration) -> usize {
    let steps = (took.as_secs_f64() * 1e6 / FIRST_BOUND_MICROS)
        .max(1.0)
        .ln()
        / BOUND_GROWTH.ln();
    // Rounded down slightly, so that a bound belongs to its own bucket.
    ((steps - 1e-9).ceil().max(0.0) as usize).min(BOUNDS - 1)
}

/// The bound of the bucket with this quantile of all times; 0 without any times.
fn quantile_micros(times: &[u64; BOUNDS], share: f64) -> u64 {
    let wanted = times.iter().sum::<u64>() as f64 * share;
    let mut seen = 0;
    let bound = times.iter().position(|count| {
        seen += count;
        seen > 0 && seen as f64 >= wanted
    });
    bound.map_or(0, |bound| {
        let steps = i32::try_from(bound).unwrap_or(i32::MAX);
        (FIRST_BOUND_MICROS * BOUND_GROWTH.powi(steps)) as u64
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_accurate_within_a_quarter() {
        let metrics = Metrics::default();
        assert_eq!(metrics.snapshot().commit_p99_micros, 0);
        for micros in 1..=1000 {
            metrics.committed(0, Duration::from_micros(micros));
        }
        let snapshot = metrics.snapshot();
        for (found, exact) in [
            (snapshot.commit_p50_micros, 500.0),
            (snapshot.commit_p99_micros, 990.0),
        ] {
            let ratio = found as f64 / exact;
            assert!((0.99..1.26).contains(&ratio), "{found} for {exact}");
        }
    }

    #[test]
    fn times_of_any_length_have_a_bucket() {
        assert_eq!(bound_of(Duration::ZERO), 0);
        assert_eq!(bound_of(Duration::from_micros(50)), 0);
        assert_eq!(bound_of(Duration::from_micros(51)), 1);
        assert_eq!(bound_of(Duration::MAX), BOUNDS - 1);
    }
}
