//! The status of this process's reactions, for metrics and health.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use super::ReactionError;

const LAG: &str = "homeport_reaction_lag_seconds";
const CHANGES: &str = "homeport_reaction_changes_total";
const FAILURES: &str = "homeport_reaction_failures_total";

/// The status of one reaction.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReactionStatus {
    /// Changes that were applied, including repeats.
    pub applied: u64,
    pub failures: u64,
    /// The age of the newest change when it was read; 0 after the last one.
    pub lag_ms: i64,
    /// Why the last attempt failed; `None` after a success.
    pub problem: Option<String>,
}

/// The reactions of this process by name.
#[derive(Debug, Default)]
pub struct StatusBoard(Mutex<BTreeMap<&'static str, ReactionStatus>>);

impl StatusBoard {
    #[must_use]
    pub fn all(&self) -> Vec<(&'static str, ReactionStatus)> {
        let board = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        board
            .iter()
            .map(|(name, status)| (*name, status.clone()))
            .collect()
    }

    pub(super) fn behind(&self, name: &'static str, lag_ms: i64) {
        metrics::gauge!(LAG, "reaction" => name).set(lag_ms as f64 / 1000.0);
        self.change(name, |status| status.lag_ms = lag_ms);
    }

    pub(super) fn applied(&self, name: &'static str, changes: usize, is_level: bool) {
        metrics::counter!(CHANGES, "reaction" => name).increment(changes as u64);
        if is_level {
            metrics::gauge!(LAG, "reaction" => name).set(0.0);
        }
        self.change(name, |status| {
            status.applied += changes as u64;
            status.problem = None;
            if is_level {
                status.lag_ms = 0;
            }
        });
    }

    pub(super) fn failed(&self, name: &'static str, error: &ReactionError) {
        metrics::counter!(FAILURES, "reaction" => name).increment(1);
        self.change(name, |status| {
            status.failures += 1;
            status.problem = Some(error.to_string());
        });
    }

    fn change(&self, name: &'static str, change: impl FnOnce(&mut ReactionStatus)) {
        let mut board = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        change(board.entry(name).or_default());
    }
}
