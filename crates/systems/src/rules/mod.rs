//! Rules: what is done with messages. A rule is a statement in AWS IoT SQL, whose language lives in
//! `homeport-rules`, with the actions that its results go to.
//!
//! The engine is where messages are taken in: it returns when everything that the rules write is
//! durable. What a repeat of the message would not mend is told to the rule's error action, counted,
//! and kept for people to read; the message is taken in nevertheless.

mod carry_out;
mod compiled;
mod document;
mod failure;
mod load;
mod manage;
mod moments;
mod name;
mod plan;
mod registry;
mod replay;
mod requests;
mod rule;
pub mod schema;
mod service;
mod shipped;
mod sns;
mod stats;
mod topic_index;
mod trial;
mod write;

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, RwLock};

use homeport_item::schema::TableSchema;
use homeport_store::{Clock, Store, StoreError};
use tokio::sync::{Mutex, Notify};

use crate::cursor::CursorError;
use crate::messages::Publish;
use crate::push::Push;
use crate::sensors::InvalidField;
use crate::time::EpochMillis;

use compiled::KnownTables;
use moments::Moments;
use registry::Registry;

pub use compiled::{
    ACTIONS_MAX, DESCRIPTION_CHARS_MAX, HEADERS_MAX, SQL_VERSION, TEMPLATE_BYTES_MAX,
};
pub use document::{
    ActionDocument, DynamoDbDocument, DynamoDbV2Document, HttpDocument, KeyTypeWord, KeyValue,
    NewRule, PushDocument, PutItemDocument, RepublishDocument, RepublishHeaders, RuleDocument,
};
pub use failure::Failure;
pub use load::{FILE_RULES_MAX, REFRESH_EVERY};
pub use manage::{RulePage, VERSIONS_KEPT};
pub use name::{NAME_LEN_MAX, RuleName};
pub use replay::{
    Difference, REPLAY_PAGE_MAX, Replay, ReplayRange, ReplayTotals, Replayed, WouldWrite,
};
pub use requests::{REQUEST_ATTEMPTS_MAX, REQUESTS_MAX, RequestWorker};
pub use rule::{Rule, RuleVersion, RuleView, Source};
pub use service::{OutgoingRequest, RequestError, RequestService};
pub use shipped::shipped;
pub use stats::{FAILURES_KEPT, RuleCounts};
pub use topic_index::FILTER_LEVELS_MAX;
pub use trial::{Reason, Trial, TrialError, TrialOutcome};

/// Rules that there may be.
pub const RULES_MAX: usize = 1000;
/// Rules that one page may have.
pub const PAGE_MAX: usize = 1000;
/// What `accountid()` answers: there are no accounts here.
pub const ACCOUNT_ID: &str = "000000000000";

/// What the engine works with.
pub struct Surroundings {
    pub store: Arc<dyn Store>,
    pub clock: Arc<dyn Clock>,
    /// Where republished messages go.
    pub publish: Arc<dyn Publish>,
    pub push: Push,
    /// The tables of all systems, and the name of that of telemetry.
    pub tables: Vec<TableSchema>,
    pub telemetry_table: String,
    /// Where notifications of the action `sns` are posted to, by the topic's ARN.
    pub sns_topics: HashMap<String, String>,
}

/// Runs rules on messages and looks after them; cheap to clone.
#[derive(Clone)]
pub struct RuleEngine {
    inner: Arc<Inner>,
}

struct Inner {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    publish: Arc<dyn Publish>,
    push: Push,
    tables: KnownTables,
    telemetry_table: String,
    registry: RwLock<Arc<Registry>>,
    /// The rules of the file, which win.
    file_rules: Vec<Rule>,
    /// The store's count of changes that the registry is as new as.
    changed: AtomicI64,
    /// One change at a time in this process; others are kept apart by conditions.
    changing: Mutex<()>,
    moments: Moments,
    traces: Traces,
    /// Requests that wait to be sent, as far as this process knows.
    requests_open: AtomicUsize,
    /// Tells the worker that there is a request to send.
    work: Notify,
}

/// Why something could not be done about a rule.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum RuleError {
    #[error(transparent)]
    Field(#[from] InvalidField),
    #[error("{place}: {reason}")]
    Invalid { place: String, reason: String },
    /// With the place in the statement.
    #[error("sql: {0}")]
    Statement(String),
    #[error("{place}: there is no table {table:?}")]
    TableMissing { place: String, table: String },
    #[error("there is no rule {0}")]
    Missing(RuleName),
    #[error("rule {0} has no such version")]
    VersionMissing(RuleName),
    #[error("there is a rule {0} already")]
    Exists(RuleName),
    #[error("rule {0} is in the server's file of rules and is changed there")]
    InFile(RuleName),
    #[error("rule {name} has version {actual} now")]
    Changed { name: RuleName, actual: i64 },
    #[error("there are {RULES_MAX} rules already, which is the limit")]
    TooMany,
    #[error(transparent)]
    Cursor(#[from] CursorError),
    #[error("a stored item of rules is malformed: {0}")]
    Malformed(String),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl RuleError {
    fn invalid(place: &str, reason: impl Into<String>) -> Self {
        Self::Invalid {
            place: place.to_owned(),
            reason: reason.into(),
        }
    }
}

impl RuleEngine {
    /// An engine without rules; [`RuleEngine::load`] brings them.
    ///
    /// # Errors
    /// When a rule of the file cannot be.
    pub fn new(surroundings: Surroundings, file_rules: Vec<NewRule>) -> Result<Self, RuleError> {
        let Surroundings {
            store,
            clock,
            publish,
            push,
            tables,
            telemetry_table,
            sns_topics,
        } = surroundings;
        let tables = KnownTables::new(tables, &telemetry_table, sns_topics);
        let now = EpochMillis(clock.now_ms());
        let file_rules = load::from_file(file_rules, &tables, now)?;
        Ok(Self {
            inner: Arc::new(Inner {
                store,
                clock,
                publish,
                push,
                tables,
                telemetry_table,
                registry: RwLock::default(),
                file_rules,
                changed: AtomicI64::new(load::NEVER),
                changing: Mutex::default(),
                moments: Moments::new(),
                traces: Traces::new(),
                requests_open: AtomicUsize::new(0),
                work: Notify::new(),
            }),
        })
    }

    /// The rules as they are now.
    fn registry(&self) -> Arc<Registry> {
        let registry = self.inner.registry.read();
        Arc::clone(&registry.unwrap_or_else(std::sync::PoisonError::into_inner))
    }

    fn now(&self) -> EpochMillis {
        EpochMillis(self.inner.clock.now_ms())
    }
}

/// Names for messages on their way through rules, cheaper than a random one for each.
struct Traces {
    process: u64,
    next: AtomicU64,
}

impl Traces {
    fn new() -> Self {
        let mut bytes = [0; 8];
        // Without random bytes the names of two processes may coincide, which harms nothing.
        let _ = getrandom::fill(&mut bytes);
        Self {
            process: u64::from_le_bytes(bytes),
            next: AtomicU64::new(0),
        }
    }

    fn next(&self) -> String {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let process = self.process;
        format!(
            "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
            process >> 32,
            (process >> 16) & 0xffff,
            process & 0xffff,
            (number >> 48) & 0xffff,
            number & 0xffff_ffff_ffff
        )
    }
}

impl std::fmt::Debug for RuleEngine {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("RuleEngine")
            .field("rules", &self.registry().len())
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Surroundings {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Surroundings")
            .finish_non_exhaustive()
    }
}
