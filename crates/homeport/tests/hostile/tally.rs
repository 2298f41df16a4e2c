//! Counts of responses, and the findings.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};

/// Findings to keep; the first ones suffice.
const FINDINGS_MAX: usize = 20;
const REQUEST_SHOWN_BYTES: usize = 1500;

#[derive(Debug, Clone, Default)]
pub(crate) struct Tally(Arc<Mutex<Counts>>);

#[derive(Debug, Default)]
struct Counts {
    by_outcome: BTreeMap<String, u64>,
    by_form: BTreeMap<&'static str, u64>,
    findings: Vec<String>,
}

impl Tally {
    pub(crate) fn sent(&self, form: &'static str) {
        *self.lock().by_form.entry(form).or_default() += 1;
    }

    pub(crate) fn outcome(&self, outcome: impl Into<String>) {
        *self.lock().by_outcome.entry(outcome.into()).or_default() += 1;
    }

    /// Records something that must not happen, with the request that caused it.
    pub(crate) fn finding(&self, what: &str, request: &[u8]) {
        let mut counts = self.lock();
        if counts.findings.len() < FINDINGS_MAX {
            let shown = &request[..request.len().min(REQUEST_SHOWN_BYTES)];
            let finding = format!("{what} after {}", shown.escape_ascii());
            println!("WRONG: {what}");
            counts.findings.push(finding);
        }
    }

    pub(crate) fn findings(&self) -> Vec<String> {
        self.lock().findings.clone()
    }

    pub(crate) fn answers(&self) -> u64 {
        self.lock().by_outcome.values().sum()
    }

    /// Number of responses that began with this text.
    pub(crate) fn count_of(&self, start: &str) -> u64 {
        let counts = self.lock();
        let matching = counts.by_outcome.iter();
        matching
            .filter(|(name, _)| name.starts_with(start))
            .map(|(_, count)| count)
            .sum()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Counts> {
        self.0.lock().expect("nobody panics with the lock")
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = self.lock();
        writeln!(out, "sent:")?;
        for (form, count) in &counts.by_form {
            writeln!(out, "{count:>9}  {form}")?;
        }
        writeln!(out, "came back:")?;
        for (outcome, count) in &counts.by_outcome {
            writeln!(out, "{count:>9}  {outcome}")?;
        }
        Ok(())
    }
}
