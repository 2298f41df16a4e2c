//! The state that callers, the committer and background threads share.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use homeport_store::{StoreError, TransactError};
use tokio::sync::{Semaphore, oneshot, watch};

use crate::archive::copying::RunningCopies;
use crate::archive::records::RunningJobs;
use crate::archive::restoring::Restoring;
use crate::archive::table_backups::TableBackup;
use crate::archive::transfers::Transfer;
use crate::catalogue::SharedCatalogue;
use crate::catalogue::keyspaces::Keyspaces;
use crate::commit::commit_clock::{CommitClock, Times};
use crate::commit::committer::{Committer, Work};
use crate::commit::evaluate::Outcome;
use crate::commit::prepare::PreparedTransaction;
use crate::commit::queue::Queue;
use crate::commit::writer::{CommitRecord, Reply};
use crate::error::unavailable;
use crate::expiry::expiring::Expiring;
use crate::expiry::sorting::UnsortedWindows;
use crate::expiry::sweep::Sweeper;
use crate::metrics::Metrics;
use crate::options::Options;
use crate::storage::disk_space::DiskSpace;
use crate::storage::integrity::marks::Marks;
use crate::storage::latch::Latch;
use crate::storage::layout::TableId;
use crate::storage::vault::{self, Database, Keyspace, files};

/// The maximum size of queued work.
pub(crate) const QUEUE_BYTES_MAX: usize = 64 * 1024 * 1024;
/// How long a caller waits for space in the queue before it is throttled.
const QUEUE_WAIT_MAX: Duration = Duration::from_secs(2);
/// The queue's space is counted in units of this size.
const QUEUE_UNIT_BYTES: usize = 1024;

/// The recovered state of a store.
pub(crate) struct RecoveredState {
    pub(crate) record: CommitRecord,
    /// The newest group on disk; an earlier one if the record could not be written.
    pub(crate) on_disk: u64,
    pub(crate) clock: CommitClock,
}

pub(crate) struct Shared {
    pub(crate) options: Options,
    pub(crate) catalogue: SharedCatalogue,
    pub(crate) keyspaces: Keyspaces,
    pub(crate) latch: Latch,
    pub(crate) metrics: Metrics,
    pub(crate) disk_space: DiskSpace,
    pub(crate) commit_clock: CommitClock,
    /// The newest group written, and the newest known to be on disk.
    pub(crate) written_commit: AtomicU64,
    pub(crate) synced_commit: AtomicU64,
    /// The sequence number of the next change; readers of the log wait on it.
    pub(crate) last_change: watch::Sender<u64>,
    /// Set when the engine closes; background work then stops.
    pub(crate) stopping: AtomicBool,
    /// The data directory.
    pub(crate) directory: PathBuf,
    /// Tables that are being restored.
    pub(crate) restoring: Restoring,
    /// Backups of tables in progress.
    pub(crate) backups: RunningJobs<TableBackup>,
    /// Running consistent copies of tables.
    pub(crate) copies: RunningCopies,
    /// Running exports and imports.
    pub(crate) transfers: RunningJobs<Transfer>,
    jobs: Mutex<Vec<JoinHandle<()>>>,
    /// Tables whose background job failed, with the reason.
    failed_jobs: Mutex<BTreeMap<TableId, String>>,
    pub(crate) queue: Queue,
    pub(crate) unsorted: UnsortedWindows,
    pub(crate) expiring: Expiring,
    pub(crate) sweeper: Mutex<Sweeper>,
    queue_space: Arc<Semaphore>,
    /// Records how far the journals must reach, and which files must exist.
    pub(crate) marks: Marks,
    // Last, because everything above that refers to it must be dropped first.
    pub(crate) database: Database,
    // Released when nothing can write any more: background work may outlive the engine for a moment.
    _lock: File,
}

impl Shared {
    pub(crate) fn new(
        options: Options,
        database: Database,
        keyspaces: Keyspaces,
        catalogue: SharedCatalogue,
        last: RecoveredState,
        marks: Marks,
        lock: File,
    ) -> Self {
        let directory = marks.directory().to_owned();
        let disk_space = DiskSpace::new(
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
            disk_space,
            commit_clock: last.clock,
            written_commit: AtomicU64::new(last.on_disk),
            synced_commit: AtomicU64::new(last.on_disk),
            last_change: watch::Sender::new(last.record.next_change),
            stopping: AtomicBool::new(false),
            directory,
            restoring: Restoring::default(),
            backups: RunningJobs::default(),
            copies: RunningCopies::new(last.record.commit),
            transfers: RunningJobs::default(),
            jobs: Mutex::default(),
            failed_jobs: Mutex::default(),
            queue: Queue::default(),
            unsorted: UnsortedWindows::default(),
            expiring: Expiring::default(),
            sweeper: Mutex::default(),
            queue_space: Arc::new(Semaphore::new(units(QUEUE_BYTES_MAX) as usize)),
            marks,
            database,
            _lock: lock,
        }
    }

    /// The wall clock's seconds, which decide the visibility of items.
    pub(crate) fn now_secs(&self) -> i64 {
        self.options.clock.now_secs()
    }

    /// The current times for commits and retention.
    pub(crate) fn times(&self) -> Times {
        self.commit_clock.now(self.options.clock.now_ms())
    }

    /// The size of queued work.
    pub(crate) fn queued_bytes(&self) -> u64 {
        let free = self.queue_space.available_permits() as u64;
        (u64::from(units(QUEUE_BYTES_MAX)) - free) * QUEUE_UNIT_BYTES as u64
    }

    /// Submits transactions to the committer and waits for their outcomes, one each, in order.
    pub(crate) async fn submit(&self, prepared: Vec<PreparedTransaction>) -> Vec<Outcome> {
        let count = prepared.len();
        match self.try_submit(prepared).await {
            Ok(outcomes) => outcomes,
            Err(error) => vec![Err(TransactError::Store(error)); count],
        }
    }

    /// Submits one transaction and waits for its outcome.
    pub(crate) async fn submit_one(&self, prepared: PreparedTransaction) -> Outcome {
        let mut outcomes = self.submit(vec![prepared]).await;
        outcomes.pop().unwrap_or_else(|| Err(stopped().into()))
    }

    async fn try_submit(&self, prepared: Vec<PreparedTransaction>) -> Reply {
        self.latch.check()?;
        if prepared.iter().all(PreparedTransaction::frees_space) {
            self.disk_space.check_deletes()?;
        } else {
            self.disk_space.check()?;
        }
        let bytes: usize = prepared.iter().map(|prepared| prepared.bytes).sum();
        let units = units(bytes.min(QUEUE_BYTES_MAX));
        let permit = match Arc::clone(&self.queue_space).try_acquire_many_owned(units) {
            Ok(permit) => permit,
            Err(_) => {
                let acquire = Arc::clone(&self.queue_space).acquire_many_owned(units);
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
        // If the committer has stopped, the receiver returns an error.
        let _ = self.queue.push(Work::Exclusive(Box::new(run)));
        answer
    }

    /// Records in the mark that a commit is on disk, before anyone is answered. On failure, writes are
    /// refused.
    pub(crate) fn note_synced(&self, commit: u64) -> Result<(), StoreError> {
        if let Err(error) = self.marks.record(commit) {
            self.latch.close(&format!("the mark: {error}"));
            return self.latch.check();
        }
        self.synced_commit.store(commit, Ordering::Release);
        Ok(())
    }

    /// Deletes a keyspace with all its contents.
    pub(crate) fn delete_keyspace(&self, keyspace: Keyspace) -> Result<(), StoreError> {
        // IMPORTANT: in this order, because a keyspace that is missing but not recorded as deleted counts as
        // damage.
        let path = keyspace.path().map_err(unavailable)?;
        if let Some(number) = files::keyspace_number(&path) {
            self.marks.forget_keyspace(number).map_err(unavailable)?;
        }
        self.database.delete_keyspace(keyspace).map_err(unavailable)
    }

    /// Refuses writes if the key-value store has failed in one of its own threads, which report to no caller.
    pub(crate) fn notice_failure(&self) -> Result<(), StoreError> {
        if let Err(error) = self.database.check_workers() {
            self.write_failed(&error);
        }
        self.latch.check()
    }

    /// Refuses writes after a failed one.
    pub(crate) fn write_failed(&self, error: &vault::Error) {
        // A store that is being reopened already refuses writes.
        if !matches!(error, vault::Error::Closed) {
            self.latch.close(&error.to_string());
        }
    }

    /// Starts background work on a thread of its own, which closing joins.
    pub(crate) fn spawn_job(
        &self,
        name: &str,
        work: impl FnOnce() + Send + 'static,
    ) -> Result<(), StoreError> {
        let spawned = std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(work);
        self.track_job(spawned.map_err(unavailable)?);
        Ok(())
    }

    /// Keeps the handle of a running job, so that closing can join it.
    pub(crate) fn track_job(&self, handle: JoinHandle<()>) {
        let mut jobs = self.jobs();
        jobs.retain(|job| !job.is_finished());
        jobs.push(handle);
    }

    /// Clears the failure of a table's background job, which has restarted or completed.
    pub(crate) fn forget_job_failure(&self, table: TableId) {
        self.failed_jobs().remove(&table);
    }

    pub(crate) fn job_failed(&self, table: TableId, reason: String) {
        self.failed_jobs().insert(table, reason);
    }

    /// Why a table's background job failed, if it did. It restarts when the store opens.
    pub(crate) fn job_failure(&self, table: TableId) -> Option<String> {
        self.failed_jobs().get(&table).cloned()
    }

    fn failed_jobs(&self) -> MutexGuard<'_, BTreeMap<TableId, String>> {
        self.failed_jobs
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn take_jobs(&self) -> Vec<JoinHandle<()>> {
        std::mem::take(&mut *self.jobs())
    }

    fn jobs(&self) -> MutexGuard<'_, Vec<JoinHandle<()>>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Why the committer accepts no more work: it has panicked, or the engine is closing.
    fn why_stopped(&self) -> StoreError {
        self.latch.check().err().unwrap_or_else(stopped)
    }

    pub(crate) fn stop_committer(&self) {
        let _ = self.queue.push(Work::Stop);
    }
}

/// Runs `work` between two groups and waits for its result.
pub(crate) fn run_exclusive<T, E>(
    shared: &Shared,
    work: impl FnOnce(&mut Committer) -> Result<T, E> + Send + 'static,
) -> Result<T, E>
where
    T: Send + 'static,
    E: From<StoreError> + Send + 'static,
{
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
