//! Messages on topics: what devices publish, and what is sent to them.
//!
//! A message is taken in (rules run on it and what they write becomes durable) before it is sent on
//! to subscribers, and its publisher is answered after both. How it came, over MQTT or HTTP or from
//! a rule, makes no difference. What has to outlive a connection or the process (sessions, queues,
//! retained messages) is kept in tables here. There is no MQTT in here.

mod queue;
mod retained;
pub mod schema;
mod sessions;
mod slot;
mod stored;
mod topic;

use async_trait::async_trait;
use bytes::Bytes;
use homeport_store::StoreError;

use crate::time::EpochMillis;

pub use queue::{NewQueued, QueuePage, QueueTable, Queued};
pub use retained::{RetainedTable, RetainedTopic};
pub use sessions::{SessionTable, StoredSession, Subscription};
pub use slot::PublishSlot;
pub use topic::{TOPIC_LEN_MAX, TOPIC_LEVELS_MAX, TopicError, TopicFilter, check_topic};

/// How often a message may make others by rules that republish it.
pub const HOPS_MAX: u8 = 5;

/// How a message is delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Delivery {
    /// MQTT's QoS 0.
    AtMostOnce,
    /// MQTT's QoS 1.
    AtLeastOnce,
}

/// Something published on a topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// A topic's name, without wildcards; checked at the edge.
    pub topic: String,
    pub payload: Bytes,
    pub delivery: Delivery,
    /// Whether it is kept for those who subscribe later.
    pub retain: bool,
    pub publisher: Publisher,
    pub received_at: EpochMillis,
    pub properties: Properties,
    /// How many rules have republished it; at [`HOPS_MAX`] no further one may.
    pub hops: u8,
}

/// Who published a message, as far as rules may know.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Publisher {
    /// MQTT's client id; none over HTTP and from rules.
    pub client_id: Option<String>,
    /// The id of the API key, or another name of who was authenticated. Never a secret.
    pub principal: Option<String>,
}

/// Who publishes what alerts have to say.
const ALERTS: &str = "alerts";

impl Publisher {
    /// Alerts. No key and no client can have their name.
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

/// What MQTT 5 lets a publisher say about a message.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Properties {
    pub content_type: Option<String>,
    pub response_topic: Option<String>,
    pub correlation_data: Option<Bytes>,
    pub payload_is_text: bool,
    pub expires_after_secs: Option<u32>,
    pub user: Vec<(String, String)>,
}

/// What happens to a message before its publisher is answered.
#[async_trait]
pub trait Intake: Send + Sync + 'static {
    /// Returns when everything that must be kept of the message is durable. A message that no rule
    /// matches, or whose rules fail for a reason that a repeat would not mend, is taken in too: the
    /// failure is told where rules are looked after.
    ///
    /// # Errors
    /// When the store cannot keep it now: the publisher is not acknowledged and sends it again.
    async fn take(&self, message: &Message) -> Result<(), StoreError>;
}

/// Where anything but an MQTT connection publishes: HTTP, rules, commands, alerts.
#[async_trait]
pub trait Publish: Send + Sync + 'static {
    /// Takes the message in and hands it to subscribers. On success it is durable wherever that was
    /// asked for: in tables by rules, and queued for persistent sessions.
    ///
    /// # Errors
    /// When the store cannot keep it now.
    async fn publish(&self, message: Message) -> Result<(), StoreError>;
}
