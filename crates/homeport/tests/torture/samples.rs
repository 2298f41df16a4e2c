//! Samples of the server's memory and descriptors.

use std::fmt;

#[derive(Debug, Clone, Default)]
pub(crate) struct Samples {
    resident_bytes: Vec<u64>,
    descriptors_max: usize,
}

impl Samples {
    /// Samples a process, unless it has ended.
    pub(crate) fn take(&mut self, process: u32) {
        let status = std::fs::read_to_string(format!("/proc/{process}/status"));
        let status = status.unwrap_or_default();
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("RssAnon:"));
        let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        self.resident_bytes.extend(kib.map(|kib| kib * 1024));
        self.descriptors_max = self.descriptors_max.max(descriptors(process));
    }

    pub(crate) fn resident_max_bytes(&self) -> u64 {
        self.resident_bytes
            .iter()
            .max()
            .copied()
            .unwrap_or_default()
    }

    fn resident_median_bytes(&self) -> u64 {
        let mut sorted = self.resident_bytes.clone();
        sorted.sort_unstable();
        sorted.get(sorted.len() / 2).copied().unwrap_or_default()
    }
}

/// Number of open descriptors of a process; 0 if it has ended.
pub(crate) fn descriptors(process: u32) -> usize {
    let entries = std::fs::read_dir(format!("/proc/{process}/fd"));
    entries.map_or(0, Iterator::count)
}

impl fmt::Display for Samples {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Resident memory: median {} MB, at most {} MB; at most {} descriptors ({} samples).",
            self.resident_median_bytes() / 1_000_000,
            self.resident_max_bytes() / 1_000_000,
            self.descriptors_max,
            self.resident_bytes.len()
        )
    }
}
