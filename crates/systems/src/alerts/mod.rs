//! Alerts: operators define conditions on telemetry, readings and records. For each device an alert is
//! raised once and cleared once, and people and programs are notified.
//!
//! Values are judged from the change log, silences by deadlines in the store. An alert is stored in one
//! transaction with its notifications. The worker sends them. It may be dropped at any moment and
//! continues at the next start.

mod alert;
mod announcement;
mod condition;
mod definition;
mod definitions;
mod followers;
mod judge;
mod notification;
mod outbox;
mod quiet;
mod reaction;
mod registry;
pub mod schema;
mod service;
mod settle;
mod silence;
mod source;
mod transition;
mod types;
mod watch;
mod worker;

use std::sync::Arc;

use homeport_store::{ChangeFeed, Clock, Store, StoreError};
use tokio::sync::{Mutex, Notify};

use crate::cursor::CursorError;
use crate::messages::Publish;
use crate::outbox::Queue;
use crate::push::Push;
use crate::reactions::Reactions;
use crate::records::Records;
use crate::sensors::{self, InvalidField};
use crate::telemetry;
use crate::time::EpochMillis;

pub use alert::{Acknowledgement, Alert, AlertFilter, AlertPage, Cleared, StateFilter};
pub use condition::{
    Absence, COUNT_MAX, Condition, Direction, Rate, SECS_MAX, SILENCE_SECS_MIN, Side, Threshold,
    WINDOW_SECS_MIN,
};
pub use definition::{
    DEVICES_LISTED_MAX, Definition, DefinitionTerms, Devices, Filter, INTERVAL_SECS_MAX,
    SourceKind, TARGETS_MAX, Target,
};
pub use definitions::DefinitionPage;
pub use notification::{Event, Notification};
pub use quiet::{MinuteOfDay, Quiet, Zone};
pub use reaction::AlertReaction;
pub use service::{Deliver, Email, WebhookCall};
pub use types::{
    AlertId, AttributePath, DefinitionId, DefinitionName, DeviceName, EmailAddress, Note,
    PersonName, TopicTemplate, WantedText, WebhookSecret, WebhookUrl,
};
pub use worker::{Turn, Worker};

use reaction::WatchCache;
use registry::{Registry, Snapshot};
use source::Source;

/// Items in a page.
pub const PAGE_MAX: usize = 100;
/// Definitions; all are kept in memory.
pub const DEFINITIONS_MAX: usize = 500;

/// The settings of alerts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The table of telemetry.
    pub telemetry_table: String,
    /// The table of records.
    pub records_table: String,
    /// Open notifications; more are stored as failed.
    pub outbox_max: usize,
    /// How long cleared alerts are kept; forever unless given.
    pub retention_secs: Option<i64>,
    /// How long after a start silences are not judged.
    pub silence_grace_secs: i64,
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
    pub records: Records,
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
    records: Records,
    publish: Arc<dyn Publish>,
    sources: [Source; 3],
    settings: Settings,
    registry: Registry,
    cache: WatchCache,
    /// Held while a definition is changed.
    changing: Mutex<()>,
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
    #[error("the definition does not exist")]
    DefinitionMissing,
    #[error("the alert does not exist")]
    AlertMissing,
    #[error("someone else has acknowledged the alert")]
    AlreadyAcknowledged,
    #[error(transparent)]
    Cursor(#[from] CursorError),
    /// A stored item has an unknown form: another program wrote it.
    #[error("a stored item of alerts is malformed: {0}")]
    Malformed(String),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            telemetry_table: telemetry::schema::TABLE_DEFAULT.to_owned(),
            records_table: crate::records::Settings::default().table,
            outbox_max: 100_000,
            retention_secs: Some(365 * 24 * 60 * 60),
            silence_grace_secs: 60,
            webhook_secret: None,
            has_email: false,
        }
    }
}

impl Alerts {
    #[must_use]
    pub fn new(parts: Parts, settings: Settings) -> Self {
        let reactions = parts
            .feed
            .map(|feed| Reactions::new(Arc::clone(&parts.store), feed, Arc::clone(&parts.clock)));
        let sources = SourceKind::ALL.map(|kind| {
            let schema = match kind {
                SourceKind::Telemetry => telemetry::schema::telemetry(&settings.telemetry_table),
                SourceKind::Sensors => sensors::schema::device_readings(),
                SourceKind::Records => crate::records::schema::table(&settings.records_table),
            };
            Source::new(kind, schema)
        });
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
            records: parts.records,
            publish: parts.publish,
            sources,
            settings,
            registry: Registry::new(),
            cache: WatchCache::default(),
            changing: Mutex::default(),
            outbox,
            work: Arc::default(),
        }))
    }

    /// The reaction that follows a source.
    #[must_use]
    pub fn reaction(&self, kind: SourceKind) -> AlertReaction {
        AlertReaction::new(self.clone(), self.source(kind).clone())
    }

    /// Follows reactions; `None` if the store has no change log.
    #[must_use]
    pub fn reactions(&self) -> Option<&Reactions> {
        self.0.reactions.as_ref()
    }

    fn source(&self, kind: SourceKind) -> &Source {
        match kind {
            SourceKind::Telemetry => &self.0.sources[0],
            SourceKind::Sensors => &self.0.sources[1],
            SourceKind::Records => &self.0.sources[2],
        }
    }

    /// Enables the stream of a source's table.
    async fn ensure_stream(&self, kind: SourceKind) -> Result<(), AlertsError> {
        let schema = self.source(kind).followed_schema();
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
