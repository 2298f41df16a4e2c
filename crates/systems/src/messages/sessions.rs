//! Persistent sessions, which outlive their connections.

use std::collections::BTreeMap;
use std::sync::Arc;

use homeport_item::expression::Update;
use homeport_item::{Item, Value};
use homeport_store::{
    Delete, Get, Put, ReturnValues, Scan, Store, StoreError, Update as UpdateRequest, WriteError,
};

use super::stored::integer;
use super::{Delivery, TopicFilter, schema};
use crate::time::EpochSeconds;

/// The options of a subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Subscription {
    /// The granted delivery.
    pub delivery: Delivery,
    /// Whether messages of the session itself are excluded.
    pub no_local: bool,
    /// Whether messages keep their retain flag.
    pub retain_as_published: bool,
    pub identifier: Option<u32>,
}

/// A stored session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredSession {
    /// Whose client ids it is among. It has no slash.
    pub owner: String,
    pub client_id: String,
    /// The partition of its queue.
    pub queue_id: String,
    /// How long it is kept without a connection.
    pub expiry_secs: u32,
    /// When it expires; `None` while it is connected.
    pub expires_at: Option<EpochSeconds>,
    pub subscriptions: BTreeMap<TopicFilter, Subscription>,
}

/// The table of sessions.
#[derive(Clone)]
pub struct SessionTable {
    store: Arc<dyn Store>,
}

impl SessionTable {
    #[must_use]
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store }
    }

    /// Counts this start of the server. Each start gets a higher number than all before, whatever the
    /// clock says.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn begin_run(&self) -> Result<u64, StoreError> {
        let key = Item::new().with(schema::SESSION, schema::RUNS);
        let update = Update::new().add(schema::RUN, 1_i64);
        let request =
            UpdateRequest::new(schema::SESSIONS, key, update).returning(ReturnValues::AllNew);
        let item = self.store.update(request).await.map_err(plain)?;
        item.and_then(|item| integer(&item, schema::RUN))
            .and_then(|run| u64::try_from(run).ok())
            .ok_or_else(|| StoreError::invalid("the number of this start is malformed"))
    }

    /// The number of the last start; 0 before the first.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn last_run(&self) -> Result<u64, StoreError> {
        let key = Item::new().with(schema::SESSION, schema::RUNS);
        let mut get = Get::new(schema::SESSIONS, key);
        get.consistent = true;
        let item = self.store.get(get).await?;
        let run = item.and_then(|item| integer(&item, schema::RUN));
        Ok(run.and_then(|run| u64::try_from(run).ok()).unwrap_or(0))
    }

    /// Reads all sessions. Malformed items are skipped and logged.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn load(&self) -> Result<Vec<StoredSession>, StoreError> {
        let mut sessions = Vec::new();
        let mut scan = Scan::new(schema::SESSIONS);
        scan.consistent = true;
        loop {
            let page = self.store.scan(scan.clone()).await?;
            for item in &page.items {
                match read(item) {
                    Some(session) => sessions.push(session),
                    None if item.get(schema::RUN).is_some() => {}
                    None => tracing::warn!("a stored MQTT session is malformed and left out"),
                }
            }
            scan.start = page.next;
            if scan.start.is_none() {
                return Ok(sessions);
            }
        }
    }

    /// # Errors
    /// When the store fails.
    pub async fn put(&self, session: &StoredSession) -> Result<(), StoreError> {
        let put = Put::new(schema::SESSIONS, write(session));
        self.store.put(put).await.map_err(plain).map(|_| ())
    }

    /// # Errors
    /// When the store fails.
    pub async fn remove(&self, owner: &str, client_id: &str) -> Result<(), StoreError> {
        let key = Item::new().with(schema::SESSION, name(owner, client_id));
        let delete = Delete::new(schema::SESSIONS, key);
        self.store.delete(delete).await.map_err(plain).map(|_| ())
    }
}

/// The error of an unconditional write.
pub(super) fn plain(error: WriteError) -> StoreError {
    match error {
        WriteError::Store(error) => error,
        WriteError::ConditionFailed { .. } => {
            StoreError::Unavailable("a write without a condition failed its condition".into())
        }
    }
}

fn name(owner: &str, client_id: &str) -> String {
    format!("{owner}/{client_id}")
}

fn write(session: &StoredSession) -> Item {
    let subscriptions = session.subscriptions.iter().map(|(filter, how)| {
        let mut one = Item::new()
            .with(schema::FILTER, filter.to_string())
            .with(schema::QOS, i64::from(how.delivery.qos()))
            .with(schema::NO_LOCAL, how.no_local)
            .with(schema::RETAIN_AS_PUBLISHED, how.retain_as_published);
        if let Some(identifier) = how.identifier {
            one.insert(schema::IDENTIFIER, i64::from(identifier));
        }
        Value::M(one.into_attributes())
    });
    let mut item = Item::new()
        .with(schema::SESSION, name(&session.owner, &session.client_id))
        .with(schema::CLIENT_ID, session.client_id.as_str())
        .with(schema::QUEUE_ID, session.queue_id.as_str())
        .with(schema::EXPIRY_SECS, i64::from(session.expiry_secs))
        .with(schema::SUBSCRIPTIONS, Value::L(subscriptions.collect()));
    if let Some(at) = session.expires_at {
        item.insert(schema::EXPIRES_AT, at.0);
    }
    item
}

fn read(item: &Item) -> Option<StoredSession> {
    let text = |name: &str| item.get(name)?.as_str().map(str::to_owned);
    let subscription = |value: &Value| {
        let one = Item::from(value.as_map()?.clone());
        let flag = |name: &str| one.get(name).and_then(Value::as_bool);
        let filter = one.get(schema::FILTER)?.as_str()?.parse().ok()?;
        let how = Subscription {
            delivery: Delivery::from_qos(integer(&one, schema::QOS)?)?,
            no_local: flag(schema::NO_LOCAL)?,
            retain_as_published: flag(schema::RETAIN_AS_PUBLISHED)?,
            identifier: integer(&one, schema::IDENTIFIER).and_then(|id| id.try_into().ok()),
        };
        Some((filter, how))
    };
    let subscriptions = item.get(schema::SUBSCRIPTIONS)?.as_list()?.iter();
    let (name, client_id) = (text(schema::SESSION)?, text(schema::CLIENT_ID)?);
    let owner = name.strip_suffix(&client_id)?.strip_suffix('/')?;
    Some(StoredSession {
        owner: owner.to_owned(),
        client_id,
        queue_id: text(schema::QUEUE_ID)?,
        expiry_secs: integer(item, schema::EXPIRY_SECS)?.try_into().ok()?,
        expires_at: integer(item, schema::EXPIRES_AT).map(EpochSeconds),
        subscriptions: subscriptions.map(subscription).collect::<Option<_>>()?,
    })
}

impl std::fmt::Debug for SessionTable {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("SessionTable")
            .finish_non_exhaustive()
    }
}
