//! The one thread that decides: it takes what callers have queued, decides it in order, and has the
//! outcome written as one group with one sync, whereupon everyone is answered.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use homeport_store::StoreError;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use crate::error::unavailable;
use crate::evaluate;
use crate::group::{Group, Pending};
use crate::newest::Newest;
use crate::prepare::Prepared;
use crate::shared::{Shared, stopped};
use crate::spares::Spares;
use crate::writer::{Answer, Beside, CommitRecord, Decided, Reply, Writer};

/// A group is closed when it has this many bytes, so that who waits for it does not wait long.
const GROUP_BYTES_MAX: usize = 1024 * 1024;
/// How long a group waits for callers that are likely to come, at most; it is never more than half of
/// what the group before took.
const GATHER_WAIT_MAX: Duration = Duration::from_micros(250);
/// How long a group waits for the key-value store to flush before it is written all the same.
const FLUSH_WAIT_MAX: Duration = Duration::from_secs(5);
const FLUSH_POLL: Duration = Duration::from_millis(1);
/// Bytes written between two looks at what the key-value store has left to do. A keyspace's memtable is
/// flushed when it has several times as many.
const BACKLOG_CHECK_BYTES: u64 = 1024 * 1024;

/// Something for the committer to do.
pub(crate) enum Work {
    /// Independent transactions with one answer for all of them.
    Transactions {
        prepared: Vec<Prepared>,
        reply: oneshot::Sender<Reply>,
        /// Its place in the queue, given back when it is answered.
        permit: OwnedSemaphorePermit,
    },
    /// Anything else that must not run beside a commit.
    Exclusive(Box<dyn FnOnce(&mut Committer) + Send>),
    Stop,
}

pub(crate) struct Committer {
    pub(crate) shared: Arc<Shared>,
    pub(crate) spares: Spares,
    next_change: u64,
    /// The backlog is checked when this much has been written: 0 means before the first group.
    backlog_check_bytes: u64,
    writer: Beside,
    /// What the group that is being written beside this thread writes.
    under_way: Option<Arc<Pending>>,
    /// A group takes it along. What is not written takes it into nothing, for then it may be wrong.
    pub(crate) newest: Newest,
}

/// A group that callers can still be added to.
struct Open<'a> {
    group: Group<'a>,
    answers: Vec<Answer>,
    bytes: usize,
}

impl Committer {
    pub(crate) fn new(shared: Arc<Shared>, last: CommitRecord) -> std::io::Result<Self> {
        Ok(Self {
            writer: Beside::start(Writer::new(Arc::clone(&shared), last))?,
            shared,
            spares: Spares::default(),
            next_change: last.next_change,
            backlog_check_bytes: 0,
            under_way: None,
            newest: Newest::default(),
        })
    }

    pub(crate) fn run(mut self) {
        let shared = Arc::clone(&self.shared);
        // Also when this thread panics: callers must not wait for it.
        let _closing = Closing(&shared);
        let mut waiting = VecDeque::new();
        let mut open = None;
        let mut last = Last::default();
        loop {
            if waiting.is_empty() {
                waiting.extend(match open {
                    // More can join it until the one before is written.
                    Some(_) => shared.queue.take_while_writing(),
                    None => shared.queue.take(last.answered, last.patience),
                });
            }
            self.decide(&shared, &mut open, &mut waiting);
            if let Some(decided) = open.take() {
                let can_grow = waiting.is_empty() && shared.queue.is_writing();
                if can_grow {
                    open = Some(decided);
                } else {
                    shared.queue.wait_until_written();
                    last = self.close(decided);
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

    /// Decides what waits, in order, up to the first thing that is no transaction or to what one
    /// group may hold.
    fn decide<'a>(
        &mut self,
        shared: &'a Shared,
        open: &mut Option<Open<'a>>,
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
            let mut decided = match open.take() {
                Some(open) => open,
                None => match self.begin() {
                    Ok(()) => Open {
                        group: self.group(shared),
                        answers: Vec::new(),
                        bytes: 0,
                    },
                    Err(error) => {
                        drop(permit);
                        // A caller that no longer waits loses only the answer.
                        let _ = reply.send(Err(error));
                        continue;
                    }
                },
            };
            decided.bytes += weight(&prepared);
            let outcomes = prepared
                .into_iter()
                .map(|prepared| evaluate::transaction(&mut decided.group, &catalogue, prepared))
                .collect();
            decided.answers.push(Answer {
                outcomes,
                reply,
                permit,
            });
            *open = Some(decided);
        }
    }

    /// Has a group written: here if it is small, and otherwise beside the decisions on the next one.
    fn close(&mut self, open: Open<'_>) -> Last {
        let Open { group, answers, .. } = open;
        let (decided, pending) = self.finish(group);
        if decided.bytes >= self.shared.options.write_beside_bytes {
            self.under_way = Some(Arc::new(pending));
            self.writer.hand_over(decided, answers);
            return Last::default();
        }
        let last_answered = answers.len();
        let started = Instant::now();
        let written = self.writer.write(decided);
        for answer in answers {
            answer.send(written.clone());
        }
        Last {
            answered: last_answered,
            patience: started.elapsed().min(GATHER_WAIT_MAX * 2) / 2,
        }
    }

    /// Puts a group together with `fill` and makes it durable. Nothing of it is written when
    /// `fill` fails. Only for what runs between two groups.
    pub(crate) fn write<T>(
        &mut self,
        fill: impl FnOnce(&mut Group<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.begin()?;
        let shared = Arc::clone(&self.shared);
        let mut group = self.group(&shared);
        let filled = fill(&mut group)?;
        let (decided, _) = self.finish(group);
        self.writer.write(decided)?;
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
    pub(crate) fn continue_from(&mut self, last: CommitRecord) {
        // Never a number twice: where durability is relaxed, readers may have seen changes that are lost.
        self.next_change = self.next_change.max(last.next_change);
        self.under_way = None;
        self.newest = Newest::default();
        self.backlog_check_bytes = 0;
        self.writer.continue_from(last);
    }

    /// Whether a group may be put together now.
    fn begin(&mut self) -> Result<(), StoreError> {
        self.shared.latch.check()?;
        self.shared.room.check_upkeep()?;
        self.wait_for_backlog()?;
        self.wait_for_flush();
        if !self.shared.queue.is_writing() {
            self.under_way = None;
        }
        Ok(())
    }

    fn group<'a>(&mut self, shared: &'a Shared) -> Group<'a> {
        Group::new(
            shared,
            self.under_way.clone(),
            std::mem::take(&mut self.newest),
            self.next_change,
        )
    }

    fn finish(&mut self, group: Group<'_>) -> (Decided, Pending) {
        let (decided, pending, newest) = group.finish();
        self.next_change = decided.next_change;
        self.newest = newest;
        (decided, pending)
    }

    /// Waits while a keyspace has so much to flush or to merge that the key-value store would stop this
    /// thread until it is done: where a flush has failed, that would be for ever.
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

    /// Waits while more is buffered than allowed: slowing down early keeps memory bounded and the
    /// key-value store from stopping us for long.
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
                // Writing the group will meet it again, and knows what to do.
                Err(error) => {
                    tracing::warn!(%error, "cannot have the write buffer flushed");
                    break;
                }
            }
        }
        self.shared.metrics.waited_for_flush(started.elapsed());
    }
}

/// What was written last in the committer's own thread, whose callers are likely to come again.
#[derive(Default)]
struct Last {
    answered: usize,
    patience: Duration,
}

struct Closing<'a>(&'a Shared);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        // IMPORTANT: in this order: a rejected caller learns the reason from the latch.
        self.0.latch.close_if_panicking();
        self.0.queue.close();
    }
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
    async fn what_tables_have_in_memory_is_flushed_when_it_is_too_much_together() {
        const ITEM_BYTES: u64 = 64 * 1024;
        let directory = tempfile::tempdir().unwrap();
        let limit = 4 * ITEM_BYTES;
        let options = Options {
            write_buffer_bytes: limit,
            background_sweep: false,
            ..Options::default()
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
        // The last write came when there was room.
        let buffered = engine.metrics().write_buffer_bytes;
        assert!(buffered <= limit + 2 * ITEM_BYTES, "{buffered}");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn what_a_deleted_table_had_in_memory_no_longer_counts() {
        let directory = tempfile::tempdir().unwrap();
        let options = Options {
            background_sweep: false,
            ..Options::default()
        };
        let engine = Engine::open(directory.path(), options).unwrap();
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
        for waited in [first, second] {
            let error = waited.await.unwrap().unwrap_err();
            assert!(error.to_string().contains("refused"), "{error}");
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn failed_group_answers_each_of_its_callers() {
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
        // All are queued before the committer takes them, as one group.
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
