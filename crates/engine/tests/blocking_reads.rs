//! Reads of many items do not block the runtime's threads.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use homeport_engine::{Clock, Engine, Options};
use homeport_item::schema::TableSchema;
use homeport_item::{Item, KeyKind};
use homeport_store::{BatchGet, Get, Put, Store, TableKeys};

/// A read that blocks the runtime is released after this time, and the test fails.
const BLOCKED_MAX: Duration = Duration::from_secs(5);

/// A clock that can be held: reads that ask for the time then wait.
#[derive(Debug, Default)]
struct HeldClock {
    is_held: Mutex<bool>,
    released: Condvar,
    was_asked: AtomicBool,
}

impl Clock for HeldClock {
    fn now_ms(&self) -> i64 {
        let held = self.is_held.lock().expect("no panic");
        self.was_asked.fetch_or(*held, Ordering::SeqCst);
        drop(
            self.released
                .wait_while(held, |held| *held)
                .expect("no panic"),
        );
        1_800_000_000_000
    }
}

impl HeldClock {
    fn hold(&self) {
        *self.is_held.lock().expect("no panic") = true;
    }

    fn release(&self) {
        *self.is_held.lock().expect("no panic") = false;
        self.released.notify_all();
    }

    /// Waits until the clock is released; returns whether that had to be forced.
    fn watch(&self) -> bool {
        let held = self.is_held.lock().expect("no panic");
        let (mut held, timeout) = self
            .released
            .wait_timeout_while(held, BLOCKED_MAX, |held| *held)
            .expect("no panic");
        *held = false;
        self.released.notify_all();
        timeout.timed_out()
    }
}

fn key(id: usize) -> Item {
    Item::new().with("id", id.to_string())
}

/// Runs a read while the clock is held, on a runtime with one thread.
async fn assert_does_not_block<R: Send + 'static>(read: impl AsyncFnOnce(Engine) -> R) {
    let directory = tempfile::tempdir().expect("a directory");
    let clock = Arc::new(HeldClock::default());
    let options = Options {
        clock: Arc::clone(&clock) as _,
        background_sweep: false,
        ..Options::default()
    };
    let engine = Engine::open(directory.path(), options).expect("opens");
    let table = TableSchema::new("things", "id", KeyKind::S).with_ttl("until");
    engine.create_table(table).await.expect("a table");
    for id in 0..10 {
        let put = engine.put(Put::new("things", key(id)));
        put.await.expect("a put");
    }
    clock.hold();
    let watched = Arc::clone(&clock);
    let watch = std::thread::spawn(move || watched.watch());
    let release = async {
        while !clock.was_asked.load(Ordering::SeqCst) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        clock.release();
    };
    tokio::join!(read(engine.clone()), release);
    assert!(
        !watch.join().expect("no panic"),
        "the read blocked the runtime"
    );
}

#[tokio::test]
async fn batch_get_does_not_block_the_runtime() {
    assert_does_not_block(async |engine| {
        let keys = TableKeys {
            table: "things".to_owned(),
            keys: (0..10).map(key).collect(),
            projection: None,
            consistent: false,
        };
        let request = BatchGet { tables: vec![keys] };
        let answer = engine.batch_get(request).await.expect("items");
        assert_eq!(answer.items.len(), 10);
    })
    .await;
}

#[tokio::test]
async fn transact_get_does_not_block_the_runtime() {
    assert_does_not_block(async |engine| {
        let gets = (0..10).map(|id| Get::new("things", key(id))).collect();
        let items = engine.transact_get(gets).await.expect("items");
        assert_eq!(items.iter().flatten().count(), 10);
    })
    .await;
}
