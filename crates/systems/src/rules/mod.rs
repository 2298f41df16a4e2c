//! Rules on messages. A rule is a statement in AWS IoT SQL, which the crate `homeport-rules` implements,
//! with actions for its results.
//!
//! The engine processes each message and returns the messages that rules republish, once all writes of
//! rules are durable. A permanent failure runs the rule's error action, is counted, and is kept for
//! operators; the message itself succeeds.

mod definitions;
mod execution;
mod requests;
pub mod schema;
mod trials;

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, RwLock};

use homeport_item::schema::TableSchema;
use homeport_store::{Clock, Store, StoreError};
use tokio::sync::{Mutex, Notify};

use crate::cursor::CursorError;
use crate::documents::Documents;
use crate::outbox::Queue;
use crate::push::Push;
use crate::sensors::InvalidField;
use crate::time::{EpochMillis, FutureLimit};

use definitions::compiled::KnownTables;
use definitions::registry::Registry;
use execution::moments::Moments;

pub use crate::documents::VERSIONS_KEPT;
pub use definitions::compiled::{
    ACTIONS_MAX, DESCRIPTION_CHARS_MAX, FILTER_LEVELS_MAX, HEADERS_MAX, SQL_VERSION,
    TEMPLATE_BYTES_MAX,
};
pub use definitions::document::{
    ActionDocument, DynamoDbDocument, DynamoDbV2Document, HttpDocument, KeyType, KeyValue, NewRule,
    PushDocument, PutItemDocument, RepublishDocument, RepublishHeaders, RuleDocument,
};
pub use definitions::load::{FILE_RULES_MAX, REFRESH_EVERY};
pub use definitions::name::RuleName;
pub use definitions::rule::{Rule, RuleVersion, RuleView, Source};
pub use definitions::shipped::shipped;
pub use execution::failure::Failure;
pub use execution::stats::{FAILURES_KEPT, RuleCounts};
pub use requests::outbox::{REQUEST_ATTEMPTS_MAX, REQUESTS_MAX, RequestWorker};
pub use requests::service::{OutgoingRequest, RequestService};
pub use trials::replay::{
    Difference, REPLAY_PAGE_MAX, Replay, ReplayRange, ReplayTotals, Replayed, WouldWrite,
};
pub use trials::trial::{Reason, Trial, TrialError, TrialOutcome};

pub const RULES_MAX: usize = 1000;
/// Rules in a page.
pub const PAGE_MAX: usize = 1000;
/// The value of `accountid()`; Homeport has no accounts.
pub const ACCOUNT_ID: &str = "000000000000";

/// What the engine depends on.
pub struct RuleEngineDeps {
    pub store: Arc<dyn Store>,
    pub clock: Arc<dyn Clock>,
    pub push: Push,
    /// The tables of all systems, and the name of the table of telemetry.
    pub tables: Vec<TableSchema>,
    pub telemetry_table: String,
    /// The limit of times in items of telemetry.
    pub future_limit: FutureLimit,
    /// The URLs that receive notifications of the `sns` action, by the topic's ARN.
    pub sns_topics: HashMap<String, String>,
}

/// Runs and manages rules; cheap to clone.
#[derive(Clone)]
pub struct RuleEngine {
    inner: Arc<Inner>,
}

struct Inner {
    store: Arc<dyn Store>,
    documents: Documents,
    clock: Arc<dyn Clock>,
    push: Push,
    tables: KnownTables,
    telemetry_table: String,
    future_limit: FutureLimit,
    registry: RwLock<Arc<Registry>>,
    /// The rules of the file, which win over stored rules.
    file_rules: Vec<Rule>,
    /// The stored count of changes that the registry includes.
    changed: AtomicI64,
    /// One change at a time in this process; conditions handle other processes.
    changing: Mutex<()>,
    moments: Moments,
    traces: Traces,
    /// Open requests, as far as this process knows.
    requests_open: AtomicUsize,
    outbox: Queue,
    /// Signals new requests to the worker.
    work: Arc<Notify>,
}

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum RuleError {
    #[error(transparent)]
    Field(#[from] InvalidField),
    #[error("{place}: {reason}")]
    Invalid { place: String, reason: String },
    /// With the position in the statement.
    #[error("sql: {0}")]
    Statement(String),
    #[error("{place}: table {table:?} does not exist")]
    TableNotFound { place: String, table: String },
    #[error("rule {0} does not exist")]
    Missing(RuleName),
    #[error("rule {0} does not have this version")]
    VersionMissing(RuleName),
    #[error("rule {0} exists already")]
    Exists(RuleName),
    #[error("rule {0} is defined in the server's file of rules; change it there")]
    InFile(RuleName),
    #[error("rule {name} was changed: its version is {actual}")]
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
    /// Creates an engine without stored rules; [`RuleEngine::load`] loads them.
    ///
    /// # Errors
    /// When a rule of the file is invalid.
    pub fn new(deps: RuleEngineDeps, file_rules: Vec<NewRule>) -> Result<Self, RuleError> {
        let RuleEngineDeps {
            store,
            clock,
            push,
            tables,
            telemetry_table,
            future_limit,
            sns_topics,
        } = deps;
        let tables = KnownTables::new(tables, &telemetry_table, sns_topics);
        let outbox = Queue {
            store: Arc::clone(&store),
            table: schema::REQUESTS,
            counter: None,
        };
        let documents = Documents {
            store: Arc::clone(&store),
            table: schema::RULES,
            current: schema::CURRENT,
        };
        let now = EpochMillis(clock.now_ms());
        let file_rules = definitions::load::from_file(file_rules, &tables, now)?;
        Ok(Self {
            inner: Arc::new(Inner {
                store,
                documents,
                clock,
                push,
                tables,
                telemetry_table,
                future_limit,
                registry: RwLock::default(),
                file_rules,
                changed: AtomicI64::new(definitions::load::NEVER),
                changing: Mutex::default(),
                moments: Moments::new(),
                traces: Traces::new(),
                requests_open: AtomicUsize::new(0),
                outbox,
                work: Arc::default(),
            }),
        })
    }

    /// The loaded rules.
    fn registry(&self) -> Arc<Registry> {
        let registry = self.inner.registry.read();
        Arc::clone(&registry.unwrap_or_else(std::sync::PoisonError::into_inner))
    }

    fn now(&self) -> EpochMillis {
        EpochMillis(self.inner.clock.now_ms())
    }
}

/// Generates trace ids of messages, cheaper than random ones.
struct Traces {
    process: u64,
    next: AtomicU64,
}

impl Traces {
    fn new() -> Self {
        let mut bytes = [0; 8];
        // Without random bytes the ids of two processes may collide, which is harmless.
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

impl std::fmt::Debug for RuleEngineDeps {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("RuleEngineDeps")
            .finish_non_exhaustive()
    }
}
