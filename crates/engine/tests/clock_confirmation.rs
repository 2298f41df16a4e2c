//! Confirmation of the time after the clock was implausibly far ahead.

use std::sync::Arc;

use homeport_engine::{CLOCK_STEADY_MS, Engine, ManualClock, Options};
use homeport_item::schema::TableSchema;
use homeport_item::{Item, KeyKind};
use homeport_store::{Put, Store};

const START_MS: i64 = 1_800_000_000_000;
const MINUTE_MS: i64 = 60 * 1000;
const DAY_MS: i64 = 24 * 60 * MINUTE_MS;

struct World {
    engine: Option<Engine>,
    clock: Arc<ManualClock>,
    directory: tempfile::TempDir,
}

impl World {
    /// A store with an expired item that was closed for a month.
    async fn after_a_month() -> Self {
        let mut world = Self {
            engine: None,
            clock: Arc::new(ManualClock::at_ms(START_MS)),
            directory: tempfile::tempdir().expect("a directory"),
        };
        world.reopen();
        let table = TableSchema::new("things", "id", KeyKind::S).with_ttl("until");
        world.engine().create_table(table).await.expect("a table");
        world.put("a").await;
        world.engine = None;
        world.clock.advance_ms(30 * DAY_MS);
        world.reopen();
        assert!(world.engine().clock_status().is_suspended);
        assert_eq!(world.swept().await, 0);
        world
    }

    fn reopen(&mut self) {
        self.engine = None;
        let options = Options {
            clock: Arc::clone(&self.clock) as _,
            background_sweep: false,
            ..Options::default()
        };
        self.engine = Some(Engine::open(self.directory.path(), options).expect("opens"));
    }

    fn engine(&self) -> &Engine {
        self.engine.as_ref().expect("open")
    }

    async fn put(&self, id: &str) {
        let until = START_MS / 1000 + 60;
        let item = Item::new().with("id", id).with("until", until);
        let put = self.engine().put(Put::new("things", item));
        put.await.expect("a put");
    }

    async fn swept(&self) -> u64 {
        self.engine().sweep().await.expect("swept").expired
    }
}

#[tokio::test]
async fn operator_confirmation_resumes_expiry() {
    let world = World::after_a_month().await;
    let status = world.engine().confirm_time().await.expect("confirmed");
    assert!(!status.is_suspended);
    assert_eq!(status.commit_ms, START_MS + 30 * DAY_MS);
    assert_eq!(world.swept().await, 1);
}

#[tokio::test]
async fn confirmation_survives_a_restart() {
    let mut world = World::after_a_month().await;
    world.engine().confirm_time().await.expect("confirmed");
    world.reopen();
    assert!(!world.engine().clock_status().is_suspended);
    assert_eq!(world.swept().await, 1);
}

#[tokio::test]
async fn restart_alone_does_not_confirm_the_time() {
    let mut world = World::after_a_month().await;
    world.put("b").await;
    world.reopen();
    assert!(world.engine().clock_status().is_suspended);
    assert_eq!(world.swept().await, 0);
}

#[tokio::test]
async fn steady_commits_resume_expiry() {
    let world = World::after_a_month().await;
    world.put("b").await;
    let mut passed_ms = 0;
    while passed_ms < CLOCK_STEADY_MS {
        assert_eq!(world.swept().await, 0);
        world.clock.advance_ms(10 * MINUTE_MS);
        passed_ms += 10 * MINUTE_MS;
        world.put(&passed_ms.to_string()).await;
    }
    assert!(!world.engine().clock_status().is_suspended);
    assert!(world.swept().await > 1);
}

#[tokio::test]
async fn idle_store_stays_confirmed_over_a_restart() {
    let mut world = World::after_a_month().await;
    world.engine().confirm_time().await.expect("confirmed");
    for _ in 0..30 {
        world.clock.advance_ms(2 * 60 * MINUTE_MS);
        world.swept().await;
    }
    world.reopen();
    assert!(!world.engine().clock_status().is_suspended);
}
