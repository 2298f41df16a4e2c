//! The machine's own limit: the rate of small durable appends.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::measure::percentile;

const APPEND_BYTES: usize = 10 * 1024;

#[derive(Debug, Clone, Copy)]
pub(crate) struct SyncSpeed {
    pub(crate) p50: Duration,
    pub(crate) p99: Duration,
    pub(crate) per_second: f64,
}

/// Appends 10 KiB and syncs, `count` times.
pub(crate) fn sync_speed(directory: &Path, count: usize) -> anyhow::Result<SyncSpeed> {
    let mut file = File::create(directory.join("sync-speed"))?;
    // Preallocated like the journal, because otherwise the file's length would be synced too.
    file.set_len((APPEND_BYTES * count) as u64)?;
    file.sync_all()?;
    let block = vec![0x5A; APPEND_BYTES];
    let mut latencies = Vec::with_capacity(count);
    let whole = Instant::now();
    for _ in 0..count {
        let started = Instant::now();
        file.write_all(&block)?;
        file.sync_data()?;
        latencies.push(started.elapsed());
    }
    let secs = whole.elapsed().as_secs_f64();
    Ok(SyncSpeed {
        p50: percentile(latencies.clone(), 50),
        p99: percentile(latencies, 99),
        per_second: count as f64 / secs,
    })
}
