//! The broker: sessions, subscriptions, and the delivery of messages from publishers to subscribers. It
//! knows no MQTT packet and no socket.
//!
//! A message takes four steps, of which a connection runs many at a time without changing their
//! order: the rules process it ([`Broker::take_in`]), sessions in memory get it ([`Broker::route`]), the
//! queues of durable sessions store it ([`Broker::store`]), and connected durable sessions get it
//! ([`Broker::deliver`]). Only then is its publisher acknowledged. Messages that rules republish take the
//! same steps before the message that caused them leaves the first one.

mod clients;
mod lifecycle;
mod mailbox;
mod retained;
mod route;
mod session;
mod trie;
mod upkeep;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use async_trait::async_trait;
use homeport_store::{Clock, Store, StoreError};
use homeport_systems::api_keys::ApiKeys;
use homeport_systems::messages::{
    Intake, IntakeError, Message, Publish, QueueTable, RetainedTable, SessionTable, TopicFilter,
};
use homeport_systems::time::{EpochMillis, EpochSeconds};
use tokio::sync::Semaphore;

use super::access::{Access, Credentials};
use super::measure::Meters;
use super::refusal_log::RefusalLog;
use super::settings::MqttSettings;
use crate::auth::{AdminToken, KeyVerifier, RateLimiter};
use retained::Retained;
use trie::Trie;

pub(crate) use clients::{
    ClientFilter, ClientProblem, ClientState, ClientView, ConnectedClient, NoClient, Traffic,
};
pub(super) use lifecycle::{Attached, OpenError, Parting, SessionRequest};
pub(super) use mailbox::{Mailbox, Outgoing};
pub(super) use route::Route;
pub(super) use session::Session;
use session::SessionName;

/// Bits of the sequences of one run of the server. Later runs have higher sequences, whatever the clock says.
const SEQUENCE_BITS_OF_RUN: u32 = 40;

/// The first sequence of a start that could not be counted: in the upper half of the sequences of the last
/// counted run, which that run does not reach, and after those of earlier uncounted starts.
fn uncounted_sequence(now_secs: i64) -> u64 {
    const SEQUENCE_BITS_PER_SECOND: u32 = 8;
    const SECONDS_MASK: u64 = (1 << 31) - 1;
    let now_secs = u64::try_from(now_secs).unwrap_or(0) & SECONDS_MASK;
    (1 << (SEQUENCE_BITS_OF_RUN - 1)) | (now_secs << SEQUENCE_BITS_PER_SECOND)
}

/// The broker; cheap to clone.
#[derive(Clone)]
pub struct Broker(Arc<Shared>);

struct Shared {
    settings: MqttSettings,
    clock: Arc<dyn Clock>,
    removal_clock: Arc<dyn Clock>,
    intake: Arc<dyn Intake>,
    credentials: Credentials,
    rate_limiter: Arc<RateLimiter>,
    session_table: SessionTable,
    queue_table: QueueTable,
    retained_table: RetainedTable,
    /// In the order of client ids.
    sessions: Mutex<BTreeMap<SessionName, Arc<Session>>>,
    subscriptions: RwLock<Trie>,
    retained: Retained,
    /// The times at which sessions expire or their wills are due.
    due: Mutex<BTreeSet<(i64, SessionName)>>,
    sequence: AtomicU64,
    /// The latest time at which a queue was read.
    queues_read_ms: AtomicI64,
    /// Whether the store has counted this start.
    is_run_counted: AtomicBool,
    link_ids: AtomicU64,
    /// A permit for each possible connection.
    connection_room: Arc<Semaphore>,
    is_stopping: AtomicBool,
    meters: Meters,
    refusals: RefusalLog,
}

/// What a broker depends on.
#[derive(Clone)]
pub struct BrokerParts {
    pub settings: MqttSettings,
    pub store: Arc<dyn Store>,
    pub clock: Arc<dyn Clock>,
    /// Decides when sessions are deleted; it ignores unconfirmed clock jumps.
    pub removal_clock: Arc<dyn Clock>,
    /// Processes every message before its delivery.
    pub intake: Arc<dyn Intake>,
    pub api_keys: Arc<ApiKeys>,
    /// Shared with HTTP.
    pub key_verifier: Arc<KeyVerifier>,
    pub admin_token: AdminToken,
    /// Limits the rate of keys, shared with HTTP.
    pub rate_limiter: Arc<RateLimiter>,
}

/// Why a message from outside of MQTT is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PublishRefusal {
    #[error("the payload is too large for an MQTT packet")]
    TooLarge,
    #[error("too many retained messages")]
    RetainedFull,
    #[error(
        "no client of this server subscribes to {0}, and the bridge does not forward commands; connect the \
         thing to this server, or publish the command at the other broker"
    )]
    NoSubscriber(String),
}

impl Broker {
    /// Starts with the stored sessions and retained messages. Only one process at a time may do this on the
    /// same tables.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn start(parts: BrokerParts) -> Result<Self, StoreError> {
        let session_table = SessionTable::new(Arc::clone(&parts.store));
        let retained_table = RetainedTable::new(Arc::clone(&parts.store));
        let counted = session_table.begin_run().await;
        let (first_sequence, is_run_counted) = match counted {
            Ok(run) => (run << SEQUENCE_BITS_OF_RUN, true),
            // The server also runs on a store that accepts no writes now, for example on a full disk.
            Err(error) if error.is_transient() => {
                tracing::warn!(%error, "MQTT starts without counting this start; trying again");
                let last_run = session_table.last_run().await?;
                let uncounted = uncounted_sequence(parts.clock.now_secs());
                ((last_run << SEQUENCE_BITS_OF_RUN) | uncounted, false)
            }
            Err(error) => return Err(error),
        };
        let stored = session_table.load().await?;
        let retained = Retained::new(retained_table.topics().await?);
        let room = parts.settings.connections_max;
        let refusals = RefusalLog::new(&parts.clock);
        let broker = Self(Arc::new(Shared {
            settings: parts.settings,
            clock: parts.clock,
            removal_clock: parts.removal_clock,
            intake: parts.intake,
            credentials: Credentials {
                api_keys: parts.api_keys,
                key_verifier: parts.key_verifier,
                admin_token: parts.admin_token,
            },
            rate_limiter: parts.rate_limiter,
            session_table,
            queue_table: QueueTable::new(parts.store),
            retained_table,
            sessions: Mutex::default(),
            subscriptions: RwLock::default(),
            retained,
            due: Mutex::default(),
            queues_read_ms: AtomicI64::new(i64::MIN),
            sequence: AtomicU64::new(first_sequence),
            is_run_counted: AtomicBool::new(is_run_counted),
            link_ids: AtomicU64::new(0),
            connection_room: Arc::new(Semaphore::new(room)),
            is_stopping: AtomicBool::new(false),
            meters: Meters::new(),
            refusals,
        }));
        broker.restore(stored);
        broker.measure_retained();
        Ok(broker)
    }

    pub(super) fn settings(&self) -> &MqttSettings {
        &self.0.settings
    }

    pub(super) fn refusals(&self) -> &RefusalLog {
        &self.0.refusals
    }

    pub(super) fn credentials(&self) -> &Credentials {
        &self.0.credentials
    }

    /// How long a message of this client has to wait because of the rate limit of its key.
    pub(super) fn wait_of(&self, access: &Access) -> Option<Duration> {
        let Access::Key(key) = access else {
            return None;
        };
        let wait = self.0.rate_limiter.reserve(key.key_id)?;
        self.0.meters.throttled.increment(1);
        Some(wait)
    }

    pub(super) fn meters(&self) -> &Meters {
        &self.0.meters
    }

    pub(super) fn connection_room(&self) -> &Arc<Semaphore> {
        &self.0.connection_room
    }

    pub(super) fn queue_table(&self) -> &QueueTable {
        &self.0.queue_table
    }

    pub(super) fn retained_table(&self) -> &RetainedTable {
        &self.0.retained_table
    }

    /// Topics with retained messages that match a filter, sorted, after `after`.
    pub(super) fn retained_topics(
        &self,
        filter: &TopicFilter,
        after: Option<&str>,
        limit: usize,
    ) -> Vec<Arc<str>> {
        self.0.retained.matching(filter, after, limit)
    }

    /// Whether a retained message on `topic` would exceed the limit.
    pub(super) fn is_retained_full(&self, topic: &str) -> bool {
        let retained = &self.0.retained;
        if retained.len() < self.0.settings.retained_max || retained.contains(topic) {
            return false;
        }
        retained.forget_expired(self.removal_now().seconds());
        retained.len() >= self.0.settings.retained_max
    }

    /// Checks a message from outside of MQTT against the limits.
    ///
    /// # Errors
    /// If it exceeds one.
    pub(crate) fn check_publish(
        &self,
        topic: &str,
        payload_bytes: usize,
        retain: bool,
    ) -> Result<(), PublishRefusal> {
        if topic.len() + payload_bytes > self.0.settings.packet_bytes_max {
            return Err(PublishRefusal::TooLarge);
        }
        if retain && payload_bytes > 0 && self.is_retained_full(topic) {
            return Err(PublishRefusal::RetainedFull);
        }
        Ok(())
    }

    /// Checks that a command can reach its thing. With a bridge, things may be clients of the other broker,
    /// which gets no commands from here.
    ///
    /// # Errors
    /// If there is a bridge, and no client of this server subscribes to the topic.
    pub(crate) fn check_command(&self, topic: &str) -> Result<(), PublishRefusal> {
        if !self.0.settings.is_bridged {
            return Ok(());
        }
        let mut has_subscriber = false;
        let trie = &self.0.subscriptions;
        let trie = trie.read().unwrap_or_else(PoisonError::into_inner);
        trie.matching(topic, &mut |_| has_subscriber = true);
        match has_subscriber {
            true => Ok(()),
            false => Err(PublishRefusal::NoSubscriber(topic.to_owned())),
        }
    }

    pub(crate) fn now(&self) -> EpochMillis {
        EpochMillis(self.0.clock.now_ms())
    }

    /// The time that decides which sessions and retained messages have expired.
    fn removal_now(&self) -> EpochMillis {
        EpochMillis(self.0.removal_clock.now_ms())
    }

    fn now_secs(&self) -> EpochSeconds {
        self.now().seconds()
    }

    /// Counts this start, if that failed before.
    async fn count_run(&self) {
        if self.0.is_run_counted.load(Ordering::Relaxed) {
            return;
        }
        match self.0.session_table.begin_run().await {
            Ok(run) => {
                let first = run << SEQUENCE_BITS_OF_RUN;
                self.0.sequence.fetch_max(first, Ordering::Relaxed);
                self.0.is_run_counted.store(true, Ordering::Relaxed);
            }
            Err(error) => tracing::debug!(%error, "this start is not counted yet"),
        }
    }

    fn next_sequence(&self) -> u64 {
        self.0.sequence.fetch_add(1, Ordering::Relaxed)
    }

    fn sessions(&self) -> MutexGuard<'_, BTreeMap<SessionName, Arc<Session>>> {
        self.0
            .sessions
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn measure_retained(&self) {
        self.0.meters.retained.set(self.0.retained.len() as f64);
    }

    /// Runs the rules on a message, and publishes the messages that they republish. When this returns,
    /// the writes of all these messages are durable.
    pub(super) async fn take_in(&self, message: &Message) -> Result<(), IntakeError> {
        // A stack: the republished messages of one message wait, not those of all.
        let mut republished = self.0.intake.take(message).await?;
        republished.reverse();
        while let Some(message) = republished.pop() {
            let next = match self.0.intake.take(&message).await {
                // The intake has counted and logged it.
                Err(IntakeError::Refused(_)) => continue,
                next => next?,
            };
            match self.distribute(message).await {
                Err(error) if error.is_transient() => return Err(error.into()),
                Err(error) => {
                    self.0.meters.dropped_store.increment(1);
                    tracing::warn!(%error, "dropped a republished message");
                }
                Ok(()) => {}
            }
            republished.extend(next.into_iter().rev());
        }
        Ok(())
    }

    /// Processes and delivers a message that has no connection.
    ///
    /// # Errors
    /// When the message is refused or the store fails.
    pub(crate) async fn accept(&self, message: Message) -> Result<(), IntakeError> {
        self.take_in(&message).await?;
        Ok(self.distribute(message).await?)
    }

    /// Delivers a message to its subscribers, after the rules.
    async fn distribute(&self, message: Message) -> Result<(), StoreError> {
        let mut route = self.route(&Arc::new(message), None);
        self.store(&mut route).await?;
        self.deliver(route);
        Ok(())
    }
}

#[async_trait]
impl Publish for Broker {
    async fn publish(&self, message: Message) -> Result<(), StoreError> {
        match self.accept(message).await {
            Err(IntakeError::Store(error)) => Err(error),
            // The intake has counted and logged a refused message.
            Ok(()) | Err(IntakeError::Refused(_)) => Ok(()),
        }
    }
}

impl std::fmt::Debug for Broker {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Broker").finish_non_exhaustive()
    }
}

impl std::fmt::Debug for BrokerParts {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("BrokerParts")
            .finish_non_exhaustive()
    }
}
