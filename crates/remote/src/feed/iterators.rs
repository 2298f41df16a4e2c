//! Iterators that are still good, and when each shard was read last. All of it may be lost: an
//! iterator is had anew from a place, and only a few changes may be seen again.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::position::At;

/// DynamoDB lets iterators expire after a quarter of an hour.
const ITERATOR_LIFE: Duration = Duration::from_secs(14 * 60);
/// DynamoDB allows five reads a second of a shard.
const READ_EVERY: Duration = Duration::from_millis(200);
/// Iterators that are kept; past this the oldest go.
const ITERATORS_MAX: usize = 4096;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) arn: String,
    pub(super) shard: String,
    pub(super) at: At,
}

#[derive(Debug, Default)]
pub(super) struct Iterators(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    held: HashMap<Key, (String, Instant)>,
    /// When a shard may be read next, by stream and shard.
    next_read: HashMap<(String, String), Instant>,
}

impl Iterators {
    pub(super) fn get(&self, key: &Key) -> Option<String> {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (iterator, since) = state.held.get(key)?;
        (since.elapsed() < ITERATOR_LIFE).then(|| iterator.clone())
    }

    /// Keeps an iterator. The one of the place before stays: who reads from there again gets the
    /// same changes again.
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

    /// Takes the next turn at a shard: when it comes.
    pub(super) fn turn(&self, arn: &str, shard: &str) -> Instant {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        state
            .next_read
            .retain(|_, next| now.saturating_duration_since(*next) < ITERATOR_LIFE);
        let next = state
            .next_read
            .entry((arn.to_owned(), shard.to_owned()))
            .or_insert(now);
        let turn = (*next).max(now);
        *next = turn + READ_EVERY;
        turn
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(at: At) -> Key {
        Key {
            arn: "arn".to_owned(),
            shard: "shard".to_owned(),
            at,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn iterators_are_kept_as_long_as_they_live() {
        let iterators = Iterators::default();
        iterators.keep(key(At::Start), "one".to_owned());
        iterators.keep(key(At::End("a".to_owned())), "two".to_owned());
        assert_eq!(iterators.get(&key(At::Start)).as_deref(), Some("one"));
        assert_eq!(iterators.get(&key(At::End("b".to_owned()))), None);
        tokio::time::advance(ITERATOR_LIFE).await;
        assert_eq!(iterators.get(&key(At::Start)), None);
        iterators.keep(key(At::Start), "three".to_owned());
        assert_eq!(iterators.0.lock().unwrap().held.len(), 1);
        iterators.drop_expired(&key(At::Start));
        assert_eq!(iterators.get(&key(At::Start)), None);
    }

    #[tokio::test(start_paused = true)]
    async fn there_is_a_bound() {
        let iterators = Iterators::default();
        for number in 0..=ITERATORS_MAX {
            if number % 1000 == 0 {
                tokio::time::advance(Duration::from_millis(1)).await;
            }
            iterators.keep(key(At::After(number.to_string())), String::new());
        }
        let newest = key(At::After(ITERATORS_MAX.to_string()));
        assert!(iterators.get(&newest).is_some());
        assert!(iterators.0.lock().unwrap().held.len() <= ITERATORS_MAX);
    }

    #[tokio::test(start_paused = true)]
    async fn a_shard_is_read_five_times_a_second_at_most() {
        let iterators = Iterators::default();
        let begun = Instant::now();
        let turns: Vec<_> = (0..11).map(|_| iterators.turn("arn", "one")).collect();
        assert_eq!(turns[0], begun);
        assert_eq!(turns[10] - turns[0], Duration::from_secs(2));
        assert_eq!(iterators.turn("arn", "two"), begun);
    }
}
