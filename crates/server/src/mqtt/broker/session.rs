//! A session in memory: its subscriptions, and its connection if it has one.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use homeport_systems::api_keys::KeyId;
use homeport_systems::ids::UuidV4;
use homeport_systems::messages::{Message, StoredSession, Subscription, TopicFilter};
use homeport_systems::time::{EpochMillis, EpochSeconds};
use tokio::sync::Notify;

use super::clients::{ClientProblem, ConnectedClient};
use super::mailbox::Mailbox;

/// The name of a session. Different owners have separate client ids.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SessionName {
    // First, so that the sessions of a client id are neighbours.
    pub(crate) client_id: Arc<str>,
    pub(crate) owner: Arc<str>,
}

/// A session. It is in the registry, and in the trie with each of its subscriptions.
pub(in crate::mqtt) struct Session {
    pub(in crate::mqtt) name: SessionName,
    /// Held while the session is opened, ended or stored, so that these happen one after another.
    pub(super) change: tokio::sync::Mutex<()>,
    /// Signals that a connection has detached.
    pub(super) detached: Notify,
    state: Mutex<SessionState>,
}

pub(in crate::mqtt) struct SessionState {
    pub(super) queue_id: Arc<str>,
    /// How long it is kept without a connection. With 0 it ends with its connection and is not stored.
    pub(super) expiry_secs: u32,
    pub(super) expires_at: Option<EpochSeconds>,
    pub(in crate::mqtt) subscriptions: BTreeMap<TopicFilter, Subscription>,
    pub(super) link: Option<Link>,
    /// Of the connection, or of the last one since the start of the server.
    pub(super) client: Option<Arc<ConnectedClient>>,
    /// The last refusal or failure of its connections since the start of the server.
    pub(super) last_problem: Option<Box<ClientProblem>>,
    /// Unacknowledged messages of the last connection: packet id and sequence.
    pub(super) unacknowledged: Vec<(u16, u64)>,
    /// The number of messages in its queue; `None` until they are counted.
    pub(super) queue_len: Option<usize>,
    /// When they were counted; some may have expired since.
    pub(super) queue_counted_at: EpochMillis,
    pub(super) will: Option<PendingWill>,
    /// The session's entry in the broker's schedule.
    pub(super) due_ms: Option<i64>,
    /// Whether the session is stored.
    pub(super) is_stored: bool,
    /// Whether it was removed from the registry. Then it must be looked up again.
    pub(super) is_over: bool,
}

/// The connection of a session.
#[derive(Clone)]
pub(in crate::mqtt) struct Link {
    pub(super) id: u64,
    pub(super) mailbox: Arc<Mailbox>,
    pub(super) key_id: Option<KeyId>,
}

/// A will that waits for its delay.
pub(super) struct PendingWill {
    pub(super) due_ms: i64,
    pub(super) message: Message,
}

impl SessionName {
    pub(super) fn new(owner: &str, client_id: &str) -> Self {
        Self {
            client_id: client_id.into(),
            owner: owner.into(),
        }
    }
}

impl fmt::Display for SessionName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.owner, self.client_id)
    }
}

impl Session {
    /// A new session, which is not stored.
    pub(super) fn new(name: SessionName) -> Self {
        Self {
            name,
            change: tokio::sync::Mutex::default(),
            detached: Notify::new(),
            state: Mutex::new(SessionState {
                queue_id: new_queue_id(),
                expiry_secs: 0,
                expires_at: None,
                subscriptions: BTreeMap::new(),
                link: None,
                client: None,
                last_problem: None,
                unacknowledged: Vec::new(),
                queue_len: Some(0),
                queue_counted_at: EpochMillis(0),
                will: None,
                due_ms: None,
                is_stored: false,
                is_over: false,
            }),
        }
    }

    /// A session from the store.
    pub(super) fn restored(stored: StoredSession) -> Self {
        let session = Self::new(SessionName::new(&stored.owner, &stored.client_id));
        {
            let mut state = session.state();
            state.queue_id = stored.queue_id.into();
            state.expiry_secs = stored.expiry_secs;
            state.expires_at = stored.expires_at;
            state.subscriptions = stored.subscriptions;
            state.queue_len = None;
            state.is_stored = true;
        }
        session
    }

    pub(in crate::mqtt) fn state(&self) -> MutexGuard<'_, SessionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The form in the store.
    pub(super) fn to_stored(&self) -> StoredSession {
        let state = self.state();
        StoredSession {
            owner: self.name.owner.to_string(),
            client_id: self.name.client_id.to_string(),
            queue_id: state.queue_id.to_string(),
            expiry_secs: state.expiry_secs,
            expires_at: state.expires_at,
            subscriptions: state.subscriptions.clone(),
        }
    }
}

impl SessionState {
    /// Whether it is kept without a connection.
    pub(in crate::mqtt) fn is_durable(&self) -> bool {
        self.expiry_secs > 0
    }

    pub(super) fn is_connected(&self) -> bool {
        self.link.is_some()
    }
}

pub(super) fn new_queue_id() -> Arc<str> {
    UuidV4::random().to_string().into()
}

impl fmt::Debug for Session {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Session")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
