//! Sessions of the console. They are kept in memory, so a restart ends them all. A change of the admin token
//! needs a restart and therefore ends them too.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use homeport_store::Clock;
use homeport_systems::time::EpochMillis;
use sha2::{Digest as _, Sha256};
use tokio::sync::watch;

/// Default lifetime of a session.
pub const SESSION_SECS_DEFAULT: i64 = 12 * 60 * 60;
/// Maximum number of sessions. Beyond it, the session that expires first is ended.
const SESSIONS_MAX: usize = 1000;
/// Interval at which an open stream checks whether its session has expired.
const EXPIRY_CHECK_MAX: Duration = Duration::from_secs(15);
const TOKEN_BYTES: usize = 32;

/// The open sessions, by the digests of their tokens.
pub struct Sessions {
    clock: Arc<dyn Clock>,
    lifetime_secs: i64,
    open: Mutex<HashMap<[u8; 32], i64>>,
    /// Notified when a session ends before it expires.
    ended: watch::Sender<()>,
}

/// A new session.
pub(crate) struct NewSession {
    /// The value of the cookie.
    pub(crate) token: String,
    pub(crate) lifetime_secs: i64,
}

impl Sessions {
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>, lifetime_secs: i64) -> Self {
        Self {
            clock,
            lifetime_secs,
            open: Mutex::default(),
            ended: watch::Sender::new(()),
        }
    }

    pub(crate) fn begin(&self) -> NewSession {
        let mut bytes = [0; TOKEN_BYTES];
        getrandom::fill(&mut bytes).expect("the operating system has randomness");
        let token = hex::encode(bytes);
        let now_ms = self.clock.now_ms();
        let expires_at_ms = now_ms.saturating_add(self.lifetime_secs.saturating_mul(1000));
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|_, expires_at_ms| *expires_at_ms > now_ms);
        if open.len() >= SESSIONS_MAX
            && let Some(first) = open.iter().min_by_key(|(_, at)| **at).map(|(key, _)| *key)
        {
            open.remove(&first);
            self.ended.send_replace(());
        }
        open.insert(digest(&token), expires_at_ms);
        NewSession {
            token,
            lifetime_secs: self.lifetime_secs,
        }
    }

    /// When an open session expires.
    pub(crate) fn expires_at(&self, token: &str) -> Option<EpochMillis> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let expires_at_ms = open.get(&digest(token)).copied()?;
        (expires_at_ms > self.clock.now_ms()).then_some(EpochMillis(expires_at_ms))
    }

    pub(crate) fn end(&self, token: &str) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.remove(&digest(token));
        self.ended.send_replace(());
    }

    /// Waits until a session ends or expires. A change of the wall clock takes effect within
    /// [`EXPIRY_CHECK_MAX`].
    pub(crate) async fn until_over(&self, token: &str) {
        let mut ended = self.ended.subscribe();
        loop {
            ended.mark_unchanged();
            let Some(expires_at) = self.expires_at(token) else {
                return;
            };
            let left_ms = expires_at.0.saturating_sub(self.clock.now_ms());
            let left = Duration::from_millis(left_ms.try_into().unwrap_or_default());
            let check = tokio::time::sleep(left.min(EXPIRY_CHECK_MAX));
            tokio::select! {
                () = check => {}
                // The sender lives as long as `self`.
                _ = ended.changed() => {}
            }
        }
    }
}

/// Sessions are looked up by digest, so that the time of a lookup reveals nothing about valid tokens.
fn digest(token: &str) -> [u8; 32] {
    Sha256::digest(token).into()
}

impl std::fmt::Debug for Sessions {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Sessions").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use homeport_store::ManualClock;

    fn sessions() -> (Arc<ManualClock>, Sessions) {
        let clock = Arc::new(ManualClock::at_ms(0));
        let sessions = Sessions::new(Arc::clone(&clock) as _, 60);
        (clock, sessions)
    }

    #[test]
    fn session_expires_after_its_lifetime() {
        let (clock, sessions) = sessions();
        let token = sessions.begin().token;
        assert_eq!(sessions.expires_at(&token), Some(EpochMillis(60_000)));
        clock.advance_ms(59_999);
        assert!(sessions.expires_at(&token).is_some());
        clock.advance_ms(1);
        assert_eq!(sessions.expires_at(&token), None);
        assert_eq!(sessions.expires_at("unknown"), None);
    }

    #[test]
    fn ending_a_session_keeps_others() {
        let (_, sessions) = sessions();
        let (one, other) = (sessions.begin().token, sessions.begin().token);
        assert_ne!(one, other);
        sessions.end(&one);
        assert_eq!(sessions.expires_at(&one), None);
        assert!(sessions.expires_at(&other).is_some());
    }

    #[test]
    fn session_count_is_bounded() {
        let (clock, sessions) = sessions();
        let first = sessions.begin().token;
        clock.advance_ms(1);
        for _ in 0..SESSIONS_MAX {
            sessions.begin();
        }
        assert_eq!(sessions.open.lock().expect("no panic").len(), SESSIONS_MAX);
        assert_eq!(sessions.expires_at(&first), None);
    }
}
