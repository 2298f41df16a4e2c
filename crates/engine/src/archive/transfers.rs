//! Exports and imports of tables: their records, and which of them are running. The work itself is in
//! `export` and `import`.
//!
//! A running transfer exists only in memory and does not survive a crash; an ended one, successful or not, is
//! a record in the catalogue.

use std::sync::Arc;

use homeport_store::StoreError;
use serde::{Deserialize, Serialize};

use crate::archive::records::{self, ArchiveRecord, Records, RunningJobs};
use crate::catalogue::Catalogue;
use crate::catalogue::table::Table;
use crate::commit::committer::Committer;
use crate::shared::Shared;

/// Ended transfers of each kind to keep; the oldest are deleted first.
const RECORDS_MAX: usize = 1000;
/// The number of transfers that may run at one time.
pub(crate) const RUNNING_MAX: usize = 50;

/// The direction of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum TransferKind {
    Export,
    Import,
}

/// An export or an import of a table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Transfer {
    /// The id; ids are in time order.
    pub id: String,
    pub kind: TransferKind,
    pub table: String,
    pub table_id: u32,
    pub table_created_at_ms: i64,
    /// The moment that an export shows.
    pub at_ms: i64,
    pub started_at_ms: i64,
    /// When it ended, successfully or not.
    pub ended_at_ms: Option<i64>,
    pub items: u64,
    /// Lines of an import that were not valid items of the table.
    pub refused: u64,
    /// The size of the items, as DynamoDB counts it.
    pub item_bytes: u64,
    /// Why it failed, if it did.
    pub failure: Option<String>,
    /// Opaque notes that a protocol stores with the transfer.
    pub notes: String,
}

impl ArchiveRecord for Transfer {
    const PREFIX: &'static [u8] = b"transfer/";

    fn id(&self) -> &str {
        &self.id
    }

    fn running(shared: &Shared) -> &RunningJobs<Self> {
        &shared.transfers
    }

    fn ended(catalogue: &Catalogue) -> &Records<Self> {
        &catalogue.transfers
    }

    fn ended_mut(catalogue: &mut Catalogue) -> &mut Records<Self> {
        &mut catalogue.transfers
    }
}

pub(crate) fn is_full(shared: &Shared) -> bool {
    shared.transfers.lock().len() >= RUNNING_MAX
}

/// The record of a transfer that starts now.
pub(crate) fn begin(
    shared: &Shared,
    kind: TransferKind,
    table: &Table,
    at_ms: i64,
    notes: String,
) -> Transfer {
    let started_at_ms = shared.options.clock.now_ms();
    let name = format!("{kind:?}/{}/{notes}", table.id());
    let running = shared.transfers.lock();
    let (_, id) = records::unused_id(&running, &shared.catalogue.now(), started_at_ms, &name);
    Transfer {
        id,
        kind,
        table: table.name().to_owned(),
        table_id: table.id(),
        table_created_at_ms: table.record.created_at_ms,
        at_ms,
        started_at_ms,
        ended_at_ms: None,
        items: 0,
        refused: 0,
        item_bytes: 0,
        failure: None,
        notes,
    }
}

/// All transfers of a kind, ordered by id.
pub(crate) fn all(shared: &Shared, kind: TransferKind) -> Vec<Arc<Transfer>> {
    let mut transfers = records::all::<Transfer>(shared);
    transfers.retain(|_, transfer| transfer.kind == kind);
    transfers.into_values().collect()
}

pub(crate) fn get(shared: &Shared, kind: TransferKind, id: &str) -> Option<Arc<Transfer>> {
    records::get::<Transfer>(shared, id).filter(|transfer| transfer.kind == kind)
}

/// Records the end of a transfer.
pub(crate) fn record_transfer(
    committer: &mut Committer,
    transfer: Transfer,
) -> Result<(), StoreError> {
    let shared = Arc::clone(&committer.shared);
    let catalogue = shared.catalogue.now();
    let same_kind = catalogue.transfers.values();
    let same_kind: Vec<_> = same_kind
        .filter(|known| known.kind == transfer.kind)
        .map(|known| known.id.clone())
        .collect();
    let oldest = &same_kind[..(same_kind.len() + 1).saturating_sub(RECORDS_MAX)];
    let id = transfer.id.clone();
    records::save(committer, transfer, oldest)?;
    shared.transfers.remove(&id);
    Ok(())
}
