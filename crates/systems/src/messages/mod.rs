//! Messages on topics: the messages of devices and to devices.
//!
//! Rules run on a message, and their writes become durable, before it goes to subscribers. The
//! publisher is acknowledged after both. This is the same for messages over MQTT, over HTTP and from
//! rules. Sessions, queues and retained messages outlive the process: they are stored in tables. The
//! MQTT protocol itself is not part of this module.

mod queue;
mod retained;
pub mod schema;
mod sessions;
mod stored;
mod topic;
mod topic_tree;

use async_trait::async_trait;
use bytes::Bytes;
use homeport_store::StoreError;

use crate::time::EpochMillis;

pub use queue::{NewQueued, QueuePage, QueueTable, Queued};
pub use retained::{RetainedTable, RetainedTopic};
pub use sessions::{SessionTable, StoredSession, Subscription};
pub use topic::{TOPIC_LEN_MAX, TOPIC_LEVELS_MAX, TopicError, TopicFilter, check_topic};
pub use topic_tree::TopicTree;

/// How many times rules may republish a message.
pub const HOPS_MAX: u8 = 5;
/// Limit of a republished message: its topic, payload and properties together. A queue stores it in one
/// item.
pub const REPUBLISHED_BYTES_MAX: usize = 360_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Delivery {
    /// MQTT QoS 0.
    AtMostOnce,
    /// MQTT QoS 1.
    AtLeastOnce,
}

/// A message on a topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// A topic without wildcards, validated at the edge.
    pub topic: String,
    pub payload: Bytes,
    pub delivery: Delivery,
    /// Whether it is kept for later subscribers.
    pub retain: bool,
    pub publisher: Publisher,
    pub received_at: EpochMillis,
    pub properties: Properties,
    /// How many rules have republished it, at most [`HOPS_MAX`].
    pub hops: u8,
}

/// The publisher of a message, as rules see it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Publisher {
    /// The MQTT client id; `None` over HTTP and from rules.
    pub client_id: Option<String>,
    /// The id of the API key, or another name of the authenticated caller. Never a secret.
    pub principal: Option<String>,
}

/// The principal of messages from alerts.
const ALERTS: &str = "alerts";

impl Publisher {
    /// The publisher of messages from alerts. No key and no client can have this name.
    #[must_use]
    pub fn alerts() -> Self {
        Self {
            client_id: None,
            principal: Some(ALERTS.to_owned()),
        }
    }

    #[must_use]
    pub fn is_alerts(&self) -> bool {
        self.client_id.is_none() && self.principal.as_deref() == Some(ALERTS)
    }
}

/// The MQTT 5 properties that a publisher sets.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Properties {
    pub content_type: Option<String>,
    pub response_topic: Option<String>,
    pub correlation_data: Option<Bytes>,
    pub payload_is_text: bool,
    pub expires_after_secs: Option<u32>,
    pub user: Vec<(String, String)>,
}

impl Message {
    /// The bytes of the topic, the payload and the properties.
    #[must_use]
    pub fn size(&self) -> usize {
        let properties = &self.properties;
        let texts = [&properties.content_type, &properties.response_topic];
        let texts = texts.into_iter().flatten().map(String::len);
        let user = properties.user.iter();
        let user = user.map(|(name, value)| name.len() + value.len());
        let correlation_data = properties.correlation_data.as_ref().map_or(0, Bytes::len);
        self.topic.len()
            + self.payload.len()
            + correlation_data
            + texts.sum::<usize>()
            + user.sum::<usize>()
    }
}

/// Why a message cannot be taken in.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum IntakeError {
    /// The message is invalid: sent again, it would be refused again.
    #[error("{0}")]
    Refused(String),
    /// The publisher is not acknowledged and sends the message again.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Processes a message before its publisher is acknowledged.
#[async_trait]
pub trait Intake: Send + Sync + 'static {
    /// Returns when all writes for the message are durable, with the messages to publish because of it.
    /// A message without a matching rule, or whose rules fail permanently, succeeds too: permanent
    /// failures are reported with the rule.
    ///
    /// # Errors
    /// When the message is refused or the store fails.
    async fn take(&self, message: &Message) -> Result<Vec<Message>, IntakeError>;
}

/// Publishes messages of HTTP, commands and alerts: everything but MQTT connections.
#[async_trait]
pub trait Publish: Send + Sync + 'static {
    /// Processes the message and delivers it to subscribers. On success the writes of rules and the
    /// queues of persistent sessions are durable.
    ///
    /// # Errors
    /// When the store fails. A message that the intake refuses is dropped.
    async fn publish(&self, message: Message) -> Result<(), StoreError>;
}
