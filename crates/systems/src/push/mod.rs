//! Push: apps register the devices of their users, and operators send notifications to them through
//! Expo's push service, which is behind a narrow trait.
//!
//! A notification is in the outbox before the request is answered. The worker sends from there. It
//! may be dropped at any moment and continues at the next start.

mod broadcasts;
mod check;
mod devices;
mod erase;
mod measured;
mod notifications;
pub mod schema;
mod sending;
mod source;
mod types;

use std::sync::Arc;

use homeport_item::schema::TableSchema;
use homeport_store::{Clock, Store, StoreError};
use tokio::sync::Notify;

use crate::cursor::CursorError;
use crate::outbox::Queue;
use crate::sensors::InvalidField;
use crate::time::EpochMillis;

pub use broadcasts::{Broadcast, BroadcastId, BroadcastState, DeviceCounts};
pub use check::{DeviceVerdict, LastNotification, TableCheck, UserDeviceCheck};
pub use devices::{CleanedUp, Device, NewDevice, Registered};
pub use erase::Erased;
pub use notifications::{
    Accepted, DeviceDelivery, InterruptionLevel, Message, NewMessage, Notification, NotificationId,
    Priority, PushOutcome,
};
pub use sending::{Envelope, PushService, Receipt, Ticket, Turn, Worker};
pub use source::SYSTEM;
pub use types::{DeviceId, ExpoPushToken, IdempotencyKey, Platform, UserId};

/// Items in a page.
pub const PAGE_MAX: usize = 1000;
/// How long a registration lasts unless it is refreshed.
pub const TOKEN_LIFETIME_SECS: i64 = 90 * 24 * 60 * 60;
/// The default age of inactive tokens that the clean-up deletes.
pub const CLEANUP_AGE_DAYS_DEFAULT: u32 = 30;
/// Devices of one user that a notification can go to: all parts of a notification are accepted in one transaction.
pub const DEVICES_PER_NOTIFICATION_MAX: usize = 5000;
/// Devices of one stored part of a notification: the deliveries must fit into one item.
pub const DEVICES_PER_PART_MAX: usize = 100;
/// Messages that Expo takes in one request, and receipts that one request may fetch.
pub const MESSAGES_PER_REQUEST_MAX: usize = 100;
pub const RECEIPTS_PER_REQUEST_MAX: usize = 1000;
/// Expo rejects this many messages a second; the pace stays below.
pub const RATE_PER_SECOND_LIMIT: usize = 600;
/// Unfinished broadcasts; more are refused.
pub const OPEN_BROADCASTS_MAX: usize = 20;
/// How long a notification, a broadcast and its idempotency key are kept.
pub const NOTIFICATION_RETENTION_SECS: i64 = 30 * 24 * 60 * 60;

/// The settings of push.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The name of the table of device tokens.
    pub table: String,
    /// Whether the table has the index for broadcasts. Without it a broadcast scans the table.
    pub broadcast_index: bool,
    /// Open notifications; more are refused.
    pub outbox_max: usize,
    /// Messages that are sent within any second; below [`RATE_PER_SECOND_LIMIT`].
    pub rate_per_second: usize,
    /// How long after sending a receipt is fetched.
    pub receipt_delay_secs: i64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            table: schema::table_of(schema::ENVIRONMENT_DEFAULT),
            broadcast_index: false,
            outbox_max: 100_000,
            rate_per_second: 500,
            receipt_delay_secs: 15 * 60,
        }
    }
}

/// The push system on a store.
#[derive(Clone)]
pub struct Push {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    /// Decides which devices are old enough to be deleted.
    removal_clock: Arc<dyn Clock>,
    settings: Settings,
    outbox: Queue,
    /// Signals new work to the worker.
    work: Arc<Notify>,
}

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PushError {
    #[error(transparent)]
    Invalid(#[from] InvalidField),
    #[error("the user has no such device")]
    DeviceMissing,
    #[error("the user has no such notification")]
    NotificationMissing,
    #[error(
        "the user has more than {DEVICES_PER_NOTIFICATION_MAX} active devices; delete unused ones"
    )]
    TooManyDevices,
    #[error("there is no such broadcast")]
    BroadcastMissing,
    #[error("the broadcast is finished, so that there is nothing to cancel")]
    BroadcastFinished,
    #[error(
        "{OPEN_BROADCASTS_MAX} broadcasts are unfinished; wait for one to finish, or cancel one"
    )]
    TooManyBroadcasts,
    #[error("the idempotency key was used for another message")]
    KeyReused,
    #[error("the outbox is full; try again later")]
    OutboxFull,
    #[error(transparent)]
    Cursor(#[from] CursorError),
    /// A stored item has an unknown form: another program wrote it.
    #[error("a stored item of push is malformed: {0}")]
    Malformed(String),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Push {
    #[must_use]
    pub fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>, settings: Settings) -> Self {
        let outbox = Queue {
            store: Arc::clone(&store),
            table: schema::NOTIFICATIONS,
            counter: Some(schema::open_counter()),
        };
        Self {
            store,
            removal_clock: Arc::clone(&clock),
            clock,
            settings,
            outbox,
            work: Arc::default(),
        }
    }

    /// Deletes inactive devices by this clock, which ignores unconfirmed clock jumps.
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

    fn device_tokens(&self) -> TableSchema {
        schema::device_tokens(self.table(), self.settings.broadcast_index)
    }

    fn now(&self) -> EpochMillis {
        EpochMillis(self.clock.now_ms())
    }
}

impl std::fmt::Debug for Push {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Push")
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}
