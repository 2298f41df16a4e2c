//! The pace of sending: no second has more messages than the limit.

use std::collections::VecDeque;

use crate::time::EpochMillis;

const WINDOW_MS: i64 = 1000;

/// The messages of the last second.
#[derive(Debug)]
pub(super) struct Pace {
    limit: usize,
    sent: VecDeque<(i64, usize)>,
}

impl Pace {
    /// The first second of a process is full: it does not know what the process before it sent.
    pub(super) fn new(limit: usize, now: EpochMillis) -> Self {
        Self {
            limit,
            sent: VecDeque::from([(now.0, limit)]),
        }
    }

    /// How many messages may be sent now.
    pub(super) fn free(&mut self, now: EpochMillis) -> usize {
        for (at, _) in &mut self.sent {
            // A clock that was set back must not delay messages.
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

    /// Counts messages. IMPORTANT: after their request has ended: Expo counts them at some moment in
    /// between, so a slow request must not make room for the next one.
    pub(super) fn note(&mut self, now: EpochMillis, count: usize) {
        self.sent.push_back((now.0, count));
    }

    /// When the next messages may be sent.
    pub(super) fn next_free(&self, now: EpochMillis) -> EpochMillis {
        let first = self.sent.front().map_or(now.0, |(at, _)| at + WINDOW_MS);
        EpochMillis(first.max(now.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_second_exceeds_the_limit() {
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
    fn first_second_is_full_and_clock_jumps_are_harmless() {
        let mut pace = Pace::new(10, EpochMillis(5000));
        assert_eq!(pace.free(EpochMillis(5999)), 0);
        assert_eq!(pace.next_free(EpochMillis(5999)), EpochMillis(6000));
        assert_eq!(pace.free(EpochMillis(6000)), 10);
        pace.note(EpochMillis(6000), 10);
        assert_eq!(pace.free(EpochMillis(100)), 0);
        assert_eq!(pace.free(EpochMillis(1100)), 10);
    }
}
