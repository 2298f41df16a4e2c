//! How sessions begin, go on, change and end.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use homeport_store::StoreError;
use homeport_systems::messages::{Message, StoredSession, Subscription, TopicFilter};

use super::Broker;
use super::mailbox::Mailbox;
use super::session::{Link, PendingWill, Session, new_queue_id};
use crate::mqtt::access::Access;
use crate::mqtt::codec::{Reason, Refusal};
use crate::mqtt::settings::TAKE_OVER_MAX;

/// A client that wants its session.
pub(in crate::mqtt) struct Arrival<'a> {
    pub(in crate::mqtt) access: &'a Access,
    pub(in crate::mqtt) client_id: &'a str,
    pub(in crate::mqtt) clean_start: bool,
    pub(in crate::mqtt) expiry_secs: u32,
}

/// A session with its connection.
pub(in crate::mqtt) struct Attached {
    pub(in crate::mqtt) session: Arc<Session>,
    pub(in crate::mqtt) mailbox: Arc<Mailbox>,
    pub(in crate::mqtt) link_id: u64,
    /// Whether it was there before.
    pub(in crate::mqtt) is_present: bool,
    /// What the connection before sent and nobody acknowledged: packet id and sequence.
    pub(in crate::mqtt) unacknowledged: Vec<(u16, u64)>,
}

/// How a connection leaves its session.
#[derive(Default)]
pub(in crate::mqtt) struct Parting {
    pub(in crate::mqtt) unacknowledged: Vec<(u16, u64)>,
    /// What is to be published now or after the delay, in seconds.
    pub(in crate::mqtt) will: Option<(Message, u32)>,
    /// MQTT 5 clients may change their mind at the end.
    pub(in crate::mqtt) expiry_secs: Option<u32>,
}

/// Why a session cannot be opened.
#[derive(Debug, thiserror::Error)]
pub(in crate::mqtt) enum OpenError {
    #[error("there are too many sessions")]
    TooMany,
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Broker {
    /// Takes over what the store has of sessions.
    pub(super) fn restore(&self, stored: Vec<StoredSession>) {
        for stored in stored {
            let is_cut_off = stored.expires_at.is_none();
            let session = Arc::new(Session::restored(stored));
            let name = Arc::clone(&session.name);
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

    /// Gives a client its session, and takes it from whoever has it.
    pub(in crate::mqtt) async fn open(&self, arrival: Arrival<'_>) -> Result<Attached, OpenError> {
        let name: Arc<str> = format!("{}/{}", arrival.access.owner(), arrival.client_id).into();
        loop {
            let session = self.find_or_begin(&name, arrival.client_id)?;
            let changing = session.change.lock().await;
            if session.state().is_over {
                continue;
            }
            self.take_from(&session).await;
            let will = session.state().will.take();
            let is_present = match self.prepare(&session, &arrival).await {
                Ok(is_present) => is_present,
                Err(error) => {
                    self.abandon(&session).await;
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
                    key_id: arrival.access.key_id(),
                });
                // What expired meanwhile was never taken out by anybody: it is counted when needed.
                if is_present {
                    state.queue_len = None;
                }
                std::mem::take(&mut state.unacknowledged)
            };
            self.reschedule(&session);
            // After the link is there, so that one of the two sees the other.
            self.end_if_stopping(&mailbox);
            drop(changing);
            if let (Some(will), false) = (will, is_present) {
                // The session that the will belonged to is over.
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
                // It was taken away meanwhile; a will that waits would have been dropped there.
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
            // The store still has it as connected: its time begins when the server starts again.
            tracing::warn!(session = %session.name, %error, "cannot write a session's end");
        }
    }

    /// Subscribes a session; durable when this is answered, if the session is.
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

    /// Ends subscriptions of a session; says of each whether it was there.
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

    /// A session's queue, as the store knows it.
    pub(in crate::mqtt) fn queue_id(&self, session: &Session) -> Arc<str> {
        Arc::clone(&session.state().queue_id)
    }

    /// Notes that messages were taken out of a session's queue.
    pub(in crate::mqtt) fn note_removed(&self, session: &Session, count: usize) {
        if let Some(len) = &mut session.state().queue_len {
            *len = len.saturating_sub(count);
        }
    }

    /// Publishes what a lost client left behind.
    pub(super) async fn publish_will(&self, message: Message) {
        use homeport_systems::messages::Publish as _;
        if let Err(error) = self.publish(message).await {
            self.0.meters.dropped_store.increment(1);
            tracing::warn!(%error, "cannot publish a will");
        }
    }

    /// Ends a session for good. Its change lock is held.
    pub(super) async fn end(&self, session: &Arc<Session>) -> Result<(), StoreError> {
        let is_stored = {
            let mut state = session.state();
            state.is_over = true;
            state.is_stored
        };
        self.reschedule(session);
        self.sessions().remove(&session.name);
        self.measure_sessions();
        self.leave_trie(session);
        if is_stored {
            self.0.session_table.remove(&session.name).await?;
            self.0.queue_table.clear(&self.queue_id(session)).await?;
        }
        Ok(())
    }

    /// The session of that name, which begins now unless there is one.
    fn find_or_begin(&self, name: &Arc<str>, client_id: &str) -> Result<Arc<Session>, OpenError> {
        let mut sessions = self.sessions();
        if let Some(session) = sessions.get(name) {
            return Ok(Arc::clone(session));
        }
        if sessions.len() >= self.0.settings.sessions_max {
            return Err(OpenError::TooMany);
        }
        let session = Arc::new(Session::new(Arc::clone(name), client_id.to_owned()));
        sessions.insert(Arc::clone(name), Arc::clone(&session));
        drop(sessions);
        self.measure_sessions();
        Ok(session)
    }

    /// Makes the connection that a session has let go, and waits until it does.
    async fn take_from(&self, session: &Arc<Session>) {
        let taken = async {
            loop {
                let mut detached = std::pin::pin!(session.detached.notified());
                // Before looking, so that a connection that lets go in between is not missed.
                detached.as_mut().enable();
                let Some(link) = session.state().link.clone() else {
                    return;
                };
                link.mailbox.close(Refusal::new(
                    Reason::TAKEN_OVER,
                    "another connection has the client's session now",
                ));
                detached.await;
            }
        };
        if tokio::time::timeout(TAKE_OVER_MAX, taken).await.is_err() {
            tracing::warn!(session = %session.name, "a connection did not let go of its session");
            session.state().link = None;
        }
    }

    /// Makes a session what its client asked for, in memory and in the store; whether it was there
    /// before.
    async fn prepare(
        &self,
        session: &Arc<Session>,
        arrival: &Arrival<'_>,
    ) -> Result<bool, StoreError> {
        let is_present = {
            let state = session.state();
            let now = self.removal_now().seconds();
            let is_expired = state.expires_at.is_some_and(|at| at <= now);
            state.is_durable() && !arrival.clean_start && !is_expired
        };
        if !is_present {
            self.begin_anew(session).await?;
        }
        let (is_durable, was_stored) = {
            let mut state = session.state();
            state.expiry_secs = arrival.expiry_secs;
            state.expires_at = None;
            let was_stored = state.is_stored;
            // Also when writing it fails: it is not known then whether it was written.
            state.is_stored |= state.is_durable();
            (state.is_durable(), was_stored)
        };
        if is_durable {
            self.0.session_table.put(&session.to_stored()).await?;
        } else if was_stored {
            // Its queue goes with the session's end.
            self.0.session_table.remove(&session.name).await?;
        }
        Ok(is_present)
    }

    /// Leaves a session without a connection after the store failed.
    async fn abandon(&self, session: &Arc<Session>) {
        let is_durable = session.state().is_durable();
        let outcome = if is_durable {
            self.begin_expiry(session).await
        } else {
            self.end(session).await
        };
        if let Err(error) = outcome {
            tracing::warn!(session = %session.name, %error, "cannot leave a session as it was");
        }
    }

    /// Empties a session, which then is as if it had never been.
    async fn begin_anew(&self, session: &Arc<Session>) -> Result<(), StoreError> {
        self.leave_trie(session);
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

    /// Lets the time run that a session lives without a connection.
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

    fn leave_trie(&self, session: &Arc<Session>) {
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
