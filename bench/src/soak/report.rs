//! The measurements of a soak, their limits, and the report in Markdown.

use std::time::Duration;

use crate::table::megabytes;

/// Limit for the time without any response.
const SILENCE_MAX: Duration = Duration::from_secs(1);
/// The store flushes idle tables when its closed journals take 128 MiB. The rest is the open journal, and journals that stay
/// until flushes are done.
const JOURNAL_BYTES_MAX: u64 = 512 * 1024 * 1024;
/// Maximum relative increase of a median from the first to the second half.
const MEMORY_GROWTH_MAX: f64 = 0.10;

/// A sample of the server and its directory.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sample {
    pub(super) resident_bytes: u64,
    pub(super) journal_bytes: u64,
    pub(super) table_bytes: u64,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Minute {
    /// Readings per second.
    pub(super) rate: f64,
    pub(super) latency_p50: Duration,
    pub(super) latency_p99: Duration,
    pub(super) latency_max: Duration,
    pub(super) longest_silence: Duration,
    pub(super) samples: Vec<Sample>,
}

#[derive(Debug, Default)]
pub(super) struct Soak {
    pub(super) minutes: Vec<Minute>,
}

impl Minute {
    fn most(&self, of: fn(&Sample) -> u64) -> u64 {
        self.samples.iter().map(of).max().unwrap_or_default()
    }
}

impl Soak {
    pub(super) fn print(&self) {
        println!(
            "| minute | readings a second | median ms | p99 ms | longest ms | longest time without an answer, ms | resident MB | journals MB | other files MB |"
        );
        println!("|{}", " --: |".repeat(9));
        for (number, minute) in (1..).zip(&self.minutes) {
            println!(
                "| {number} | {:.0} | {:.1} | {:.1} | {:.1} | {:.1} | {:.0} | {:.0} | {:.0} |",
                minute.rate,
                millis(minute.latency_p50),
                millis(minute.latency_p99),
                millis(minute.latency_max),
                millis(minute.longest_silence),
                megabytes(minute.most(|sample| sample.resident_bytes)),
                megabytes(minute.most(|sample| sample.journal_bytes)),
                megabytes(minute.most(|sample| sample.table_bytes)),
            );
        }
        let (first, second) = self.resident_medians();
        println!();
        println!(
            "Longest time without an answer: {:.0} ms. Journals: at most {:.0} MB. Resident memory: median {:.0} MB in the first half, {:.0} MB in the second.",
            millis(self.longest_silence()),
            megabytes(self.journal_bytes_max()),
            megabytes(first),
            megabytes(second),
        );
    }

    /// The exceeded limits.
    pub(super) fn failures(&self) -> Vec<String> {
        let mut failures = Vec::new();
        let silence = self.longest_silence();
        if silence > SILENCE_MAX {
            failures.push(format!(
                "no answer for {:.0} ms, more than {:.0} ms",
                millis(silence),
                millis(SILENCE_MAX)
            ));
        }
        let journals = self.journal_bytes_max();
        if journals > JOURNAL_BYTES_MAX {
            failures.push(format!(
                "journals of {:.0} MB, more than {:.0} MB",
                megabytes(journals),
                megabytes(JOURNAL_BYTES_MAX)
            ));
        }
        let (first, second) = self.resident_medians();
        if second as f64 > first as f64 * (1.0 + MEMORY_GROWTH_MAX) {
            failures.push(format!(
                "memory grew from {:.0} MB to {:.0} MB",
                megabytes(first),
                megabytes(second)
            ));
        }
        failures
    }

    fn longest_silence(&self) -> Duration {
        let silences = self.minutes.iter().map(|minute| minute.longest_silence);
        silences.max().unwrap_or_default()
    }

    fn journal_bytes_max(&self) -> u64 {
        let most = |minute: &Minute| minute.most(|sample| sample.journal_bytes);
        self.minutes.iter().map(most).max().unwrap_or_default()
    }

    /// Medians of both halves of the run.
    fn resident_medians(&self) -> (u64, u64) {
        let samples = self.minutes.iter().flat_map(|minute| &minute.samples);
        let resident: Vec<u64> = samples.map(|sample| sample.resident_bytes).collect();
        let (first, second) = resident.split_at(resident.len() / 2);
        (median(first), median(second))
    }
}

fn median(values: &[u64]) -> u64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).copied().unwrap_or_default()
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    fn soak(resident_mb: [u64; 4], journal_mb: u64, silence_ms: u64) -> Soak {
        let minutes = resident_mb.map(|resident_mb| Minute {
            longest_silence: Duration::from_millis(silence_ms),
            samples: vec![Sample {
                resident_bytes: resident_mb * 1_000_000,
                journal_bytes: journal_mb * 1_000_000,
                table_bytes: 0,
            }],
            ..Minute::default()
        });
        Soak {
            minutes: minutes.into(),
        }
    }

    #[test]
    fn each_exceeded_limit_is_a_failure() {
        let flat = [250, 260, 255, 258];
        for (soak, failure) in [
            (soak(flat, 300, 900), None),
            (soak(flat, 300, 1100), Some("no answer for 1100 ms")),
            (soak(flat, 600, 900), Some("journals of 600 MB")),
            (
                soak([200, 210, 250, 260], 300, 900),
                Some("memory grew from 210 MB to 260 MB"),
            ),
        ] {
            let failures = soak.failures();
            assert_eq!(
                failures.len(),
                usize::from(failure.is_some()),
                "{failures:?}"
            );
            if let Some(text) = failure {
                assert!(failures[0].starts_with(text), "{failures:?}");
            }
        }
    }
}
