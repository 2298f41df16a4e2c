//! Commit time: the time that changes are stamped with and that retention is measured by.
//!
//! It follows the wall clock but never goes backwards, and it ignores an unconfirmed jump ahead. While the
//! wall clock is behind, commit time runs at half speed until the wall clock has caught up. While the wall
//! clock is implausibly far ahead, commit time keeps running at normal speed from where it was, and nothing
//! that depends on the time is deleted. [ADR 026](../../../../docs/adr/026-commit-time.md) gives the reasons.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::error::OpenError;

/// How far the wall clock may be ahead of commit time before it has to be confirmed.
pub const CLOCK_LEAD_MAX_MS: i64 = 24 * HOUR_MS;
/// Steady commits for this long confirm the time.
pub const CLOCK_STEADY_MS: i64 = 6 * HOUR_MS;
/// Commits are steady while the gaps between them are no longer than this.
const STEADY_GAP_MAX_MS: i64 = 15 * 60 * 1000;
/// An idle store writes the commit time this often, so that a restart does not mistake idleness for a jump.
const PERSIST_EVERY_MS: i64 = HOUR_MS;
const HOUR_MS: i64 = 60 * 60 * 1000;

/// The wall clock and commit time at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Times {
    /// The wall clock. It decides which items readers and conditions see.
    pub(crate) wall_ms: i64,
    /// The time that changes are stamped with.
    pub(crate) commit_ms: i64,
    /// Whether the wall clock is too far ahead to delete anything by it.
    pub(crate) is_suspended: bool,
}

impl Times {
    /// The earlier of the two clocks: an item is deleted once both say that it has expired, so that readers
    /// no longer see it and the time is plausible.
    pub(crate) fn removal_ms(self) -> i64 {
        self.wall_ms.min(self.commit_ms)
    }

    pub(crate) fn removal_secs(self) -> i64 {
        self.removal_ms().div_euclid(1000)
    }
}

/// The state of the clocks, for operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockStatus {
    /// The wall clock.
    pub wall_ms: i64,
    /// The time that changes are stamped with.
    pub commit_ms: i64,
    /// Whether expiry and trimming are suspended until the time is confirmed.
    pub is_suspended: bool,
    /// How long commits have been steady since the clock became implausible.
    pub steady_ms: i64,
}

/// Decodes the commit time that a store has recorded.
pub(crate) fn decode(record: &[u8]) -> Result<i64, OpenError> {
    let bytes = record.try_into();
    bytes
        .map(i64::from_be_bytes)
        .map_err(|_| OpenError::DamagedCatalogue("the commit time".to_owned()))
}

#[derive(Debug)]
pub(crate) struct CommitClock {
    state: Mutex<State>,
    /// The newest commit time on disk.
    persisted_ms: AtomicI64,
}

#[derive(Debug)]
struct State {
    /// The wall clock's last reading.
    wall_ms: i64,
    commit_ms: i64,
    /// Half a millisecond is left over from running at half speed.
    has_half: bool,
    unconfirmed: Option<Unconfirmed>,
}

/// Exists while the wall clock is implausibly far ahead.
#[derive(Debug, Default)]
struct Unconfirmed {
    last_commit_wall_ms: Option<i64>,
    steady_ms: i64,
}

impl CommitClock {
    /// Resumes from the persisted commit time; without one, from the wall clock.
    pub(crate) fn new(persisted_ms: Option<i64>, wall_ms: i64) -> Self {
        let commit_ms = persisted_ms.unwrap_or(wall_ms);
        let mut state = State {
            wall_ms,
            commit_ms,
            has_half: false,
            unconfirmed: None,
        };
        state.observe(wall_ms);
        Self {
            state: Mutex::new(state),
            persisted_ms: AtomicI64::new(commit_ms),
        }
    }

    /// The current times.
    pub(crate) fn now(&self, wall_ms: i64) -> Times {
        let mut state = self.lock();
        state.observe(wall_ms);
        state.times()
    }

    /// The times for a commit, which counts towards confirming the clock.
    pub(crate) fn stamp(&self, wall_ms: i64) -> Times {
        let mut state = self.lock();
        state.observe(wall_ms);
        state.count_commit();
        state.times()
    }

    /// Accepts the wall clock's time, however far ahead it is.
    pub(crate) fn confirm(&self, wall_ms: i64) {
        let mut state = self.lock();
        state.observe(wall_ms);
        if state.unconfirmed.is_some() {
            state.resume("an operator");
        }
    }

    pub(crate) fn status(&self, wall_ms: i64) -> ClockStatus {
        let times = self.now(wall_ms);
        let state = self.lock();
        ClockStatus {
            wall_ms: times.wall_ms,
            commit_ms: times.commit_ms,
            is_suspended: times.is_suspended,
            steady_ms: state
                .unconfirmed
                .as_ref()
                .map_or(0, |unconfirmed| unconfirmed.steady_ms),
        }
    }

    /// Records that a commit with this time has been written.
    pub(crate) fn persisted(&self, commit_ms: i64) {
        self.persisted_ms.fetch_max(commit_ms, Ordering::AcqRel);
    }

    /// Whether the store has been idle for so long that its time should be written.
    pub(crate) fn is_persist_due(&self, now: Times) -> bool {
        let persisted_ms = self.persisted_ms.load(Ordering::Acquire);
        !now.is_suspended && now.commit_ms.saturating_sub(persisted_ms) >= PERSIST_EVERY_MS
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn times(&self) -> Times {
        Times {
            wall_ms: self.wall_ms,
            commit_ms: self.commit_ms,
            is_suspended: self.unconfirmed.is_some(),
        }
    }

    /// Advances commit time to match a new reading of the wall clock.
    fn observe(&mut self, wall_ms: i64) {
        let step_ms = wall_ms.saturating_sub(self.wall_ms);
        self.wall_ms = wall_ms;
        // A jump in either direction does not say how much time has passed.
        let passed_ms = if (0..=CLOCK_LEAD_MAX_MS).contains(&step_ms) {
            step_ms
        } else {
            0
        };
        if wall_ms.saturating_sub(self.commit_ms) > CLOCK_LEAD_MAX_MS {
            match self.unconfirmed {
                Some(_) => self.commit_ms = self.commit_ms.saturating_add(passed_ms),
                None => self.suspend(),
            }
            return;
        }
        if self.unconfirmed.take().is_some() {
            tracing::info!("the clock is plausible again: expiry and trimming resume");
        }
        let halves = passed_ms + i64::from(self.has_half);
        let slowed_ms = self.commit_ms.saturating_add(halves / 2);
        self.has_half = slowed_ms > wall_ms && halves % 2 == 1;
        self.commit_ms = slowed_ms.max(wall_ms);
    }

    fn suspend(&mut self) {
        self.unconfirmed = Some(Unconfirmed::default());
        tracing::warn!(
            ahead_hours = self.lead_ms() / HOUR_MS,
            "the clock is implausibly far ahead of the last commit: expired items and old changes are kept until \
             the time is confirmed, with `homeport time confirm` or by {} hours of steady commits",
            CLOCK_STEADY_MS / HOUR_MS
        );
    }

    fn resume(&mut self, confirmed_by: &str) {
        tracing::info!(
            confirmed_by,
            ahead_hours = self.lead_ms() / HOUR_MS,
            "the time is confirmed: expiry and trimming resume"
        );
        self.unconfirmed = None;
        self.has_half = false;
        self.commit_ms = self.commit_ms.max(self.wall_ms);
    }

    fn lead_ms(&self) -> i64 {
        self.wall_ms.saturating_sub(self.commit_ms)
    }

    fn count_commit(&mut self) {
        let wall_ms = self.wall_ms;
        let Some(unconfirmed) = &mut self.unconfirmed else {
            return;
        };
        let gap_ms = unconfirmed
            .last_commit_wall_ms
            .map(|last| wall_ms.saturating_sub(last))
            .filter(|gap| (0..=STEADY_GAP_MAX_MS).contains(gap));
        unconfirmed.steady_ms = gap_ms.map_or(0, |gap| unconfirmed.steady_ms + gap);
        unconfirmed.last_commit_wall_ms = Some(wall_ms);
        if unconfirmed.steady_ms >= CLOCK_STEADY_MS {
            self.resume("steady commits");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const START_MS: i64 = 1_800_000_000_000;
    const DAY_MS: i64 = 24 * HOUR_MS;

    fn clock() -> CommitClock {
        CommitClock::new(Some(START_MS), START_MS)
    }

    #[test]
    fn commit_time_follows_a_steady_clock() {
        let clock = clock();
        for second in 0..100 {
            let wall_ms = START_MS + second * 1000;
            assert_eq!(clock.stamp(wall_ms).commit_ms, wall_ms);
        }
    }

    #[test]
    fn clock_set_back_is_caught_up_at_half_speed() {
        let clock = clock();
        let back_ms = START_MS - HOUR_MS;
        assert_eq!(clock.stamp(back_ms).commit_ms, START_MS);
        // One millisecond at a time: the halves add up.
        for step in 1..=1000 {
            clock.stamp(back_ms + step);
        }
        assert_eq!(clock.now(back_ms + 1000).commit_ms, START_MS + 500);
        let times = clock.now(back_ms + 2 * HOUR_MS);
        assert_eq!(times.commit_ms, back_ms + 2 * HOUR_MS);
        assert!(!times.is_suspended);
    }

    #[test]
    fn jump_of_one_day_is_followed() {
        let times = clock().now(START_MS + CLOCK_LEAD_MAX_MS);
        assert_eq!(times.commit_ms, START_MS + CLOCK_LEAD_MAX_MS);
        assert!(!times.is_suspended);
    }

    #[test]
    fn jump_ahead_suspends_and_leaves_no_trace() {
        let clock = clock();
        let ahead_ms = START_MS + 400 * DAY_MS;
        assert_eq!(clock.stamp(ahead_ms).commit_ms, START_MS);
        let times = clock.stamp(ahead_ms + 5000);
        assert_eq!(times.commit_ms, START_MS + 5000);
        assert!(times.is_suspended);
        assert_eq!(times.removal_secs(), (START_MS + 5000) / 1000);
        let times = clock.stamp(START_MS + 6000);
        assert_eq!(times.commit_ms, START_MS + 6000);
        assert!(!times.is_suspended);
    }

    #[test]
    fn restart_does_not_confirm_a_jump() {
        let clock = CommitClock::new(Some(START_MS), START_MS + 30 * DAY_MS);
        let times = clock.now(START_MS + 30 * DAY_MS);
        assert!(times.is_suspended);
        assert_eq!(times.commit_ms, START_MS);
    }

    #[test]
    fn operator_confirms_the_time() {
        let now_ms = START_MS + 30 * DAY_MS;
        let clock = CommitClock::new(Some(START_MS), now_ms);
        clock.confirm(now_ms);
        let times = clock.now(now_ms);
        assert!(!times.is_suspended);
        assert_eq!(times.commit_ms, now_ms);
    }

    #[test]
    fn hours_of_steady_commits_confirm_the_time() {
        let mut now_ms = START_MS + 30 * DAY_MS;
        let clock = CommitClock::new(Some(START_MS), now_ms);
        clock.stamp(now_ms);
        for _ in 1..CLOCK_STEADY_MS / STEADY_GAP_MAX_MS {
            now_ms += STEADY_GAP_MAX_MS;
            assert!(clock.stamp(now_ms).is_suspended);
        }
        // Reading the time is not a commit.
        assert!(clock.now(now_ms + STEADY_GAP_MAX_MS).is_suspended);
        let times = clock.stamp(now_ms + STEADY_GAP_MAX_MS);
        assert!(!times.is_suspended);
        assert_eq!(times.commit_ms, now_ms + STEADY_GAP_MAX_MS);
    }

    #[test]
    fn pause_between_commits_restarts_the_count() {
        let mut now_ms = START_MS + 30 * DAY_MS;
        let clock = CommitClock::new(Some(START_MS), now_ms);
        for _ in 0..100 {
            now_ms += STEADY_GAP_MAX_MS + 1;
            assert!(clock.stamp(now_ms).is_suspended);
        }
        assert_eq!(clock.status(now_ms).steady_ms, 0);
    }

    #[test]
    fn idle_store_writes_its_time_hourly() {
        let clock = clock();
        assert!(!clock.is_persist_due(clock.now(START_MS + HOUR_MS - 1)));
        assert!(clock.is_persist_due(clock.now(START_MS + HOUR_MS)));
        clock.persisted(START_MS + HOUR_MS);
        assert!(!clock.is_persist_due(clock.now(START_MS + HOUR_MS)));
    }

    proptest! {
        #[test]
        fn commit_time_never_goes_backwards(walls: Vec<i64>, steps in prop::collection::vec(-2 * DAY_MS..2 * DAY_MS, 0..50)) {
            let clock = clock();
            let mut last_ms = START_MS;
            let mut wall_ms = START_MS;
            let steps = steps.into_iter().map(|step| {
                wall_ms += step;
                wall_ms
            });
            for wall_ms in steps.collect::<Vec<_>>().into_iter().chain(walls) {
                let times = clock.stamp(wall_ms);
                prop_assert!(times.commit_ms >= last_ms);
                prop_assert!(times.commit_ms - last_ms <= CLOCK_LEAD_MAX_MS);
                last_ms = times.commit_ms;
            }
        }
    }
}
