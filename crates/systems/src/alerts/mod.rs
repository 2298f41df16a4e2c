//! Alerts: operators say what to watch for in telemetry, readings and records; what is found is
//! raised once and cleared once for each device, and people and programs are told.
//!
//! Values are judged as the change log brings them, silences by the times in the store. What is
//! found is written together with what is sent about it; the worker sends from there, may be dropped
//! at any moment, and goes on at the next start.

mod alert;
mod announcement;
mod background;
mod condition;
mod definition;
mod definitions;
mod deliver;
mod judge;
mod notification;
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
pub use notification::{Event, Notification, NotificationState, Step};
pub use quiet::{MinuteOfDay, Quiet, Zone};
pub use reaction::AlertReaction;
pub use service::{Deliver, DeliveryError, Email, WebhookCall};
pub use types::{
    ATTRIBUTE_CHARS_MAX, AlertId, AttributePath, DEVICE_CHARS_MAX, DefinitionId, DefinitionName,
    DeviceName, EMAIL_LEN_MAX, EmailAddress, NAME_CHARS_MAX, NOTE_CHARS_MAX, Note, PersonName,
    TOPIC_LEN_MAX, TopicTemplate, URL_LEN_MAX, WantedText, WebhookSecret, WebhookUrl,
};
pub use worker::{Turn, Worker};

use reaction::WatchCache;
use registry::{Registry, Snapshot};
use source::Source;

/// Items that one page may have.
pub const PAGE_MAX: usize = 100;
/// Definitions that there may be; all are kept in memory.
pub const DEFINITIONS_MAX: usize = 500;

/// What can be set about the system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The table of telemetry.
    pub telemetry_table: String,
    /// The table of records.
    pub records_table: String,
    /// Notifications that may be unfinished at one time.
    pub outbox_max: usize,
    /// How long cleared alerts are kept; for ever unless given.
    pub retention_secs: Option<i64>,
    /// How long after a start no silence becomes an alert.
    pub silence_grace_secs: i64,
    /// What signs webhooks without a secret of their own.
    pub webhook_secret: Option<WebhookSecret>,
    /// Whether e-mail can be sent.
    pub has_email: bool,
}

/// What the system works with.
#[derive(Clone)]
pub struct Parts {
    pub store: Arc<dyn Store>,
    pub clock: Arc<dyn Clock>,
    /// What happened to the store's items, where that can be followed.
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
    /// Tells the worker that there is something to do.
    work: Notify,
}

/// Why something could not be done.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum AlertsError {
    #[error(transparent)]
    Invalid(#[from] InvalidField),
    #[error("{0}")]
    Unavailable(&'static str),
    #[error("there are {DEFINITIONS_MAX} definitions already")]
    TooManyDefinitions,
    #[error("there is no such definition")]
    DefinitionMissing,
    #[error("there is no such alert")]
    AlertMissing,
    #[error("someone else has acknowledged the alert")]
    AlreadyAcknowledged,
    #[error(transparent)]
    Cursor(#[from] CursorError),
    /// An item that something else wrote cannot be understood.
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
            work: Notify::new(),
        }))
    }

    /// What follows a source's changes.
    #[must_use]
    pub fn reaction(&self, kind: SourceKind) -> AlertReaction {
        AlertReaction::new(self.clone(), self.source(kind).clone())
    }

    /// What lets reactions follow; none where the store's changes cannot be followed.
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

    /// Switches the change log of a source's table on, unless it is.
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
