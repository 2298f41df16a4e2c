//! What operators see of clients, and how they end them: connected clients, and persistent sessions without a
//! connection.

use std::borrow::Cow;
use std::io;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use homeport_item::{Item, Value};
use homeport_store::StoreError;
use homeport_systems::cursor::{Cursor, CursorError};
use homeport_systems::messages::{Message, Subscription, TopicFilter};
use homeport_systems::pages::Page;
use homeport_systems::time::{EpochMillis, EpochSeconds};

use super::Broker;
use super::session::{Session, SessionName};
use crate::mqtt::access::Access;
use crate::mqtt::codec::{Reason, Refusal, Version};
use crate::mqtt::refusal_log::{Refused, Shortened};
use crate::mqtt::transport::Peer;

/// Sessions that are looked up under the lock at once, so that a list delays no connection.
const SESSIONS_PER_LOOK: usize = 256;
/// Subscriptions of a client in a list.
const LISTED_SUBSCRIPTIONS_MAX: usize = 10;

const CLIENT_ID: &str = "client_id";
const OWNER: &str = "owner";

const DISCONNECTED: Refusal = Refusal {
    reason: Reason::ADMINISTRATIVE_ACTION,
    detail: "an operator disconnected the client",
};

/// A client as it connected, and what it has sent and received since.
#[derive(Debug)]
pub(crate) struct ConnectedClient {
    pub(crate) access: Access,
    pub(crate) peer: Peer,
    pub(crate) version: Version,
    /// 0 without keep-alive.
    pub(crate) keep_alive_secs: u16,
    pub(crate) connected_at: EpochMillis,
    /// From the client.
    pub(crate) received: Traffic,
    /// To the client.
    pub(crate) sent: Traffic,
}

/// Counts messages in one direction.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    messages: AtomicU64,
    payload_bytes: AtomicU64,
}

/// The last refusal or failure of a client.
#[derive(Debug, Clone)]
pub(crate) struct ClientProblem {
    pub(crate) at: EpochMillis,
    /// What was refused: the connection, a publish or a subscription.
    pub(crate) kind: &'static str,
    pub(crate) reason: &'static str,
    pub(crate) detail: Cow<'static, str>,
    pub(crate) topic: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClientState {
    Connected,
    Offline,
}

/// Which clients are listed.
#[derive(Debug, Clone, Default)]
pub(crate) struct ClientFilter {
    pub(crate) state: Option<ClientState>,
    pub(crate) prefix: String,
}

/// A client with its session.
#[derive(Debug)]
pub(crate) struct ClientView {
    pub(crate) name: SessionName,
    pub(crate) state: ClientState,
    /// Since when it is connected or offline.
    pub(crate) since: Option<EpochMillis>,
    /// The connection, or the last one since the start of the server.
    pub(crate) client: Option<Arc<ConnectedClient>>,
    /// 0 if the session ends with its connection.
    pub(crate) expiry_secs: u32,
    pub(crate) expires_at: Option<EpochSeconds>,
    pub(crate) subscriptions: Vec<(TopicFilter, Subscription)>,
    pub(crate) subscription_count: usize,
    /// `None` while a stored queue is not counted.
    pub(crate) queue_len: Option<usize>,
    pub(crate) last_problem: Option<ClientProblem>,
}

/// Why no client was found.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoClient {
    #[error("there is no such MQTT client")]
    Missing,
    #[error("several MQTT clients have this client id; choose one with ?owner=: {}", .0.join(", "))]
    Ambiguous(Vec<String>),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Traffic {
    pub(in crate::mqtt) fn count(&self, message: &Message) {
        let bytes = message.payload.len() as u64;
        self.messages.fetch_add(1, Ordering::Relaxed);
        self.payload_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// The messages, and the bytes of their payloads.
    pub(crate) fn totals(&self) -> (u64, u64) {
        let messages = self.messages.load(Ordering::Relaxed);
        (messages, self.payload_bytes.load(Ordering::Relaxed))
    }
}

impl ClientProblem {
    pub(in crate::mqtt) fn refusal(at: EpochMillis, refused: Refused<'_>, why: Refusal) -> Self {
        let (kind, topic) = refused.kind_and_topic();
        Self {
            at,
            kind,
            reason: why.reason.name(),
            detail: why.detail.into(),
            topic: topic.map(|topic| Shortened(topic).to_string()),
        }
    }

    pub(in crate::mqtt) fn lost(at: EpochMillis, error: &io::Error) -> Self {
        let detail = match error.kind() {
            io::ErrorKind::UnexpectedEof => "the client closed it without DISCONNECT".into(),
            io::ErrorKind::TimedOut => "the client did not read what was written to it".into(),
            _ => error.to_string().into(),
        };
        Self {
            at,
            kind: "connection",
            reason: "connection_lost",
            detail,
            topic: None,
        }
    }
}

impl ClientFilter {
    fn list(&self) -> String {
        format!("mqtt-clients {:?} {}", self.state, self.prefix)
    }
}

impl Session {
    pub(in crate::mqtt) fn note_problem(&self, problem: ClientProblem) {
        self.state().last_problem = Some(Box::new(problem));
    }

    /// The client, with at most so many subscriptions. `None` for a session that is about to end or to begin.
    fn view(&self, subscriptions_max: usize) -> Option<ClientView> {
        let state = self.state();
        let is_connected = state.is_connected();
        if state.is_over || !is_connected && !state.is_stored {
            return None;
        }
        let began_at = state.client.as_ref().map(|client| client.connected_at);
        let ended_at = state.expires_at.map(|at| {
            let secs = at.plus_secs(-i64::from(state.expiry_secs));
            EpochMillis(secs.0.saturating_mul(1000))
        });
        let subscriptions = state.subscriptions.iter().take(subscriptions_max);
        Some(ClientView {
            name: self.name.clone(),
            state: if is_connected {
                ClientState::Connected
            } else {
                ClientState::Offline
            },
            since: if is_connected { began_at } else { ended_at },
            client: state.client.clone(),
            expiry_secs: state.expiry_secs,
            expires_at: state.expires_at,
            subscriptions: subscriptions
                .map(|(filter, how)| (filter.clone(), *how))
                .collect(),
            subscription_count: state.subscriptions.len(),
            queue_len: match &state.link {
                Some(link) if !state.is_durable() => Some(link.mailbox.len()),
                _ => state.queue_len,
            },
            last_problem: state.last_problem.as_deref().cloned(),
        })
    }
}

impl Broker {
    /// Lists clients in the order of their ids.
    ///
    /// # Errors
    /// When the cursor is of another list.
    pub(crate) async fn clients(
        &self,
        filter: &ClientFilter,
        limit: usize,
        cursor: Option<Cursor>,
    ) -> Result<Page<ClientView>, CursorError> {
        let list = filter.list();
        let mut after = match cursor {
            Some(cursor) => Bound::Excluded(name_of(&cursor.start_of(&list)?).ok_or(CursorError)?),
            None => Bound::Included(SessionName::new("", &filter.prefix)),
        };
        let mut page: Page<ClientView> = Page::default();
        loop {
            let sessions = self.sessions_after(&after);
            let Some(last) = sessions.last() else {
                return Ok(page);
            };
            after = Bound::Excluded(last.name.clone());
            for session in sessions {
                if !session.name.client_id.starts_with(&filter.prefix) {
                    return Ok(page);
                }
                let Some(view) = session.view(LISTED_SUBSCRIPTIONS_MAX) else {
                    continue;
                };
                if filter.state.is_some_and(|wanted| wanted != view.state) {
                    continue;
                }
                if page.items.len() == limit {
                    let last = page.items.last();
                    page.next = last.map(|last| Cursor::new(&list, key_of(&last.name)));
                    return Ok(page);
                }
                page.items.push(view);
            }
            tokio::task::yield_now().await;
        }
    }

    /// One client with all of its subscriptions and the length of its queue.
    ///
    /// # Errors
    /// When no client has this id, several have it, or the store fails.
    pub(crate) async fn client(
        &self,
        client_id: &str,
        owner: Option<&str>,
    ) -> Result<ClientView, NoClient> {
        let session = self.find_client(client_id, owner)?;
        let mut view = session.view(usize::MAX).ok_or(NoClient::Missing)?;
        if view.queue_len.is_none() {
            let count = self.0.queue_table.count(&self.queue_id(&session)).await?;
            view.queue_len = Some(count);
        }
        Ok(view)
    }

    /// Disconnects a client, and deletes its session if that is wanted; returns whether it was connected.
    ///
    /// # Errors
    /// When no client has this id, several have it, or the store fails. After a failure of the store the session is still
    /// there, so the request can be repeated.
    pub(crate) async fn end_client(
        &self,
        client_id: &str,
        owner: Option<&str>,
        with_session: bool,
    ) -> Result<bool, NoClient> {
        let session = self.find_client(client_id, owner)?;
        let _changing = session.change.lock().await;
        if session.state().is_over {
            return Err(NoClient::Missing);
        }
        let was_connected = session.state().is_connected();
        self.disconnect(&session, DISCONNECTED).await;
        if !with_session {
            return Ok(was_connected);
        }
        if session.state().is_stored {
            self.remove_stored(&session).await?;
        }
        let will = session.state().will.take();
        self.end(&session).await?;
        if let Some(will) = will {
            // A delayed will is due when its session ends.
            self.publish_will(will.message).await;
        }
        Ok(was_connected)
    }

    /// The next sessions in the order of their names.
    fn sessions_after(&self, after: &Bound<SessionName>) -> Vec<Arc<Session>> {
        let sessions = self.sessions();
        let next = sessions.range((after.as_ref(), Bound::Unbounded));
        let next = next.map(|(_, session)| Arc::clone(session));
        next.take(SESSIONS_PER_LOOK).collect()
    }

    fn find_client(&self, client_id: &str, owner: Option<&str>) -> Result<Arc<Session>, NoClient> {
        let mut found: Vec<_> = {
            let sessions = self.sessions();
            let first = SessionName::new(owner.unwrap_or_default(), client_id);
            let same = sessions.range(first..).map(|(_, session)| session);
            same.take_while(|session| {
                let name = &session.name;
                *name.client_id == *client_id && owner.is_none_or(|owner| *name.owner == *owner)
            })
            .cloned()
            .collect()
        };
        found.retain(|session| session.view(0).is_some());
        match found.pop() {
            None => Err(NoClient::Missing),
            Some(only) if found.is_empty() => Ok(only),
            Some(last) => {
                found.push(last);
                let owners = found.iter().map(|session| session.name.owner.to_string());
                Err(NoClient::Ambiguous(owners.collect()))
            }
        }
    }
}

fn key_of(name: &SessionName) -> Item {
    Item::new()
        .with(CLIENT_ID, &*name.client_id)
        .with(OWNER, &*name.owner)
}

fn name_of(key: &Item) -> Option<SessionName> {
    let text = |name: &str| key.get(name).and_then(Value::as_str);
    Some(SessionName::new(text(OWNER)?, text(CLIENT_ID)?))
}
