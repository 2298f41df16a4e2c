//! Recently verified keys, and keys that were not found, so that not every request reads the store.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{ApiKey, CACHE_SECS, KeyId, LAST_USED_EVERY_SECS, UNKNOWN_KEY_CACHE_SECS};
use crate::time::{EpochSeconds, UtcSecond};

/// Verified keys in memory. Beyond that, keys that were not verified lately are dropped, or all keys if there
/// are none.
const KEYS_MAX: usize = 10_000;
/// Hashes of unknown keys in memory. Beyond that, expired hashes are dropped, or all hashes if there are none.
/// They cannot displace verified keys.
const UNKNOWN_MAX: usize = 10_000;

#[derive(Debug, Default)]
pub(super) struct Cache {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    by_hash: HashMap<String, Entry>,
    /// When the store had no active key with this hash.
    unknown: HashMap<String, EpochSeconds>,
    /// When the last use of a key was written.
    used_at: HashMap<KeyId, EpochSeconds>,
    /// Keys revoked by this process, for as long as a verification that began earlier could restore them.
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

    /// Whether a key was verified, now or some time ago.
    pub(super) fn contains(&self, hash: &str) -> bool {
        self.state().by_hash.contains_key(hash)
    }

    /// Adds a verified key, unless this process has revoked it in the meantime.
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
        state.unknown.remove(&hash);
        let entry = Entry {
            key: Arc::clone(&key),
            verified_at: now,
        };
        state.by_hash.insert(hash, entry);
        Some(key)
    }

    /// Whether the store recently had no active key with this hash.
    pub(super) fn is_unknown(&self, hash: &str, now: EpochSeconds) -> bool {
        let state = self.state();
        let looked_up_at = state.unknown.get(hash);
        looked_up_at.is_some_and(|at| is_within(*at, UNKNOWN_KEY_CACHE_SECS, now))
    }

    /// Records that the store has no active key with this hash. A key that this process created in the meantime
    /// stays known.
    pub(super) fn put_unknown(&self, hash: String, now: EpochSeconds) {
        let mut state = self.state();
        let verified = state.by_hash.get(&hash);
        if verified.is_some_and(|entry| is_fresh(entry.verified_at, now)) {
            return;
        }
        state.by_hash.remove(&hash);
        if state.unknown.len() >= UNKNOWN_MAX {
            (state.unknown).retain(|_, at| is_within(*at, UNKNOWN_KEY_CACHE_SECS, now));
        }
        if state.unknown.len() >= UNKNOWN_MAX {
            state.unknown.clear();
        }
        state.unknown.insert(hash, now);
    }

    pub(super) fn revoke(&self, key_id: KeyId, now: EpochSeconds) {
        let mut state = self.state();
        state.by_hash.retain(|_, entry| entry.key.key_id != key_id);
        state.used_at.remove(&key_id);
        state.revoked_at.insert(key_id, now);
    }

    /// Whether the use of a key must be written now. If so, it counts as written.
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

fn is_fresh(at: EpochSeconds, now: EpochSeconds) -> bool {
    is_within(at, CACHE_SECS, now)
}

/// Whether an entry is younger than its lifetime. It is not when the clock was set back.
fn is_within(at: EpochSeconds, lifetime_secs: i64, now: EpochSeconds) -> bool {
    (at..at.plus_secs(lifetime_secs)).contains(&now)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: EpochSeconds = EpochSeconds(1_800_000_000);

    #[test]
    fn unknown_keys_are_bounded() {
        let cache = Cache::default();
        for number in 0..UNKNOWN_MAX + 10 {
            cache.put_unknown(number.to_string(), NOW);
        }
        assert_eq!(cache.state().unknown.len(), 10);
        assert!(cache.is_unknown(&UNKNOWN_MAX.to_string(), NOW));
    }

    #[test]
    fn created_key_is_not_unknown() {
        let cache = Cache::default();
        let key = ApiKey {
            key_id: KeyId::random(),
            created_at: UtcSecond::new(NOW),
            last_used_at: None,
            is_active: true,
            description: None,
            system: "sensors".to_owned(),
            scopes: std::collections::BTreeSet::new(),
            permissions: std::collections::BTreeSet::new(),
        };
        cache.put_unknown("hash".to_owned(), NOW);
        cache.put("hash".to_owned(), key, NOW);
        assert!(!cache.is_unknown("hash", NOW));
        // A lookup ends that began before the key was created.
        cache.put_unknown("hash".to_owned(), NOW);
        assert!(!cache.is_unknown("hash", NOW));
        assert!(cache.get("hash", NOW).is_some());
    }
}
