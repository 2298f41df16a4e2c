//! State of the console: the fleet, the tables, and the live feed.

mod storage;

use std::sync::Arc;

use homeport_systems::browse::TableBrowser;
use homeport_systems::fleet::Fleet;
use homeport_systems::live::Live;
use homeport_systems::time::EpochMillis;
use tokio::sync::Semaphore;

pub use storage::{CommitTimes, Storage, StoredTable};

/// Maximum number of concurrent exports. Each reads the store as fast as its client receives data.
pub const EXPORTS_MAX: usize = 8;

/// How long a session lasts unless a setting says otherwise.
pub const SESSION_SECS_DEFAULT: i64 = 12 * 60 * 60;

/// What the routes of the console share.
pub struct Console {
    pub fleet: Fleet,
    pub tables: TableBrowser,
    pub live: Live,
    pub storage: Arc<dyn Storage>,
    /// Permits for [`EXPORTS_MAX`] concurrent exports.
    pub exports: Arc<Semaphore>,
    /// Start time of the server.
    pub started_at: EpochMillis,
}

impl std::fmt::Debug for Console {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Console").finish_non_exhaustive()
    }
}
