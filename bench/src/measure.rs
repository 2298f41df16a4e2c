//! Runs a contestant's operations from many callers and measures latencies.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::process;

/// One round of one contestant.
#[derive(Debug, Clone, Default)]
pub(crate) struct Round {
    /// Operations or items per second.
    pub(crate) rate: f64,
    pub(crate) latencies: Vec<Duration>,
}

/// All rounds of one contestant in one row.
#[derive(Debug, Clone, Default)]
pub(crate) struct Measured {
    rounds: Vec<Round>,
}

impl Measured {
    pub(crate) fn add(&mut self, round: Round) {
        self.rounds.push(round);
    }

    /// The median over the rounds.
    pub(crate) fn rate(&self) -> f64 {
        let rates = self.sorted_rates();
        rates.get(rates.len() / 2).copied().unwrap_or(0.0)
    }

    /// The deviation of the slowest and the fastest round from the median, in percent.
    pub(crate) fn spread_percent(&self) -> (f64, f64) {
        let rates = self.sorted_rates();
        let middle = self.rate().max(f64::MIN_POSITIVE);
        let off = |rate: Option<&f64>| rate.map_or(0.0, |rate| (rate / middle - 1.0) * 100.0);
        (off(rates.first()), off(rates.last()))
    }

    /// A latency percentile of all calls.
    pub(crate) fn latency(&self, percent: usize) -> Duration {
        let all = self.rounds.iter().flat_map(|round| &round.latencies);
        percentile(all.copied().collect(), percent)
    }

    fn sorted_rates(&self) -> Vec<f64> {
        let mut rates: Vec<_> = self.rounds.iter().map(|round| round.rate).collect();
        rates.sort_by(f64::total_cmp);
        rates
    }
}

pub(crate) fn percentile(mut latencies: Vec<Duration>, percent: usize) -> Duration {
    latencies.sort_unstable();
    let at = latencies.len() * percent / 100;
    let last = latencies.len().saturating_sub(1);
    latencies.get(at.min(last)).copied().unwrap_or_default()
}

/// Prepared calls: one list per caller.
pub(crate) type Calls<T> = Vec<Vec<T>>;

/// Makes all calls; callers run concurrently. `weight` is what one call counts in the rate.
pub(crate) async fn run<T, F, M>(calls: Calls<T>, weight: usize, make: M) -> Round
where
    T: Send + 'static,
    F: Future<Output = ()> + Send,
    M: Fn(usize, T) -> F + Clone + Send + Sync + 'static,
{
    settle().await;
    let count: usize = calls.iter().map(Vec::len).sum();
    let started = Instant::now();
    let callers: Vec<_> = calls
        .into_iter()
        .enumerate()
        .map(|(caller, calls)| {
            let make = make.clone();
            tokio::spawn(async move {
                let mut latencies = Vec::with_capacity(calls.len());
                for call in calls {
                    let started = Instant::now();
                    make(caller, call).await;
                    latencies.push(started.elapsed());
                }
                latencies
            })
        })
        .collect();
    let mut latencies = Vec::with_capacity(count);
    for caller in callers {
        latencies.extend(caller.await.expect("a caller does not panic"));
    }
    let secs = started.elapsed().as_secs_f64();
    Round {
        rate: (count * weight) as f64 / secs,
        latencies,
    }
}

/// Waits until this process's background work is done, so that it does not slow down the next contestant.
async fn settle() {
    const QUIET: Duration = Duration::from_millis(50);
    const WAIT_MAX: Duration = Duration::from_secs(20);
    let started = Instant::now();
    while started.elapsed() < WAIT_MAX {
        let before = process::cpu_time(process::SELF);
        tokio::time::sleep(QUIET).await;
        if process::cpu_time(process::SELF) - before <= Duration::from_millis(10) {
            return;
        }
    }
}

/// Counts finished calls, for progress reports.
#[derive(Debug, Clone, Default)]
pub(crate) struct Progress(Arc<AtomicU64>);

impl Progress {
    pub(crate) fn add(&self, count: usize) {
        self.0.fetch_add(count as u64, Ordering::Relaxed);
    }

    pub(crate) fn total(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_round_stands_for_all() {
        let mut measured = Measured::default();
        for rate in [80.0, 100.0, 150.0] {
            measured.add(Round {
                rate,
                latencies: vec![Duration::from_micros(1)],
            });
        }
        assert!((measured.rate() - 100.0).abs() < f64::EPSILON);
        let (low, high) = measured.spread_percent();
        assert!((low + 20.0).abs() < 1e-9 && (high - 50.0).abs() < 1e-9);
    }

    #[test]
    fn a_percentile_of_few_is_one_of_them() {
        let latencies: Vec<_> = (1..=4).map(Duration::from_micros).collect();
        assert_eq!(percentile(latencies.clone(), 50), Duration::from_micros(3));
        assert_eq!(percentile(latencies, 99), Duration::from_micros(4));
        assert_eq!(percentile(Vec::new(), 50), Duration::ZERO);
    }
}
