//! The live feed: changes of devices as the change log reports them. Every reader follows the log at its own
//! pace. The log is the buffer: a slow reader blocks nobody and fills no memory, and a reader that reconnects
//! continues at its position.

mod position;
mod reader;

use std::sync::Arc;
use std::time::Duration;

use homeport_item::schema::{StreamView, TableSchema};
use homeport_store::{ChangeFeed, ChangePage, Clock, Store, StoreError};
use tokio::sync::{OnceCell, OwnedSemaphorePermit, Semaphore, watch};

use crate::alerts;
use crate::fleet::{
    DeviceSource, EntryType, FleetError, LiveEntry, Sources, SystemName, alert_entries,
};

pub use position::LivePosition;
pub use reader::{LiveEvent, LiveReader};

/// Readers at one time.
pub const READERS_MAX: usize = 64;
/// Changes that are read at once.
const CHANGES_PER_PAGE: usize = 200;
/// Tables that are followed, at most.
const TABLES_MAX: usize = 64;
/// Pages of all tables together that wait for a reader.
const PAGES_WAITING_MAX: usize = 8;
/// How long one read waits for a change.
const WAIT: Duration = Duration::from_secs(5);
/// A reader that is further behind than this, with more changes to come, skips to the end: people who watch
/// want to see the present.
const BEHIND_MS_MAX: i64 = 10_000;
const RETRY: Duration = Duration::from_secs(1);

/// Which changes are wanted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LiveFilter {
    pub system: Option<SystemName>,
    pub device: Option<String>,
    /// Empty for all types.
    pub types: Vec<EntryType>,
}

/// The live feed of a store; cheap to clone.
#[derive(Clone)]
pub struct Live(Arc<Inner>);

struct Inner {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    /// The change log, if the store has one.
    feed: Option<Arc<dyn ChangeFeed>>,
    sources: Sources,
    room: Arc<Semaphore>,
    stopping: watch::Sender<bool>,
    tables: Vec<Arc<FollowedTable>>,
}

/// A table whose changes are entries.
struct FollowedTable {
    /// The system that makes the entries; `None` for alerts, which name their system themselves.
    source: Option<Arc<dyn DeviceSource>>,
    schema: TableSchema,
    /// Set once the stream of the table is enabled.
    stream: OnceCell<()>,
}

/// Why the feed cannot be followed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum LiveError {
    #[error("the changes of this store cannot be followed")]
    Unavailable,
    #[error("the live feed already has {READERS_MAX} readers")]
    TooMany,
    #[error("the position does not belong to this feed")]
    Position,
    #[error(transparent)]
    Fleet(#[from] FleetError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Live {
    #[must_use]
    pub fn new(
        store: Arc<dyn Store>,
        feed: Option<Arc<dyn ChangeFeed>>,
        clock: Arc<dyn Clock>,
        sources: Sources,
    ) -> Self {
        let mut tables = Vec::new();
        let mut add = |source: Option<&Arc<dyn DeviceSource>>, schema| {
            tables.push(Arc::new(FollowedTable {
                source: source.cloned(),
                schema,
                stream: OnceCell::new(),
            }));
        };
        for source in sources.iter() {
            for schema in source.live_tables() {
                add(Some(source), schema);
            }
        }
        let alerts = alerts::schema::alerts();
        add(None, alerts.with_stream(StreamView::NewImage));
        Self(Arc::new(Inner {
            store,
            clock,
            feed,
            sources,
            room: Arc::new(Semaphore::new(READERS_MAX)),
            stopping: watch::Sender::new(false),
            tables,
        }))
    }

    /// Follows the wanted changes from a position, or from now on.
    ///
    /// # Errors
    /// When there are too many readers, the position is invalid, or the store fails.
    pub async fn follow(
        &self,
        filter: LiveFilter,
        from: Option<LivePosition>,
    ) -> Result<LiveReader, LiveError> {
        let feed = self.0.feed.as_ref().ok_or(LiveError::Unavailable)?;
        if let Some(system) = &filter.system {
            self.0.sources.get(system)?;
        }
        let permit = Arc::clone(&self.0.room).try_acquire_owned();
        let permit: OwnedSemaphorePermit = permit.map_err(|_| LiveError::TooMany)?;
        let mut position = from.unwrap_or_default();
        let mut tables = Vec::new();
        for table in &self.0.tables {
            if !self.may_have(table, &filter) {
                continue;
            }
            let ensure = || async {
                let schema = std::slice::from_ref(&table.schema);
                self.0.store.ensure_tables(schema).await
            };
            table.stream.get_or_try_init(ensure).await?;
            let name = &table.schema.name;
            let start = match position.of(name) {
                Some(start) => start.clone(),
                None => {
                    let end = feed.end(name).await?;
                    position.set(name, end.clone());
                    end
                }
            };
            tables.push((Arc::clone(table), start));
        }
        Ok(LiveReader::start(self, filter, position, tables, permit))
    }

    /// Ends all readers because the server stops.
    pub fn stop(&self) {
        self.0.stopping.send_replace(true);
    }

    /// Whether a table can have wanted changes.
    fn may_have(&self, table: &FollowedTable, filter: &LiveFilter) -> bool {
        let Some(wanted) = &filter.system else {
            return true;
        };
        match &table.source {
            Some(source) => source.system().name == *wanted,
            None => {
                let source = self.0.sources.get(wanted);
                source.is_ok_and(|source| source.system().alert_reaction.is_some())
            }
        }
    }

    /// The entries of a page of changes.
    async fn entries(
        &self,
        table: &FollowedTable,
        page: &ChangePage,
    ) -> Result<Vec<LiveEntry>, LiveError> {
        let changes = page.changes.iter();
        let Some(source) = &table.source else {
            let entries = changes.filter_map(|one| alert_entries::changed(&self.0.sources, one));
            return Ok(entries.collect());
        };
        source.prepare().await?;
        let entries = changes.filter_map(|change| {
            let (devices, entry) = source.live_entry(&table.schema.name, change)?;
            let system = &source.system().name;
            Some(LiveEntry::new(system, devices, entry, change))
        });
        Ok(entries.collect())
    }
}

impl LiveFilter {
    fn wants(&self, entry: &LiveEntry) -> bool {
        let fits_system = self
            .system
            .as_ref()
            .is_none_or(|system| *system == entry.system);
        let fits_device = self
            .device
            .as_ref()
            .is_none_or(|device| entry.devices.contains(device));
        let fits_type = self.types.is_empty() || self.types.contains(&entry.entry.kind);
        fits_system && fits_device && fits_type
    }
}

impl std::fmt::Debug for Live {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Live").finish_non_exhaustive()
    }
}
