//! How many messages may go out now, so that no second has more than the limit.

use std::collections::VecDeque;

use crate::time::EpochMillis;

const WINDOW_MS: i64 = 1000;

/// What went out within the last second.
#[derive(Debug)]
pub(super) struct Pace {
    limit: usize,
    sent: VecDeque<(i64, usize)>,
}

impl Pace {
    /// A process that was just started does not know what the one before it sent a moment ago: its
    /// first second is full.
    pub(super) fn new(limit: usize, now: EpochMillis) -> Self {
        Self {
            limit,
            sent: VecDeque::from([(now.0, limit)]),
        }
    }

    /// Messages that may go out now.
    pub(super) fn free(&mut self, now: EpochMillis) -> usize {
        for (at, _) in &mut self.sent {
            // A clock that was set back must not hold messages up for as long.
            *at = (*at).min(now.0);
        }
        while let Some((at, _)) = self.sent.front()
            && now.0 - at >= WINDOW_MS
        {
            self.sent.pop_front();
        }
        let sent: usize = self.sent.iter().map(|(_, count)| count).sum();
        self.limit.saturating_sub(sent)
    }

    /// Notes messages. IMPORTANT: once their request has ended, not when it begins: Expo counts them
    /// at some moment in between, and a slow request must not lend its second to the next one.
    pub(super) fn note(&mut self, now: EpochMillis, count: usize) {
        self.sent.push_back((now.0, count));
    }

    /// When some may go out again.
    pub(super) fn next_free(&self, now: EpochMillis) -> EpochMillis {
        let first = self.sent.front().map_or(now.0, |(at, _)| at + WINDOW_MS);
        EpochMillis(first.max(now.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_second_has_more_than_the_limit() {
        let mut pace = Pace::new(500, EpochMillis(0));
        let mut sent: Vec<i64> = Vec::new();
        for now in (0..20_000).step_by(7) {
            let count = pace.free(EpochMillis(now)).min(100);
            if count > 0 {
                pace.note(EpochMillis(now), count);
                sent.extend(std::iter::repeat_n(now, count));
            }
        }
        assert!(sent.len() >= 500 * 18, "{}", sent.len());
        for (index, start) in sent.iter().enumerate() {
            let within = sent[index..].iter().take_while(|at| *at - start < 1000);
            assert!(within.count() <= 500);
        }
    }

    #[test]
    fn the_first_second_is_full_and_a_clock_set_back_does_not_hold_up() {
        let mut pace = Pace::new(10, EpochMillis(5000));
        assert_eq!(pace.free(EpochMillis(5999)), 0);
        assert_eq!(pace.next_free(EpochMillis(5999)), EpochMillis(6000));
        assert_eq!(pace.free(EpochMillis(6000)), 10);
        pace.note(EpochMillis(6000), 10);
        assert_eq!(pace.free(EpochMillis(100)), 0);
        assert_eq!(pace.free(EpochMillis(1100)), 10);
    }
}
