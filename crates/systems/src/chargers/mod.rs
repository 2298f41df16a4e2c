//! Chargers: events of devices are appended to a timeline and update the state of the device. People read the
//! fleet, timelines and daily statistics.

mod daily;
pub mod decoders;
mod decommission;
mod devices;
mod event;
mod ingest;
pub mod migration;
pub mod mountain;
mod reaction;
mod recount;
pub mod schema;
mod source;
mod state;
mod timeline;
mod types;
mod uplinks;

use std::sync::Arc;

use homeport_store::{Clock, Store, StoreError};

use crate::cursor::CursorError;
use crate::documents::Documents;
use crate::time::EpochMillis;

use decoders::LoadedDecoders;

pub use crate::text::InvalidField;
pub use crate::time::Order;
pub use daily::{DailyStats, HOLD_MS, UPLINK_EVERY_MS};
pub(crate) use decommission::DATA;
pub use devices::Charger;
pub use event::{Event, EventDevice, EventUplink, MOVES_MAX, NewEvent};
pub use ingest::{EventOutcome, Rejection};
pub use mountain::{MountainDay, MountainTime};
pub use reaction::DailyReaction;
pub use recount::{REBUILD_DAYS_MAX, Rebuilt, affected_days};
pub use source::SYSTEM;
pub use state::{
    NotInState, NotInStateReason, RECENT_UPLINKS_MAX, RECENT_UPLINKS_MS, REPORTED_MAX, SET_MAX,
    STATE_VALUE_BYTES_MAX, StatePatch,
};
pub use timeline::EventRange;
pub use types::{
    ChargerIds, DATA_BYTES_MAX, DATA_DEPTH_MAX, DATA_MEMBERS_MAX, DeviceName, EventData, EventType,
    ScId, WirelessDeviceId,
};
pub use uplinks::{
    InvalidUplink, PAYLOAD_BYTES_MAX, UNDECODED, UPLINK_BYTES_MAX, UPLINKS_TOPIC, Uplink,
    UplinkOutcome,
};

/// Events or uplinks of one request.
pub const EVENTS_PER_REQUEST_MAX: usize = 100;
/// Items of one page.
pub const PAGE_MAX: usize = 1000;

/// The chargers of a store.
#[derive(Clone)]
pub struct Chargers {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    decoders: Arc<LoadedDecoders>,
}

/// Why a request failed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ChargersError {
    #[error("there is no device {0}")]
    DeviceMissing(DeviceName),
    #[error("device {0} has no event with the key {1}")]
    EventMissing(ScId, MountainTime),
    #[error(transparent)]
    Invalid(#[from] InvalidField),
    #[error(transparent)]
    Cursor(#[from] CursorError),
    /// Another program wrote an item that cannot be read.
    #[error("a stored {table} item is malformed: {reason}")]
    Malformed { table: &'static str, reason: String },
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Chargers {
    #[must_use]
    pub fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Self {
        let documents = Documents {
            store: Arc::clone(&store),
            table: schema::DECODERS,
            current: schema::DECODER,
        };
        let decoders = LoadedDecoders::new(documents, Arc::clone(&clock));
        Self {
            store,
            clock,
            decoders: Arc::new(decoders),
        }
    }

    /// The time of the server's clock.
    #[must_use]
    pub fn now_ms(&self) -> EpochMillis {
        EpochMillis(self.clock.now_ms())
    }
}

impl std::fmt::Debug for Chargers {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Chargers").finish_non_exhaustive()
    }
}
