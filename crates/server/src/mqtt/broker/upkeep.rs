//! Background work of the broker: expired sessions, delayed wills, revoked keys, and the shutdown of all
//! connections.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::StreamExt as _;
use homeport_systems::api_keys::KeyId;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{Notify, broadcast};
use tokio::time::MissedTickBehavior;

use super::Broker;
use super::mailbox::Mailbox;
use super::session::{Link, PendingWill, Session, SessionName};
use crate::mqtt::codec::{Reason, Refusal};

/// How often due work is looked up.
const TICK: Duration = Duration::from_millis(500);

/// Sessions whose due work runs concurrently.
const DUE_AT_ONCE: usize = 64;

/// How long connections may take to end when the server stops.
const END_MAX: Duration = Duration::from_secs(15);

fn stopping() -> Refusal {
    Refusal::new(Reason::SHUTTING_DOWN, "the server is shutting down")
}

impl Broker {
    /// Runs the background work until `stop` completes, then ends all connections.
    pub async fn run_until(self, stop: impl Future<Output = ()> + Send) {
        let key_check = Notify::new();
        // IMPORTANT: three loops, so that a slow store delays neither revocations nor the other work.
        tokio::select! {
            () = stop => {}
            () = self.run_due() => {}
            () = self.end_revoked(&key_check) => {}
            () = self.check_keys_regularly(&key_check) => {}
        }
        self.end_all().await;
    }

    async fn run_due(&self) {
        let mut tick = tokio::time::interval(TICK);
        loop {
            tick.tick().await;
            self.count_run().await;
            self.run_due_work().await;
            self.read_queues_again_after_a_clock_jump();
        }
    }

    /// Notes that a queue is read now.
    pub(in crate::mqtt) fn note_queue_read(&self) {
        let now_ms = self.now().0;
        self.0.queues_read_ms.fetch_max(now_ms, Ordering::Relaxed);
    }

    /// The store hides messages that have expired by the clock. If the clock was ahead for a while, connections
    /// may have missed messages that are visible again now.
    fn read_queues_again_after_a_clock_jump(&self) {
        let now_ms = self.now().0;
        if self.0.queues_read_ms.load(Ordering::Relaxed) <= now_ms {
            return;
        }
        self.0.queues_read_ms.store(now_ms, Ordering::Relaxed);
        for link in self.links() {
            link.mailbox.read_again();
        }
    }

    /// Ends the connections of keys that this process revokes. Requests a check of all keys if it missed
    /// revocations.
    async fn end_revoked(&self, key_check: &Notify) {
        let mut revocations = self.0.credentials.api_keys.revocations();
        loop {
            match next_revoked(&mut revocations).await {
                Some(key_id) => self.disconnect_keys(&BTreeSet::from([key_id])),
                None => key_check.notify_one(),
            }
        }
    }

    async fn check_keys_regularly(&self, asked: &Notify) {
        let mut tick = tokio::time::interval(self.0.settings.key_check_every);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = tick.tick() => {}
                () = asked.notified() => {}
            }
            self.check_keys().await;
        }
    }

    /// Ends all connections because the server stops, and waits for them.
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

    /// Ends a connection that was opened while the server stops.
    pub(super) fn end_if_stopping(&self, mailbox: &Mailbox) {
        if self.0.is_stopping.load(Ordering::SeqCst) {
            mailbox.close(stopping());
        }
    }

    /// Schedules the next work on a session: its will or its expiry. It replaces the previous entry, so
    /// that a session has at most one, however often its client reconnects.
    pub(super) fn reschedule(&self, session: &Session) {
        let mut state = session.state();
        let expiry_ms = state.expires_at.map(|at| at.0.saturating_mul(1000));
        let will_ms = state.will.as_ref().map(|will| will.due_ms);
        let is_waiting = !state.is_connected() && !state.is_over;
        let next = expiry_ms.into_iter().chain(will_ms).min();
        let next = next.filter(|_| is_waiting);
        let mut due = self.due();
        if let Some(before) = state.due_ms {
            due.remove(&(before, session.name.clone()));
        }
        if let Some(next) = next {
            due.insert((next, session.name.clone()));
        }
        state.due_ms = next;
    }

    /// The number of sessions with a scheduled expiry or will.
    #[must_use]
    pub fn scheduled_len(&self) -> usize {
        self.due().len()
    }

    fn due(&self) -> MutexGuard<'_, BTreeSet<(i64, SessionName)>> {
        self.0.due.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn run_due_work(&self) {
        let due = {
            let first_later = (self.now().0.saturating_add(1), SessionName::new("", ""));
            let mut due = self.due();
            let later = due.split_off(&first_later);
            std::mem::replace(&mut *due, later)
        };
        // Each session once per tick: it stays due while the clock by which it has expired is unconfirmed.
        // Concurrently, so that a session that waits for the store does not delay the wills of others.
        futures_util::stream::iter(due)
            .for_each_concurrent(DUE_AT_ONCE, |(_, name)| async move {
                let session = self.sessions().get(&name).cloned();
                if let Some(session) = session {
                    self.run_due_work_of(&session).await;
                    self.reschedule(&session);
                }
            })
            .await;
    }

    /// Does the due work of a session. Its state decides, because it may have changed since it was scheduled.
    async fn run_due_work_of(&self, session: &Arc<Session>) {
        let _changing = session.change.lock().await;
        let (now_ms, removal_ms) = (self.now().0, self.removal_now().0);
        let (will, is_expired) = {
            let mut state = session.state();
            if state.is_connected() || state.is_over {
                return;
            }
            let is_expired = state.expires_at.is_some_and(|at| at.0 * 1000 <= removal_ms);
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

    /// Looks up the keys of all connections, because another process may have revoked some.
    async fn check_keys(&self) {
        let links = self.links();
        let key_ids: BTreeSet<_> = links.iter().filter_map(|link| link.key_id).collect();
        match self.0.credentials.api_keys.inactive(&key_ids).await {
            Ok(inactive) => self.disconnect_keys(&inactive),
            // The next check tries again.
            Err(error) => tracing::warn!(%error, "cannot look up the keys of MQTT connections"),
        }
    }

    fn disconnect_keys(&self, key_ids: &BTreeSet<KeyId>) {
        if key_ids.is_empty() {
            return;
        }
        for link in self.links() {
            if link.key_id.is_some_and(|id| key_ids.contains(&id)) {
                link.mailbox.close(Refusal::new(
                    Reason::NOT_AUTHORIZED,
                    "the API key was revoked",
                ));
            }
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

/// The next revoked key; `None` if some were missed.
async fn next_revoked(revocations: &mut broadcast::Receiver<KeyId>) -> Option<KeyId> {
    match revocations.recv().await {
        Ok(key_id) => Some(key_id),
        Err(RecvError::Lagged(_)) => None,
        // No more keys can be revoked.
        Err(RecvError::Closed) => std::future::pending().await,
    }
}
