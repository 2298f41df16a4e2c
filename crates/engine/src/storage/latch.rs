//! The latch that refuses writes after one has failed, because it is then unknown what is on disk. Reads
//! continue, and `reopen` reopens the store once the cause is gone.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use homeport_store::StoreError;

/// Why writes are refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) reason: String,
    /// Whether only a restart of the process helps.
    pub(crate) needs_restart: bool,
    /// Set while the store is reopened, or to the error of the last attempt. Reads fail as well.
    pub(crate) reopen_error: Option<String>,
}

#[derive(Debug, Default)]
pub(crate) struct Latch {
    is_closed: AtomicBool,
    failure: Mutex<Option<Failure>>,
    reopened: AtomicU64,
}

impl Latch {
    /// Refuses all writes from now on. The first reason is kept.
    pub(crate) fn close(&self, reason: &str) {
        self.close_as(reason, false);
    }

    /// Refuses all writes until the process restarts.
    pub(crate) fn close_until_restart(&self, reason: &str) {
        self.close_as(reason, true);
    }

    /// Refuses all writes until the process restarts if the calling thread is panicking, because its work is
    /// never finished.
    pub(crate) fn close_if_panicking(&self) {
        if std::thread::panicking() {
            let thread = std::thread::current();
            let name = thread.name().unwrap_or("unnamed");
            self.close_until_restart(&format!("the thread {name} has panicked"));
        }
    }

    fn close_as(&self, reason: &str, needs_restart: bool) {
        let mut failure = self.lock();
        match &mut *failure {
            None => {
                tracing::error!(
                    reason,
                    needs_restart,
                    "writing to the data directory failed; writes are refused"
                );
                *failure = Some(Failure {
                    reason: reason.to_owned(),
                    needs_restart,
                    reopen_error: None,
                });
            }
            Some(failure) => failure.needs_restart |= needs_restart,
        }
        self.is_closed.store(true, Ordering::Release);
    }

    /// Accepts writes again after the store was reopened, unless a restart has become necessary.
    pub(crate) fn open(&self) {
        let mut failure = self.lock();
        if failure
            .as_ref()
            .is_some_and(|failure| failure.needs_restart)
        {
            return;
        }
        *failure = None;
        self.is_closed.store(false, Ordering::Release);
        self.reopened.fetch_add(1, Ordering::Relaxed);
    }

    /// Marks the store as closed for reopening: reads fail until it is open again.
    pub(crate) fn reopening(&self) {
        self.reopening_failed("the store is being reopened");
    }

    pub(crate) fn reopening_failed(&self, error: &str) {
        if let Some(failure) = &mut *self.lock() {
            failure.reopen_error = Some(error.to_owned());
        }
    }

    /// Why writes are refused, if they are.
    pub(crate) fn failure(&self) -> Option<Failure> {
        if !self.is_closed.load(Ordering::Acquire) {
            return None;
        }
        self.lock().clone()
    }

    /// How often the store was reopened.
    pub(crate) fn reopened(&self) -> u64 {
        self.reopened.load(Ordering::Relaxed)
    }

    pub(crate) fn check(&self) -> Result<(), StoreError> {
        match self.failure() {
            Some(failure) if failure.needs_restart => Err(StoreError::Unavailable(format!(
                "writing failed; writes are refused until the server is restarted: {}",
                failure.reason
            ))),
            Some(failure) => Err(StoreError::Unavailable(format!(
                "writing to the data directory failed; writes are refused until the store has reopened, which it tries automatically: {}",
                failure.reason
            ))),
            None => Ok(()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Failure>> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
