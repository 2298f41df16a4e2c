//! How often and how long a kind of entry is retried.

use std::time::Duration;

/// A receiver's `Retry-After` is honored up to here.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(60 * 60);
/// Attempts without an answer at a receiver that does not recognize repeats.
pub(crate) const UNANSWERED_MAX: u32 = 5;
/// The pause after the first attempt without an answer. Each further one is ten times as long, so that few
/// attempts outlast an outage of three hours.
const UNANSWERED_PAUSE_FIRST_MS: i64 = 10_000;
const UNANSWERED_PAUSE_FACTOR: i64 = 10;

/// The limits of one kind of entry.
#[derive(Debug)]
pub(crate) struct RetryPolicy {
    /// How long a claim holds: longer than sending and recording take.
    pub(crate) claim_ms: i64,
    /// How long sending may take, whatever the receiver does.
    pub(crate) send_timeout: Duration,
    pub(crate) attempts_max: u32,
    /// The receiver recognizes repeats, so that attempts without an answer are repeated like refused
    /// ones. Otherwise each of them may be one more message: at most [`UNANSWERED_MAX`] are made.
    pub(crate) recognizes_repeats: bool,
    /// The pause after the first failure. Each further one is twice as long, up to `backoff_max_ms`.
    pub(crate) backoff_first_ms: i64,
    pub(crate) backoff_max_ms: i64,
    /// Counts an event in the metrics of the kind.
    pub(crate) count: fn(DeliveryEvent),
}

/// A step of a delivery that metrics count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DeliveryEvent {
    Sent,
    Delivered,
    Retried,
    Failed,
    Dropped,
}

impl RetryPolicy {
    /// The pause after so many attempts, or what the receiver asked for if that is longer.
    pub(crate) fn pause_ms(&self, attempts: u32, retry_after: Option<Duration>) -> i64 {
        let asked = retry_after.unwrap_or_default().min(RETRY_AFTER_MAX);
        let asked_ms = i64::try_from(asked.as_millis()).unwrap_or(i64::MAX);
        backoff_ms(attempts, self.backoff_first_ms, self.backoff_max_ms).max(asked_ms)
    }

    /// How many attempts without an answer are made.
    pub(super) fn unanswered_max(&self) -> u32 {
        if self.recognizes_repeats {
            self.attempts_max
        } else {
            UNANSWERED_MAX
        }
    }

    /// The pause after so many attempts, the last of which had no answer.
    pub(super) fn unanswered_pause_ms(&self, attempts: u32, unanswered: u32) -> i64 {
        if self.recognizes_repeats {
            return self.pause_ms(attempts, None);
        }
        let exponent = unanswered.clamp(1, UNANSWERED_MAX) - 1;
        UNANSWERED_PAUSE_FIRST_MS * UNANSWERED_PAUSE_FACTOR.pow(exponent)
    }

    /// How long a receiver may be down and still get a message: the sum of all pauses.
    #[cfg(test)]
    pub(crate) fn patience(&self) -> Duration {
        let pauses = (1..self.attempts_max).map(|attempts| self.pause_ms(attempts, None));
        Duration::from_millis(u64::try_from(pauses.sum::<i64>()).expect("a positive time"))
    }
}

fn backoff_ms(attempts: u32, first_ms: i64, max_ms: i64) -> i64 {
    let doublings = attempts.saturating_sub(1).min(20);
    (first_ms << doublings).min(max_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unanswered_attempts_outlast_three_hours() {
        let policy = RetryPolicy {
            claim_ms: 1,
            send_timeout: Duration::from_secs(1),
            attempts_max: 50,
            recognizes_repeats: false,
            backoff_first_ms: 1000,
            backoff_max_ms: 60_000,
            count: |_| {},
        };
        let pauses = (1..UNANSWERED_MAX).map(|count| policy.unanswered_pause_ms(count, count));
        let pauses: Vec<i64> = pauses.collect();
        assert_eq!(pauses, [10_000, 100_000, 1_000_000, 10_000_000]);
        assert!(pauses.iter().sum::<i64>() > 3 * 60 * 60 * 1000);
        let patient = RetryPolicy {
            recognizes_repeats: true,
            ..policy
        };
        assert_eq!(patient.unanswered_pause_ms(3, 3), 4000);
        assert_eq!(patient.unanswered_max(), 50);
    }

    #[test]
    fn pauses_double_up_to_the_longest() {
        for (first, max, expected) in [
            (
                1000,
                1_800_000,
                [1000, 2000, 4000, 512_000, 1_024_000, 1_800_000],
            ),
            (
                2000,
                1_800_000,
                [2000, 4000, 8000, 1_024_000, 1_800_000, 1_800_000],
            ),
            (
                5000,
                3_600_000,
                [5000, 10_000, 20_000, 2_560_000, 3_600_000, 3_600_000],
            ),
        ] {
            let pauses =
                [1, 2, 3, 10, 11, u32::MAX].map(|attempts| backoff_ms(attempts, first, max));
            assert_eq!(pauses, expected);
        }
    }
}
