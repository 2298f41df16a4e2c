//! Telemetry: messages of things, read by thing and by type, and commands to things. Only rules write messages,
//! see [`crate::rules`].

mod commands;
mod history;
pub mod schema;
mod source;
mod types;

use std::sync::Arc;

use homeport_item::schema::TableSchema;
use homeport_store::{Clock, Store, StoreError};

use crate::cursor::CursorError;
use crate::sensors::InvalidField;

pub use crate::time::Order;
pub use commands::{Command, PARAMETERS_BYTES_MAX, SentCommand, command_topic};
pub use history::{FleetSelection, HistoryRange};
pub use source::SYSTEM;
pub use types::{CommandName, MessageType, ThingName};

/// Items of one page.
pub const PAGE_MAX: usize = 1000;

/// Settings of telemetry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The table's name.
    pub table: String,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            table: schema::TABLE_DEFAULT.to_owned(),
        }
    }
}

/// Telemetry on a store.
#[derive(Clone)]
pub struct Telemetry {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    table: Arc<TableSchema>,
}

/// Why a request failed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum TelemetryError {
    #[error(transparent)]
    Invalid(#[from] InvalidField),
    #[error("thing {0} has no such message")]
    NoMessage(ThingName),
    #[error(transparent)]
    Cursor(#[from] CursorError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Telemetry {
    #[must_use]
    pub fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>, settings: &Settings) -> Self {
        Self {
            store,
            clock,
            table: Arc::new(schema::telemetry(&settings.table)),
        }
    }
}

impl std::fmt::Debug for Telemetry {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Telemetry")
            .field("table", &self.table.name)
            .finish_non_exhaustive()
    }
}
