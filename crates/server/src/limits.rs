//! How much one key, or one address, may ask of the server: a token bucket each.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use homeport_store::Clock;
use homeport_systems::api_keys::KeyId;

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
pub struct RateLimiter<K = KeyId> {
    limit: RateLimit,
    clock: Arc<dyn Clock>,
    buckets: Mutex<HashMap<K, Bucket>>,
}

#[derive(Debug, Clone, Copy)]
struct Bucket {
    tokens: f64,
    at_ms: i64,
}

impl Bucket {
    /// A clock that was ahead and has gone back must not hold anyone back until it is there again.
    fn not_after(&mut self, now_ms: i64) {
        self.at_ms = self.at_ms.min(now_ms);
    }
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
        let mut buckets = self.buckets(now_ms);
        let bucket = self.bucket(&mut buckets, key, now_ms);
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

    /// Takes a token of a key's bucket, if need be one that is not there yet; how long to wait for
    /// it. Whoever comes later waits for a later one, so that nobody who waits is overtaken. Callers
    /// bound how many tokens they wait for.
    pub(crate) fn reserve(&self, key: K) -> Option<Duration> {
        let now_ms = self.clock.now_ms();
        let mut buckets = self.buckets(now_ms);
        let bucket = self.bucket(&mut buckets, key, now_ms);
        let tokens = self.filled(*bucket, now_ms) - 1.0;
        *bucket = Bucket {
            tokens,
            at_ms: now_ms,
        };
        (tokens < 0.0).then(|| Duration::from_secs_f64(-tokens / self.limit.per_second))
    }

    fn buckets(&self, now_ms: i64) -> MutexGuard<'_, HashMap<K, Bucket>> {
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= BUCKETS_MAX {
            buckets.retain(|_, bucket| self.filled(*bucket, now_ms) < self.limit.burst);
        }
        buckets
    }

    fn bucket<'a>(
        &self,
        buckets: &'a mut HashMap<K, Bucket>,
        key: K,
        now_ms: i64,
    ) -> &'a mut Bucket {
        let bucket = buckets.entry(key).or_insert(Bucket {
            tokens: self.limit.burst,
            at_ms: now_ms,
        });
        bucket.not_after(now_ms);
        bucket
    }

    /// Whether there is a token to take, which stays where it is.
    ///
    /// # Errors
    /// How many seconds to wait, when there is none.
    pub(crate) fn check(&self, key: &K) -> Result<(), u64> {
        let now_ms = self.clock.now_ms();
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(bucket) = buckets.get_mut(key) else {
            return Ok(());
        };
        bucket.not_after(now_ms);
        match self.filled(*bucket, now_ms) {
            tokens if tokens < 1.0 => Err(self.wait_secs(tokens)),
            _ => Ok(()),
        }
    }

    fn wait_secs(&self, tokens: f64) -> u64 {
        let wait_secs = ((1.0 - tokens) / self.limit.per_second).ceil();
        (wait_secs as u64).max(1)
    }

    /// What is in a bucket by now.
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
        let key = KeyId::random();
        for _ in 0..3 {
            assert_eq!(limiter.check(&key), Ok(()));
            assert_eq!(limiter.take(key), Ok(()));
        }
        assert_eq!(limiter.check(&key), Err(1));
        assert_eq!(limiter.take(key), Err(1));
        assert_eq!(limiter.take(KeyId::random()), Ok(()));
        clock.advance_ms(500);
        assert_eq!(limiter.take(key), Ok(()));
        assert_eq!(limiter.take(key), Err(1));
        clock.advance_ms(-10_000);
        assert_eq!(limiter.check(&key), Err(1));
        assert_eq!(limiter.take(key), Err(1));
        clock.advance_ms(500);
        assert_eq!(limiter.check(&key), Ok(()));
        assert_eq!(limiter.take(key), Ok(()));
    }

    #[test]
    fn who_waits_for_a_token_is_not_overtaken() {
        let clock = Arc::new(ManualClock::at_ms(0));
        let limit = RateLimit {
            per_second: 10.0,
            burst: 2.0,
        };
        let limiter = RateLimiter::new(limit, Arc::clone(&clock) as _);
        let key = KeyId::random();
        let wait = |millis| Some(Duration::from_millis(millis));
        assert_eq!([limiter.reserve(key), limiter.reserve(key)], [None, None]);
        assert_eq!(limiter.reserve(key), wait(100));
        assert_eq!(limiter.reserve(key), wait(200));
        assert_eq!(limiter.take(key), Err(1));
        clock.advance_ms(200);
        assert_eq!(limiter.reserve(key), wait(100));
        clock.advance_ms(300);
        assert_eq!(limiter.take(key), Ok(()));
    }
}
