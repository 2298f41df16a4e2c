//! Measurements of processes and their files from the operating system.

use std::path::Path;
use std::time::Duration;

/// The kernel counts processor time in hundredths of a second.
const TICK: Duration = Duration::from_millis(10);

/// This process, where others are named by id.
pub(crate) const SELF: &str = "self";

/// Processor time used by a process.
pub(crate) fn cpu_time(process: &str) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // The name in parentheses may contain anything, so fields are counted from its end.
    let fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let ticks: u32 = fields
        .split_whitespace()
        .skip(11)
        .take(2)
        .filter_map(|field| field.parse::<u32>().ok())
        .sum();
    TICK * ticks
}

/// A line of a process's status in bytes, such as `VmRSS` or `VmHWM`.
pub(crate) fn memory_bytes(process: &str, name: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    status
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
        .and_then(|value| value.split_whitespace().next()?.parse::<u64>().ok())
        .map_or(0, |kib| kib * 1024)
}

/// The bytes of a directory's journals and of its other files.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct DiskUse {
    pub(crate) journals: u64,
    pub(crate) others: u64,
}

/// The sizes of all files below a directory, except those deleted meanwhile.
pub(crate) fn disk_use(directory: &Path) -> std::io::Result<DiskUse> {
    let mut used = DiskUse::default();
    let entries = match std::fs::read_dir(directory) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(used),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let metadata = match entry.metadata() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            metadata => metadata?,
        };
        if metadata.is_dir() {
            let inner = disk_use(&entry.path())?;
            used.journals += inner.journals;
            used.others += inner.others;
        } else if entry.path().extension().is_some_and(|end| end == "jnl") {
            used.journals += metadata.len();
        } else {
            used.others += metadata.len();
        }
    }
    Ok(used)
}
