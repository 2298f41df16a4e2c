//! Sessions: opening, restoring, changing and ending them.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use homeport_store::StoreError;
use homeport_systems::messages::{Message, StoredSession, Subscription, TopicFilter};

use super::Broker;
use super::clients::ConnectedClient;
use super::mailbox::Mailbox;
use super::session::{Link, PendingWill, Session, SessionName, new_queue_id};
use crate::mqtt::codec::{Reason, Refusal};
use crate::mqtt::settings::TAKE_OVER_MAX;

const TAKEN_OVER: Refusal = Refusal {
    reason: Reason::TAKEN_OVER,
    detail: "another connection took over the session of this client id",
};

/// A client that opens its session.
pub(in crate::mqtt) struct SessionRequest<'a> {
    pub(in crate::mqtt) client: Arc<ConnectedClient>,
    pub(in crate::mqtt) client_id: &'a str,
    pub(in crate::mqtt) clean_start: bool,
    pub(in crate::mqtt) expiry_secs: u32,
}

/// A session with its connection.
pub(in crate::mqtt) struct Attached {
    pub(in crate::mqtt) session: Arc<Session>,
    pub(in crate::mqtt) mailbox: Arc<Mailbox>,
    pub(in crate::mqtt) link_id: u64,
    /// Whether the session existed before.
    pub(in crate::mqtt) is_present: bool,
    /// Unacknowledged messages of the previous connection: packet id and sequence.
    pub(in crate::mqtt) unacknowledged: Vec<(u16, u64)>,
}

/// What a connection leaves to its session.
#[derive(Default)]
pub(in crate::mqtt) struct Parting {
    pub(in crate::mqtt) unacknowledged: Vec<(u16, u64)>,
    /// The will, and its delay in seconds.
    pub(in crate::mqtt) will: Option<(Message, u32)>,
    /// MQTT 5 clients may change the expiry when they disconnect.
    pub(in crate::mqtt) expiry_secs: Option<u32>,
}

/// Why a session cannot be opened.
#[derive(Debug, thiserror::Error)]
pub(in crate::mqtt) enum OpenError {
    #[error("too many sessions")]
    TooMany,
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Broker {
    /// Restores stored sessions.
    pub(super) fn restore(&self, stored: Vec<StoredSession>) {
        for stored in stored {
            let is_cut_off = stored.expires_at.is_none();
            let session = Arc::new(Session::restored(stored));
            let name = session.name.clone();
            self.sessions().insert(name, Arc::clone(&session));
            let subscriptions = session.state().subscriptions.clone();
            for (filter, how) in &subscriptions {
                self.with_trie(|trie| trie.insert(filter, &session, *how));
            }
            if is_cut_off {
                // The process ended while the session was connected, so the session's expiry starts now.
                // It is not stored: another start would restart it.
                let mut state = session.state();
                let secs = i64::from(state.expiry_secs);
                state.expires_at = Some(self.now_secs().plus_secs(secs));
            }
            self.reschedule(&session);
        }
        self.measure_sessions();
    }

    /// Attaches a client to its session, and disconnects the connection that has the session.
    pub(in crate::mqtt) async fn open(
        &self,
        arrival: SessionRequest<'_>,
    ) -> Result<Attached, OpenError> {
        let access = &arrival.client.access;
        let name = SessionName::new(&access.owner(), arrival.client_id);
        loop {
            let session = self.find_or_create(&name)?;
            let changing = session.change.lock().await;
            if session.state().is_over {
                continue;
            }
            self.disconnect(&session, TAKEN_OVER).await;
            let will = session.state().will.take();
            let is_present = match self.prepare(&session, &arrival).await {
                Ok(is_present) => is_present,
                Err(error) => {
                    self.detach_after_failure(&session).await;
                    return Err(error.into());
                }
            };
            let mailbox = Arc::new(if is_present {
                Mailbox::behind()
            } else {
                Mailbox::default()
            });
            let link_id = self.0.link_ids.fetch_add(1, Ordering::Relaxed);
            let unacknowledged = {
                let mut state = session.state();
                state.link = Some(Link {
                    id: link_id,
                    mailbox: Arc::clone(&mailbox),
                    key_id: access.key_id(),
                });
                state.client = Some(Arc::clone(&arrival.client));
                // Messages may have expired meanwhile: the queue is counted when its length is needed.
                if is_present {
                    state.queue_len = None;
                }
                std::mem::take(&mut state.unacknowledged)
            };
            self.reschedule(&session);
            // IMPORTANT: after the link is set, so that a shutdown at the same time closes this mailbox.
            self.end_if_stopping(&mailbox);
            drop(changing);
            if let (Some(will), false) = (will, is_present) {
                // The session of the will has ended.
                self.publish_will(will.message).await;
            }
            return Ok(Attached {
                session,
                mailbox,
                link_id,
                is_present,
                unacknowledged,
            });
        }
    }

    /// Detaches a session from its connection when the connection ends.
    pub(in crate::mqtt) async fn detach(
        &self,
        session: &Arc<Session>,
        link_id: u64,
        parting: Parting,
    ) {
        let will_now = {
            let mut state = session.state();
            if state.link.as_ref().is_none_or(|link| link.id != link_id) {
                // Another connection took the session over, which would drop a delayed will.
                parting.will.map(|(message, _)| message)
            } else {
                state.link = None;
                state.unacknowledged = parting.unacknowledged;
                if let Some(secs) = parting.expiry_secs {
                    state.expiry_secs = secs;
                }
                match parting.will {
                    Some((message, delay)) if delay.min(state.expiry_secs) > 0 => {
                        let delay = delay.min(state.expiry_secs);
                        let due_ms = self.now().0.saturating_add(i64::from(delay) * 1000);
                        state.will = Some(PendingWill { due_ms, message });
                        None
                    }
                    will => will.map(|(message, _)| message),
                }
            }
        };
        self.reschedule(session);
        session.detached.notify_waiters();
        if let Some(message) = will_now {
            self.publish_will(message).await;
        }
        let _changing = session.change.lock().await;
        let is_durable = {
            let state = session.state();
            if state.is_connected() || state.is_over {
                return;
            }
            state.is_durable()
        };
        let outcome = if is_durable {
            self.begin_expiry(session).await
        } else {
            self.end(session).await
        };
        if let Err(error) = outcome {
            // The store still has it as connected: its expiry starts when the server starts again.
            tracing::warn!(session = %session.name, %error, "cannot store the end of a session");
        }
    }

    /// Subscribes a session. If the session is durable, the subscriptions are durable when this returns.
    pub(in crate::mqtt) async fn subscribe(
        &self,
        session: &Arc<Session>,
        new: &[(TopicFilter, Subscription)],
    ) -> Result<(), StoreError> {
        let _changing = session.change.lock().await;
        for (filter, how) in new {
            session.state().subscriptions.insert(filter.clone(), *how);
            self.with_trie(|trie| trie.insert(filter, session, *how));
        }
        self.store_if_durable(session).await
    }

    /// Ends subscriptions of a session; returns for each whether it existed.
    pub(in crate::mqtt) async fn unsubscribe(
        &self,
        session: &Arc<Session>,
        filters: &[Option<TopicFilter>],
    ) -> Result<Vec<bool>, StoreError> {
        let _changing = session.change.lock().await;
        let mut were_there = Vec::with_capacity(filters.len());
        for filter in filters {
            let removed = filter.as_ref().is_some_and(|filter| {
                self.with_trie(|trie| trie.remove(filter, session));
                session.state().subscriptions.remove(filter).is_some()
            });
            were_there.push(removed);
        }
        self.store_if_durable(session).await?;
        Ok(were_there)
    }

    /// The id of a session's queue.
    pub(in crate::mqtt) fn queue_id(&self, session: &Session) -> Arc<str> {
        Arc::clone(&session.state().queue_id)
    }

    /// Counts messages that were deleted from a session's queue.
    pub(in crate::mqtt) fn note_removed(&self, session: &Session, count: usize) {
        if let Some(len) = &mut session.state().queue_len {
            *len = len.saturating_sub(count);
        }
    }

    /// Publishes the will of a lost client.
    pub(super) async fn publish_will(&self, message: Message) {
        use homeport_systems::messages::Publish as _;
        if let Err(error) = self.publish(message).await {
            self.0.meters.dropped_store.increment(1);
            tracing::warn!(%error, "cannot publish a will");
        }
    }

    /// Deletes a session. The caller holds its change lock.
    pub(super) async fn end(&self, session: &Arc<Session>) -> Result<(), StoreError> {
        let is_stored = {
            let mut state = session.state();
            state.is_over = true;
            state.is_stored
        };
        self.reschedule(session);
        self.sessions().remove(&session.name);
        self.measure_sessions();
        self.remove_from_trie(session);
        if is_stored {
            self.remove_stored(session).await?;
        }
        Ok(())
    }

    /// Deletes a stored session and its queue.
    pub(super) async fn remove_stored(&self, session: &Session) -> Result<(), StoreError> {
        let SessionName { client_id, owner } = &session.name;
        self.0.session_table.remove(owner, client_id).await?;
        self.0.queue_table.clear(&self.queue_id(session)).await
    }

    /// Finds or creates the session of that name.
    fn find_or_create(&self, name: &SessionName) -> Result<Arc<Session>, OpenError> {
        let mut sessions = self.sessions();
        if let Some(session) = sessions.get(name) {
            return Ok(Arc::clone(session));
        }
        if sessions.len() >= self.0.settings.sessions_max {
            return Err(OpenError::TooMany);
        }
        let session = Arc::new(Session::new(name.clone()));
        sessions.insert(name.clone(), Arc::clone(&session));
        drop(sessions);
        self.measure_sessions();
        Ok(session)
    }

    /// Disconnects the connection of a session, and waits until it has detached. The caller holds its change lock.
    pub(super) async fn disconnect(&self, session: &Arc<Session>, why: Refusal) {
        let taken = async {
            loop {
                let mut detached = std::pin::pin!(session.detached.notified());
                // Registered before the check, so that no detachment is missed.
                detached.as_mut().enable();
                let Some(link) = session.state().link.clone() else {
                    return;
                };
                link.mailbox.close(why);
                detached.await;
            }
        };
        if tokio::time::timeout(TAKE_OVER_MAX, taken).await.is_err() {
            tracing::warn!(session = %session.name, "a connection did not detach from its session in time");
            session.state().link = None;
        }
    }

    /// Prepares a session for its client, in memory and in the store; returns whether it existed before.
    async fn prepare(
        &self,
        session: &Arc<Session>,
        arrival: &SessionRequest<'_>,
    ) -> Result<bool, StoreError> {
        let is_present = {
            let state = session.state();
            let now = self.removal_now().seconds();
            let is_expired = state.expires_at.is_some_and(|at| at <= now);
            state.is_durable() && !arrival.clean_start && !is_expired
        };
        if !is_present {
            self.reset_session(session).await?;
        }
        let (is_durable, was_stored) = {
            let mut state = session.state();
            state.expiry_secs = arrival.expiry_secs;
            state.expires_at = None;
            let was_stored = state.is_stored;
            // Also if the write fails, because it may have been applied.
            state.is_stored |= state.is_durable();
            (state.is_durable(), was_stored)
        };
        if is_durable {
            self.0.session_table.put(&session.to_stored()).await?;
        } else if was_stored {
            // Ending the session deletes its queue.
            let SessionName { client_id, owner } = &session.name;
            self.0.session_table.remove(owner, client_id).await?;
        }
        Ok(is_present)
    }

    /// Leaves a session without a connection after the store failed.
    async fn detach_after_failure(&self, session: &Arc<Session>) {
        let is_durable = session.state().is_durable();
        let outcome = if is_durable {
            self.begin_expiry(session).await
        } else {
            self.end(session).await
        };
        if let Err(error) = outcome {
            tracing::warn!(session = %session.name, %error, "cannot restore a session after a failure");
        }
    }

    /// Resets a session to a new one.
    async fn reset_session(&self, session: &Arc<Session>) -> Result<(), StoreError> {
        self.remove_from_trie(session);
        let old = {
            let mut state = session.state();
            state.subscriptions.clear();
            state.unacknowledged.clear();
            state.queue_len = Some(0);
            let old = std::mem::replace(&mut state.queue_id, new_queue_id());
            state.is_stored.then_some(old)
        };
        if let Some(old) = old {
            self.0.queue_table.clear(&old).await?;
        }
        Ok(())
    }

    /// Starts the expiry of a session without a connection.
    async fn begin_expiry(&self, session: &Arc<Session>) -> Result<(), StoreError> {
        {
            let mut state = session.state();
            let secs = i64::from(state.expiry_secs);
            state.expires_at = Some(self.now_secs().plus_secs(secs));
            state.is_stored = true;
        }
        self.reschedule(session);
        self.0.session_table.put(&session.to_stored()).await
    }

    async fn store_if_durable(&self, session: &Arc<Session>) -> Result<(), StoreError> {
        if session.state().is_durable() {
            self.0.session_table.put(&session.to_stored()).await?;
        }
        Ok(())
    }

    fn remove_from_trie(&self, session: &Arc<Session>) {
        let subscriptions = std::mem::take(&mut session.state().subscriptions);
        self.with_trie(|trie| {
            for filter in subscriptions.keys() {
                trie.remove(filter, session);
            }
        });
    }

    fn with_trie<T>(&self, work: impl FnOnce(&mut super::Trie) -> T) -> T {
        let trie = self.0.subscriptions.write();
        work(&mut trie.unwrap_or_else(std::sync::PoisonError::into_inner))
    }

    pub(super) fn measure_sessions(&self) {
        let count = self.sessions().len();
        self.0.meters.sessions.set(count as f64);
    }
}
