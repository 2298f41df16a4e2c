//! Writes decided groups: each becomes one batch with one sync, and then its callers are answered.
//!
//! The committer writes a small group itself. A large one goes to the [`WriterThread`]: applying it takes
//! long enough for the committer to decide the next group in the meantime.

use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use homeport_store::StoreError;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use crate::commit::evaluate::Outcome;
use crate::expiry::expiring::GroupExpiry;
use crate::expiry::pages::Pages;
use crate::options::Durability;
use crate::shared::{Shared, stopped};
use crate::storage::layout;
use crate::storage::vault::{Batch, PersistMode, UserKey};
use crate::threads;

/// The sequence number of the first change. Readers use 0 for the oldest change that is kept.
pub(crate) const FIRST_CHANGE: u64 = 1;

/// The record that every group writes about itself; see `docs/engine-format.md`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CommitRecord {
    /// The group's number; groups are numbered consecutively.
    pub(crate) commit: u64,
    /// The last group known to be on disk when this one was written.
    pub(crate) synced_commit: u64,
    /// The sequence number of the next change.
    pub(crate) next_change: u64,
}

impl CommitRecord {
    /// The record of a store without any group.
    pub(crate) fn before_first(commit: u64) -> Self {
        Self {
            commit,
            synced_commit: commit,
            next_change: FIRST_CHANGE,
        }
    }

    pub(crate) fn encode(self) -> [u8; 24] {
        let mut bytes = [0; 24];
        bytes[..8].copy_from_slice(&self.commit.to_be_bytes());
        bytes[8..16].copy_from_slice(&self.synced_commit.to_be_bytes());
        bytes[16..].copy_from_slice(&self.next_change.to_be_bytes());
        bytes
    }

    /// The record of an empty group after this one, once this one is on disk.
    pub(crate) fn next(self) -> Self {
        Self {
            commit: self.commit + 1,
            synced_commit: self.commit,
            next_change: self.next_change,
        }
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; 24] = bytes.try_into().ok()?;
        let number = |at: usize| {
            let mut number = [0; 8];
            number.copy_from_slice(&bytes[at..at + 8]);
            u64::from_be_bytes(number)
        };
        Some(Self {
            commit: number(0),
            synced_commit: number(8),
            next_change: number(16).max(FIRST_CHANGE),
        })
    }
}

/// A group that is ready to be written.
pub(crate) struct CommitBatch {
    pub(crate) batch: Batch,
    pub(crate) pages: Pages,
    pub(crate) bytes: usize,
    /// The sequence number of the next change.
    pub(crate) next_change: u64,
    /// The time that its changes are stamped with.
    pub(crate) commit_ms: i64,
    /// Write the batch even if it is empty, for its commit time.
    pub(crate) writes_time: bool,
    /// The items that it lists as expiring.
    pub(crate) expiry: GroupExpiry,
}

/// The outcomes of a caller's transactions, or why none of them was written.
pub(crate) type Reply = Result<Vec<Outcome>, StoreError>;

/// The answer to a caller, sent once its group is durable.
pub(crate) struct Answer {
    pub(crate) outcomes: Vec<Outcome>,
    pub(crate) reply: oneshot::Sender<Reply>,
    /// Space in the queue, released when the caller is answered.
    pub(crate) permit: OwnedSemaphorePermit,
}

impl Answer {
    pub(crate) fn send(self, written: Result<(), StoreError>) {
        drop(self.permit);
        // A caller that no longer waits only loses the answer.
        let _ = self.reply.send(written.map(|()| self.outcomes));
    }
}

pub(crate) struct Writer {
    shared: Arc<Shared>,
    commit: u64,
    synced_commit: u64,
}

impl Writer {
    pub(crate) fn new(shared: Arc<Shared>, last: CommitRecord) -> Self {
        Self {
            shared,
            commit: last.commit,
            // Opening the store has synced its journal.
            synced_commit: last.commit,
        }
    }

    /// Continues with the numbers of a reopened store's first group.
    fn resume_from(&mut self, last: CommitRecord) {
        self.commit = last.commit;
        self.synced_commit = last.commit;
        let shared = &self.shared;
        shared.written_commit.store(last.commit, Ordering::Release);
        shared.synced_commit.store(last.commit, Ordering::Release);
        shared
            .last_change
            .send_modify(|next| *next = (*next).max(last.next_change));
    }

    /// Makes a group durable.
    ///
    /// IMPORTANT: a group was decided on top of the ones before it, even if it writes nothing. If one of
    /// those could not be written, it fails too.
    fn write(&mut self, decided: CommitBatch) -> Result<(), StoreError> {
        let shared = Arc::clone(&self.shared);
        shared.latch.check()?;
        let CommitBatch {
            mut batch,
            pages,
            bytes,
            next_change,
            commit_ms,
            writes_time,
            expiry,
        } = decided;
        if batch.is_empty() && pages.is_empty() && !writes_time {
            return Ok(());
        }
        if shared.options.durability == Durability::Relaxed {
            self.synced_commit = shared.synced_commit.load(Ordering::Acquire);
        }
        let commit = self.commit + 1;
        let record = CommitRecord {
            commit,
            synced_commit: self.synced_commit,
            next_change,
        };
        batch.insert(
            &shared.keyspaces.meta,
            UserKey::from(layout::COMMIT_KEY),
            record.encode().as_slice(),
        );
        batch.insert(
            &shared.keyspaces.meta,
            UserKey::from(layout::TIME_KEY),
            commit_ms.to_be_bytes().as_slice(),
        );
        let are_sorted = pages.are_sorted;
        for (window, key, value) in pages.into_entries(commit) {
            batch.insert(&shared.keyspaces.expiry_pages, key, value);
            if !are_sorted {
                shared.unsorted.added(window, commit, commit_ms);
            }
        }
        let mode = match shared.options.durability {
            Durability::Sync => PersistMode::SyncData,
            Durability::Relaxed => PersistMode::Buffer,
        };
        let started = Instant::now();
        // IMPORTANT: the batch is in the journal and on disk before anyone can read it, and no caller is
        // answered before this returns.
        let committed = batch.commit(mode);
        if let Err(error) = committed {
            shared.latch.close(&error.to_string());
            return shared.latch.check();
        }
        self.commit = commit;
        shared.commit_clock.persisted(commit_ms);
        shared.expiring.written(expiry);
        shared.written_commit.store(commit, Ordering::Release);
        if shared.options.durability == Durability::Sync {
            self.synced_commit = commit;
            shared.note_synced(commit)?;
        }
        shared.metrics.committed(bytes, started.elapsed());
        shared.disk_space.note_written(bytes);
        shared.last_change.send_if_modified(|last| {
            let newer = record.next_change > *last;
            *last = record.next_change;
            newer
        });
        Ok(())
    }
}

/// The writer, and a thread on which it can write while the committer works. Only one group is written at a
/// time; the queue signals when that is done.
pub(crate) struct WriterThread {
    shared: Arc<Shared>,
    writer: Arc<Mutex<Writer>>,
    groups: Option<SyncSender<(CommitBatch, Vec<Answer>)>>,
    thread: Option<JoinHandle<()>>,
}

impl WriterThread {
    pub(crate) fn start(writer: Writer) -> std::io::Result<Self> {
        let shared = Arc::clone(&writer.shared);
        let writer = Arc::new(Mutex::new(writer));
        let (groups, received) = sync_channel(1);
        let writing = Arc::clone(&writer);
        let thread = threads::spawn(&shared, "homeport-write", move |_| {
            run(&writing, &received);
        })?;
        Ok(Self {
            shared,
            writer,
            groups: Some(groups),
            thread: Some(thread),
        })
    }

    /// Writes on the calling thread.
    pub(crate) fn write(&self, decided: CommitBatch) -> Result<(), StoreError> {
        lock(&self.writer).write(decided)
    }

    /// Continues with the numbers of a reopened store's first group.
    pub(crate) fn resume_from(&self, last: CommitRecord) {
        lock(&self.writer).resume_from(last);
    }

    /// Writes a group and answers its callers on the writer thread, which must be idle.
    pub(crate) fn write_in_background(&self, decided: CommitBatch, answers: Vec<Answer>) {
        let Some(groups) = &self.groups else { return };
        self.shared.queue.begin_writing();
        if let Err(refused) = groups.send((decided, answers)) {
            // The thread can only have ended by a panic in the middle of a group.
            self.shared
                .latch
                .close_until_restart("the writer thread has ended");
            self.shared.queue.end_writing();
            for answer in refused.0.1 {
                answer.send(Err(stopped()));
            }
        }
    }
}

impl Drop for WriterThread {
    fn drop(&mut self) {
        self.groups = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn run(writer: &Mutex<Writer>, groups: &Receiver<(CommitBatch, Vec<Answer>)>) {
    let shared = Arc::clone(&lock(writer).shared);
    while let Ok((decided, answers)) = groups.recv() {
        // Runs also when this thread panics: the committer must not wait for it.
        let ended = EndWritingOnDrop(&shared);
        let written = lock(writer).write(decided);
        drop(ended);
        for answer in answers {
            answer.send(written.clone());
        }
    }
}

/// Tells the committer that the group is written or never will be.
struct EndWritingOnDrop<'a>(&'a Shared);

impl Drop for EndWritingOnDrop<'_> {
    fn drop(&mut self) {
        // IMPORTANT: before the committer continues, which must not write anything that depends on this
        // group.
        self.0.latch.close_if_panicking();
        self.0.queue.end_writing();
    }
}

fn lock(writer: &Mutex<Writer>) -> MutexGuard<'_, Writer> {
    writer.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commit_record_round_trips() {
        let record = CommitRecord {
            commit: 3,
            synced_commit: 2,
            next_change: 77,
        };
        assert_eq!(CommitRecord::decode(&record.encode()), Some(record));
        assert_eq!(CommitRecord::decode(b"short"), None);
    }
}
