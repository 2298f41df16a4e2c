//! Exports and imports of tables: what is kept of each, and which are on their way. The work itself is
//! in `export` and `import`.
//!
//! One that is on its way is in memory alone and is gone after a crash; one that has ended, well or
//! not, is an entry of the catalogue.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use homeport_store::StoreError;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::catalogue::Catalogue;
use crate::committer::Committer;
use crate::shared::Shared;
use crate::table::Table;

/// Transfers of each kind that are remembered; the oldest are forgotten first.
const REMEMBERED_MAX: usize = 1000;
/// Transfers that may be on their way at one time.
pub(crate) const AT_ONCE_MAX: usize = 50;
pub(crate) const TRANSFER_PREFIX: &[u8] = b"transfer/";

/// Which way a table went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum TransferKind {
    Export,
    Import,
}

/// An export or an import of a table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Transfer {
    /// Ids are in the order of their times.
    pub id: String,
    pub kind: TransferKind,
    pub table: String,
    pub table_id: u32,
    pub table_created_at_ms: i64,
    /// The moment that an export shows.
    pub at_ms: i64,
    pub started_at_ms: i64,
    /// When it ended, well or not.
    pub ended_at_ms: Option<i64>,
    pub items: u64,
    /// Lines of an import that could not be taken for items of the table.
    pub refused: u64,
    /// What the items count for, as DynamoDB counts.
    pub item_bytes: u64,
    /// Why it failed, if it did.
    pub failure: Option<String>,
    /// What a protocol keeps with it; the engine never looks into it.
    pub notes: String,
}

/// Transfers that are on their way.
#[derive(Debug, Default)]
pub(crate) struct RunningTransfers(Mutex<BTreeMap<String, Arc<Transfer>>>);

impl RunningTransfers {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Transfer>>> {
        self.0
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub(crate) fn is_full(&self) -> bool {
        self.lock().len() >= AT_ONCE_MAX
    }

    pub(crate) fn add(&self, transfer: Arc<Transfer>) {
        self.lock().insert(transfer.id.clone(), transfer);
    }

    pub(crate) fn remove(&self, id: &str) {
        self.lock().remove(id);
    }
}

/// A transfer that begins now.
pub(crate) fn begin(
    shared: &Shared,
    kind: TransferKind,
    table: &Table,
    at_ms: i64,
    notes: String,
) -> Transfer {
    let started_at_ms = shared.options.clock.now_ms();
    let told_apart = xxh3_64(format!("{kind:?}/{}/{notes}", table.id()).as_bytes()) >> 32;
    let catalogue = shared.catalogue.now();
    let running = shared.transfers.lock();
    let mut id_ms = started_at_ms;
    let id = loop {
        let id = format!("{id_ms:014}-{told_apart:08x}");
        if !running.contains_key(&id) && !catalogue.transfers.contains_key(&id) {
            break id;
        }
        id_ms += 1;
    };
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

/// All transfers of a kind in the order of their ids.
pub(crate) fn all(shared: &Shared, kind: TransferKind) -> Vec<Arc<Transfer>> {
    // In this order: one that ends in between is then in both.
    let mut transfers = shared.transfers.lock().clone();
    let catalogue = shared.catalogue.now();
    for (id, transfer) in &catalogue.transfers {
        transfers.insert(id.clone(), Arc::clone(transfer));
    }
    transfers.retain(|_, transfer| transfer.kind == kind);
    transfers.into_values().collect()
}

pub(crate) fn get(shared: &Shared, kind: TransferKind, id: &str) -> Option<Arc<Transfer>> {
    let running = shared.transfers.lock().get(id).cloned();
    let catalogue = shared.catalogue.now();
    let found = catalogue.transfers.get(id).cloned().or(running);
    found.filter(|transfer| transfer.kind == kind)
}

/// Remembers a transfer that has ended.
pub(crate) fn keep(committer: &mut Committer, transfer: Transfer) -> Result<(), StoreError> {
    let shared = Arc::clone(&committer.shared);
    let mut catalogue = Catalogue::clone(&shared.catalogue.now());
    let of_kind = catalogue.transfers.values();
    let of_kind: Vec<_> = of_kind
        .filter(|known| known.kind == transfer.kind)
        .map(|known| known.id.clone())
        .collect();
    let forgotten = &of_kind[..(of_kind.len() + 1).saturating_sub(REMEMBERED_MAX)];
    let value = serde_json::to_vec(&transfer).expect("a transfer's entry has string keys only");
    committer.write(|group| {
        let key = key_of(&transfer.id);
        group.insert(&shared.keyspaces.catalogue, key.into(), value.into());
        for id in forgotten {
            group.remove(&shared.keyspaces.catalogue, key_of(id).into());
        }
        Ok(())
    })?;
    for id in forgotten {
        catalogue.transfers.remove(id);
    }
    let id = transfer.id.clone();
    catalogue.transfers.insert(id.clone(), Arc::new(transfer));
    shared.catalogue.replace(catalogue);
    shared.transfers.remove(&id);
    Ok(())
}

fn key_of(id: &str) -> Vec<u8> {
    [TRANSFER_PREFIX, id.as_bytes()].concat()
}
