//! How long a device waits before it tries again.

use std::time::Duration;

use super::dice::Dice;

const FIRST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(5);
/// A server that asks for more than this is asked again all the same.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(60);

/// Doubles with every failure in a row. The wait is drawn from its upper half, so that devices that
/// failed together do not come back together.
#[derive(Debug, Clone, Default)]
pub(super) struct Backoff {
    failures: u32,
}

impl Backoff {
    pub(super) fn succeeded(&mut self) {
        self.failures = 0;
    }

    /// The wait after a failure; never shorter than what the server asked for.
    pub(super) fn failed(&mut self, asked: Option<Duration>, dice: &mut Dice) -> Duration {
        let longest = FIRST
            .saturating_mul(1 << self.failures.min(16))
            .min(LONGEST);
        self.failures = self.failures.saturating_add(1);
        let wait = longest.mul_f64(0.5 + dice.unit() / 2.0);
        // Added to what was asked for, and not instead of it, for the same reason.
        asked.map_or(wait, |asked| asked.min(RETRY_AFTER_MAX) + wait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_a_limit_and_begin_anew_after_a_success() {
        let mut dice = Dice::new([1]);
        let mut backoff = Backoff::default();
        let waits: Vec<Duration> = (0..40).map(|_| backoff.failed(None, &mut dice)).collect();
        assert!(waits[0] <= FIRST && waits[0] >= FIRST / 2);
        assert!(waits[5] > FIRST);
        assert!(waits.iter().all(|wait| *wait <= LONGEST));
        assert!(waits[39] >= LONGEST / 2);
        backoff.succeeded();
        assert!(backoff.failed(None, &mut dice) <= FIRST);
    }

    #[test]
    fn what_the_server_asks_for_is_kept_to() {
        let mut dice = Dice::new([1]);
        let asked = Duration::from_secs(7);
        let wait = Backoff::default().failed(Some(asked), &mut dice);
        assert!(wait >= asked && wait <= asked + FIRST);
        let wait = Backoff::default().failed(Some(Duration::MAX), &mut dice);
        assert!(wait <= RETRY_AFTER_MAX + FIRST);
    }
}
