//! Background jobs after a change of a table: they fill a new index, or create or delete expiry entries of
//! older items. A job that a crash interrupts starts again when the store opens.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use homeport_store::StoreError;

use crate::catalogue::table::{ExpiryJob, IndexState, Table};
use crate::catalogue::tables;
use crate::commit::committer::Committer;
use crate::commit::group::{Group, RefreshError};
use crate::error::{TableError, unavailable};
use crate::shared::{Shared, run_exclusive, stopped};
use crate::storage::layout::TableId;
use crate::storage::vault::UserKey;
use crate::threads;

/// Items per commit of a job; small, so that other writers hardly wait.
const CHUNK_ITEMS: usize = 256;

/// Starts the background job of a table, if it needs one.
pub(crate) fn start(shared: &Arc<Shared>, table: TableId) {
    let needed = shared
        .catalogue
        .now()
        .by_id(table)
        .is_some_and(|table| table.has_job());
    if !needed || shared.stopping.load(Ordering::Acquire) {
        return;
    }
    shared.forget_job_failure(table);
    let spawned = threads::spawn(shared, "homeport-job", move |shared| {
        match run(shared, table) {
            // A job that was interrupted while the store reopened may have failed after this one started.
            Ok(()) => shared.forget_job_failure(table),
            Err(_) if shared.stopping.load(Ordering::Acquire) => {}
            Err(error) => {
                tracing::error!(table, %error, "background work on a table failed; it starts again with the store");
                shared.job_failed(table, error.to_string());
            }
        }
    });
    match spawned {
        Ok(handle) => shared.track_job(handle),
        Err(error) => {
            tracing::error!(%error, "cannot start background work");
            shared.job_failed(table, error.to_string());
        }
    }
}

/// Processes all items of the current table, then records what is complete.
fn run(shared: &Arc<Shared>, id: TableId) -> Result<(), TableError> {
    let Some(table) = shared.catalogue.now().by_id(id).cloned() else {
        return Ok(());
    };
    // IMPORTANT: the changed table is already in the catalogue, so every item is either found here or was
    // written with the change applied. Each chunk gets a short snapshot of its own, because an open snapshot
    // holds memory.
    let mut from = Vec::new();
    loop {
        let chunk: Vec<UserKey> = shared
            .database
            .snapshot()
            .range(&table.items, from.clone()..)
            .take(CHUNK_ITEMS)
            .map(|guard| guard.key().map_err(unavailable))
            .collect::<Result<_, _>>()?;
        let Some(last) = chunk.last() else {
            break;
        };
        from = [last.as_ref(), &[0]].concat();
        commit_chunk(shared, id, chunk)?;
    }
    let done = CompletedWork::of(&table);
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
                match refresh(group, &table, key) {
                    Ok(()) => {}
                    // It stays for the check to report, and is in no index until it is written again.
                    Err(RefreshError::Unreadable(reason)) => {
                        let table = table.name();
                        tracing::error!(
                            table,
                            reason,
                            "an item is damaged and was skipped by background work"
                        );
                    }
                    Err(RefreshError::Store(error)) => return Err(error),
                }
            }
            Ok::<(), StoreError>(())
        })?;
        Ok(())
    })
}

fn refresh(group: &mut Group<'_>, table: &Table, key: &UserKey) -> Result<(), RefreshError> {
    if let Some(ExpiryJob::Clearing { attribute }) = &table.record.expiry_job {
        group.clear_expiry(table, key, attribute)?;
    }
    group.refresh(table, key)
}

/// The work that one pass over a table completes: everything that was unfinished when it began.
struct CompletedWork {
    indexes: Vec<u32>,
    expiry_job: Option<ExpiryJob>,
}

impl CompletedWork {
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    use homeport_item::schema::{IndexSchema, KeyAttribute, TableSchema};
    use homeport_item::{Item, KeyKind, Value};
    use homeport_store::{Put, Scan, Store as _};

    use crate::engine::Engine;
    use crate::options::Options;
    use crate::storage::layout;
    use crate::storage::vault::UserValue;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn completed_job_forgets_the_failure_before_it() {
        let directory = tempfile::tempdir().unwrap();
        let engine = Engine::open(directory.path(), Options::for_tests()).unwrap();
        let schema = TableSchema::new("things", "id", KeyKind::S);
        let table = engine.create_table(schema).await.unwrap().id;
        let shared = engine.shared();
        let (started, has_started) = tokio::sync::oneshot::channel();
        let (hold, held) = std::sync::mpsc::channel::<()>();
        // Blocks the committer, and with it the job.
        let holding = shared.exclusive(move |committer| {
            tables::alter(committer, "things", |record| {
                record.expiry_job = Some(ExpiryJob::Building);
                Ok(())
            })
            .unwrap();
            start(&committer.shared, table);
            started.send(()).unwrap();
            held.recv()
        });
        has_started.await.unwrap();
        shared.job_failed(table, "the store was reopened".to_owned());
        drop(hold);
        assert!(holding.await.unwrap().is_err());
        let wait = async {
            while shared.job_failure(table).is_some() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        let waited = tokio::time::timeout(Duration::from_secs(30), wait);
        waited.await.expect("forgotten in time");
    }

    #[tokio::test]
    async fn unreadable_item_does_not_block_a_backfill() {
        let directory = tempfile::tempdir().unwrap();
        let engine = Engine::open(directory.path(), Options::for_tests()).unwrap();
        let mut schema = TableSchema::new("things", "id", KeyKind::S);
        engine.create_table(schema.clone()).await.unwrap();
        for id in 0..10 {
            let item = Item::new().with("id", format!("{id}")).with("n", id);
            engine.put(Put::new("things", item)).await.unwrap();
        }
        let table = engine.shared().catalogue.table("things").unwrap();
        let damage = engine.shared().exclusive(move |committer| {
            committer.write(|group| {
                for (id, value) in [("0", &b"\xff"[..]), ("1", &b"\x08\x01\x7fxx"[..])] {
                    let key = layout::item_key(&Value::from(id), None);
                    group.insert(&table.items, key, UserValue::from(value));
                }
                Ok(())
            })
        });
        damage.await.unwrap().unwrap();
        let key = KeyAttribute::new("n", KeyKind::N);
        schema.indexes.push(IndexSchema::global("by-n", key, None));
        // Like the start of a server.
        let ensured = [schema];
        let ensured = engine.ensure_tables(&ensured);
        let ensured = tokio::time::timeout(Duration::from_secs(30), ensured);
        ensured.await.expect("completes in time").unwrap();
        let mut scan = Scan::new("things");
        scan.index = Some("by-n".to_owned());
        assert_eq!(engine.scan(scan).await.unwrap().count, 8);
    }
}
