//! Background work that a change of a table leaves behind: filling a new index, making or removing
//! expiry entries of older items. A job that a crash interrupts starts again when the store opens.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use homeport_store::StoreError;

use crate::committer::Committer;
use crate::error::{TableError, unavailable};
use crate::layout::TableId;
use crate::shared::{Shared, stopped};
use crate::table::{ExpiryJob, IndexState, Table};
use crate::tables;
use crate::vault::UserKey;

/// Items that one commit of a job covers; small, so that other writers hardly wait.
const CHUNK_ITEMS: usize = 256;

/// Starts the job that a table needs, if it needs one.
pub(crate) fn start(shared: &Arc<Shared>, table: TableId) {
    let needed = shared
        .catalogue
        .now()
        .by_id(table)
        .is_some_and(|table| table.has_job());
    if !needed || shared.stopping.load(Ordering::Acquire) {
        return;
    }
    let worker = Arc::clone(shared);
    let spawned = std::thread::Builder::new()
        .name("homeport-job".to_owned())
        .spawn(move || {
            if let Err(error) = run(&worker, table)
                && !worker.stopping.load(Ordering::Acquire)
            {
                tracing::error!(table, %error, "background work on a table failed; it starts again with the store");
            }
        });
    match spawned {
        Ok(handle) => shared.keep_job(handle),
        Err(error) => tracing::error!(%error, "cannot start background work"),
    }
}

/// Goes over all items of the table as it is now, and then marks what has been completed.
fn run(shared: &Arc<Shared>, id: TableId) -> Result<(), TableError> {
    let Some(table) = shared.catalogue.now().by_id(id).cloned() else {
        return Ok(());
    };
    // IMPORTANT: the snapshot is taken after the changed table is in the catalogue, so that every
    // item is either in the snapshot or was written with the change already in force.
    let snapshot = shared.database.snapshot();
    let mut chunk: Vec<UserKey> = Vec::with_capacity(CHUNK_ITEMS);
    for guard in snapshot.iter(&table.items) {
        chunk.push(guard.key().map_err(unavailable)?);
        if chunk.len() == CHUNK_ITEMS {
            commit_chunk(shared, id, std::mem::take(&mut chunk))?;
        }
    }
    commit_chunk(shared, id, chunk)?;
    let done = Completed::of(&table);
    run_exclusive(shared, move |committer| done.mark(committer, id))
}

fn commit_chunk(shared: &Shared, id: TableId, chunk: Vec<UserKey>) -> Result<(), TableError> {
    if shared.stopping.load(Ordering::Acquire) {
        return Err(stopped().into());
    }
    run_exclusive(shared, move |committer| {
        let Some(table) = committer.shared.catalogue.now().by_id(id).cloned() else {
            return Ok(());
        };
        committer.write(|group| {
            for key in &chunk {
                if let Some(ExpiryJob::Clearing { attribute }) = &table.record.expiry_job {
                    group.clear_expiry(&table, key, attribute)?;
                }
                group.refresh(&table, key)?;
            }
            Ok::<(), StoreError>(())
        })?;
        Ok(())
    })
}

fn run_exclusive(
    shared: &Shared,
    work: impl FnOnce(&mut Committer) -> Result<(), TableError> + Send + 'static,
) -> Result<(), TableError> {
    shared
        .exclusive(work)
        .blocking_recv()
        .map_err(|_| TableError::Store(stopped()))?
}

/// What a pass over a table has completed: what was open when it began.
struct Completed {
    indexes: Vec<u32>,
    expiry_job: Option<ExpiryJob>,
}

impl Completed {
    fn of(table: &Table) -> Self {
        let building = table
            .record
            .indexes
            .iter()
            .filter(|index| index.state == IndexState::Building);
        Self {
            indexes: building.map(|index| index.id).collect(),
            expiry_job: table.record.expiry_job.clone(),
        }
    }

    fn mark(&self, committer: &mut Committer, id: TableId) -> Result<(), TableError> {
        let Some(table) = committer.shared.catalogue.now().by_id(id).cloned() else {
            return Ok(());
        };
        tables::alter(committer, table.name(), |record| {
            for index in &mut record.indexes {
                if self.indexes.contains(&index.id) {
                    index.state = IndexState::Active;
                }
            }
            if record.expiry_job == self.expiry_job {
                record.expiry_job = None;
            }
            Ok(())
        })
        .map(|_| ())
    }
}
