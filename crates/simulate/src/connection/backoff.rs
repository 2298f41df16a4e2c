//! The wait before a retry.

use std::time::Duration;

use crate::random::SeededRandom;

const FIRST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(5);
/// Upper limit for a server's Retry-After.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(60);

/// Doubles with every consecutive failure. The wait is random within its upper half, so devices that failed together do
/// not retry together.
#[derive(Debug, Clone, Default)]
pub(crate) struct Backoff {
    failures: u32,
}

impl Backoff {
    pub(crate) fn succeeded(&mut self) {
        self.failures = 0;
    }

    /// The wait after a failure, at least as long as the server asked for.
    pub(crate) fn failed(
        &mut self,
        asked: Option<Duration>,
        random: &mut SeededRandom,
    ) -> Duration {
        let longest = FIRST
            .saturating_mul(1 << self.failures.min(16))
            .min(LONGEST);
        self.failures = self.failures.saturating_add(1);
        let wait = longest.mul_f64(0.5 + random.unit() / 2.0);
        // Added to Retry-After, so that devices do not return together after it.
        asked.map_or(wait, |asked| asked.min(RETRY_AFTER_MAX) + wait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_bounded_and_reset_on_success() {
        let mut random = SeededRandom::new([1]);
        let mut backoff = Backoff::default();
        let waits: Vec<Duration> = (0..40).map(|_| backoff.failed(None, &mut random)).collect();
        assert!(waits[0] <= FIRST && waits[0] >= FIRST / 2);
        assert!(waits[5] > FIRST);
        assert!(waits.iter().all(|wait| *wait <= LONGEST));
        assert!(waits[39] >= LONGEST / 2);
        backoff.succeeded();
        assert!(backoff.failed(None, &mut random) <= FIRST);
    }

    #[test]
    fn backoff_respects_retry_after() {
        let mut random = SeededRandom::new([1]);
        let asked = Duration::from_secs(7);
        let wait = Backoff::default().failed(Some(asked), &mut random);
        assert!(wait >= asked && wait <= asked + FIRST);
        let wait = Backoff::default().failed(Some(Duration::MAX), &mut random);
        assert!(wait <= RETRY_AFTER_MAX + FIRST);
    }
}
