//! How often and how long a kind of entry is retried.

use std::time::Duration;

/// A receiver's `Retry-After` is honored up to here.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(60 * 60);

/// The limits of one kind of entry.
#[derive(Debug)]
pub(crate) struct RetryPolicy {
    /// How long a claim holds: longer than sending and recording take.
    pub(crate) claim_ms: i64,
    /// How long sending may take, whatever the receiver does.
    pub(crate) send_timeout: Duration,
    pub(crate) attempts_max: u32,
    /// Attempts without an answer; each of them may have arrived.
    pub(crate) unanswered_max: u32,
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
}

fn backoff_ms(attempts: u32, first_ms: i64, max_ms: i64) -> i64 {
    let doublings = attempts.saturating_sub(1).min(20);
    (first_ms << doublings).min(max_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

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
