//! The fleet: the devices of all systems in one list, each with a health, its values over time and one
//! timeline.
//!
//! The fleet only reads.

mod device;
mod directory;
mod entry;
mod gather;
mod health;
mod list;
mod name;
mod rows;
mod samples;
mod series;
mod timeline;

use std::sync::Arc;

use homeport_item::schema::TableSchema;
use homeport_store::{Clock, Store, StoreError};

use crate::chargers::{Chargers, ChargersError};
use crate::cursor::CursorError;
use crate::push::{Push, PushError};
use crate::records::{RecordIds, Records, RecordsError};
use crate::schema::TableNames;
use crate::sensors::{InvalidField, Sensors, SensorsError};
use crate::time::EpochMillis;
use crate::{push, telemetry};

pub use device::{DeviceView, LatestValue};
pub use directory::{DEVICES_MAX, DeviceSummary};
pub use entry::{Entry, EntryType, Followed, LiveEntry};
pub use health::{Expectations, Health, HealthCounts};
pub use list::{DeviceFilter, FleetPage, LIST_MAX, SystemCounts};
pub use name::{DeviceRef, SystemName};
pub use rows::{Row, RowReader};
pub use samples::{Sample, samples, unit_of};
pub use series::{POINTS_DEFAULT, POINTS_MAX, Point, SERIES_MAX, Series, SeriesRange, SeriesSet};
pub use timeline::{TIMELINE_MAX, TimelineOrder, TimelinePage, TimelineRange};

use directory::Directory;

/// The systems that the fleet reads.
#[derive(Clone)]
pub struct Parts {
    pub store: Arc<dyn Store>,
    pub clock: Arc<dyn Clock>,
    pub sensors: Sensors,
    pub chargers: Chargers,
    pub records: Records,
    pub push: Push,
    pub names: TableNames,
}

/// The devices of all systems; cheap to clone.
#[derive(Clone)]
pub struct Fleet(Arc<Inner>);

struct Inner {
    parts: Parts,
    telemetry: TableSchema,
    tokens: TableSchema,
    expectations: Expectations,
    directory: Directory,
}

/// Why a device cannot be shown.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum FleetError {
    #[error("there is no such device")]
    DeviceMissing,
    #[error(transparent)]
    Invalid(#[from] InvalidField),
    #[error(transparent)]
    Cursor(#[from] CursorError),
    /// Another program wrote an item that cannot be read.
    #[error("a stored item is malformed: {0}")]
    Malformed(String),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Fleet {
    #[must_use]
    pub fn new(parts: Parts, expectations: Expectations) -> Self {
        Self(Arc::new(Inner {
            telemetry: telemetry::schema::telemetry(&parts.names.telemetry),
            tokens: push::schema::device_tokens(&parts.names.device_tokens),
            parts,
            expectations,
            directory: Directory::default(),
        }))
    }

    fn store(&self) -> &dyn Store {
        &*self.0.parts.store
    }

    pub(crate) fn now(&self) -> EpochMillis {
        EpochMillis(self.0.parts.clock.now_ms())
    }

    pub(crate) fn names(&self) -> &TableNames {
        &self.0.parts.names
    }

    /// The encoding of record ids; `None` before the first group is created.
    pub(crate) async fn record_ids(&self) -> Result<Option<Arc<RecordIds>>, FleetError> {
        match self.0.parts.records.ids().await {
            Ok(ids) => Ok(Some(ids)),
            Err(RecordsError::TagMissing(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

impl From<SensorsError> for FleetError {
    fn from(error: SensorsError) -> Self {
        match error {
            SensorsError::DeviceMissing(_)
            | SensorsError::NoReadings(_)
            | SensorsError::ReadingMissing
            | SensorsError::BeingDecommissioned(_) => Self::DeviceMissing,
            SensorsError::Cursor(error) => error.into(),
            SensorsError::Malformed { .. } => Self::Malformed(error.to_string()),
            SensorsError::Store(error) => error.into(),
        }
    }
}

impl From<ChargersError> for FleetError {
    fn from(error: ChargersError) -> Self {
        match error {
            ChargersError::DeviceMissing(_) | ChargersError::EventMissing(..) => {
                Self::DeviceMissing
            }
            ChargersError::Cursor(error) => error.into(),
            ChargersError::Invalid(error) => InvalidField {
                field: error.field,
                expected: error.expected,
            }
            .into(),
            ChargersError::Malformed { .. } => Self::Malformed(error.to_string()),
            ChargersError::Store(error) => error.into(),
        }
    }
}

impl From<RecordsError> for FleetError {
    fn from(error: RecordsError) -> Self {
        match error {
            RecordsError::GroupMissing
            | RecordsError::DeviceMissing
            | RecordsError::JournalMissing
            | RecordsError::TagMissing(_)
            | RecordsError::EncodedId => Self::DeviceMissing,
            RecordsError::Invalid(error) => error.into(),
            RecordsError::Cursor(error) => error.into(),
            RecordsError::Store(error) => error.into(),
            error => Self::Malformed(error.to_string()),
        }
    }
}

impl From<PushError> for FleetError {
    fn from(error: PushError) -> Self {
        match error {
            PushError::DeviceMissing => Self::DeviceMissing,
            PushError::Invalid(error) => error.into(),
            PushError::Cursor(error) => error.into(),
            PushError::Store(error) => error.into(),
            error => Self::Malformed(error.to_string()),
        }
    }
}

impl std::fmt::Debug for Parts {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Parts").finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Fleet {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Fleet").finish_non_exhaustive()
    }
}
