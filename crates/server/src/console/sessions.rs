//! Sessions of people at the console. They live in memory: a restart ends them all, and so does a
//! change of the admin token, which takes one.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};

use homeport_store::Clock;
use homeport_systems::time::EpochMillis;
use sha2::{Digest as _, Sha256};

use crate::limits::{RateLimit, RateLimiter};

/// How long a session lasts unless set otherwise.
pub const SESSION_SECS_DEFAULT: i64 = 12 * 60 * 60;
/// Sessions at one time; when there are more, the one that would end first is ended.
const SESSIONS_MAX: usize = 1000;
/// Wrong tokens that one address may send: as many at once, and one more every few seconds.
const FAILURES: RateLimit = RateLimit {
    per_second: 1.0 / 6.0,
    burst: 10.0,
};
const TOKEN_BYTES: usize = 32;

/// The sessions that are open. What a browser holds is not kept, only its digest.
pub struct Sessions {
    clock: Arc<dyn Clock>,
    lifetime_secs: i64,
    open: Mutex<HashMap<[u8; 32], i64>>,
    failures: RateLimiter<IpAddr>,
}

/// A session that has just begun.
pub(crate) struct NewSession {
    /// What the browser is to send.
    pub(crate) token: String,
    pub(crate) lifetime_secs: i64,
}

impl Sessions {
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>, lifetime_secs: i64) -> Self {
        Self {
            failures: RateLimiter::new(FAILURES, Arc::clone(&clock)),
            clock,
            lifetime_secs,
            open: Mutex::default(),
        }
    }

    /// Whether an address may try a token now.
    ///
    /// # Errors
    /// How many seconds it has to wait.
    pub(crate) fn may_try(&self, address: IpAddr) -> Result<(), u64> {
        self.failures.check(&network(address))
    }

    /// Counts a wrong token against an address.
    pub(crate) fn failed(&self, address: IpAddr) {
        // Nothing is left to take when many tried at once: they wait all the same.
        let _ = self.failures.take(network(address));
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
        }
        open.insert(digest(&token), expires_at_ms);
        NewSession {
            token,
            lifetime_secs: self.lifetime_secs,
        }
    }

    /// When a session ends, if it is open.
    pub(crate) fn expires_at(&self, token: &str) -> Option<EpochMillis> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let expires_at_ms = open.get(&digest(token)).copied()?;
        (expires_at_ms > self.clock.now_ms()).then_some(EpochMillis(expires_at_ms))
    }

    pub(crate) fn end(&self, token: &str) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.remove(&digest(token));
    }
}

/// Looked up by its digest, so that the time it takes tells nothing about the tokens that are open.
fn digest(token: &str) -> [u8; 32] {
    Sha256::digest(token).into()
}

/// Who is held back together: with IPv6 one customer has a whole network of addresses.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
    }
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
    fn a_session_lasts_as_long_as_it_should() {
        let (clock, sessions) = sessions();
        let token = sessions.begin().token;
        assert_eq!(sessions.expires_at(&token), Some(EpochMillis(60_000)));
        clock.advance_ms(59_999);
        assert!(sessions.expires_at(&token).is_some());
        clock.advance_ms(1);
        assert_eq!(sessions.expires_at(&token), None);
        assert_eq!(sessions.expires_at("made up"), None);
    }

    #[test]
    fn an_ended_session_is_gone_and_others_stay() {
        let (_, sessions) = sessions();
        let (one, other) = (sessions.begin().token, sessions.begin().token);
        assert_ne!(one, other);
        sessions.end(&one);
        assert_eq!(sessions.expires_at(&one), None);
        assert!(sessions.expires_at(&other).is_some());
    }

    #[test]
    fn there_are_never_more_sessions_than_allowed() {
        let (clock, sessions) = sessions();
        let first = sessions.begin().token;
        clock.advance_ms(1);
        for _ in 0..SESSIONS_MAX {
            sessions.begin();
        }
        assert_eq!(sessions.open.lock().expect("no panic").len(), SESSIONS_MAX);
        assert_eq!(sessions.expires_at(&first), None);
    }

    #[test]
    fn wrong_tokens_hold_back_their_network_and_no_other() {
        let (clock, sessions) = sessions();
        let address: IpAddr = "2001:db8:1:2:3::4".parse().expect("an address");
        for _ in 0..10 {
            assert_eq!(sessions.may_try(address), Ok(()));
            sessions.failed(address);
        }
        assert_eq!(sessions.may_try(address), Err(6));
        let neighbour: IpAddr = "2001:db8:1:2::99".parse().expect("an address");
        assert_eq!(sessions.may_try(neighbour), Err(6));
        let other: IpAddr = "2001:db8:1:3::4".parse().expect("an address");
        assert_eq!(sessions.may_try(other), Ok(()));
        clock.advance_ms(6000);
        assert_eq!(sessions.may_try(address), Ok(()));
    }
}
