//! Push: apps register where their users' devices can be reached, and operators send notifications
//! there through Expo's push service, which is known here by a narrow trait only.
//!
//! What is accepted is in the store's outbox before it is answered. The worker sends from there,
//! may be dropped at any moment, and goes on at the next start.

mod accept;
mod background;
mod check;
mod cleanup;
mod devices;
mod measured;
mod message;
mod notification;
mod pace;
mod receipts;
pub mod schema;
mod send;
mod service;
mod stored;
mod types;
mod worker;

use std::sync::Arc;

use homeport_store::{Clock, Store, StoreError};
use tokio::sync::Notify;

use crate::cursor::CursorError;
use crate::sensors::InvalidField;
use crate::time::EpochMillis;

pub use accept::Accepted;
pub use check::{TableCheck, UserDeviceCheck};
pub use cleanup::CleanedUp;
pub use devices::{Device, DevicePage, NewDevice, Registered};
pub use message::{Message, NewMessage, Priority};
pub use notification::{
    DeviceFate, DeviceState, Notification, NotificationId, NotificationPage, Step,
};
pub use service::{Envelope, PushService, Receipt, ServiceError, Ticket};
pub use types::{DeviceId, ExpoPushToken, IdempotencyKey, Platform, UserId};
pub use worker::{Turn, Worker};

/// Items that one page may have.
pub const PAGE_MAX: usize = 1000;
/// How long a registration lasts unless it is refreshed.
pub const TOKEN_LIFETIME_SECS: i64 = 90 * 24 * 60 * 60;
/// How old the clean-up's inactive tokens are unless said otherwise.
pub const CLEANUP_AGE_DAYS_DEFAULT: u32 = 30;
/// Devices of one user that one notification can go to. What is kept about each must fit into one
/// item together.
pub const DEVICES_PER_NOTIFICATION_MAX: usize = 100;
/// Messages that Expo takes in one request, and the receipts that one request may ask for.
pub const MESSAGES_PER_REQUEST_MAX: usize = 100;
pub const RECEIPTS_PER_REQUEST_MAX: usize = 1000;
/// Messages a second that Expo does not take any more.
pub const RATE_PER_SECOND_LIMIT: usize = 600;
/// How long a notification and its idempotency key are remembered.
pub const NOTIFICATION_RETENTION_SECS: i64 = 30 * 24 * 60 * 60;

/// What can be set about the system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The name of the table of device tokens.
    pub table: String,
    /// Notifications that may be unfinished at one time.
    pub outbox_max: usize,
    /// Messages that are sent within any second, at most; below [`RATE_PER_SECOND_LIMIT`].
    pub rate_per_second: usize,
    /// How long after sending a receipt is asked for.
    pub receipt_delay_secs: i64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            table: schema::table_of(schema::ENVIRONMENT_DEFAULT),
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
    /// Decides what is old enough to be deleted.
    removal_clock: Arc<dyn Clock>,
    settings: Settings,
    /// Tells the worker that there is something to send.
    work: Arc<Notify>,
}

/// Why something could not be done.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PushError {
    #[error(transparent)]
    Invalid(#[from] InvalidField),
    #[error("the user has no such device")]
    DeviceMissing,
    #[error("the user has no such notification")]
    NotificationMissing,
    #[error("the user has more than {DEVICES_PER_NOTIFICATION_MAX} active devices")]
    TooManyDevices,
    #[error("the idempotency key was used for another notification")]
    KeyReused,
    #[error("too many notifications wait to be sent")]
    OutboxFull,
    #[error(transparent)]
    Cursor(#[from] CursorError),
    /// An item that something else wrote cannot be understood.
    #[error("a stored item of push is malformed: {0}")]
    Malformed(String),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Push {
    #[must_use]
    pub fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>, settings: Settings) -> Self {
        Self {
            store,
            removal_clock: Arc::clone(&clock),
            clock,
            settings,
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
