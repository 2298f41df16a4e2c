//! Retry delays with exponential backoff and jitter.

use std::time::Duration;

const FIRST: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_secs(2);

/// Delays between a limited number of attempts.
#[derive(Debug)]
pub(crate) struct Backoff {
    tries: u32,
    tries_max: u32,
}

impl Backoff {
    pub(crate) fn new(tries_max: u32) -> Self {
        Self {
            tries: 0,
            tries_max,
        }
    }

    /// Waits before the next attempt. Returns false if no attempt is left.
    pub(crate) async fn wait(&mut self) -> bool {
        if self.tries >= self.tries_max {
            return false;
        }
        tokio::time::sleep(pause(self.tries, chance())).await;
        self.tries += 1;
        true
    }

    /// Resets the delay after progress.
    pub(crate) fn reset(&mut self) {
        self.tries = 0;
    }
}

/// A delay between half of the full delay and all of it; `chance` ranges from 0 to `u32::MAX`.
fn pause(tries: u32, chance: u32) -> Duration {
    let full = FIRST
        .saturating_mul(2_u32.saturating_pow(tries))
        .min(LONGEST);
    full / 2 + (full / 2).mul_f64(f64::from(chance) / f64::from(u32::MAX))
}

/// Without randomness every caller waits for the full delay, which is not worth failing for.
fn chance() -> u32 {
    getrandom::u32().unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delay_doubles_up_to_the_maximum() {
        assert_eq!(pause(0, 0), FIRST / 2);
        assert_eq!(pause(0, u32::MAX), FIRST);
        assert_eq!(pause(2, u32::MAX), FIRST * 4);
        assert_eq!(pause(40, u32::MAX), LONGEST);
    }

    #[tokio::test]
    async fn attempts_are_limited() {
        let mut backoff = Backoff::new(2);
        assert!(backoff.wait().await && backoff.wait().await);
        assert!(!backoff.wait().await);
        backoff.reset();
        assert!(backoff.wait().await);
    }
}
