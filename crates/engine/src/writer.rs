//! Writing groups that have been decided: each becomes one batch with one sync, and then its callers
//! are answered.
//!
//! A small group is written by the committer itself. A large one is handed to a thread of its own,
//! [`Beside`]: applying it takes long enough for the committer to decide the next one meanwhile.

use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use homeport_store::StoreError;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use crate::evaluate::Outcome;
use crate::expiring::Listed;
use crate::expiry::Pages;
use crate::layout;
use crate::options::Durability;
use crate::shared::{Shared, stopped};
use crate::threads;
use crate::vault::{Batch, PersistMode, UserKey};

/// The sequence number of the first change: 0 stands for the oldest that is kept.
pub(crate) const FIRST_CHANGE: u64 = 1;

/// What every group says about itself; see `docs/engine-format.md`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CommitRecord {
    /// This group's number; groups count up by one.
    pub(crate) commit: u64,
    /// The last group that was known to be on disk when this one was written.
    pub(crate) synced_commit: u64,
    /// The sequence number that the next change gets.
    pub(crate) next_change: u64,
}

impl CommitRecord {
    /// What stands before the first group of a store.
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

    /// The record of the group after this one, once this one is on disk and changed nothing.
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
pub(crate) struct Decided {
    pub(crate) batch: Batch,
    pub(crate) pages: Pages,
    pub(crate) bytes: usize,
    /// The sequence number that the next change gets.
    pub(crate) next_change: u64,
    /// What its changes are stamped with.
    pub(crate) commit_ms: i64,
    /// Written although nothing is in it, for its commit time.
    pub(crate) is_for_time: bool,
    /// What it lists as expiring.
    pub(crate) listed: Listed,
}

/// The outcome of each of a caller's transactions, or why none of them was written.
pub(crate) type Reply = Result<Vec<Outcome>, StoreError>;

/// What a caller gets once its group is durable.
pub(crate) struct Answer {
    pub(crate) outcomes: Vec<Outcome>,
    pub(crate) reply: oneshot::Sender<Reply>,
    /// Its place in the queue, given back when it is answered.
    pub(crate) permit: OwnedSemaphorePermit,
}

impl Answer {
    pub(crate) fn send(self, written: Result<(), StoreError>) {
        drop(self.permit);
        // A caller that no longer waits loses only the answer.
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

    /// Counts on from the first group of a reopened store.
    fn continue_from(&mut self, last: CommitRecord) {
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
    /// IMPORTANT: what a group holds was decided on the ones before it, also where it writes nothing:
    /// when one of those could not be written, it fails like them.
    fn write(&mut self, decided: Decided) -> Result<(), StoreError> {
        let shared = Arc::clone(&self.shared);
        shared.latch.check()?;
        let Decided {
            mut batch,
            pages,
            bytes,
            next_change,
            commit_ms,
            is_for_time,
            listed,
        } = decided;
        if batch.is_empty() && pages.is_empty() && !is_for_time {
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
        // IMPORTANT: the batch goes to the journal and to disk before anyone can read it, and no
        // caller is answered before this returns.
        let committed = batch.commit(mode);
        if let Err(error) = committed {
            shared.latch.close(&error.to_string());
            return shared.latch.check();
        }
        self.commit = commit;
        shared.commit_clock.persisted(commit_ms);
        shared.expiring.written(listed);
        shared.written_commit.store(commit, Ordering::Release);
        if shared.options.durability == Durability::Sync {
            self.synced_commit = commit;
            shared.note_synced(commit)?;
        }
        shared.metrics.committed(bytes, started.elapsed());
        shared.room.wrote(bytes);
        shared.last_change.send_if_modified(|last| {
            let newer = record.next_change > *last;
            *last = record.next_change;
            newer
        });
        Ok(())
    }
}

/// The writer, and a thread in which it can write beside the committer. One group is written at a
/// time: the queue tells when that is done.
pub(crate) struct Beside {
    shared: Arc<Shared>,
    writer: Arc<Mutex<Writer>>,
    groups: Option<SyncSender<(Decided, Vec<Answer>)>>,
    thread: Option<JoinHandle<()>>,
}

impl Beside {
    pub(crate) fn start(writer: Writer) -> std::io::Result<Self> {
        let shared = Arc::clone(&writer.shared);
        let writer = Arc::new(Mutex::new(writer));
        let (groups, handed_over) = sync_channel(1);
        let writing = Arc::clone(&writer);
        let thread = threads::spawn(&shared, "homeport-write", move |_| {
            run(&writing, &handed_over);
        })?;
        Ok(Self {
            shared,
            writer,
            groups: Some(groups),
            thread: Some(thread),
        })
    }

    /// Writes in the caller's own thread.
    pub(crate) fn write(&self, decided: Decided) -> Result<(), StoreError> {
        lock(&self.writer).write(decided)
    }

    /// Counts on from the first group of a reopened store.
    pub(crate) fn continue_from(&self, last: CommitRecord) {
        lock(&self.writer).continue_from(last);
    }

    /// Has a group written, and its callers answered, beside what the caller goes on with. Nothing
    /// else is being written now.
    pub(crate) fn hand_over(&self, decided: Decided, answers: Vec<Answer>) {
        let Some(groups) = &self.groups else { return };
        self.shared.queue.begin_writing();
        if let Err(refused) = groups.send((decided, answers)) {
            // The thread can only have ended by a panic in the middle of a group.
            self.shared
                .latch
                .close_until_restart("the thread that writes has ended");
            self.shared.queue.end_writing();
            for answer in refused.0.1 {
                answer.send(Err(stopped()));
            }
        }
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        self.groups = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn run(writer: &Mutex<Writer>, groups: &Receiver<(Decided, Vec<Answer>)>) {
    let shared = Arc::clone(&lock(writer).shared);
    while let Ok((decided, answers)) = groups.recv() {
        // Also when this thread panics: the committer must not wait for it.
        let ended = Ended(&shared);
        let written = lock(writer).write(decided);
        drop(ended);
        for answer in answers {
            answer.send(written.clone());
        }
    }
}

/// Tells the committer that the group is written, or never will be.
struct Ended<'a>(&'a Shared);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        // IMPORTANT: before the committer continues, which must not write anything that rests on this group.
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
    fn a_commit_record_round_trips() {
        let record = CommitRecord {
            commit: 3,
            synced_commit: 2,
            next_change: 77,
        };
        assert_eq!(CommitRecord::decode(&record.encode()), Some(record));
        assert_eq!(CommitRecord::decode(b"short"), None);
    }
}
