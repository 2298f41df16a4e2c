//! The history of a run: transactions on lists, with the times of their calls and responses.
//!
//! Lists only grow, and every appended value is unique within its list. A read therefore shows which appends happened
//! before it, and in which order.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// The id of a list.
pub(crate) type Key = u32;
pub(crate) type Value = u32;

/// One part of a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Action {
    Append { key: Key, value: Value },
    Read { key: Key, values: Vec<Value> },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Committed,
    /// The server reported that nothing was written.
    Aborted,
    /// No response, or an ambiguous one.
    Unknown,
}

/// A transaction, or a single-item operation as a transaction with one action.
#[derive(Debug, Clone)]
pub(crate) struct Transaction {
    pub(crate) actions: Vec<Action>,
    pub(crate) outcome: Outcome,
    /// Nanoseconds since the start of the run.
    pub(crate) invoked_ns: u64,
    pub(crate) completed_ns: u64,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct History {
    pub(crate) transactions: Vec<Transaction>,
}

/// Collects transactions from concurrent clients.
#[derive(Debug, Clone)]
pub(crate) struct Recorder {
    origin: Instant,
    history: Arc<Mutex<History>>,
}

impl Recorder {
    pub(crate) fn new() -> Self {
        Self {
            origin: Instant::now(),
            history: Arc::default(),
        }
    }

    pub(crate) fn now_ns(&self) -> u64 {
        u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Adds a transaction that was invoked at `invoked_ns` and ends now.
    pub(crate) fn add(&self, actions: Vec<Action>, outcome: Outcome, invoked_ns: u64) {
        let transaction = Transaction {
            actions,
            outcome,
            invoked_ns,
            completed_ns: self.now_ns(),
        };
        let mut history = self.history.lock().unwrap_or_else(PoisonError::into_inner);
        history.transactions.push(transaction);
    }

    pub(crate) fn history(&self) -> History {
        let history = self.history.lock().unwrap_or_else(PoisonError::into_inner);
        history.clone()
    }
}
