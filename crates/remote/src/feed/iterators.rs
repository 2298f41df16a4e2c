//! Caches valid iterators and the time of each shard's last read. All of it may be lost: a new
//! iterator is requested for the position, and at most a few changes are read again.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::position::ShardPosition;

/// DynamoDB's iterators expire after 15 minutes.
const ITERATOR_LIFE: Duration = Duration::from_secs(14 * 60);
/// DynamoDB allows five reads per second and shard.
const READ_EVERY: Duration = Duration::from_millis(200);
/// Maximum number of cached iterators; the oldest are dropped first.
const ITERATORS_MAX: usize = 4096;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) arn: String,
    pub(super) shard: String,
    pub(super) at: ShardPosition,
}

#[derive(Debug, Default)]
pub(super) struct Iterators(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    held: HashMap<Key, (String, Instant)>,
    /// The earliest next read of each shard, by stream and shard.
    next_read: HashMap<(String, String), Instant>,
}

impl Iterators {
    pub(super) fn get(&self, key: &Key) -> Option<String> {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (iterator, since) = state.held.get(key)?;
        (since.elapsed() < ITERATOR_LIFE).then(|| iterator.clone())
    }

    /// Caches an iterator. The iterator of the previous position stays valid, so a reader that
    /// resumes there gets the same changes again.
    pub(super) fn keep(&self, key: Key, iterator: String) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if state.held.len() >= ITERATORS_MAX {
            let mut ages: Vec<Instant> = state.held.values().map(|(_, since)| *since).collect();
            ages.sort_unstable();
            let middle = ages[ages.len() / 2];
            state.held.retain(|_, (_, since)| *since > middle);
        }
        state.held.insert(key, (iterator, now));
        state
            .held
            .retain(|_, (_, since)| now.duration_since(*since) < ITERATOR_LIFE);
    }

    pub(super) fn drop_expired(&self, key: &Key) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.held.remove(key);
    }

    /// Reserves the next read of a shard and returns its time.
    pub(super) fn reserve_read(&self, arn: &str, shard: &str) -> Instant {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        state
            .next_read
            .retain(|_, next| now.saturating_duration_since(*next) < ITERATOR_LIFE);
        let next = state
            .next_read
            .entry((arn.to_owned(), shard.to_owned()))
            .or_insert(now);
        let read_at = (*next).max(now);
        *next = read_at + READ_EVERY;
        read_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(at: ShardPosition) -> Key {
        Key {
            arn: "arn".to_owned(),
            shard: "shard".to_owned(),
            at,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn iterators_are_cached_until_they_expire() {
        let iterators = Iterators::default();
        iterators.keep(key(ShardPosition::Start), "one".to_owned());
        iterators.keep(key(ShardPosition::End("a".to_owned())), "two".to_owned());
        assert_eq!(
            iterators.get(&key(ShardPosition::Start)).as_deref(),
            Some("one")
        );
        assert_eq!(
            iterators.get(&key(ShardPosition::End("b".to_owned()))),
            None
        );
        tokio::time::advance(ITERATOR_LIFE).await;
        assert_eq!(iterators.get(&key(ShardPosition::Start)), None);
        iterators.keep(key(ShardPosition::Start), "three".to_owned());
        assert_eq!(iterators.0.lock().unwrap().held.len(), 1);
        iterators.drop_expired(&key(ShardPosition::Start));
        assert_eq!(iterators.get(&key(ShardPosition::Start)), None);
    }

    #[tokio::test(start_paused = true)]
    async fn number_of_iterators_is_limited() {
        let iterators = Iterators::default();
        for number in 0..=ITERATORS_MAX {
            if number % 1000 == 0 {
                tokio::time::advance(Duration::from_millis(1)).await;
            }
            iterators.keep(key(ShardPosition::After(number.to_string())), String::new());
        }
        let newest = key(ShardPosition::After(ITERATORS_MAX.to_string()));
        assert!(iterators.get(&newest).is_some());
        assert!(iterators.0.lock().unwrap().held.len() <= ITERATORS_MAX);
    }

    #[tokio::test(start_paused = true)]
    async fn shard_reads_are_limited_to_five_per_second() {
        let iterators = Iterators::default();
        let started = Instant::now();
        let turns: Vec<_> = (0..11)
            .map(|_| iterators.reserve_read("arn", "one"))
            .collect();
        assert_eq!(turns[0], started);
        assert_eq!(turns[10] - turns[0], Duration::from_secs(2));
        assert_eq!(iterators.reserve_read("arn", "two"), started);
    }
}
