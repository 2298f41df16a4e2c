//! The fleet: the devices of all systems in one list, each with a health, its values over time and one
//! timeline.
//!
//! The fleet only reads.

pub(crate) mod alert_entries;
pub(crate) mod attributes;
mod device;
mod directory;
pub(crate) mod entry;
mod health;
mod history;
mod list;
pub(crate) mod name;
mod registry;
mod samples;
mod series;
mod source;
mod timeline;

use std::collections::VecDeque;
use std::sync::Arc;

use homeport_store::{Clock, Store, StoreError};

use crate::cursor::CursorError;
use crate::sensors::InvalidField;
use crate::time::{EpochMillis, Order};

pub use device::{DEVICES_MAX, DeviceList, DeviceSummary, DeviceView, LatestValue};
pub use entry::{Entry, EntryType, LiveEntry};
pub use health::{Expectations, Health, HealthCounts};
pub use history::{Detail, HistoryRange, QueryReader, Row, RowPage, RowReader, Rows};
pub use list::{DeviceFilter, FleetPage, LIST_MAX, SystemCounts};
pub use name::{DeviceRef, SystemName, subject};
pub use registry::{SYSTEMS, SourceDeps, Sources, System};
pub use samples::{Sample, unit_of, visit_members};
pub use series::{POINTS_DEFAULT, POINTS_MAX, Point, SERIES_MAX, Series, SeriesRange, SeriesSet};
pub use source::{AlertSubject, DeviceSource};
pub use timeline::{TIMELINE_MAX, TimelineRange};

use directory::Directory;

/// Latest values that the page of a device shows.
const LATEST_MAX: usize = 200;

/// The devices of all systems; cheap to clone.
#[derive(Clone)]
pub struct Fleet(Arc<Inner>);

struct Inner {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    sources: Sources,
    expectations: Expectations,
    directory: Directory,
}

/// Why a device cannot be shown.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum FleetError {
    #[error("there is no such device")]
    DeviceMissing,
    #[error("there is no system {name}; the systems are {known}")]
    SystemMissing { name: SystemName, known: String },
    #[error("devices of {0} store no values that could be exported")]
    NoValues(SystemName),
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
    pub fn new(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        sources: Sources,
        expectations: Expectations,
    ) -> Self {
        Self(Arc::new(Inner {
            store,
            clock,
            sources,
            expectations,
            directory: Directory::default(),
        }))
    }

    /// One device with its state.
    ///
    /// # Errors
    /// When there is no such device, or the store fails.
    pub async fn device(&self, device: &DeviceRef) -> Result<(DeviceView, Health), FleetError> {
        let mut view = self.source(&device.system)?.device_view(&device.id).await?;
        view.latest.truncate(LATEST_MAX);
        let health = self.health(&view.summary)?;
        Ok((view, health))
    }

    /// What a device stored in a range of time; both ends are included.
    ///
    /// # Errors
    /// When there is no such device, or the store fails.
    pub async fn rows(
        &self,
        device: &DeviceRef,
        from: EpochMillis,
        to: EpochMillis,
        detail: Detail,
    ) -> Result<Rows, FleetError> {
        let range = HistoryRange::new(from, to, Order::OldestFirst, detail);
        let source = self.source(&device.system)?;
        if range.from > range.to {
            return Ok(Rows(VecDeque::new()));
        }
        Ok(Rows(source.history(&device.id, &range).await?.into()))
    }

    /// The health of a device now.
    fn health(&self, device: &DeviceSummary) -> Result<Health, FleetError> {
        if !device.is_active {
            return Ok(Health::Silent);
        }
        let system = self.source(&device.system)?.system();
        let expectations = &self.0.expectations;
        Ok(expectations.health(system, device.last_seen, self.now()))
    }

    pub(crate) fn source(&self, system: &SystemName) -> Result<&Arc<dyn DeviceSource>, FleetError> {
        self.0.sources.get(system)
    }

    fn store(&self) -> &dyn Store {
        &*self.0.store
    }

    fn now(&self) -> EpochMillis {
        EpochMillis(self.0.clock.now_ms())
    }
}

impl std::fmt::Debug for Fleet {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Fleet").finish_non_exhaustive()
    }
}
