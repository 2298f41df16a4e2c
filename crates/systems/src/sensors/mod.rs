//! Sensors: devices register and send readings, each of which is stored exactly once. People read the latest
//! reading and ranges.

mod activity;
mod decommission;
mod devices;
mod ingest;
mod named;
mod reading;
mod readings;
mod register;
pub mod schema;
mod source;
mod types;

use std::sync::Arc;

use homeport_store::{Clock, Store, StoreError};

use crate::cursor::CursorError;
use crate::time::{EpochMillis, EpochSeconds, UtcSecond};

pub use crate::text::InvalidField;
pub use crate::time::Order;
pub(crate) use decommission::DATA;
pub use devices::Device;
pub use ingest::{IngestOutcome, Rejection};
pub use named::Named;
pub use reading::{Reading, ReadingError, SensorStatus, TIMESTAMP_MS_MAX};
pub use readings::ReadingRange;
pub use register::{Registered, Registration};
pub use source::SYSTEM;
pub use types::{
    BatchId, CAPABILITIES_MAX, Capabilities, FirmwareVersion, FriendlyName, HardwareId, NameChange,
    SensorName,
};

/// Readings of one request.
pub const READINGS_PER_REQUEST_MAX: usize = 100;
/// Items of one page.
pub const PAGE_MAX: usize = 1000;
/// How long markers of stored readings are kept.
pub const MARKER_RETENTION_SECS: i64 = 30 * 24 * 60 * 60;

/// Settings of sensors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// How long readings are kept; `None` keeps them forever.
    pub retention_secs: Option<i64>,
    /// The shortest interval between two updates of a device's last activity.
    pub last_seen_every_secs: i64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            retention_secs: Some(90 * 24 * 60 * 60),
            last_seen_every_secs: 60,
        }
    }
}

/// The sensors of a store.
#[derive(Clone)]
pub struct Sensors {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    settings: Settings,
}

/// Why a request failed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SensorsError {
    #[error("there is no device {0}")]
    DeviceMissing(HardwareId),
    #[error("device {0} has no readings")]
    NoReadings(HardwareId),
    #[error("the device has no reading with this timestamp and batch_id")]
    ReadingMissing,
    #[error("device {0} is being decommissioned; it can register again when its data is deleted")]
    BeingDecommissioned(HardwareId),
    #[error(transparent)]
    Cursor(#[from] CursorError),
    /// Another program wrote an item that cannot be read.
    #[error("a stored {table} item is malformed: {reason}")]
    Malformed { table: &'static str, reason: String },
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Sensors {
    #[must_use]
    pub fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>, settings: Settings) -> Self {
        Self {
            store,
            clock,
            settings,
        }
    }

    fn now(&self) -> EpochSeconds {
        EpochMillis(self.clock.now_ms()).seconds()
    }

    fn now_second(&self) -> UtcSecond {
        UtcSecond::new(self.now())
    }
}

impl std::fmt::Debug for Sensors {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Sensors")
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}
