//! What happens by itself: sessions that expire, wills that have waited, keys that were revoked, and
//! the end of everything.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use homeport_systems::api_keys::KeyId;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use super::Broker;
use super::mailbox::Mailbox;
use super::session::{Link, PendingWill, Session};
use crate::mqtt::codec::{Reason, Refusal};
use crate::mqtt::settings::KEY_CHECK_EVERY;

/// How often it is looked what is due.
const TICK: Duration = Duration::from_millis(500);

/// How long connections may take to end when the server stops.
const END_MAX: Duration = Duration::from_secs(15);

fn stopping() -> Refusal {
    Refusal::new(Reason::SHUTTING_DOWN, "the server is shutting down")
}

impl Broker {
    /// Does what is due until `stop` is done, then ends all connections.
    pub async fn run_until(self, stop: impl Future<Output = ()> + Send) {
        let mut stop = std::pin::pin!(stop);
        let mut revocations = self.0.credentials.api_keys.revocations();
        let mut tick = tokio::time::interval(TICK);
        let mut key_check = tokio::time::interval(KEY_CHECK_EVERY);
        loop {
            tokio::select! {
                () = &mut stop => break,
                _ = tick.tick() => self.do_due().await,
                _ = key_check.tick() => self.check_keys().await,
                revoked = next_revoked(&mut revocations) => match revoked {
                    Some(key_id) => self.disconnect_key(key_id),
                    None => self.check_keys().await,
                },
            }
        }
        self.end_all().await;
    }

    /// Ends every connection because the server stops, and waits for them.
    async fn end_all(&self) {
        self.0.is_stopping.store(true, Ordering::SeqCst);
        for link in self.links() {
            link.mailbox.close(stopping());
        }
        let settings = &self.0.settings;
        let all = u32::try_from(settings.connections_max).unwrap_or(u32::MAX);
        let room = &self.0.connection_room;
        let ended = tokio::time::timeout(END_MAX, room.acquire_many(all)).await;
        if ended.is_err() {
            tracing::warn!("some MQTT connections did not end in time");
        }
        room.close();
    }

    /// Ends a connection that came while the server stops.
    pub(super) fn end_if_stopping(&self, mailbox: &Mailbox) {
        if self.0.is_stopping.load(Ordering::SeqCst) {
            mailbox.close(stopping());
        }
    }

    pub(super) fn schedule(&self, due_ms: i64, session: &Session) {
        self.due().insert((due_ms, Arc::clone(&session.name)));
    }

    pub(super) fn schedule_expiry(&self, session: &Session) {
        if let Some(at) = session.state().expires_at {
            self.schedule(at.0.saturating_mul(1000), session);
        }
    }

    fn due(&self) -> MutexGuard<'_, BTreeSet<(i64, Arc<str>)>> {
        self.0.due.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn do_due(&self) {
        let now_ms = self.now().0;
        loop {
            let name = {
                let mut due = self.due();
                match due.first() {
                    Some((at_ms, _)) if *at_ms <= now_ms => due.pop_first(),
                    _ => None,
                }
            };
            let Some((_, name)) = name else {
                return;
            };
            let session = self.sessions().get(&name).cloned();
            if let Some(session) = session {
                self.do_due_of(&session, now_ms).await;
            }
        }
    }

    /// What was scheduled may have been overtaken: the session itself says what is due.
    async fn do_due_of(&self, session: &Arc<Session>, now_ms: i64) {
        let _changing = session.change.lock().await;
        let (will, is_expired) = {
            let mut state = session.state();
            if state.is_connected() || state.is_over {
                return;
            }
            let is_expired = state.expires_at.is_some_and(|at| at.0 * 1000 <= now_ms);
            let is_will_due = |will: &mut PendingWill| is_expired || will.due_ms <= now_ms;
            (state.will.take_if(is_will_due), is_expired)
        };
        if let Some(will) = will {
            self.publish_will(will.message).await;
        }
        if is_expired && let Err(error) = self.end(session).await {
            tracing::warn!(session = %session.name, %error, "cannot remove an expired session");
        }
    }

    /// Asks the store for every key that is connected: another process may have revoked it.
    async fn check_keys(&self) {
        let links = self.links();
        let key_ids: BTreeSet<_> = links.iter().filter_map(|link| link.key_id).collect();
        for key_id in key_ids {
            match self.0.credentials.api_keys.is_active(key_id).await {
                Ok(true) => {}
                Ok(false) => self.disconnect_key(key_id),
                Err(error) => {
                    // Nobody knows; the next round asks again.
                    tracing::warn!(%error, "cannot look up the keys of MQTT connections");
                    return;
                }
            }
        }
    }

    fn disconnect_key(&self, key_id: KeyId) {
        let links = self.links().into_iter();
        for link in links.filter(|link| link.key_id == Some(key_id)) {
            link.mailbox.close(Refusal::new(
                Reason::NOT_AUTHORIZED,
                "the API key was revoked",
            ));
        }
    }

    fn links(&self) -> Vec<Link> {
        let sessions = self.sessions();
        let links = sessions
            .values()
            .map(|session| session.state().link.clone());
        links.flatten().collect()
    }
}

/// The next key that was revoked; none when some were missed.
async fn next_revoked(revocations: &mut broadcast::Receiver<KeyId>) -> Option<KeyId> {
    match revocations.recv().await {
        Ok(key_id) => Some(key_id),
        Err(RecvError::Lagged(_)) => None,
        // Nobody can revoke a key any more.
        Err(RecvError::Closed) => std::future::pending().await,
    }
}
