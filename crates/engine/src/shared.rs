//! What callers, the committer and the background work have in common.

use std::fs::File;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use homeport_store::{StoreError, TransactError};
use tokio::sync::{Semaphore, oneshot, watch};

use crate::catalogue::SharedCatalogue;
use crate::committer::{Committer, Work};
use crate::disk_room::DiskRoom;
use crate::evaluate::Outcome;
use crate::keyspaces::Keyspaces;
use crate::latch::Latch;
use crate::metrics::Metrics;
use crate::options::Options;
use crate::prepare::Prepared;
use crate::queue::Queue;
use crate::restoring::Restoring;
use crate::sorting::Unsorted;
use crate::table_backups::RunningBackups;
use crate::transfers::RunningTransfers;
use crate::vault::{Database, PersistMode};

/// What may wait for the committer at one time.
pub(crate) const QUEUE_BYTES_MAX: usize = 64 * 1024 * 1024;
/// How long a caller waits for room in the queue before it is told to come back later.
const QUEUE_WAIT_MAX: Duration = Duration::from_secs(2);
/// The queue's room is counted in units of this size.
const QUEUE_UNIT_BYTES: usize = 1024;

pub(crate) struct Shared {
    pub(crate) options: Options,
    pub(crate) catalogue: SharedCatalogue,
    pub(crate) keyspaces: Keyspaces,
    pub(crate) latch: Latch,
    pub(crate) metrics: Metrics,
    pub(crate) room: DiskRoom,
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
    /// Exports and imports that are on their way.
    pub(crate) transfers: RunningTransfers,
    jobs: Mutex<Vec<JoinHandle<()>>>,
    pub(crate) queue: Queue,
    pub(crate) unsorted: Unsorted,
    places: Arc<Semaphore>,
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
        commit: crate::writer::CommitRecord,
        directory: PathBuf,
        lock: File,
    ) -> Self {
        let room = DiskRoom::new(&directory, options.disk_reserve_bytes);
        Self {
            options,
            catalogue,
            keyspaces,
            latch: Latch::default(),
            metrics: Metrics::default(),
            room,
            written_commit: AtomicU64::new(commit.commit),
            synced_commit: AtomicU64::new(commit.commit),
            last_change: watch::Sender::new(commit.next_change),
            stopping: AtomicBool::new(false),
            directory,
            restoring: Restoring::default(),
            backups: RunningBackups::default(),
            transfers: RunningTransfers::default(),
            jobs: Mutex::default(),
            queue: Queue::default(),
            unsorted: Unsorted::default(),
            places: Arc::new(Semaphore::new(units(QUEUE_BYTES_MAX) as usize)),
            database,
            _lock: lock,
        }
    }

    pub(crate) fn now_secs(&self) -> i64 {
        self.options.clock.now_secs()
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
            Ok(outcomes) if outcomes.len() == count => outcomes,
            // The group as a whole failed: its one error is everyone's.
            Ok(mut outcomes) => {
                let error = match outcomes.pop() {
                    Some(Err(error)) => error,
                    _ => TransactError::Store(stopped()),
                };
                vec![Err(error); count]
            }
            Err(error) => vec![Err(TransactError::Store(error)); count],
        }
    }

    async fn try_submit(&self, prepared: Vec<Prepared>) -> Result<Vec<Outcome>, StoreError> {
        self.latch.check()?;
        self.room.check()?;
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
        self.queue.push(work).map_err(|_| stopped())?;
        answer.await.map_err(|_| stopped())
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

    /// Refuses writes from now on if the key-value store has failed in a thread of its own, where
    /// no caller was told.
    pub(crate) fn notice_failure(&self) -> Result<(), StoreError> {
        if let Err(error) = self.database.persist(PersistMode::Buffer) {
            self.latch.close(&error.to_string());
        }
        self.latch.check()
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

    pub(crate) fn take_jobs(&self) -> Vec<JoinHandle<()>> {
        let mut jobs = self
            .jobs
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        std::mem::take(&mut jobs)
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
        .map_err(|_| stopped())?
}

fn units(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(QUEUE_UNIT_BYTES)).unwrap_or(u32::MAX)
}

pub(crate) fn stopped() -> StoreError {
    StoreError::Unavailable("the store has been closed".to_owned())
}
