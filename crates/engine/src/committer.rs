//! The one thread that writes: it takes what callers have queued, decides it in order, writes the
//! outcome as one batch with one sync, and answers everyone.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use fjall::{PersistMode, UserKey};
use homeport_store::{StoreError, TransactError};
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use crate::evaluate::{self, Outcome};
use crate::group::Group;
use crate::layout;
use crate::options::Durability;
use crate::prepare::Prepared;
use crate::queue::Queue;
use crate::shared::Shared;

/// A group is closed when it has this many bytes, so that who waits for it does not wait long.
const GROUP_BYTES_MAX: usize = 1024 * 1024;
/// How long a group waits for callers that are likely to come, at most; it is never more than half of
/// what the group before took.
const GATHER_WAIT_MAX: Duration = Duration::from_micros(250);
/// How long a group waits for the key-value store to flush before it is written all the same.
const FLUSH_WAIT_MAX: Duration = Duration::from_secs(5);
const FLUSH_POLL: Duration = Duration::from_millis(1);

/// Something for the committer to do.
pub(crate) enum Work {
    /// Independent transactions with one answer for all of them.
    Transactions {
        prepared: Vec<Prepared>,
        reply: oneshot::Sender<Vec<Outcome>>,
        /// Its place in the queue, given back when it is answered.
        permit: OwnedSemaphorePermit,
    },
    /// Anything else that must not run beside a commit.
    Exclusive(Box<dyn FnOnce(&mut Committer) + Send>),
    Stop,
}

pub(crate) struct Committer {
    pub(crate) shared: Arc<Shared>,
    commit: u64,
    synced_commit: u64,
    next_change: u64,
}

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
    /// What stands before the first group.
    pub(crate) const NONE: Self = Self {
        commit: 0,
        synced_commit: 0,
        next_change: FIRST_CHANGE,
    };

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

impl Committer {
    pub(crate) fn new(shared: Arc<Shared>, last: CommitRecord) -> Self {
        Self {
            shared,
            commit: last.commit,
            // Opening the store has synced its journal.
            synced_commit: last.commit,
            next_change: last.next_change,
        }
    }

    pub(crate) fn run(mut self) {
        let shared = Arc::clone(&self.shared);
        // Also when this thread panics: callers must not wait for it.
        let _closing = Closing(&shared.queue);
        let mut waiting = VecDeque::new();
        let mut answered = 0;
        let mut patience = Duration::ZERO;
        loop {
            if waiting.is_empty() {
                waiting.extend(shared.queue.take(answered, patience));
            }
            let mut bytes = 0;
            let mut members = Vec::with_capacity(waiting.len());
            while bytes < GROUP_BYTES_MAX
                && let Some(Work::Transactions { .. }) = waiting.front()
                && let Some(Work::Transactions {
                    prepared,
                    reply,
                    permit,
                }) = waiting.pop_front()
            {
                bytes += weight(&prepared);
                members.push(Member {
                    prepared,
                    reply,
                    _permit: permit,
                });
            }
            if members.is_empty() {
                match waiting.pop_front() {
                    Some(Work::Exclusive(run)) => run(&mut self),
                    Some(Work::Stop) => return,
                    Some(Work::Transactions { .. }) | None => {}
                }
                continue;
            }
            answered = members.len();
            let started = Instant::now();
            self.commit_members(members);
            patience = started.elapsed().min(GATHER_WAIT_MAX * 2) / 2;
        }
    }

    /// Decides all members in order, writes what holds, and answers them.
    fn commit_members(&mut self, members: Vec<Member>) {
        let shared = Arc::clone(&self.shared);
        let mut answers = Vec::with_capacity(members.len());
        let mut decided = Vec::with_capacity(members.len());
        let mut undecided = Vec::with_capacity(members.len());
        for member in members {
            answers.push((member.reply, member._permit));
            undecided.push(member.prepared);
        }
        let written = self.write(|group| {
            let catalogue = shared.catalogue.now();
            for prepared in undecided {
                let mut outcomes = Vec::with_capacity(prepared.len());
                for prepared in prepared {
                    outcomes.push(evaluate::transaction(group, &catalogue, prepared)?);
                }
                decided.push(outcomes);
            }
            Ok(())
        });
        let mut decided = decided.into_iter();
        for (reply, permit) in answers {
            let outcomes = match (&written, decided.next()) {
                (Ok(()), Some(outcomes)) => outcomes,
                (Ok(()), None) => Vec::new(),
                // One error stands for all of the member's transactions.
                (Err(error), _) => vec![Err(TransactError::Store(error.clone()))],
            };
            drop(permit);
            // A caller that no longer waits loses only the answer.
            let _ = reply.send(outcomes);
        }
    }

    /// Puts a group together with `fill` and makes it durable. Nothing of it is written when
    /// `fill` fails.
    pub(crate) fn write<T>(
        &mut self,
        fill: impl FnOnce(&mut Group<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let shared = Arc::clone(&self.shared);
        shared.latch.check()?;
        self.wait_for_flush();
        let now_ms = shared.options.clock.now_ms();
        let mut group = Group::new(
            &shared.database,
            &shared.keyspaces,
            self.next_change,
            now_ms,
        );
        let filled = fill(&mut group)?;
        if group.is_empty() {
            return Ok(filled);
        }
        self.persist(group)?;
        Ok(filled)
    }

    fn persist(&mut self, mut group: Group<'_>) -> Result<(), StoreError> {
        let shared = Arc::clone(&self.shared);
        if shared.options.durability == Durability::Relaxed {
            self.synced_commit = shared.synced_commit.load(Ordering::Acquire);
        }
        let commit = self.commit + 1;
        let record = CommitRecord {
            commit,
            synced_commit: self.synced_commit,
            next_change: group.next_change(),
        };
        group.insert(
            &shared.keyspaces.meta,
            UserKey::from(layout::COMMIT_KEY),
            record.encode().as_slice().into(),
        );
        let mode = match shared.options.durability {
            Durability::Sync => PersistMode::SyncData,
            Durability::Relaxed => PersistMode::Buffer,
        };
        let bytes = group.bytes();
        let started = Instant::now();
        // IMPORTANT: the batch goes to the journal and to disk before anyone can read it, and no
        // caller is answered before this returns.
        let committed = group.finish().durability(Some(mode)).commit();
        if let Err(error) = committed {
            shared.latch.close(&error.to_string());
            return shared.latch.check();
        }
        self.commit = commit;
        self.next_change = record.next_change;
        shared.written_commit.store(commit, Ordering::Release);
        if shared.options.durability == Durability::Sync {
            self.synced_commit = commit;
            shared.synced_commit.store(commit, Ordering::Release);
        }
        shared.metrics.committed(bytes, started.elapsed());
        shared.last_change.send_if_modified(|last| {
            let newer = record.next_change > *last;
            *last = record.next_change;
            newer
        });
        Ok(())
    }

    /// Waits while more is buffered than allowed: slowing down early keeps memory bounded and the
    /// key-value store from stopping us for long.
    fn wait_for_flush(&self) {
        let limit = self.shared.options.write_buffer_bytes;
        if self.shared.database.write_buffer_size() <= limit {
            return;
        }
        let started = Instant::now();
        while self.shared.database.write_buffer_size() > limit && started.elapsed() < FLUSH_WAIT_MAX
        {
            std::thread::sleep(FLUSH_POLL);
        }
        self.shared.metrics.waited_for_flush(started.elapsed());
    }
}

struct Closing<'a>(&'a Queue);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}

struct Member {
    prepared: Vec<Prepared>,
    reply: oneshot::Sender<Vec<Outcome>>,
    _permit: OwnedSemaphorePermit,
}

fn weight(prepared: &[Prepared]) -> usize {
    prepared.iter().map(|prepared| prepared.bytes).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;
    use std::sync::{Condvar, Mutex};

    use homeport_item::schema::TableSchema;
    use homeport_item::{Item, KeyKind};
    use homeport_store::{Clock, Put, Store};

    use crate::engine::Engine;
    use crate::options::Options;

    /// A clock that can be held: whoever asks for the time then waits.
    #[derive(Debug, Default)]
    struct HeldClock {
        held: Mutex<bool>,
        released: Condvar,
        asked: AtomicBool,
    }

    impl Clock for HeldClock {
        fn now_ms(&self) -> i64 {
            let held = self.held.lock().unwrap();
            self.asked.fetch_or(*held, Ordering::SeqCst);
            drop(self.released.wait_while(held, |held| *held).unwrap());
            1_800_000_000_000
        }
    }

    async fn reached(mut state: impl FnMut() -> bool) {
        let wait = async {
            while !state() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        let waited = tokio::time::timeout(Duration::from_secs(30), wait);
        waited.await.expect("waited in vain");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn who_waits_behind_a_failure_is_told_that_writes_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let clock = Arc::new(HeldClock::default());
        let options = Options {
            clock: Arc::clone(&clock) as _,
            background_sweep: false,
            ..Options::default()
        };
        let engine = Engine::open(directory.path(), options).unwrap();
        let schema = TableSchema::new("plain", "id", KeyKind::S);
        engine.create_table(schema).await.unwrap();
        let put = |id: &'static str| {
            let engine = engine.clone();
            let put = Put::new("plain", Item::new().with("id", id));
            tokio::spawn(async move { engine.put(put).await })
        };
        *clock.held.lock().unwrap() = true;
        let first = put("first");
        reached(|| clock.asked.load(Ordering::SeqCst)).await;
        let second = put("second");
        reached(|| engine.metrics().queued_bytes >= 2 * 1024).await;
        engine.shared().latch.close("the disk is gone");
        *clock.held.lock().unwrap() = false;
        clock.released.notify_all();
        first.await.unwrap().unwrap();
        let error = second.await.unwrap().unwrap_err();
        assert!(error.to_string().contains("refused"), "{error}");
    }

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
