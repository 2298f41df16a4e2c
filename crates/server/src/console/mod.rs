//! What only the console needs: sessions of people, the page itself, and a look at the whole store.

mod sessions;
mod storage;

use std::sync::Arc;

use homeport_systems::browse::TableBrowser;
use homeport_systems::fleet::Fleet;
use homeport_systems::live::Live;
use homeport_systems::time::EpochMillis;
use tokio::sync::Semaphore;

pub use sessions::{SESSION_SECS_DEFAULT, Sessions};
pub use storage::{CommitTimes, Storage, StoredTable};

/// Exports at one time: each reads the store as fast as its client takes it.
pub const EXPORTS_MAX: usize = 8;

/// What the console's routes work with.
pub struct Console {
    pub sessions: Sessions,
    pub fleet: Fleet,
    pub tables: TableBrowser,
    pub live: Live,
    pub storage: Arc<dyn Storage>,
    /// Room for [`EXPORTS_MAX`] exports.
    pub exports: Arc<Semaphore>,
    /// When the server was started.
    pub started_at: EpochMillis,
}

impl std::fmt::Debug for Console {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Console").finish_non_exhaustive()
    }
}
