//! What waits for the committer, and how long the committer waits for it.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::committer::Work;

/// Work in the order in which it came. Its bytes are bounded by whoever puts it in.
#[derive(Default)]
pub(crate) struct Queue {
    state: Mutex<State>,
    is_enough: Condvar,
}

#[derive(Default)]
struct State {
    work: Vec<Work>,
    /// How much the committer waits for, so that it is woken once and not for every piece; 0 while it
    /// does not wait.
    wanted: usize,
    /// A group is being written beside the committer.
    is_writing: bool,
    closed: bool,
}

/// Nothing takes work out of the queue any more.
#[derive(Debug)]
pub(crate) struct Closed;

impl Queue {
    pub(crate) fn push(&self, work: Work) -> Result<(), Closed> {
        let mut state = self.lock();
        if state.closed {
            return Err(Closed);
        }
        let is_urgent = !matches!(work, Work::Transactions { .. });
        state.work.push(work);
        if state.wanted > 0 && (is_urgent || state.work.len() >= state.wanted) {
            state.wanted = 0;
            drop(state);
            self.is_enough.notify_one();
        }
        Ok(())
    }

    /// Takes everything there is, and waits for the first of it as long as that takes.
    ///
    /// Callers that were answered a moment ago are likely to come again, and one sync for all of them
    /// is cheaper than two for halves. So when `answered` were, as many are waited for beside those
    /// that came meanwhile, but not longer than `patience`.
    pub(crate) fn take(&self, answered: usize, patience: Duration) -> Vec<Work> {
        let mut state = self.lock();
        let expected = answered + state.work.len();
        if state.work.is_empty() {
            state.wanted = 1;
            let waited = self.is_enough.wait_while(state, |state| state.wanted > 0);
            state = waited.unwrap_or_else(PoisonError::into_inner);
        }
        let only_transactions = state
            .work
            .iter()
            .all(|work| matches!(work, Work::Transactions { .. }));
        if only_transactions && state.work.len() < expected && !patience.is_zero() {
            state.wanted = expected;
            let waited =
                (self.is_enough).wait_timeout_while(state, patience, |state| state.wanted > 0);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            state.wanted = 0;
        }
        std::mem::take(&mut state.work)
    }

    /// Takes everything there is, and waits for the first of it as long as a group is being written
    /// beside the committer.
    pub(crate) fn take_while_writing(&self) -> Vec<Work> {
        let mut state = self.lock();
        if state.work.is_empty() && state.is_writing {
            state.wanted = 1;
            let waited =
                (self.is_enough).wait_while(state, |state| state.wanted > 0 && state.is_writing);
            state = waited.unwrap_or_else(PoisonError::into_inner);
            state.wanted = 0;
        }
        std::mem::take(&mut state.work)
    }

    pub(crate) fn begin_writing(&self) {
        self.lock().is_writing = true;
    }

    pub(crate) fn end_writing(&self) {
        self.lock().is_writing = false;
        self.is_enough.notify_one();
    }

    pub(crate) fn is_writing(&self) -> bool {
        self.lock().is_writing
    }

    /// Waits until nothing is being written beside the committer.
    pub(crate) fn wait_until_written(&self) {
        let waited = self
            .is_enough
            .wait_while(self.lock(), |state| state.is_writing);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    /// Lets go of what waits, whose callers are told by that, and takes nothing more.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        let left = std::mem::take(&mut state.work);
        drop(state);
        drop(left);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Instant;

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    fn work() -> Work {
        let places = Arc::new(tokio::sync::Semaphore::new(1));
        Work::Transactions {
            prepared: Vec::new(),
            reply: tokio::sync::oneshot::channel().0,
            permit: places.try_acquire_owned().unwrap(),
        }
    }

    #[test]
    fn who_comes_again_is_waited_for() {
        let queue = Arc::new(Queue::default());
        queue.push(work()).unwrap();
        let pushing = Arc::clone(&queue);
        let pusher = std::thread::spawn(move || {
            while pushing.lock().wanted == 0 {
                std::thread::yield_now();
            }
            for _ in 0..3 {
                pushing.push(work()).unwrap();
            }
        });
        let started = Instant::now();
        assert_eq!(queue.take(3, LONG).len(), 4);
        assert!(started.elapsed() < LONG);
        pusher.join().unwrap();
    }

    #[test]
    fn who_does_not_come_again_is_not_waited_for_long() {
        let queue = Queue::default();
        queue.push(work()).unwrap();
        assert_eq!(queue.take(5, Duration::from_millis(1)).len(), 1);
    }

    #[test]
    fn what_is_no_transaction_is_not_kept_waiting() {
        let queue = Queue::default();
        queue.push(work()).unwrap();
        queue.push(Work::Stop).unwrap();
        assert_eq!(queue.take(5, LONG).len(), 2);
    }

    #[test]
    fn a_closed_queue_lets_go_of_what_it_has_and_takes_nothing() {
        let queue = Queue::default();
        let (reply, mut answer) = tokio::sync::oneshot::channel();
        let places = Arc::new(tokio::sync::Semaphore::new(1));
        let permit = Arc::clone(&places).try_acquire_owned().unwrap();
        let work = Work::Transactions {
            prepared: Vec::new(),
            reply,
            permit,
        };
        queue.push(work).unwrap();
        queue.close();
        assert!(queue.push(Work::Stop).is_err());
        assert!(answer.try_recv().is_err());
        assert_eq!(places.available_permits(), 1);
    }
}
