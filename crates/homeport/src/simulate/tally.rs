//! What happened in a run, counted as it happens, and what that means in the end.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use super::Plan;

#[derive(Debug, Default)]
pub(super) struct Counter(AtomicU64);

impl Counter {
    pub(super) fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Counts of messages, except where another thing is named.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) made: Counter,
    /// Each as often as it was in a request.
    pub(super) sent: Counter,
    pub(super) acknowledged: Counter,
    pub(super) duplicates: Counter,
    pub(super) expired: Counter,
    pub(super) rejected: Counter,
    pub(super) overwritten: Counter,
    /// Requests whose answer the device did not see.
    pub(super) disconnects: Counter,
    /// Requests that had to be made again.
    pub(super) retries: Counter,
    pub(super) read_back: Counter,
    /// Devices whose messages were read back.
    pub(super) devices_read: Counter,
}

/// What reading back showed.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Verdict {
    /// Confirmed and not there.
    pub(super) missing: u64,
    /// There more than once.
    pub(super) repeated: u64,
    /// There again because it was sent again, where the server cannot know that.
    pub(super) stored_again: u64,
    /// There, but not where it was to go, though it was waited for.
    pub(super) undelivered: u64,
    /// Devices of which the server's account does not add up.
    pub(super) uncounted: u64,
    /// There, but not as it was sent.
    pub(super) altered: u64,
    /// Never answered, though the device tried until its patience ended.
    pub(super) unanswered: u64,
    /// Not answered and there all the same, which is allowed.
    pub(super) unconfirmed: u64,
    /// Turned away, though every message that a device makes is a good one.
    pub(super) rejected: u64,
    /// Turned away and there all the same.
    pub(super) kept_anyway: u64,
    /// Said to have expired, though it is younger than what the server keeps.
    pub(super) gone_early: u64,
    /// Messages were made, and the server has taken none of them.
    pub(super) took_nothing: bool,
}

impl Verdict {
    pub(super) fn is_good(&self) -> bool {
        let Self {
            missing,
            repeated,
            altered,
            unanswered,
            uncounted,
            undelivered,
            rejected,
            kept_anyway,
            gone_early,
            took_nothing,
            stored_again: _,
            unconfirmed: _,
        } = self;
        let bad = [
            missing,
            repeated,
            altered,
            unanswered,
            uncounted,
            undelivered,
            rejected,
            kept_anyway,
            gone_early,
        ];
        bad.iter().all(|count| **count == 0) && !took_nothing
    }

    pub(super) fn add(&mut self, other: Self) {
        self.missing += other.missing;
        self.repeated += other.repeated;
        self.stored_again += other.stored_again;
        self.uncounted += other.uncounted;
        self.undelivered += other.undelivered;
        self.altered += other.altered;
        self.unanswered += other.unanswered;
        self.unconfirmed += other.unconfirmed;
        self.rejected += other.rejected;
        self.kept_anyway += other.kept_anyway;
        self.gone_early += other.gone_early;
        self.took_nothing |= other.took_nothing;
    }
}

impl Tally {
    /// Messages that need no more sending.
    pub(super) fn settled(&self) -> u64 {
        self.acknowledged.get()
            + self.duplicates.get()
            + self.expired.get()
            + self.rejected.get()
            + self.overwritten.get()
    }

    /// Whether messages were made and the server has acknowledged none of them.
    pub(super) fn took_nothing(&self) -> bool {
        self.made.get() > 0 && self.acknowledged.get() + self.duplicates.get() == 0
    }

    pub(super) fn summary<'a>(&'a self, plan: &'a Plan, verdict: &'a Verdict) -> Summary<'a> {
        Summary {
            tally: self,
            plan,
            verdict,
        }
    }
}

pub(super) struct Summary<'a> {
    tally: &'a Tally,
    plan: &'a Plan,
    verdict: &'a Verdict,
}

impl fmt::Display for Summary<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            tally,
            plan,
            verdict,
        } = self;
        let lines = [
            ("devices", u64::from(plan.devices)),
            ("made", tally.made.get()),
            ("sent", tally.sent.get()),
            ("acknowledged", tally.acknowledged.get()),
            ("duplicates", tally.duplicates.get()),
            ("expired", tally.expired.get()),
            ("rejected", tally.rejected.get()),
            ("overwritten", tally.overwritten.get()),
            ("unanswered", verdict.unanswered),
            ("disconnects", tally.disconnects.get()),
            ("retries", tally.retries.get()),
            ("read back", tally.read_back.get()),
            ("unconfirmed", verdict.unconfirmed),
            ("missing", verdict.missing),
            ("repeated", verdict.repeated),
            ("stored again", verdict.stored_again),
            ("altered", verdict.altered),
            ("undelivered", verdict.undelivered),
            ("uncounted", verdict.uncounted),
            ("gone early", verdict.gone_early),
            ("kept anyway", verdict.kept_anyway),
        ];
        for (name, count) in lines {
            writeln!(formatter, "{name:<13}{count:>12}")?;
        }
        formatter.write_str(match () {
            () if verdict.missing + verdict.repeated + verdict.altered > 0 => {
                "FAILED: something that was acknowledged is not there exactly once as it was sent"
            }
            () if verdict.kept_anyway > 0 => "FAILED: something that was rejected is there all the same",
            () if verdict.rejected > 0 => {
                "FAILED: everything that was acknowledged is there exactly once, but good messages were rejected"
            }
            () if verdict.gone_early > 0 => {
                "FAILED: something is said to have expired that is younger than what the server keeps (--retention-days)"
            }
            () if verdict.unanswered > 0 => {
                "FAILED: everything that was acknowledged is there exactly once, but not everything was answered"
            }
            () if verdict.undelivered > 0 => {
                "FAILED: everything that was acknowledged is there exactly once, but not everything has reached its device"
            }
            () if verdict.uncounted > 0 => {
                "FAILED: everything that was acknowledged is there exactly once, but the server's account of a device does not add up"
            }
            () if verdict.took_nothing => "FAILED: nothing was acknowledged, so that nothing is proved",
            () if verdict.stored_again > 0 => {
                "everything that was acknowledged is there; what was sent again after a lost answer is there again"
            }
            () => "everything that was acknowledged is there exactly once",
        })
    }
}
