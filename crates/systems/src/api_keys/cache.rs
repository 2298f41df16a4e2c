//! Keys that were verified a moment ago, so that not every request asks the store.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{ApiKey, CACHE_SECS, KeyId, LAST_USED_EVERY_SECS};
use crate::time::{EpochSeconds, UtcSecond};

/// Keys that are kept; beyond that those go that were not verified lately, and if there are none, all.
const KEYS_MAX: usize = 10_000;

#[derive(Debug, Default)]
pub(super) struct Cache {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    by_hash: HashMap<String, Entry>,
    /// When the use of a key was last written.
    used_at: HashMap<KeyId, EpochSeconds>,
    /// Keys revoked here, for as long as a verification that began before could bring them back.
    revoked_at: HashMap<KeyId, EpochSeconds>,
}

#[derive(Debug)]
struct Entry {
    key: Arc<ApiKey>,
    verified_at: EpochSeconds,
}

impl Cache {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn len(&self) -> usize {
        self.state().by_hash.len()
    }

    pub(super) fn get(&self, hash: &str, now: EpochSeconds) -> Option<Arc<ApiKey>> {
        let state = self.state();
        let entry = state.by_hash.get(hash)?;
        is_fresh(entry.verified_at, now).then(|| Arc::clone(&entry.key))
    }

    /// Keeps a key that was verified; nothing when it was revoked here meanwhile.
    pub(super) fn put(&self, hash: String, key: ApiKey, now: EpochSeconds) -> Option<Arc<ApiKey>> {
        let key = Arc::new(key);
        let mut state = self.state();
        state.revoked_at.retain(|_, at| is_fresh(*at, now));
        if state.revoked_at.contains_key(&key.key_id) {
            return None;
        }
        if state.by_hash.len() >= KEYS_MAX {
            state
                .by_hash
                .retain(|_, entry| is_fresh(entry.verified_at, now));
        }
        if state.by_hash.len() >= KEYS_MAX {
            state.by_hash.clear();
        }
        let entry = Entry {
            key: Arc::clone(&key),
            verified_at: now,
        };
        state.by_hash.insert(hash, entry);
        Some(key)
    }

    pub(super) fn revoke(&self, key_id: KeyId, now: EpochSeconds) {
        let mut state = self.state();
        state.by_hash.retain(|_, entry| entry.key.key_id != key_id);
        state.used_at.remove(&key_id);
        state.revoked_at.insert(key_id, now);
    }

    /// Whether the use of a key should be written now; if so, it counts as written.
    pub(super) fn is_use_due(
        &self,
        key_id: KeyId,
        stored: Option<UtcSecond>,
        now: EpochSeconds,
    ) -> bool {
        let mut state = self.state();
        let written = state.used_at.get(&key_id).copied();
        let last = written.max(stored.map(UtcSecond::seconds));
        if last.is_some_and(|last| now < last.plus_secs(LAST_USED_EVERY_SECS)) {
            return false;
        }
        if state.used_at.len() >= KEYS_MAX {
            state.used_at.clear();
        }
        state.used_at.insert(key_id, now);
        true
    }
}

/// Whether what was found out then still counts. It does not when the clock has gone back since.
fn is_fresh(at: EpochSeconds, now: EpochSeconds) -> bool {
    (at..at.plus_secs(CACHE_SECS)).contains(&now)
}
