//! Recently verified credentials, so that not every request reads the store.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use uuid::Uuid;

use super::access::Access;
use super::credential::{CredentialId, RawCredential};
use super::{CACHE_SECS, LAST_USED_EVERY_SECS};
use crate::time::EpochMillis;

/// Credentials in memory. Beyond that, all are dropped and read again.
const CREDENTIALS_MAX: usize = 10_000;

#[derive(Default)]
pub(super) struct Cache(Mutex<State>);

#[derive(Default)]
struct State {
    verified: HashMap<(Uuid, CredentialId), Verified>,
    /// When the last use was written.
    used_at: HashMap<(Uuid, CredentialId), EpochMillis>,
    /// Increases with every change. What was read before a change is not added after it.
    changes: u64,
}

struct Verified {
    digest: String,
    access: Arc<Access>,
    at: EpochMillis,
}

impl Cache {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of changes before a read of the store.
    pub(super) fn changes(&self) -> u64 {
        self.state().changes
    }

    pub(super) fn get(&self, raw: &RawCredential, now: EpochMillis) -> Option<Arc<Access>> {
        let state = self.state();
        let verified = state.verified.get(&(raw.person, raw.id))?;
        let is_fresh = is_within(verified.at, CACHE_SECS, now);
        (is_fresh && raw.has_digest(&verified.digest)).then(|| Arc::clone(&verified.access))
    }

    pub(super) fn put(
        &self,
        raw: &RawCredential,
        access: &Arc<Access>,
        now: EpochMillis,
        changes: u64,
    ) {
        let mut state = self.state();
        if state.changes != changes {
            return;
        }
        if state.verified.len() >= CREDENTIALS_MAX {
            state.verified.clear();
        }
        let verified = Verified {
            digest: raw.digest(),
            access: Arc::clone(access),
            at: now,
        };
        state.verified.insert((raw.person, raw.id), verified);
    }

    /// Forgets all credentials of a person.
    pub(super) fn forget(&self, person: Uuid) {
        let mut state = self.state();
        state.changes += 1;
        state.verified.retain(|(of, _), _| *of != person);
    }

    /// Whether the use of a credential must be written now. If so, it counts as written.
    pub(super) fn is_use_due(&self, raw: &RawCredential, now: EpochMillis) -> bool {
        let mut state = self.state();
        let written = state.used_at.get(&(raw.person, raw.id));
        if written.is_some_and(|at| is_within(*at, LAST_USED_EVERY_SECS, now)) {
            return false;
        }
        if state.used_at.len() >= CREDENTIALS_MAX {
            state.used_at.clear();
        }
        state.used_at.insert((raw.person, raw.id), now);
        true
    }
}

/// Whether something is younger than its lifetime. It is not when the clock was set back.
fn is_within(at: EpochMillis, lifetime_secs: i64, now: EpochMillis) -> bool {
    (at.0..at.0.saturating_add(lifetime_secs * 1000)).contains(&now.0)
}
