//! Records: devices of a group write records into journals; people read the latest and ranges, and
//! remove what is no longer wanted. One table holds everything, a partition for each group.
//!
//! A thing is visible when its own item and those above it are there: group, device, journal.
//! Removing deletes that one item, and the background takes away what was below.

mod add_record;
mod background;
mod devices;
mod dispenser;
mod groups;
mod hashids;
mod housekeeping;
mod journals;
mod latest;
mod observed;
mod ranges;
mod record;
mod removal;
pub mod schema;
mod stored;
mod types;
mod visible;
mod writes;

use std::sync::Arc;

use homeport_store::{Clock, Store, StoreError};
use tokio::sync::{Notify, OnceCell};

use crate::cursor::CursorError;
use crate::sensors::InvalidField;
use crate::time::EpochMillis;

pub use add_record::NewRecord;
pub use devices::{Device, DeviceChange, DevicePage, NewDevice};
pub use dispenser::{DispensedId, IdTag, NewIdTag};
pub use groups::{Group, GroupChange, GroupPage, NewGroup};
pub use hashids::{Hashids, RecordIds};
pub use housekeeping::Housekept;
pub use journals::{Journal, JournalChange, JournalPage, NewJournal};
pub(crate) use observed::journal_of_record;
pub use ranges::{Order, RecordRange};
pub use record::{Record, RecordPage};
pub use removal::{Removal, Swept};
pub use types::{
    Change, DataType, DeviceId, GroupId, JournalId, Model, Name, POLICY_DEPTH_MAX, PolicyDocument,
    RecordTime, RecordType, RecordValue, Retention, Unit,
};

/// Items that one page may have.
pub const PAGE_MAX: usize = 1000;

/// What can be set about the system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The table's name.
    pub table: String,
    /// How often old history is looked for.
    pub housekeeping_every_secs: i64,
}

impl Settings {
    /// The table of a stage, as the document names it.
    #[must_use]
    pub fn for_stage(stage: &str) -> Self {
        Self {
            table: format!("{}{stage}", schema::TABLE_PREFIX),
            housekeeping_every_secs: 60 * 60,
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self::for_stage(schema::STAGE_DEFAULT)
    }
}

/// The record store on a store.
#[derive(Clone)]
pub struct Records {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    /// Decides what is old enough to be deleted.
    removal_clock: Arc<dyn Clock>,
    settings: Settings,
    /// How the ids of groups, devices and journals are shown; never changes once it is there.
    ids: Arc<OnceCell<Arc<RecordIds>>>,
    /// Tells the background that there is something to remove.
    work: Arc<Notify>,
}

/// Why something could not be done.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum RecordsError {
    #[error(transparent)]
    Invalid(#[from] InvalidField),
    #[error("Encoded id is not valid.")]
    EncodedId,
    #[error("there is no id tag {0}")]
    TagMissing(IdTag),
    #[error("there is an id tag {0} already")]
    TagExists(IdTag),
    #[error("id tag {0} has no more ids")]
    TagExhausted(IdTag),
    #[error("there is no such group")]
    GroupMissing,
    #[error("there is no such device in the group")]
    DeviceMissing,
    #[error("the device has no such journal")]
    JournalMissing,
    #[error("the journal has a record at every millisecond for a while from this timestamp on")]
    TimeOccupied,
    #[error(transparent)]
    Cursor(#[from] CursorError),
    /// An item that something else wrote cannot be understood.
    #[error("a stored item of the record store is malformed: {0}")]
    Malformed(String),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Records {
    #[must_use]
    pub fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>, settings: Settings) -> Self {
        Self {
            store,
            removal_clock: Arc::clone(&clock),
            clock,
            settings,
            ids: Arc::default(),
            work: Arc::default(),
        }
    }

    /// Deletes old history by this clock, which ignores unconfirmed clock jumps.
    #[must_use]
    pub fn with_removal_clock(self, removal_clock: Arc<dyn Clock>) -> Self {
        Self {
            removal_clock,
            ..self
        }
    }

    fn table(&self) -> &str {
        &self.settings.table
    }

    fn now(&self) -> EpochMillis {
        EpochMillis(self.clock.now_ms())
    }
}

impl std::fmt::Debug for Records {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Records")
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}
