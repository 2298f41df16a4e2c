//! Counters of a rule since the start of the process, and its last failures. Every message is counted,
//! so counting takes no lock.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use metrics::Counter;

use super::failure::Failure;
use crate::rules::definitions::name::RuleName;

/// Failures that are kept for each rule.
pub const FAILURES_KEPT: usize = 50;

/// The total processing time of matched messages; divided by their number it is the mean.
const MICROS: &str = "homeport_rule_microseconds_total";

/// The counters of a rule. They survive changes and end with the rule.
pub(in crate::rules) struct RuleStats {
    counters: [Tally; Counted::ALL.len()],
    micros: AtomicU64,
    micros_exported: Counter,
    micros_max: AtomicU64,
    /// Whether an expiry in milliseconds was seen.
    ttl_in_millis: AtomicBool,
    failures: Mutex<VecDeque<Failure>>,
}

/// A counter that both the API and the metrics report.
struct Tally {
    count: AtomicU64,
    exported: Counter,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::rules) enum Counted {
    /// Messages that matched the statement.
    Matched,
    /// Messages on its topics that WHERE excluded.
    NotMatched,
    /// Messages for which the statement failed.
    Failed,
    ActionsDone,
    ActionsFailed,
}

/// The counters at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RuleCounts {
    pub matched: u64,
    pub not_matched: u64,
    pub failed: u64,
    pub actions_done: u64,
    pub actions_failed: u64,
    /// The total time of all matched messages until their writes were durable.
    pub mean_micros: u64,
    pub max_micros: u64,
}

impl Counted {
    const ALL: [Self; 5] = [
        Self::Matched,
        Self::NotMatched,
        Self::Failed,
        Self::ActionsDone,
        Self::ActionsFailed,
    ];

    fn metric(self) -> &'static str {
        match self {
            Self::Matched => "homeport_rule_matched_total",
            Self::NotMatched => "homeport_rule_not_matched_total",
            Self::Failed => "homeport_rule_failed_total",
            Self::ActionsDone => "homeport_rule_actions_done_total",
            Self::ActionsFailed => "homeport_rule_actions_failed_total",
        }
    }

    fn position(self) -> usize {
        match self {
            Self::Matched => 0,
            Self::NotMatched => 1,
            Self::Failed => 2,
            Self::ActionsDone => 3,
            Self::ActionsFailed => 4,
        }
    }
}

impl RuleStats {
    pub(in crate::rules) fn new(name: &RuleName) -> Self {
        Self::with(|metric| metrics::counter!(metric, "rule" => name.to_string()))
    }

    /// Counters without metrics, for replays and trials.
    pub(in crate::rules) fn unseen() -> Self {
        Self::with(|_| Counter::noop())
    }

    fn with(exported: impl Fn(&'static str) -> Counter) -> Self {
        Self {
            counters: Counted::ALL.map(|counted| Tally {
                count: AtomicU64::new(0),
                exported: exported(counted.metric()),
            }),
            micros: AtomicU64::new(0),
            micros_exported: exported(MICROS),
            micros_max: AtomicU64::new(0),
            ttl_in_millis: AtomicBool::new(false),
            failures: Mutex::default(),
        }
    }

    pub(in crate::rules) fn count(&self, counted: Counted) {
        let tally = &self.counters[counted.position()];
        tally.count.fetch_add(1, Ordering::Relaxed);
        tally.exported.increment(1);
    }

    /// Adds the processing time of a matched message.
    pub(in crate::rules) fn took(&self, duration: Duration) {
        let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        self.micros.fetch_add(micros, Ordering::Relaxed);
        self.micros_exported.increment(micros);
        self.micros_max.fetch_max(micros, Ordering::Relaxed);
    }

    /// Notes an expiry in milliseconds; true the first time.
    pub(in crate::rules) fn note_ttl_in_millis(&self) -> bool {
        // Read first, so that most messages do not write to shared memory.
        !self.ttl_in_millis.load(Ordering::Relaxed)
            && !self.ttl_in_millis.swap(true, Ordering::Relaxed)
    }

    pub(in crate::rules) fn has_ttl_in_millis(&self) -> bool {
        self.ttl_in_millis.load(Ordering::Relaxed)
    }

    pub(in crate::rules) fn keep(&self, failure: Failure) {
        let mut failures = self.lock();
        if failures.len() == FAILURES_KEPT {
            failures.pop_front();
        }
        failures.push_back(failure);
    }

    /// The last failures, newest first.
    pub(in crate::rules) fn failures(&self) -> Vec<Failure> {
        self.lock().iter().rev().cloned().collect()
    }

    /// Takes the last failures.
    pub(in crate::rules) fn take_failures(&self) -> Vec<Failure> {
        self.lock().drain(..).collect()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, VecDeque<Failure>> {
        // The contents are valid even if another thread panicked.
        self.failures
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    pub(in crate::rules) fn counts(&self) -> RuleCounts {
        let of = |counted: Counted| {
            let tally = &self.counters[counted.position()];
            tally.count.load(Ordering::Relaxed)
        };
        let matched = of(Counted::Matched);
        RuleCounts {
            matched,
            not_matched: of(Counted::NotMatched),
            failed: of(Counted::Failed),
            actions_done: of(Counted::ActionsDone),
            actions_failed: of(Counted::ActionsFailed),
            mean_micros: self
                .micros
                .load(Ordering::Relaxed)
                .checked_div(matched)
                .unwrap_or(0),
            max_micros: self.micros_max.load(Ordering::Relaxed),
        }
    }
}

impl std::fmt::Debug for RuleStats {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("RuleStats")
            .field("counts", &self.counts())
            .finish_non_exhaustive()
    }
}
