//! Records: devices of a group write records into journals. People read the latest records and ranges, and
//! remove what they no longer need. One table has everything, with a partition for each group.
//!
//! An item is visible while it and its parents exist: group, device, journal. A removal deletes only the item
//! itself; background work deletes everything below it.

mod history;
mod ids;
mod observed;
mod parents;
mod policy;
mod removal;
pub mod schema;
mod source;
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

pub use crate::time::Order;
pub use history::{AddedRecord, NewRecord, Record, RecordRange};
pub use ids::{DispensedId, Hashids, IdTag, NewIdTag, RecordIds};
pub use parents::{
    ATTRIBUTE_DEPTH_MAX, Attributes, Device, DeviceChange, Group, GroupChange, GroupReaction,
    Journal, JournalChange, NewDevice, NewGroup, NewJournal,
};
pub use policy::PolicyAction;
pub use removal::{Housekept, Removal};
pub use source::SYSTEM;
pub use types::{
    Change, DataType, DeviceId, ExternalId, GroupId, JournalId, Model, Name, POLICY_DEPTH_MAX,
    PolicyDocument, RETENTION_SECS_MAX, RETENTION_SECS_MIN, RecordId, RecordTime, RecordType,
    RecordValue, Retention, Unit, VALUE_CHARS_MAX,
};

/// Items of one page.
pub const PAGE_MAX: usize = 1000;

/// Records of one request.
pub const RECORDS_PER_REQUEST_MAX: usize = 100;
/// How long a record id is known.
pub const RECORD_ID_RETENTION_SECS: i64 = 30 * 24 * 60 * 60;

/// Settings of the record store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The table's name.
    pub table: String,
    /// The interval at which old history is deleted.
    pub housekeeping_every_secs: i64,
}

impl Settings {
    /// The table of a stage, named as in the design document.
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

/// The record store, based on any [`Store`].
#[derive(Clone)]
pub struct Records {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    /// The clock that decides which records are old enough to be deleted.
    removal_clock: Arc<dyn Clock>,
    settings: Settings,
    /// The encodings of ids; they never change once they exist.
    ids: Arc<OnceCell<Arc<RecordIds>>>,
    /// The API key whose permissions apply; none for operators.
    key_id: Option<String>,
    /// Wakes the background work when there is something to remove.
    work: Arc<Notify>,
}

/// Why a request failed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum RecordsError {
    #[error(transparent)]
    Invalid(#[from] InvalidField),
    #[error("Encoded id is not valid.")]
    EncodedId,
    #[error("there is no id tag {0}")]
    TagMissing(IdTag),
    #[error("id tag {0} already exists")]
    TagExists(IdTag),
    #[error("id tag {0} has no more ids")]
    TagExhausted(IdTag),
    #[error("there is no such group")]
    GroupMissing,
    #[error("another group has this external id")]
    ExternalIdTaken,
    #[error("the access policy of the device does not permit this")]
    PolicyDenied,
    #[error("there is no such device in the group")]
    DeviceMissing,
    #[error("the device has no such journal")]
    JournalMissing,
    #[error("the journal has no record with this timestamp")]
    RecordMissing,
    #[error("the record id was used for another record of this journal")]
    RecordIdReused,
    #[error("the journal has no free millisecond close to this timestamp")]
    TimeOccupied,
    #[error(transparent)]
    Cursor(#[from] CursorError),
    /// Another program wrote an item that cannot be read.
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
            key_id: None,
            work: Arc::default(),
        }
    }

    /// Sets the clock that decides which history is old; it ignores unconfirmed clock jumps.
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
