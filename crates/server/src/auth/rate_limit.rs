//! Rate limits: a token bucket for each API key or address.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use homeport_store::Clock;
use homeport_systems::api_keys::KeyId;

/// The most buckets that are kept. Beyond that, the least recently used ones are dropped.
const BUCKETS_MAX: usize = 100_000;

/// How many requests one key may make.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateLimit {
    pub per_second: f64,
    /// Requests that may be made at once after a pause.
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

/// The buckets of all keys. A key is an API key or whatever else is limited.
#[derive(Debug)]
pub struct RateLimiter<K = KeyId> {
    limit: RateLimit,
    clock: Arc<dyn Clock>,
    buckets: Mutex<Buckets<K>>,
}

/// Buckets in two generations, which bounds their number without a search for the oldest. A bucket that is used moves to
/// the recent generation. When that is full, it replaces the older generation, which is dropped.
#[derive(Debug)]
struct Buckets<K> {
    recent: HashMap<K, Bucket>,
    older: HashMap<K, Bucket>,
}

impl<K> Default for Buckets<K> {
    fn default() -> Self {
        Self {
            recent: HashMap::new(),
            older: HashMap::new(),
        }
    }
}

impl<K: Eq + Hash> Buckets<K> {
    /// The bucket of a key; a new one is `full`.
    fn bucket(&mut self, key: K, full: Bucket) -> &mut Bucket {
        let kept = self.older.remove(&key);
        if self.recent.len() >= BUCKETS_MAX / 2 && !self.recent.contains_key(&key) {
            self.older = std::mem::take(&mut self.recent);
        }
        self.recent.entry(key).or_insert(kept.unwrap_or(full))
    }
}

#[derive(Debug, Clone, Copy)]
struct Bucket {
    tokens: f64,
    at_ms: i64,
}

impl Bucket {
    /// After the clock was set back, a bucket must not stay empty until the clock reaches its old time.
    fn clamp_to(&mut self, now_ms: i64) {
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

    /// Whether a key's bucket has a token.
    ///
    /// # Errors
    /// How many seconds to wait, if the bucket is empty.
    pub(crate) fn check(&self, key: K) -> Result<(), u64> {
        let now_ms = self.clock.now_ms();
        let mut buckets = self.buckets();
        let tokens = self.filled(*self.bucket(&mut buckets, key, now_ms), now_ms);
        if tokens < 1.0 {
            return Err(self.wait_secs(tokens));
        }
        Ok(())
    }

    /// Takes a token from a key's bucket.
    ///
    /// # Errors
    /// How many seconds to wait, if the bucket is empty.
    pub(crate) fn take(&self, key: K) -> Result<(), u64> {
        let now_ms = self.clock.now_ms();
        let mut buckets = self.buckets();
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

    /// Puts a token back that was taken, because what it was taken for does not count.
    pub(crate) fn put_back(&self, key: K) {
        let now_ms = self.clock.now_ms();
        let mut buckets = self.buckets();
        let bucket = self.bucket(&mut buckets, key, now_ms);
        bucket.tokens = (bucket.tokens + 1.0).min(self.limit.burst);
    }

    /// Takes a token from a key's bucket and returns how long to wait for it. An empty bucket gives out future
    /// tokens in order, so that callers keep their order. Callers bound how many tokens they wait for.
    pub(crate) fn reserve(&self, key: K) -> Option<Duration> {
        let now_ms = self.clock.now_ms();
        let mut buckets = self.buckets();
        let bucket = self.bucket(&mut buckets, key, now_ms);
        let tokens = self.filled(*bucket, now_ms) - 1.0;
        *bucket = Bucket {
            tokens,
            at_ms: now_ms,
        };
        (tokens < 0.0).then(|| Duration::from_secs_f64(-tokens / self.limit.per_second))
    }

    fn buckets(&self) -> MutexGuard<'_, Buckets<K>> {
        self.buckets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn bucket<'a>(&self, buckets: &'a mut Buckets<K>, key: K, now_ms: i64) -> &'a mut Bucket {
        let full = Bucket {
            tokens: self.limit.burst,
            at_ms: now_ms,
        };
        let bucket = buckets.bucket(key, full);
        bucket.clamp_to(now_ms);
        bucket
    }

    fn wait_secs(&self, tokens: f64) -> u64 {
        let wait_secs = ((1.0 - tokens) / self.limit.per_second).ceil();
        (wait_secs as u64).max(1)
    }

    /// The tokens in a bucket now.
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
    fn empty_bucket_refills_with_time() {
        let clock = Arc::new(ManualClock::at_ms(0));
        let limit = RateLimit {
            per_second: 2.0,
            burst: 3.0,
        };
        let limiter = RateLimiter::new(limit, Arc::clone(&clock) as _);
        let key = KeyId::random();
        for _ in 0..3 {
            assert_eq!(limiter.take(key), Ok(()));
        }
        assert_eq!(limiter.take(key), Err(1));
        assert_eq!(limiter.take(KeyId::random()), Ok(()));
        clock.advance_ms(500);
        assert_eq!(limiter.take(key), Ok(()));
        assert_eq!(limiter.take(key), Err(1));
        clock.advance_ms(-10_000);
        assert_eq!(limiter.take(key), Err(1));
        clock.advance_ms(500);
        assert_eq!(limiter.take(key), Ok(()));
    }

    #[test]
    fn bucket_count_is_bounded() {
        let limit = RateLimit {
            per_second: 1.0,
            burst: 1.0,
        };
        let limiter: RateLimiter<usize> =
            RateLimiter::new(limit, Arc::new(ManualClock::at_ms(0)) as _);
        for key in 0..BUCKETS_MAX * 3 {
            assert_eq!(limiter.take(key + 1), Ok(()));
            // Always in use, so it is never dropped.
            assert_eq!(limiter.take(0).is_ok(), key == 0);
        }
        let buckets = limiter.buckets();
        assert!(buckets.recent.len() + buckets.older.len() <= BUCKETS_MAX);
    }

    #[test]
    fn reserved_tokens_keep_their_order() {
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
