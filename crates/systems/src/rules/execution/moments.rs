//! Gives each message of a thing a millisecond of its own. The key of telemetry is thing and
//! millisecond, so the second message in a millisecond would replace the first.
//!
//! This process knows only its own messages. For those of other processes the condition of the write
//! fails, and the next millisecond is tried.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Mutex;

/// How far a message may be moved. A thing that publishes more than one message per millisecond for
/// longer than that is throttled.
pub(in crate::rules) const MOVE_MS_MAX: i64 = 60_000;
/// Shards with a lock each.
const PARTS: usize = 16;
/// Things in a shard before those with past milliseconds are removed.
const PART_LEN_MAX: usize = 4096;

pub(in crate::rules) struct Moments {
    hasher: RandomState,
    parts: [Mutex<HashMap<Box<str>, i64>>; PARTS],
}

/// All milliseconds that a message may be moved to are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::rules) struct Exhausted;

impl Moments {
    pub(in crate::rules) fn new() -> Self {
        Self {
            hasher: RandomState::new(),
            parts: std::array::from_fn(|_| Mutex::default()),
        }
    }

    /// Takes a free millisecond for a message of `thing`: `wanted`, or the next free one after it.
    /// `received` is the time of arrival.
    pub(in crate::rules) fn take(
        &self,
        thing: &str,
        wanted: i64,
        received: i64,
    ) -> Result<i64, Exhausted> {
        let hash = self.hasher.hash_one(thing);
        let part = usize::try_from(hash % PARTS as u64).unwrap_or(0);
        let mut last = self.parts[part]
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let moment = match last.get(thing) {
            Some(taken) => wanted.max(taken.saturating_add(1)),
            None => wanted,
        };
        // A clock that was set back must not block a thing until it has caught up. A millisecond far
        // ahead of now counts as unknown, and the condition of the write decides.
        let moment = if moment.saturating_sub(received) > 2 * MOVE_MS_MAX {
            wanted
        } else {
            moment
        };
        if moment.saturating_sub(received) > MOVE_MS_MAX {
            return Err(Exhausted);
        }
        if let Some(taken) = last.get_mut(thing) {
            *taken = moment;
            return Ok(moment);
        }
        if last.len() >= PART_LEN_MAX {
            last.retain(|_, taken| *taken >= received);
        }
        // With too many busy things, only conditions keep messages apart.
        if last.len() < PART_LEN_MAX {
            last.insert(thing.into(), moment);
        }
        Ok(moment)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_a_thing_get_different_milliseconds() {
        let moments = Moments::new();
        let take = |thing, at| moments.take(thing, at, at);
        assert_eq!(take("a", 10), Ok(10));
        assert_eq!(take("a", 10), Ok(11));
        assert_eq!(take("a", 10), Ok(12));
        assert_eq!(take("b", 10), Ok(10));
        assert_eq!(take("a", 13), Ok(13));
        assert_eq!(moments.take("a", 20, 13), Ok(20));
    }

    #[test]
    fn message_is_moved_only_so_far() {
        let moments = Moments::new();
        for _ in 0..=MOVE_MS_MAX {
            assert!(moments.take("a", 0, 0).is_ok());
        }
        assert_eq!(moments.take("a", 0, 0), Err(Exhausted));
        assert_eq!(moments.take("a", 1, 1), Ok(MOVE_MS_MAX + 1));
    }

    #[test]
    fn clock_set_back_does_not_block() {
        let moments = Moments::new();
        assert_eq!(moments.take("a", 10_000_000, 10_000_000), Ok(10_000_000));
        assert_eq!(moments.take("a", 5_000_000, 5_000_000), Ok(5_000_000));
    }

    #[test]
    fn memory_is_bounded() {
        let moments = Moments::new();
        for thing in 0..PARTS * PART_LEN_MAX * 2 {
            let at = i64::try_from(thing).expect("small");
            assert!(moments.take(&thing.to_string(), at, at).is_ok());
        }
        let remembered: usize = moments
            .parts
            .iter()
            .map(|part| part.lock().unwrap().len())
            .sum();
        assert!(remembered <= PARTS * PART_LEN_MAX, "{remembered}");
    }
}
