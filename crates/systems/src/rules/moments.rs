//! A millisecond of its own for every message of a thing: the key of telemetry is thing and
//! millisecond, so that of two messages in one, the second would replace the first.
//!
//! Known here is what this process gave out; what others wrote shows when the write's condition
//! fails, and the next millisecond is tried.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Mutex;

/// How far a message may be moved. A thing that publishes more than one message a millisecond for
/// that long is asked to slow down.
pub(super) const MOVE_MS_MAX: i64 = 60_000;
/// Parts that are locked on their own.
const PARTS: usize = 16;
/// Things that a part remembers before it forgets those whose moments have passed.
const PART_LEN_MAX: usize = 4096;

pub(super) struct Moments {
    hasher: RandomState,
    parts: [Mutex<HashMap<Box<str>, i64>>; PARTS],
}

/// The thing has used up all moments that a message may be moved to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Exhausted;

impl Moments {
    pub(super) fn new() -> Self {
        Self {
            hasher: RandomState::new(),
            parts: std::array::from_fn(|_| Mutex::default()),
        }
    }

    /// A millisecond for a message of `thing` that nobody here has: `wanted`, or the first one after
    /// it that is free. `received` is when the message came.
    pub(super) fn take(&self, thing: &str, wanted: i64, received: i64) -> Result<i64, Exhausted> {
        let hash = self.hasher.hash_one(thing);
        let part = usize::try_from(hash % PARTS as u64).unwrap_or(0);
        let mut last = self.parts[part]
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let moment = match last.get(thing) {
            Some(taken) => wanted.max(taken.saturating_add(1)),
            None => wanted,
        };
        // A clock that was set back far must not hold a thing up until it has caught up: what was
        // given out long ahead of now counts as unknown, and the write's condition decides.
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
        // Where too many are busy at once, conditions alone keep messages apart.
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
    fn each_message_of_a_thing_has_its_own_millisecond() {
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
    fn a_message_is_not_moved_for_ever() {
        let moments = Moments::new();
        for _ in 0..=MOVE_MS_MAX {
            assert!(moments.take("a", 0, 0).is_ok());
        }
        assert_eq!(moments.take("a", 0, 0), Err(Exhausted));
        assert_eq!(moments.take("a", 1, 1), Ok(MOVE_MS_MAX + 1));
    }

    #[test]
    fn a_clock_that_was_set_back_holds_nothing_up() {
        let moments = Moments::new();
        assert_eq!(moments.take("a", 10_000_000, 10_000_000), Ok(10_000_000));
        assert_eq!(moments.take("a", 5_000_000, 5_000_000), Ok(5_000_000));
    }

    #[test]
    fn what_is_remembered_is_bounded() {
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
