//! What callers, the committer and the background work have in common.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use homeport_store::{StoreError, TransactError};
use tokio::sync::{Semaphore, oneshot, watch};

use crate::catalogue::SharedCatalogue;
use crate::commit_clock::{CommitClock, Times};
use crate::committer::{Committer, Work};
use crate::copying::RunningCopies;
use crate::disk_room::DiskRoom;
use crate::error::unavailable;
use crate::evaluate::Outcome;
use crate::expiring::Expiring;
use crate::integrity::marks::Marks;
use crate::keyspaces::Keyspaces;
use crate::latch::Latch;
use crate::layout::TableId;
use crate::metrics::Metrics;
use crate::options::Options;
use crate::prepare::Prepared;
use crate::queue::Queue;
use crate::restoring::Restoring;
use crate::sorting::Unsorted;
use crate::sweep::Sweeper;
use crate::table_backups::RunningBackups;
use crate::transfers::RunningTransfers;
use crate::vault::{self, Database, Keyspace, files};
use crate::writer::{CommitRecord, Reply};

/// What may wait for the committer at one time.
pub(crate) const QUEUE_BYTES_MAX: usize = 64 * 1024 * 1024;
/// How long a caller waits for room in the queue before it is told to come back later.
const QUEUE_WAIT_MAX: Duration = Duration::from_secs(2);
/// The queue's room is counted in units of this size.
const QUEUE_UNIT_BYTES: usize = 1024;

/// Where the store left off.
pub(crate) struct LastCommit {
    pub(crate) record: CommitRecord,
    /// The newest group on disk, which is an earlier one if the record could not be written.
    pub(crate) on_disk: u64,
    pub(crate) clock: CommitClock,
}

pub(crate) struct Shared {
    pub(crate) options: Options,
    pub(crate) catalogue: SharedCatalogue,
    pub(crate) keyspaces: Keyspaces,
    pub(crate) latch: Latch,
    pub(crate) metrics: Metrics,
    pub(crate) room: DiskRoom,
    pub(crate) commit_clock: CommitClock,
    /// The newest group written, and the newest known to be on disk.
    pub(crate) written_commit: AtomicU64,
    pub(crate) synced_commit: AtomicU64,
    /// The sequence number that the next change gets; whoever follows the log waits on it.
    pub(crate) last_change: watch::Sender<u64>,
    /// Set when the engine closes; background work ends as soon as it sees it.
    pub(crate) stopping: AtomicBool,
    /// The data directory.
    pub(crate) directory: PathBuf,
    /// Tables that are being made from elsewhere.
    pub(crate) restoring: Restoring,
    /// Backups of tables that are being written.
    pub(crate) backups: RunningBackups,
    /// Tables that are being read as they were at one moment.
    pub(crate) copies: RunningCopies,
    /// Exports and imports that are on their way.
    pub(crate) transfers: RunningTransfers,
    jobs: Mutex<Vec<JoinHandle<()>>>,
    /// Tables whose background work has failed, and why.
    failed_jobs: Mutex<BTreeMap<TableId, String>>,
    pub(crate) queue: Queue,
    pub(crate) unsorted: Unsorted,
    pub(crate) expiring: Expiring,
    pub(crate) sweeper: Mutex<Sweeper>,
    places: Arc<Semaphore>,
    /// How far the journals must reach, and what else must be there.
    pub(crate) marks: Marks,
    // Last: everything above that refers to it goes first.
    pub(crate) database: Database,
    // Released when nothing can write any more: background work may hold on to all of this for a
    // moment longer than the engine.
    _lock: File,
}

impl Shared {
    pub(crate) fn new(
        options: Options,
        database: Database,
        keyspaces: Keyspaces,
        catalogue: SharedCatalogue,
        last: LastCommit,
        marks: Marks,
        lock: File,
    ) -> Self {
        let directory = marks.directory().to_owned();
        let room = DiskRoom::new(
            Arc::clone(&options.disk),
            &directory,
            options.disk_reserve_bytes,
        );
        Self {
            options,
            catalogue,
            keyspaces,
            latch: Latch::default(),
            metrics: Metrics::default(),
            room,
            commit_clock: last.clock,
            written_commit: AtomicU64::new(last.on_disk),
            synced_commit: AtomicU64::new(last.on_disk),
            last_change: watch::Sender::new(last.record.next_change),
            stopping: AtomicBool::new(false),
            directory,
            restoring: Restoring::default(),
            backups: RunningBackups::default(),
            copies: RunningCopies::new(last.record.commit),
            transfers: RunningTransfers::default(),
            jobs: Mutex::default(),
            failed_jobs: Mutex::default(),
            queue: Queue::default(),
            unsorted: Unsorted::default(),
            expiring: Expiring::default(),
            sweeper: Mutex::default(),
            places: Arc::new(Semaphore::new(units(QUEUE_BYTES_MAX) as usize)),
            marks,
            database,
            _lock: lock,
        }
    }

    /// The wall clock's seconds, by which items are hidden from readers.
    pub(crate) fn now_secs(&self) -> i64 {
        self.options.clock.now_secs()
    }

    /// The time, as commits and retention count it.
    pub(crate) fn times(&self) -> Times {
        self.commit_clock.now(self.options.clock.now_ms())
    }

    /// Bytes waiting for the committer.
    pub(crate) fn queued_bytes(&self) -> u64 {
        let free = self.places.available_permits() as u64;
        (u64::from(units(QUEUE_BYTES_MAX)) - free) * QUEUE_UNIT_BYTES as u64
    }

    /// Hands transactions to the committer and waits for their outcomes, one each, in order.
    pub(crate) async fn submit(&self, prepared: Vec<Prepared>) -> Vec<Outcome> {
        let count = prepared.len();
        match self.try_submit(prepared).await {
            Ok(outcomes) => outcomes,
            Err(error) => vec![Err(TransactError::Store(error)); count],
        }
    }

    async fn try_submit(&self, prepared: Vec<Prepared>) -> Reply {
        self.latch.check()?;
        if prepared.iter().all(Prepared::frees_space) {
            self.room.check_upkeep()?;
        } else {
            self.room.check()?;
        }
        let bytes: usize = prepared.iter().map(|prepared| prepared.bytes).sum();
        let units = units(bytes.min(QUEUE_BYTES_MAX));
        let permit = match Arc::clone(&self.places).try_acquire_many_owned(units) {
            Ok(permit) => permit,
            Err(_) => {
                let acquire = Arc::clone(&self.places).acquire_many_owned(units);
                match tokio::time::timeout(QUEUE_WAIT_MAX, acquire).await {
                    Ok(Ok(permit)) => permit,
                    Ok(Err(_)) => return Err(stopped()),
                    Err(_) => return Err(StoreError::Throttled),
                }
            }
        };
        let (reply, answer) = oneshot::channel();
        let work = Work::Transactions {
            prepared,
            reply,
            permit,
        };
        self.queue.push(work).map_err(|_| self.why_stopped())?;
        answer.await.map_err(|_| self.why_stopped())?
    }

    /// Runs `work` on the committer's thread, between two groups.
    pub(crate) fn exclusive<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Committer) -> T + Send + 'static,
    ) -> oneshot::Receiver<T> {
        let (reply, answer) = oneshot::channel();
        let run = move |committer: &mut Committer| {
            let _ = reply.send(work(committer));
        };
        // When the committer has stopped, the receiver tells.
        let _ = self.queue.push(Work::Exclusive(Box::new(run)));
        answer
    }

    /// Says that a commit is on disk: in the mark, before anyone is answered. A failure refuses writes.
    pub(crate) fn note_synced(&self, commit: u64) -> Result<(), StoreError> {
        if let Err(error) = self.marks.record(commit) {
            self.latch.close(&format!("the mark: {error}"));
            return self.latch.check();
        }
        self.synced_commit.store(commit, Ordering::Release);
        Ok(())
    }

    /// Deletes a keyspace with all that is in it.
    pub(crate) fn delete_keyspace(&self, keyspace: Keyspace) -> Result<(), StoreError> {
        // IMPORTANT: in this order. A keyspace that is missing but not known to be deleted is damage.
        let path = keyspace.path().map_err(unavailable)?;
        if let Some(number) = files::keyspace_number(&path) {
            self.marks.forget_keyspace(number).map_err(unavailable)?;
        }
        self.database.delete_keyspace(keyspace).map_err(unavailable)
    }

    /// Refuses writes from now on if the key-value store has failed in a thread of its own, where
    /// no caller was told.
    pub(crate) fn notice_failure(&self) -> Result<(), StoreError> {
        if let Err(error) = self.database.check_workers() {
            self.write_failed(&error);
        }
        self.latch.check()
    }

    /// Refuses writes after one has failed.
    pub(crate) fn write_failed(&self, error: &vault::Error) {
        // A store that is being reopened refuses writes already.
        if !matches!(error, vault::Error::Closed) {
            self.latch.close(&error.to_string());
        }
    }

    /// Remembers a running job, so that closing can wait for it.
    pub(crate) fn keep_job(&self, handle: JoinHandle<()>) {
        let mut jobs = self
            .jobs
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        jobs.retain(|job| !job.is_finished());
        jobs.push(handle);
    }

    /// Forgets that a table's background work has failed: it starts again, or is done.
    pub(crate) fn forget_job_failure(&self, table: TableId) {
        self.failed_jobs().remove(&table);
    }

    pub(crate) fn job_failed(&self, table: TableId, reason: String) {
        self.failed_jobs().insert(table, reason);
    }

    /// Why a table's background work has failed, if it has. It starts again with the store.
    pub(crate) fn job_failure(&self, table: TableId) -> Option<String> {
        self.failed_jobs().get(&table).cloned()
    }

    fn failed_jobs(&self) -> MutexGuard<'_, BTreeMap<TableId, String>> {
        self.failed_jobs
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn take_jobs(&self) -> Vec<JoinHandle<()>> {
        let mut jobs = self
            .jobs
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        std::mem::take(&mut jobs)
    }

    /// Why the committer takes no more work: it has panicked, or the engine is closing.
    fn why_stopped(&self) -> StoreError {
        self.latch.check().err().unwrap_or_else(stopped)
    }

    pub(crate) fn stop_committer(&self) {
        let _ = self.queue.push(Work::Stop);
    }
}

/// Runs `work` between two groups, and waits for it.
pub(crate) fn run_exclusive<T: Send + 'static>(
    shared: &Shared,
    work: impl FnOnce(&mut Committer) -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    shared
        .exclusive(work)
        .blocking_recv()
        .map_err(|_| shared.why_stopped())?
}

fn units(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(QUEUE_UNIT_BYTES)).unwrap_or(u32::MAX)
}

pub(crate) fn stopped() -> StoreError {
    StoreError::Unavailable("the store has been closed".to_owned())
}
