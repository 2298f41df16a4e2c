//! What a rule has done since the process started: counted on the way of every message, so that
//! counting takes no lock; the last failures are kept with their reasons.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use metrics::Counter;

use super::failure::Failure;
use super::name::RuleName;

/// Failures that are kept of each rule.
pub const FAILURES_KEPT: usize = 50;

/// How long messages that matched took, together; divided by how many there were, the mean.
const MICROS: &str = "homeport_rule_microseconds_total";

/// The counters of one rule. They outlive its changes and end with its name.
pub(super) struct RuleStats {
    counters: [Tally; Counted::ALL.len()],
    micros: AtomicU64,
    micros_exported: Counter,
    micros_max: AtomicU64,
    /// Whether a time to live came in milliseconds.
    ttl_in_millis: AtomicBool,
    failures: Mutex<VecDeque<Failure>>,
}

/// A number for people who ask the rule, and the same for those who ask the metrics.
struct Tally {
    count: AtomicU64,
    exported: Counter,
}

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Counted {
    /// Messages that the statement selected.
    Matched,
    /// Messages on its topics that WHERE kept out.
    NotMatched,
    /// Messages on which the statement failed.
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
    /// From taking a message to everything being durable, over all that matched.
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
    pub(super) fn new(name: &RuleName) -> Self {
        Self::with(|metric| metrics::counter!(metric, "rule" => name.to_string()))
    }

    /// Counters that nobody sees, for a rule that is only looked at.
    pub(super) fn unseen() -> Self {
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

    pub(super) fn count(&self, counted: Counted) {
        let tally = &self.counters[counted.position()];
        tally.count.fetch_add(1, Ordering::Relaxed);
        tally.exported.increment(1);
    }

    /// How long a message that matched took.
    pub(super) fn took(&self, duration: Duration) {
        let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        self.micros.fetch_add(micros, Ordering::Relaxed);
        self.micros_exported.increment(micros);
        self.micros_max.fetch_max(micros, Ordering::Relaxed);
    }

    /// Notes a time to live in milliseconds; true the first time.
    pub(super) fn note_ttl_in_millis(&self) -> bool {
        // Looked at first: a message that changes nothing must not write to memory that others read.
        !self.ttl_in_millis.load(Ordering::Relaxed)
            && !self.ttl_in_millis.swap(true, Ordering::Relaxed)
    }

    pub(super) fn has_ttl_in_millis(&self) -> bool {
        self.ttl_in_millis.load(Ordering::Relaxed)
    }

    pub(super) fn keep(&self, failure: Failure) {
        let mut failures = self.lock();
        if failures.len() == FAILURES_KEPT {
            failures.pop_front();
        }
        failures.push_back(failure);
    }

    /// The last failures, the newest first.
    pub(super) fn failures(&self) -> Vec<Failure> {
        self.lock().iter().rev().cloned().collect()
    }

    /// The last failures, which are forgotten with this.
    pub(super) fn take_failures(&self) -> Vec<Failure> {
        self.lock().drain(..).collect()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, VecDeque<Failure>> {
        // What is in there is whole whatever happened to another thread.
        self.failures
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    pub(super) fn counts(&self) -> RuleCounts {
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
