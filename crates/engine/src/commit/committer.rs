//! The committer thread. It takes queued transactions, decides them in order, writes the result as one group
//! with one sync, and then answers all callers.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use homeport_store::StoreError;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use crate::catalogue::spares::Spares;
use crate::commit::evaluate;
use crate::commit::greatest_keys::GreatestKeys;
use crate::commit::group::{Group, PendingWrites};
use crate::commit::prepare::PreparedTransaction;
use crate::commit::writer::{Answer, CommitBatch, CommitRecord, Reply, Writer, WriterThread};
use crate::error::unavailable;
use crate::shared::{Shared, stopped};

/// A group takes no more transactions from this size on, which bounds how long its callers wait.
const GROUP_BYTES_MAX: usize = 1024 * 1024;
/// The longest that a group waits for callers that are likely to return. It never waits longer than half of
/// the time that the previous group took.
const GATHER_WAIT_MAX: Duration = Duration::from_micros(250);
/// How long a group waits for the key-value store to flush before it is written anyway.
const FLUSH_WAIT_MAX: Duration = Duration::from_secs(5);
const FLUSH_POLL: Duration = Duration::from_millis(1);
/// Bytes written between two checks of the key-value store's backlog. A keyspace's memtable is flushed when
/// it holds several times as many.
const BACKLOG_CHECK_BYTES: u64 = 1024 * 1024;

/// A unit of work for the committer.
pub(crate) enum Work {
    /// Independent transactions of one caller, answered together.
    Transactions {
        prepared: Vec<PreparedTransaction>,
        reply: oneshot::Sender<Reply>,
        /// Space in the queue, released when the caller is answered.
        permit: OwnedSemaphorePermit,
    },
    /// Any other work that must not run during a commit.
    Exclusive(Box<dyn FnOnce(&mut Committer) + Send>),
    Stop,
}

pub(crate) struct Committer {
    pub(crate) shared: Arc<Shared>,
    pub(crate) spares: Spares,
    next_change: u64,
    /// The backlog is checked when this much has been written; 0 means before the first group.
    backlog_check_bytes: u64,
    writer: WriterThread,
    /// Writes of the group that the writer thread is writing.
    in_flight: Option<Arc<PendingWrites>>,
    /// Moved into the open group; dropped with the group if that is never written, because it may then be
    /// wrong.
    pub(crate) greatest_keys: GreatestKeys,
}

/// A group that transactions can still be added to.
struct OpenGroup<'a> {
    group: Group<'a>,
    answers: Vec<Answer>,
    bytes: usize,
}

impl Committer {
    pub(crate) fn new(shared: Arc<Shared>, last: CommitRecord) -> std::io::Result<Self> {
        Ok(Self {
            writer: WriterThread::start(Writer::new(Arc::clone(&shared), last))?,
            shared,
            spares: Spares::default(),
            next_change: last.next_change,
            backlog_check_bytes: 0,
            in_flight: None,
            greatest_keys: GreatestKeys::default(),
        })
    }

    pub(crate) fn run(mut self) {
        let shared = Arc::clone(&self.shared);
        // Runs also when this thread panics: callers must not wait for it.
        let _closing = CloseQueueOnDrop(&shared);
        let mut waiting = VecDeque::new();
        let mut open = None;
        let mut last = LastCommit::default();
        loop {
            if waiting.is_empty() {
                waiting.extend(match open {
                    // More transactions can join it until the previous group is written.
                    Some(_) => shared.queue.take_while_writing(),
                    None => shared.queue.take_all(last.caller_count, last.wait_max),
                });
            }
            self.decide_queued(&shared, &mut open, &mut waiting);
            if let Some(open_group) = open.take() {
                let can_grow = waiting.is_empty() && shared.queue.is_writing();
                if can_grow {
                    open = Some(open_group);
                } else {
                    shared.queue.wait_until_written();
                    last = self.write_group(open_group);
                }
                continue;
            }
            match waiting.pop_front() {
                Some(Work::Exclusive(run)) => {
                    shared.queue.wait_until_written();
                    run(&mut self);
                }
                Some(Work::Stop) => {
                    shared.queue.wait_until_written();
                    return;
                }
                Some(Work::Transactions { .. }) | None => {}
            }
        }
    }

    /// Decides queued transactions in order, up to the first other kind of work or until the group is full.
    fn decide_queued<'a>(
        &mut self,
        shared: &'a Shared,
        open: &mut Option<OpenGroup<'a>>,
        waiting: &mut VecDeque<Work>,
    ) {
        let catalogue = shared.catalogue.now();
        while open
            .as_ref()
            .is_none_or(|open| open.bytes < GROUP_BYTES_MAX)
            && let Some(Work::Transactions { .. }) = waiting.front()
            && let Some(Work::Transactions {
                prepared,
                reply,
                permit,
            }) = waiting.pop_front()
        {
            let mut open_group = match open.take() {
                Some(open) => open,
                None => match self.wait_until_writable() {
                    Ok(()) => OpenGroup {
                        group: self.group(shared),
                        answers: Vec::new(),
                        bytes: 0,
                    },
                    Err(error) => {
                        drop(permit);
                        // A caller that no longer waits only loses the answer.
                        let _ = reply.send(Err(error));
                        continue;
                    }
                },
            };
            open_group.bytes += size_of(&prepared);
            let outcomes = prepared
                .into_iter()
                .map(|prepared| evaluate::transaction(&mut open_group.group, &catalogue, prepared))
                .collect();
            open_group.answers.push(Answer {
                outcomes,
                reply,
                permit,
            });
            *open = Some(open_group);
        }
    }

    /// Writes a group: on this thread if it is small, otherwise on the writer thread while this one decides
    /// the next group.
    fn write_group(&mut self, open: OpenGroup<'_>) -> LastCommit {
        let OpenGroup { group, answers, .. } = open;
        let (batch, pending) = self.finish_group(group);
        if batch.bytes >= self.shared.options.background_write_min_bytes {
            self.in_flight = Some(Arc::new(pending));
            self.writer.write_in_background(batch, answers);
            return LastCommit::default();
        }
        let last_answered = answers.len();
        let started = Instant::now();
        let written = self.writer.write(batch);
        for answer in answers {
            answer.send(written.clone());
        }
        LastCommit {
            caller_count: last_answered,
            wait_max: started.elapsed().min(GATHER_WAIT_MAX * 2) / 2,
        }
    }

    /// Fills a group with `fill` and makes it durable; nothing is written if `fill` fails. Only for exclusive
    /// work, which runs between two groups.
    pub(crate) fn write<T>(
        &mut self,
        fill: impl FnOnce(&mut Group<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.wait_until_writable()?;
        let shared = Arc::clone(&self.shared);
        let mut group = self.group(&shared);
        let filled = fill(&mut group)?;
        let (batch, _) = self.finish_group(group);
        self.writer.write(batch)?;
        Ok(filled)
    }

    /// Writes the commit time.
    pub(crate) fn write_time(&mut self) -> Result<(), StoreError> {
        self.write(|group| {
            group.write_time();
            Ok(())
        })
    }

    /// Continues on a reopened store, from its first group.
    pub(crate) fn resume_from(&mut self, last: CommitRecord) {
        // Never reuse a number: with relaxed durability, readers may have seen changes that are now lost.
        self.next_change = self.next_change.max(last.next_change);
        self.in_flight = None;
        self.greatest_keys = GreatestKeys::default();
        self.backlog_check_bytes = 0;
        self.writer.resume_from(last);
    }

    /// Waits until a group can be started, or fails if writes are refused.
    fn wait_until_writable(&mut self) -> Result<(), StoreError> {
        self.shared.latch.check()?;
        self.shared.disk_space.check_deletes()?;
        self.wait_for_backlog()?;
        self.wait_for_flush();
        if !self.shared.queue.is_writing() {
            self.in_flight = None;
        }
        Ok(())
    }

    fn group<'a>(&mut self, shared: &'a Shared) -> Group<'a> {
        Group::new(
            shared,
            self.in_flight.clone(),
            std::mem::take(&mut self.greatest_keys),
            self.next_change,
        )
    }

    fn finish_group(&mut self, group: Group<'_>) -> (CommitBatch, PendingWrites) {
        let (batch, pending, greatest_keys) = group.finish();
        self.next_change = batch.next_change;
        self.greatest_keys = greatest_keys;
        (batch, pending)
    }

    /// Waits while a keyspace has so much to flush or to compact that the key-value store would block this
    /// thread: after a failed flush, it would block forever.
    fn wait_for_backlog(&mut self) -> Result<(), StoreError> {
        let written_bytes = self.shared.metrics.commit_bytes();
        if written_bytes < self.backlog_check_bytes {
            return Ok(());
        }
        let started = Instant::now();
        let shared = &self.shared;
        let is_stopping = || shared.stopping.load(Ordering::Acquire);
        match shared.database.wait_for_backlog(is_stopping) {
            Ok(false) => {}
            Ok(true) => return Err(stopped()),
            Err(error) => {
                shared.write_failed(&error);
                shared.latch.check()?;
                return Err(unavailable(error));
            }
        }
        self.backlog_check_bytes = written_bytes + BACKLOG_CHECK_BYTES;
        self.shared.metrics.waited_for_flush(started.elapsed());
        Ok(())
    }

    /// Waits while the write buffer is over its limit: slowing down early bounds memory and avoids a long
    /// stall in the key-value store.
    fn wait_for_flush(&self) {
        let limit = self.shared.options.write_buffer_bytes;
        let database = &self.shared.database;
        if database.write_buffer_bytes() <= limit {
            return;
        }
        let started = Instant::now();
        while database.write_buffer_bytes() > limit && started.elapsed() < FLUSH_WAIT_MAX {
            match database.is_making_room(limit) {
                Ok(true) => std::thread::sleep(FLUSH_POLL),
                Ok(false) => break,
                // Writing the group will hit the same error and handle it.
                Err(error) => {
                    tracing::warn!(%error, "cannot flush the write buffer");
                    break;
                }
            }
        }
        self.shared.metrics.waited_for_flush(started.elapsed());
    }
}

/// The last group written on the committer's own thread, whose callers are likely to return.
#[derive(Default)]
struct LastCommit {
    caller_count: usize,
    wait_max: Duration,
}

struct CloseQueueOnDrop<'a>(&'a Shared);

impl Drop for CloseQueueOnDrop<'_> {
    fn drop(&mut self) {
        // IMPORTANT: in this order, because a rejected caller gets the reason from the latch.
        self.0.latch.close_if_panicking();
        self.0.queue.close();
    }
}

fn size_of(prepared: &[PreparedTransaction]) -> usize {
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

    /// A clock that can be held: callers that ask for the time then wait.
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
        waited.await.expect("timed out");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn full_write_buffer_is_flushed() {
        const ITEM_BYTES: u64 = 64 * 1024;
        let directory = tempfile::tempdir().unwrap();
        let limit = 4 * ITEM_BYTES;
        let options = Options {
            write_buffer_bytes: limit,
            ..Options::for_tests()
        };
        let engine = Engine::open(directory.path(), options).unwrap();
        let text = "x".repeat(ITEM_BYTES as usize);
        for table in 0..12 {
            let schema = TableSchema::new(format!("table-{table}"), "id", KeyKind::S);
            engine.create_table(schema).await.unwrap();
            let item = Item::new().with("id", "one").with("text", text.as_str());
            let put = Put::new(format!("table-{table}"), item);
            engine.put(put).await.unwrap();
        }
        // The last write was admitted while there was space.
        let buffered = engine.metrics().write_buffer_bytes;
        assert!(buffered <= limit + 2 * ITEM_BYTES, "{buffered}");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn deleted_table_leaves_the_write_buffer() {
        let directory = tempfile::tempdir().unwrap();
        let engine = Engine::open(directory.path(), Options::for_tests()).unwrap();
        let schema = TableSchema::new("large", "id", KeyKind::S);
        engine.create_table(schema).await.unwrap();
        let text = "x".repeat(100 * 1024);
        for id in 0..20 {
            let item = Item::new().with("id", format!("{id}"));
            let put = Put::new("large", item.with("text", text.as_str()));
            engine.put(put).await.unwrap();
        }
        assert!(engine.metrics().write_buffer_bytes > 2_000_000);
        engine.delete_table("large").await.unwrap();
        reached(|| engine.metrics().write_buffer_bytes < 100_000).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn waiting_callers_learn_of_a_failure() {
        let directory = tempfile::tempdir().unwrap();
        let clock = Arc::new(HeldClock::default());
        let options = Options::for_tests().with_clock(&clock);
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
        for waited in [first, second] {
            let error = waited.await.unwrap().unwrap_err();
            assert!(error.to_string().contains("refused"), "{error}");
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn failed_group_answers_each_of_its_callers() {
        let directory = tempfile::tempdir().unwrap();
        let clock = Arc::new(HeldClock::default());
        let options = Options::for_tests().with_clock(&clock);
        let engine = Engine::open(directory.path(), options).unwrap();
        let schema = TableSchema::new("plain", "id", KeyKind::S);
        engine.create_table(schema).await.unwrap();
        // All are queued before the committer takes them, so they form one group.
        let (release, is_released) = std::sync::mpsc::channel::<()>();
        let busy = engine
            .shared()
            .exclusive(move |_| is_released.recv().is_ok());
        let puts = ["first", "second", "third"].map(|id| {
            let engine = engine.clone();
            let put = Put::new("plain", Item::new().with("id", id));
            tokio::spawn(async move { engine.put(put).await })
        });
        reached(|| engine.metrics().queued_bytes >= 3 * 1024).await;
        *clock.held.lock().unwrap() = true;
        drop(release);
        busy.await.unwrap();
        reached(|| clock.asked.load(Ordering::SeqCst)).await;
        engine.shared().latch.close("the disk is gone");
        *clock.held.lock().unwrap() = false;
        clock.released.notify_all();
        for put in puts {
            let error = put.await.unwrap().unwrap_err();
            assert!(error.to_string().contains("refused"), "{error}");
        }
    }
}
