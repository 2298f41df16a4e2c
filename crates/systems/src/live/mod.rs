//! The live feed: changes of devices as the change log reports them. Every reader follows the log at its own
//! pace. The log is the buffer: a slow reader blocks nobody and fills no memory, and a reader that reconnects
//! continues at its position.

mod position;
mod reader;

use std::sync::Arc;
use std::time::Duration;

use homeport_store::{ChangeFeed, Clock, Store, StoreError};
use tokio::sync::{OnceCell, OwnedSemaphorePermit, Semaphore, watch};

use crate::fleet::{EntryType, Fleet, FleetError, Followed, SystemName};
use crate::schema::TableNames;

pub use position::LivePosition;
pub use reader::{LiveEvent, LiveReader};

/// Readers at one time.
pub const READERS_MAX: usize = 64;
/// Changes that are read at once.
const CHANGES_PER_PAGE: usize = 200;
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
    fleet: Fleet,
    room: Arc<Semaphore>,
    stopping: watch::Sender<bool>,
    /// Set once the stream of the table is enabled, in the order of [`Followed::ALL`].
    streams: [OnceCell<()>; Followed::ALL.len()],
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
        fleet: Fleet,
    ) -> Self {
        Self(Arc::new(Inner {
            store,
            clock,
            feed,
            fleet,
            room: Arc::new(Semaphore::new(READERS_MAX)),
            stopping: watch::Sender::new(false),
            streams: Default::default(),
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
        let permit = Arc::clone(&self.0.room).try_acquire_owned();
        let permit: OwnedSemaphorePermit = permit.map_err(|_| LiveError::TooMany)?;
        let mut position = from.unwrap_or_default();
        let mut tables = Vec::new();
        for (followed, stream) in Followed::ALL.into_iter().zip(&self.0.streams) {
            if !filter.may_be_in(followed) {
                continue;
            }
            let schema = followed.schema(self.names());
            let table = schema.name.clone();
            let ensure = || async { self.0.store.ensure_tables(&[schema]).await };
            stream.get_or_try_init(ensure).await?;
            let start = match position.of(&table) {
                Some(start) => start.clone(),
                None => {
                    let end = feed.end(&table).await?;
                    position.set(&table, end.clone());
                    end
                }
            };
            tables.push((followed, table, start));
        }
        Ok(LiveReader::start(self, filter, position, tables, permit))
    }

    /// Ends all readers because the server stops.
    pub fn stop(&self) {
        self.0.stopping.send_replace(true);
    }

    fn names(&self) -> &TableNames {
        self.0.fleet.names()
    }
}

impl LiveFilter {
    /// Whether a table can have wanted changes.
    fn may_be_in(&self, followed: Followed) -> bool {
        match (self.system, followed.system()) {
            (Some(wanted), Some(system)) => wanted == system,
            // Alerts watch sensors, things and records.
            (Some(wanted), None) => !matches!(wanted, SystemName::Chargers | SystemName::Push),
            (None, _) => true,
        }
    }

    fn wants(&self, entry: &crate::fleet::LiveEntry) -> bool {
        let fits_system = self.system.is_none_or(|system| system == entry.system);
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
