//! How much one key, or one address, may ask of the server: a token bucket each.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};

use homeport_store::Clock;
use homeport_systems::ids::UuidV4;

/// Buckets that are kept; full ones, which hold nobody back, are dropped first.
const BUCKETS_MAX: usize = 100_000;

/// How many requests one key may make.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateLimit {
    pub per_second: f64,
    /// At once, after a pause.
    pub burst: f64,
}

impl Default for RateLimit {
    fn default() -> Self {
        Self {
            per_second: 1000.0,
            burst: 2000.0,
        }
    }
}

/// The buckets of all keys, or of whatever else is held back.
#[derive(Debug)]
pub struct RateLimiter<K = UuidV4> {
    limit: RateLimit,
    clock: Arc<dyn Clock>,
    buckets: Mutex<HashMap<K, Bucket>>,
}

#[derive(Debug, Clone, Copy)]
struct Bucket {
    tokens: f64,
    at_ms: i64,
}

impl<K: Eq + Hash> RateLimiter<K> {
    #[must_use]
    pub fn new(limit: RateLimit, clock: Arc<dyn Clock>) -> Self {
        Self {
            limit,
            clock,
            buckets: Mutex::default(),
        }
    }

    /// Takes a token of a key's bucket.
    ///
    /// # Errors
    /// How many seconds to wait, when there is none.
    pub(crate) fn take(&self, key: K) -> Result<(), u64> {
        let now_ms = self.clock.now_ms();
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= BUCKETS_MAX {
            buckets.retain(|_, bucket| self.filled(*bucket, now_ms) < self.limit.burst);
        }
        let bucket = buckets.entry(key).or_insert(Bucket {
            tokens: self.limit.burst,
            at_ms: now_ms,
        });
        let tokens = self.filled(*bucket, now_ms);
        if tokens < 1.0 {
            return Err(self.wait_secs(tokens));
        }
        *bucket = Bucket {
            tokens: tokens - 1.0,
            at_ms: now_ms,
        };
        Ok(())
    }

    /// Whether there is a token to take, which stays where it is.
    ///
    /// # Errors
    /// How many seconds to wait, when there is none.
    pub(crate) fn check(&self, key: &K) -> Result<(), u64> {
        let buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        match buckets.get(key) {
            Some(bucket) => match self.filled(*bucket, self.clock.now_ms()) {
                tokens if tokens < 1.0 => Err(self.wait_secs(tokens)),
                _ => Ok(()),
            },
            None => Ok(()),
        }
    }

    fn wait_secs(&self, tokens: f64) -> u64 {
        let wait_secs = ((1.0 - tokens) / self.limit.per_second).ceil();
        (wait_secs as u64).max(1)
    }

    fn filled(&self, bucket: Bucket, now_ms: i64) -> f64 {
        let elapsed_secs = (now_ms - bucket.at_ms).max(0) as f64 / 1000.0;
        (bucket.tokens + elapsed_secs * self.limit.per_second).min(self.limit.burst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use homeport_store::ManualClock;

    #[test]
    fn a_key_is_held_back_after_its_burst_and_goes_on_with_time() {
        let clock = Arc::new(ManualClock::at_ms(0));
        let limit = RateLimit {
            per_second: 2.0,
            burst: 3.0,
        };
        let limiter = RateLimiter::new(limit, Arc::clone(&clock) as _);
        let key = UuidV4::random();
        for _ in 0..3 {
            assert_eq!(limiter.check(&key), Ok(()));
            assert_eq!(limiter.take(key), Ok(()));
        }
        assert_eq!(limiter.check(&key), Err(1));
        assert_eq!(limiter.take(key), Err(1));
        assert_eq!(limiter.take(UuidV4::random()), Ok(()));
        clock.advance_ms(500);
        assert_eq!(limiter.take(key), Ok(()));
        assert_eq!(limiter.take(key), Err(1));
        clock.advance_ms(-10_000);
        assert_eq!(limiter.take(key), Err(1));
    }
}
