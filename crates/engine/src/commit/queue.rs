//! The committer's queue, and how long the committer waits for more work.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::commit::committer::Work;

/// Work in order of arrival. The callers bound its size in bytes ([`crate::shared::Shared::submit`]).
#[derive(Default)]
pub(crate) struct Queue {
    state: Mutex<State>,
    wakeup: Condvar,
}

#[derive(Default)]
struct State {
    work: Vec<Work>,
    /// The number of entries that the committer waits for, so that it is woken once instead of for every
    /// entry; 0 while it does not wait.
    wanted: usize,
    /// The writer thread is writing a group.
    is_writing: bool,
    closed: bool,
}

/// The queue accepts no more work.
#[derive(Debug)]
pub(crate) struct QueueClosed;

impl Queue {
    pub(crate) fn push(&self, work: Work) -> Result<(), QueueClosed> {
        let mut state = self.lock();
        if state.closed {
            return Err(QueueClosed);
        }
        let is_urgent = !matches!(work, Work::Transactions { .. });
        state.work.push(work);
        if state.wanted > 0 && (is_urgent || state.work.len() >= state.wanted) {
            state.wanted = 0;
            drop(state);
            self.wakeup.notify_one();
        }
        Ok(())
    }

    /// Takes all queued work; waits without limit for the first entry.
    ///
    /// Callers that were just answered are likely to send more, and one sync for all of them is cheaper than
    /// two for half of them each. So this waits for `answered` more callers in addition to those already
    /// queued, but no longer than `wait_max`.
    pub(crate) fn take_all(&self, answered: usize, wait_max: Duration) -> Vec<Work> {
        let mut state = self.lock();
        let expected = answered + state.work.len();
        if state.work.is_empty() {
            state.wanted = 1;
            let waited = self.wakeup.wait_while(state, |state| state.wanted > 0);
            state = waited.unwrap_or_else(PoisonError::into_inner);
        }
        let only_transactions = state
            .work
            .iter()
            .all(|work| matches!(work, Work::Transactions { .. }));
        if only_transactions && state.work.len() < expected && !wait_max.is_zero() {
            state.wanted = expected;
            let waited =
                (self.wakeup).wait_timeout_while(state, wait_max, |state| state.wanted > 0);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            state.wanted = 0;
        }
        std::mem::take(&mut state.work)
    }

    /// Takes all queued work; waits for the first entry as long as the writer thread is writing a group.
    pub(crate) fn take_while_writing(&self) -> Vec<Work> {
        let mut state = self.lock();
        if state.work.is_empty() && state.is_writing {
            state.wanted = 1;
            let waited =
                (self.wakeup).wait_while(state, |state| state.wanted > 0 && state.is_writing);
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
        self.wakeup.notify_one();
    }

    pub(crate) fn is_writing(&self) -> bool {
        self.lock().is_writing
    }

    /// Waits until the writer thread is idle.
    pub(crate) fn wait_until_written(&self) {
        let waited = self
            .wakeup
            .wait_while(self.lock(), |state| state.is_writing);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    /// Drops queued work, which fails its callers, and rejects new work.
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
    fn returning_callers_are_waited_for() {
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
        assert_eq!(queue.take_all(3, LONG).len(), 4);
        assert!(started.elapsed() < LONG);
        pusher.join().unwrap();
    }

    #[test]
    fn absent_callers_are_not_waited_for_long() {
        let queue = Queue::default();
        queue.push(work()).unwrap();
        assert_eq!(queue.take_all(5, Duration::from_millis(1)).len(), 1);
    }

    #[test]
    fn exclusive_work_is_not_delayed() {
        let queue = Queue::default();
        queue.push(work()).unwrap();
        queue.push(Work::Stop).unwrap();
        assert_eq!(queue.take_all(5, LONG).len(), 2);
    }

    #[test]
    fn closed_queue_drops_and_rejects_work() {
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
