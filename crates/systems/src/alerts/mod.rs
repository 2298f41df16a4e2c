//! Alerts: operators define conditions on telemetry, readings and records. For each device an alert is
//! raised once and cleared once, and people and programs are notified.
//!
//! Values are judged from the change log, silences by deadlines in the store. An alert is stored in one
//! transaction with its notifications. The worker sends them. It may be dropped at any moment and
//! continues at the next start.

mod alert;
mod definitions;
mod delivery;
mod handling;
mod judging;
pub mod schema;
mod types;

use std::sync::Arc;

use homeport_store::{ChangeFeed, Clock, Store, StoreError};
use tokio::sync::{Mutex, Notify, Semaphore};

use crate::cursor::CursorError;
use crate::fleet::{FleetError, Sources, SystemName};
use crate::messages::Publish;
use crate::outbox::Queue;
use crate::push::Push;
use crate::reactions::Reactions;
use crate::sensors::InvalidField;
use crate::time::EpochMillis;

pub use crate::severity::Severity;
pub use alert::{
    Acknowledgement, Alert, AlertFilter, Assignment, Cleared, Comment, Snooze, StateFilter,
};
pub use definitions::condition::{
    Absence, COUNT_MAX, Condition, Direction, Rate, SECS_MAX, SILENCE_SECS_MIN, Side, Threshold,
    WINDOW_SECS_MIN,
};
pub use definitions::definition::{
    DEVICES_LISTED_MAX, Definition, DefinitionTerms, Devices, Filter, INTERVAL_SECS_MAX,
    TARGETS_MAX, Target,
};
pub use definitions::quiet::{MinuteOfDay, Quiet, Zone};
pub use definitions::state_condition::{
    Equality, EqualityOperator, Fault, ValueChange, WantedValue,
};
pub use delivery::notification::{Event, Notification};
pub use delivery::result::NotificationResult;
pub use delivery::service::{Deliver, Email, WebhookCall};
pub use delivery::worker::{Turn, Worker};
pub use handling::acknowledge::{ACKNOWLEDGED_AT_ONCE_MAX, Acknowledged, Selection};
pub use handling::comment::COMMENTS_MAX;
pub use handling::snooze::{SNOOZE_SECS_MAX, SNOOZES_MAX};
pub use judging::preview::{
    DevicePreview, PREVIEWS_MAX, Preview, PreviewLimit, PreviewLimits, PreviewRange, PreviewedAlert,
};
pub use judging::reaction::AlertReaction;
pub use types::{
    AlertId, AttributePath, CommentText, DefinitionId, DefinitionName, DeviceName, EmailAddress,
    Note, PersonName, TopicTemplate, WantedText, WebhookSecret, WebhookUrl,
};

use definitions::registry::{Registry, Snapshot};
use judging::reaction::WatchCache;
use judging::source::Source;

/// Items in a page.
pub const PAGE_MAX: usize = 100;
/// Definitions; all are kept in memory.
pub const DEFINITIONS_MAX: usize = 500;

/// The settings of alerts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Open notifications; more are stored as failed.
    pub outbox_max: usize,
    /// How long cleared alerts are kept; forever unless given.
    pub retention_secs: Option<i64>,
    /// How long after a start silences are not judged.
    pub silence_grace_secs: i64,
    /// Values that are older when they are stored raise no alert; any age unless given.
    pub announce_max_age_secs: Option<i64>,
    pub preview: PreviewLimits,
    /// Signs webhooks that have no secret of their own.
    pub webhook_secret: Option<WebhookSecret>,
    /// Whether e-mail is configured.
    pub has_email: bool,
}

/// What alerts depend on.
#[derive(Clone)]
pub struct Parts {
    pub store: Arc<dyn Store>,
    pub clock: Arc<dyn Clock>,
    /// The change log, if the store has one.
    pub feed: Option<Arc<dyn ChangeFeed>>,
    pub push: Push,
    pub sources: Sources,
    pub publish: Arc<dyn Publish>,
}

/// Alerts on a store; cheap to clone.
#[derive(Clone)]
pub struct Alerts(Arc<Inner>);

struct Inner {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    reactions: Option<Reactions>,
    push: Push,
    publish: Arc<dyn Publish>,
    /// The sources that can be watched.
    sources: Vec<Source>,
    settings: Settings,
    registry: Registry,
    cache: WatchCache,
    /// Held while a definition is changed.
    changing: Mutex<()>,
    /// Previews that may run at the same time.
    previews: Semaphore,
    outbox: Queue,
    /// Signals new work to the worker.
    work: Arc<Notify>,
}

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum AlertsError {
    #[error(transparent)]
    Invalid(#[from] InvalidField),
    #[error("{0}")]
    Unavailable(&'static str),
    #[error("there are {DEFINITIONS_MAX} definitions already, which is the limit")]
    TooManyDefinitions,
    #[error("too many previews are running; try again later")]
    TooManyPreviews,
    #[error("the definition does not exist")]
    DefinitionMissing,
    #[error("the alert does not exist")]
    AlertMissing,
    #[error("someone else has acknowledged the alert")]
    AlreadyAcknowledged,
    #[error("the alert is cleared; only open alerts can be snoozed")]
    AlertCleared,
    #[error("the alert was snoozed {SNOOZES_MAX} times already, which is the limit")]
    TooManySnoozes,
    #[error("the alert has {COMMENTS_MAX} comments already, which is the limit")]
    TooManyComments,
    #[error("the definition has no targets to test")]
    NoTargets,
    #[error("the test does not exist, or its result is older than a week")]
    TestMissing,
    #[error("the outbox of alerts is full; try again later")]
    OutboxFull,
    #[error(transparent)]
    Cursor(#[from] CursorError),
    /// A stored item has an unknown form: another program wrote it.
    #[error("a stored item of alerts is malformed: {0}")]
    Malformed(String),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<FleetError> for AlertsError {
    fn from(error: FleetError) -> Self {
        match error {
            FleetError::Store(error) => error.into(),
            error => Self::Malformed(error.to_string()),
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            outbox_max: 100_000,
            retention_secs: Some(365 * 24 * 60 * 60),
            silence_grace_secs: 60,
            announce_max_age_secs: Some(24 * 60 * 60),
            preview: PreviewLimits::default(),
            webhook_secret: None,
            has_email: false,
        }
    }
}

impl Settings {
    /// Whether a value of `at` is too old to raise an alert if it becomes known at `known_at`.
    fn is_old(&self, at: EpochMillis, known_at: EpochMillis) -> bool {
        let age_ms = known_at.0.saturating_sub(at.0);
        self.announce_max_age_secs
            .is_some_and(|max| age_ms > max.saturating_mul(1000))
    }
}

impl Alerts {
    #[must_use]
    pub fn new(parts: Parts, settings: Settings) -> Self {
        let reactions = parts
            .feed
            .map(|feed| Reactions::new(Arc::clone(&parts.store), feed, Arc::clone(&parts.clock)));
        let sources = parts.sources.iter().filter_map(Source::of);
        let sources = sources.collect();
        let outbox = Queue {
            store: Arc::clone(&parts.store),
            table: schema::OUTBOX,
            counter: Some(schema::open_counter()),
        };
        Self(Arc::new(Inner {
            store: parts.store,
            clock: parts.clock,
            reactions,
            push: parts.push,
            publish: parts.publish,
            sources,
            settings,
            registry: Registry::new(),
            cache: WatchCache::default(),
            changing: Mutex::default(),
            previews: Semaphore::new(PREVIEWS_MAX),
            outbox,
            work: Arc::default(),
        }))
    }

    /// The reaction that follows a source.
    ///
    /// # Errors
    /// When alerts cannot watch the system.
    pub fn reaction(&self, system: &SystemName) -> Result<AlertReaction, AlertsError> {
        let source = self.source(system)?.clone();
        Ok(AlertReaction::new(self.clone(), source))
    }

    /// Follows reactions; `None` if the store has no change log.
    #[must_use]
    pub fn reactions(&self) -> Option<&Reactions> {
        self.0.reactions.as_ref()
    }

    fn source(&self, system: &SystemName) -> Result<&Source, AlertsError> {
        let mut sources = self.0.sources.iter();
        let source = sources.find(|source| source.system() == system);
        source.ok_or(AlertsError::Invalid(InvalidField {
            field: "source",
            expected: "a system whose values alerts can watch",
        }))
    }

    /// Enables the stream of a source's table.
    async fn ensure_stream(&self, source: &Source) -> Result<(), AlertsError> {
        let schema = source.followed_schema();
        Ok(self.0.store.ensure_tables(&[schema]).await?)
    }

    async fn refresh(&self) -> Result<Arc<Snapshot>, AlertsError> {
        self.0.registry.refresh(&*self.0.store).await
    }

    fn now(&self) -> EpochMillis {
        EpochMillis(self.0.clock.now_ms())
    }
}

impl std::fmt::Debug for Parts {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Parts").finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Alerts {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Alerts")
            .field("settings", &self.0.settings)
            .finish_non_exhaustive()
    }
}
