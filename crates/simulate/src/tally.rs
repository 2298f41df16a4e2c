//! Counts of a run's events, and the verdict that they lead to.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::Plan;

#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Counts of messages, unless noted otherwise.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) made: Counter,
    /// Counts a message once for each request that carried it.
    pub(crate) sent: Counter,
    pub(crate) acknowledged: Counter,
    pub(crate) duplicates: Counter,
    pub(crate) expired: Counter,
    pub(crate) rejected: Counter,
    pub(crate) overwritten: Counter,
    /// Requests whose response was lost on purpose.
    pub(crate) disconnects: Counter,
    /// Requests that failed and were repeated.
    pub(crate) retries: Counter,
    pub(crate) read_back: Counter,
    /// Devices that were read back.
    pub(crate) devices_read: Counter,
}

/// Result of reading back.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Verdict {
    /// Confirmed, but not stored.
    pub(crate) missing: u64,
    /// Stored more than once.
    pub(crate) repeated: u64,
    /// Stored again because it was sent again, by a fleet whose messages the server cannot recognize.
    pub(crate) stored_again: u64,
    /// Stored, but not delivered to the device in time.
    pub(crate) undelivered: u64,
    /// Devices whose totals on the server do not match.
    pub(crate) uncounted: u64,
    /// Stored, but with different content.
    pub(crate) altered: u64,
    /// Never answered before the device's patience ended.
    pub(crate) unanswered: u64,
    /// Unanswered but stored, which is allowed.
    pub(crate) unconfirmed: u64,
    /// Rejected, although devices send valid messages only.
    pub(crate) rejected: u64,
    /// Rejected, but stored.
    pub(crate) rejected_but_stored: u64,
    /// Reported as expired, although it is within retention.
    pub(crate) expired_early: u64,
    /// The server accepted none of the messages.
    pub(crate) accepted_nothing: bool,
}

impl Verdict {
    pub(crate) fn is_good(&self) -> bool {
        let Self {
            missing,
            repeated,
            altered,
            unanswered,
            uncounted,
            undelivered,
            rejected,
            rejected_but_stored,
            expired_early,
            accepted_nothing,
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
            rejected_but_stored,
            expired_early,
        ];
        bad.iter().all(|count| **count == 0) && !accepted_nothing
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.missing += other.missing;
        self.repeated += other.repeated;
        self.stored_again += other.stored_again;
        self.uncounted += other.uncounted;
        self.undelivered += other.undelivered;
        self.altered += other.altered;
        self.unanswered += other.unanswered;
        self.unconfirmed += other.unconfirmed;
        self.rejected += other.rejected;
        self.rejected_but_stored += other.rejected_but_stored;
        self.expired_early += other.expired_early;
        self.accepted_nothing |= other.accepted_nothing;
    }
}

impl Tally {
    /// Messages that need no further sending.
    pub(crate) fn settled(&self) -> u64 {
        self.acknowledged.get()
            + self.duplicates.get()
            + self.expired.get()
            + self.rejected.get()
            + self.overwritten.get()
    }

    /// Whether the server accepted none of the messages.
    pub(crate) fn accepted_nothing(&self) -> bool {
        self.made.get() > 0 && self.acknowledged.get() + self.duplicates.get() == 0
    }

    pub(crate) fn summary<'a>(&'a self, plan: &'a Plan, verdict: &'a Verdict) -> Summary<'a> {
        Summary {
            tally: self,
            plan,
            verdict,
        }
    }
}

pub(crate) struct Summary<'a> {
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
            ("expired early", verdict.expired_early),
            ("rejected but stored", verdict.rejected_but_stored),
        ];
        for (name, count) in lines {
            writeln!(formatter, "{name:<20}{count:>12}")?;
        }
        formatter.write_str(match () {
            () if verdict.missing + verdict.repeated + verdict.altered > 0 => {
                "FAILED: an acknowledged message is missing, repeated or altered"
            }
            () if verdict.rejected_but_stored > 0 => "FAILED: a rejected message was stored",
            () if verdict.rejected > 0 => {
                "FAILED: every acknowledged message is stored exactly once, but the server rejected valid messages"
            }
            () if verdict.expired_early > 0 => {
                "FAILED: the server reported a message as expired that is within its retention; check --retention-days"
            }
            () if verdict.unanswered > 0 => {
                "FAILED: every acknowledged message is stored exactly once, but some messages were never answered"
            }
            () if verdict.undelivered > 0 => {
                "FAILED: every acknowledged message is stored exactly once, but some were not delivered to their device"
            }
            () if verdict.uncounted > 0 => {
                "FAILED: every acknowledged message is stored exactly once, but the server's totals of a device do not match"
            }
            () if verdict.accepted_nothing => "FAILED: the server acknowledged no message, so the run proves nothing",
            () if verdict.stored_again > 0 => {
                "every acknowledged message is stored; messages sent again after a lost response are stored again"
            }
            () => "every acknowledged message is stored exactly once",
        })
    }
}
