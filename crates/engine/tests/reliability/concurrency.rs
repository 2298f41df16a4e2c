//! Concurrent callers, including callers that are active when the engine closes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use homeport_engine::{Clock, Engine, OpenError, Options};
use homeport_item::expression::{self, Condition};
use homeport_item::schema::{IndexSchema, KeyAttribute, TableSchema};
use homeport_item::{Item, KeyKind};
use homeport_store::{
    Get, Put, Scan, Store, StoreError, TransactError, Transaction, Update, WriteError,
};

use crate::child::{Plan, Role, wait_until};
use crate::verify;
use crate::workload::{self, MIRRORS, PAIRS, SECOND_MIRROR};

/// A call that takes longer than this hangs.
const PATIENCE: Duration = Duration::from_secs(30);

/// A clock that can be held: callers that ask for the time then wait.
#[derive(Debug, Default)]
struct HeldClock {
    held: Mutex<bool>,
    released: Condvar,
    asked: AtomicBool,
}

impl HeldClock {
    fn hold(&self) {
        *self.held.lock().unwrap() = true;
    }

    fn release(&self) {
        *self.held.lock().unwrap() = false;
        self.released.notify_all();
    }
}

/// Releases the clock when a test fails, so that it ends.
struct Releasing(Arc<HeldClock>);

impl Drop for Releasing {
    fn drop(&mut self) {
        self.0.release();
    }
}

impl Clock for HeldClock {
    fn now_ms(&self) -> i64 {
        let held = self.held.lock().unwrap();
        self.asked.fetch_or(*held, Ordering::Relaxed);
        drop(self.released.wait_while(held, |held| *held).unwrap());
        1_800_000_000_000
    }
}

fn held_options(clock: &Arc<HeldClock>) -> Options {
    Options {
        clock: Arc::clone(clock) as _,
        ..verify::options()
    }
}

fn plain_table() -> TableSchema {
    TableSchema::new("plain", "id", KeyKind::S)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn readers_never_see_half_a_transaction() {
    let room = tempfile::tempdir().unwrap();
    let engine = Engine::open(room.path(), verify::options()).unwrap();
    engine.ensure_tables(&workload::tables()).await.unwrap();
    let first = workload::NUMBERS_PER_WRITER;
    for slot in 0..workload::SLOTS {
        workload::write(&engine, first + slot).await.unwrap();
    }
    let done = Arc::new(AtomicBool::new(false));
    let readers: Vec<_> = (0..3)
        .map(|reader| {
            let engine = engine.clone();
            let done = Arc::clone(&done);
            tokio::spawn(async move {
                let mut changes_seen = 0;
                let mut before = 0;
                while !done.load(Ordering::Relaxed) {
                    let slot = reader % workload::SLOTS;
                    let key = |slot: u64| {
                        Item::new()
                            .with("owner", workload::owner(1))
                            .with("slot", slot)
                    };
                    let items = engine
                        .transact_get(vec![
                            Get::new(PAIRS, key(slot)),
                            Get::new(MIRRORS, key(slot)),
                            Get::new(MIRRORS, key(slot + SECOND_MIRROR)),
                        ])
                        .await
                        .unwrap();
                    let values: Vec<_> = items
                        .iter()
                        .map(|item| workload::number_in(item.as_ref().unwrap(), "value"))
                        .collect();
                    assert!(
                        values.windows(2).all(|pair| pair[0] == pair[1]),
                        "{values:?}"
                    );
                    changes_seen += u64::from(values[0] != before);
                    before = values[0];
                    // One call reads one moment: both mirrors of every slot agree.
                    let mirrors = engine.scan(Scan::new(MIRRORS)).await.unwrap().items;
                    let value = |slot: u64| {
                        let item = mirrors
                            .iter()
                            .find(|item| workload::number_in(item, "slot") == slot);
                        workload::number_in(item.unwrap(), "value")
                    };
                    for slot in 0..workload::SLOTS {
                        assert_eq!(value(slot), value(slot + SECOND_MIRROR));
                    }
                }
                changes_seen
            })
        })
        .collect();
    for number in first + workload::SLOTS..first + 400 {
        workload::write(&engine, number).await.unwrap();
    }
    done.store(true, Ordering::Relaxed);
    for reader in readers {
        assert!(reader.await.unwrap() > 2, "the reader saw nothing change");
    }
    assert_eq!(engine.check().await.unwrap().problems, 0);
}

/// Groups on the writer thread, while the committer decides the next groups on top of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn decisions_build_on_the_group_being_written() {
    const CALLERS: i64 = 16;
    const TURNS: i64 = 200;
    let room = tempfile::tempdir().unwrap();
    let options = Options {
        background_write_min_bytes: 0,
        ..verify::options()
    };
    let engine = Engine::open(room.path(), options).unwrap();
    engine.create_table(plain_table()).await.unwrap();
    let counter = Item::new().with("id", "counter").with("count", 0);
    engine.put(Put::new("plain", counter)).await.unwrap();
    let callers: Vec<_> = (0..CALLERS)
        .map(|_| {
            let engine = engine.clone();
            tokio::spawn(async move {
                let mut firsts = 0;
                for turn in 0..TURNS {
                    let count = expression::Update::new().add("count", 1);
                    let key = Item::new().with("id", "counter");
                    let count = Update::new("plain", key, count);
                    engine.update(count).await.unwrap();
                    // All callers try to get it; exactly one succeeds.
                    let claim = Put::new("plain", Item::new().with("id", format!("turn-{turn}")));
                    let claim = claim.when(Condition::not_exists("id"));
                    match engine.put(claim).await {
                        Ok(_) => firsts += 1,
                        Err(WriteError::ConditionFailed { .. }) => {}
                        Err(other) => panic!("{other}"),
                    }
                }
                firsts
            })
        })
        .collect();
    let mut firsts = 0;
    for caller in callers {
        firsts += caller.await.unwrap();
    }
    assert_eq!(firsts, TURNS);
    let get = Get::new("plain", Item::new().with("id", "counter"));
    let counter = engine.get(get).await.unwrap().unwrap();
    assert_eq!(counter.get("count"), Some(&(CALLERS * TURNS).into()));
    assert_eq!(engine.check().await.unwrap().problems, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn full_queue_throttles_and_stays_bounded() {
    const QUEUE_BYTES_MAX: u64 = 64 * 1024 * 1024;
    let room = tempfile::tempdir().unwrap();
    let clock = Arc::new(HeldClock::default());
    let engine = Engine::open(room.path(), held_options(&clock)).unwrap();
    engine.create_table(plain_table()).await.unwrap();
    clock.hold();
    let _releasing = Releasing(Arc::clone(&clock));
    let writers: Vec<_> = (0..40)
        .map(|writer| {
            let engine = engine.clone();
            tokio::spawn(async move {
                let puts = (0..10).map(|at| {
                    let item = Item::new()
                        .with("id", format!("{writer}-{at}"))
                        .with("text", "x".repeat(300_000));
                    Put::new("plain", item).into()
                });
                engine.transact(Transaction::new(puts.collect())).await
            })
        })
        .collect();
    // Callers without space in the queue time out; the others wait for the committer.
    wait_until(|| writers.iter().filter(|writer| writer.is_finished()).count() >= 15);
    assert!(engine.metrics().queued_bytes <= QUEUE_BYTES_MAX);
    clock.release();
    let mut written = 0;
    let mut throttled = 0;
    for writer in writers {
        match writer.await.unwrap() {
            Ok(()) => written += 1,
            Err(TransactError::Store(StoreError::Throttled)) => throttled += 1,
            Err(other) => panic!("{other:?}"),
        }
    }
    assert!(
        written >= 15 && throttled >= 15,
        "{written} and {throttled}"
    );
    let engine_items = verify::scan(&engine, "plain", None).await;
    assert_eq!(
        engine_items.len(),
        written * 10,
        "throttled means not written"
    );
    wait_until(|| engine.metrics().queued_bytes == 0);
}

#[test]
fn second_process_is_locked_out() {
    let room = tempfile::tempdir().unwrap();
    let directory = room.path().join("data");
    let mut child = Plan::new(Role::Hold, &directory, &room.path().join("told")).start();
    child.wait_for_acknowledged(1);
    let refused = Engine::open(&directory, verify::options());
    assert!(matches!(refused, Err(OpenError::Locked(_))), "{refused:?}");
    child.kill();
    Engine::open(&directory, verify::options()).unwrap();
}

#[test]
fn second_engine_in_one_process_is_locked_out() {
    let room = tempfile::tempdir().unwrap();
    let first = Engine::open(room.path(), verify::options()).unwrap();
    let refused = Engine::open(room.path(), verify::options());
    assert!(matches!(refused, Err(OpenError::Locked(_))), "{refused:?}");
    drop(first);
    Engine::open(room.path(), verify::options()).unwrap();
}

#[test]
fn background_work_keeps_the_lock_after_closing() {
    let room = tempfile::tempdir().unwrap();
    let clock = Arc::new(HeldClock::default());
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    let engine = Engine::open(room.path(), held_options(&clock)).unwrap();
    clock.hold();
    let _releasing = Releasing(Arc::clone(&clock));
    let sweeping = {
        let engine = engine.clone();
        runtime.spawn(async move { engine.sweep().await.map(|_| ()) })
    };
    wait_until(|| clock.asked.load(Ordering::Relaxed));
    sweeping.abort();
    wait_until(|| sweeping.is_finished());
    drop(engine);
    let refused = Engine::open(room.path(), verify::options());
    assert!(matches!(refused, Err(OpenError::Locked(_))), "{refused:?}");
    clock.release();
    wait_until(|| Engine::open(room.path(), verify::options()).is_ok());
}

#[test]
fn closing_during_calls_keeps_answered_writes() {
    let room = tempfile::tempdir().unwrap();
    let clock = Arc::new(HeldClock::default());
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let engine = Engine::open(room.path(), held_options(&clock)).unwrap();
    runtime.block_on(async {
        engine.create_table(plain_table()).await.unwrap();
        let item = Item::new().with("id", "answered");
        engine.put(Put::new("plain", item)).await.unwrap();
    });
    clock.hold();
    let _releasing = Releasing(Arc::clone(&clock));
    let put = |engine: Engine, id: String| async move {
        engine
            .put(Put::new("plain", Item::new().with("id", id)))
            .await
    };
    let kept: Vec<_> = (0..20)
        .map(|at| runtime.spawn(put(engine.clone(), format!("kept-{at}"))))
        .collect();
    let dropped: Vec<_> = (0..20)
        .map(|at| runtime.spawn(put(engine.clone(), format!("dropped-{at}"))))
        .collect();
    wait_until(|| engine.metrics().queued_bytes >= 40 * 1024);
    for call in &dropped {
        call.abort();
    }
    drop(engine);
    clock.release();
    let answers = runtime.block_on(async {
        let mut answers = Vec::new();
        for call in kept {
            let answer = tokio::time::timeout(PATIENCE, call).await;
            answers.push(answer.expect("a call hangs").unwrap());
        }
        answers
    });
    runtime.shutdown_timeout(PATIENCE);
    let answered = answers.iter().filter(|answer| answer.is_ok()).count();
    for answer in answers {
        match answer {
            Ok(_) | Err(WriteError::Store(StoreError::Unavailable(_))) => {}
            Err(other) => panic!("{other:?}"),
        }
    }
    let mut reopened = None;
    wait_until(|| {
        reopened = Engine::open(room.path(), verify::options()).ok();
        reopened.is_some()
    });
    let engine = reopened.unwrap();
    let items = verify::runtime().block_on(verify::scan(&engine, "plain", None));
    assert!(items.len() > answered, "{} and {answered}", items.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn disabling_expiry_under_writes_leaves_no_entries() {
    let room = tempfile::tempdir().unwrap();
    let engine = Engine::open(room.path(), verify::options()).unwrap();
    let index = IndexSchema::global("by-group", KeyAttribute::new("group", KeyKind::N), None)
        .projecting(homeport_item::schema::IndexProjection::KeysOnly);
    let schema = plain_table().with_ttl("expires").with_index(index);
    engine.create_table(schema).await.unwrap();
    let put = |at: u64, expires: u64| {
        let item = Item::new()
            .with("id", format!("{at:05}"))
            .with("group", at % 10)
            .with("expires", expires);
        Transaction::new(vec![Put::new("plain", item).into()])
    };
    let all = |expires: u64| (0..3000).map(move |at| put(at, expires + at)).collect();
    for outcome in engine.transact_each(all(4_000_000_000)).await {
        outcome.unwrap();
    }
    engine.set_ttl("plain", None).await.unwrap();
    for outcome in engine.transact_each(all(5_000_000_000)).await {
        outcome.unwrap();
    }
    engine.wait_until_built("plain").await.unwrap();
    assert_eq!(
        engine.check().await.unwrap().descriptions,
        Vec::<String>::new()
    );
    engine.set_ttl("plain", Some("expires")).await.unwrap();
    assert_eq!(
        engine.check().await.unwrap().descriptions,
        Vec::<String>::new()
    );
    engine.wait_until_built("plain").await.unwrap();
    let report = engine.check().await.unwrap();
    assert_eq!(report.descriptions, Vec::<String>::new());
    assert_eq!(report.expiry_entries, 3000);
}

#[tokio::test]
async fn reader_of_a_quiet_table_does_not_spin() {
    let room = tempfile::tempdir().unwrap();
    let engine = Engine::open(room.path(), verify::options()).unwrap();
    let view = homeport_item::schema::StreamView::NewAndOldImages;
    for name in ["quiet", "busy"] {
        let schema = TableSchema::new(name, "id", KeyKind::S).with_stream(view);
        engine.create_table(schema).await.unwrap();
    }
    let item = |id: &str| Item::new().with("id", id);
    engine.put(Put::new("quiet", item("a"))).await.unwrap();
    engine.put(Put::new("busy", item("b"))).await.unwrap();
    let page = engine.changes("quiet", 0, 10).unwrap();
    assert_eq!(page.changes.len(), 1);
    let waited = tokio::time::timeout(
        Duration::from_millis(200),
        engine.wait_for_changes(page.next),
    );
    assert!(waited.await.is_err(), "there is nothing new to read");
    engine.put(Put::new("quiet", item("c"))).await.unwrap();
    let waited = tokio::time::timeout(PATIENCE, engine.wait_for_changes(page.next));
    waited.await.unwrap();
    assert_eq!(
        engine
            .changes("quiet", page.next, 10)
            .unwrap()
            .changes
            .len(),
        1
    );
}
