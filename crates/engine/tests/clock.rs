//! Clocks that jump in both directions: nothing is deleted too early, and the change log keeps its order.

use std::sync::Arc;
use std::time::Duration;

use homeport_engine::{
    Engine, ManualClock, NewTable, Options, RestorePoint, ShardPosition, restore,
};
use homeport_item::schema::{StreamView, TableSchema};
use homeport_item::{Item, KeyKind};
use homeport_store::{Get, Put, Store, Transaction};

const START_MS: i64 = 1_800_000_000_000;
const HOUR_MS: i64 = 60 * 60 * 1000;
const DAY_MS: i64 = 24 * HOUR_MS;

struct World {
    engine: Option<Engine>,
    clock: Arc<ManualClock>,
    directory: tempfile::TempDir,
}

impl World {
    async fn new() -> Self {
        let mut world = Self {
            engine: None,
            clock: Arc::new(ManualClock::at_ms(START_MS)),
            directory: tempfile::tempdir().expect("a directory"),
        };
        world.reopen();
        for name in ["things", "others"] {
            let mut table = TableSchema::new(name, "id", KeyKind::S).with_ttl("until");
            table.stream = Some(StreamView::NewImage);
            world.engine().create_table(table).await.expect("a table");
        }
        world
    }

    fn reopen(&mut self) {
        self.engine = None;
        let engine = Engine::open(self.directory.path(), self.options());
        self.engine = Some(engine.expect("opens"));
    }

    fn options(&self) -> Options {
        Options {
            clock: Arc::clone(&self.clock) as _,
            background_sweep: false,
            ..Options::default()
        }
    }

    fn engine(&self) -> &Engine {
        self.engine.as_ref().expect("open")
    }

    async fn put(&self, table: &str, n: i64) {
        let item = Item::new().with("id", "a").with("n", n);
        let put = self.engine().put(Put::new(table, item));
        put.await.expect("a put");
    }

    async fn put_expiring(&self, id: &str, after_secs: i64) {
        let until = START_MS / 1000 + after_secs;
        let item = Item::new().with("id", id).with("until", until);
        let put = self.engine().put(Put::new("things", item));
        put.await.expect("a put");
    }

    async fn is_visible(&self, id: &str) -> bool {
        let get = Get::new("things", Item::new().with("id", id));
        self.engine().get(get).await.expect("a get").is_some()
    }

    fn times(&self, table: &str) -> Vec<i64> {
        let page = self.engine().changes(table, 0, 1000).expect("changes");
        page.changes.iter().map(|change| change.at_ms).collect()
    }

    async fn restored(&self, point: RestorePoint, name: &str) -> Option<Item> {
        let target = NewTable {
            schema: TableSchema::new(name, "id", KeyKind::S),
            settings: String::new(),
        };
        let restore = self.engine().restore_table_to("things", point, target);
        restore.await.expect("begun");
        self.until_restored(name).await;
        let get = Get::new(name, Item::new().with("id", "a"));
        self.engine().get(get).await.expect("a get")
    }

    async fn until_restored(&self, table: &str) {
        let is_restoring = || self.engine().describe_table(table).expect("there");
        until(|| !is_restoring().is_restoring).await;
    }
}

async fn until(mut reached: impl FnMut() -> bool) {
    let wait = async {
        while !reached() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let waited = tokio::time::timeout(Duration::from_secs(30), wait);
    waited.await.expect("reached in time");
}

#[tokio::test]
async fn commit_times_never_go_backwards() {
    let mut world = World::new().await;
    for (n, jump_ms) in [1000, -HOUR_MS, 1000, -30 * DAY_MS, 1, 60 * DAY_MS, 5]
        .into_iter()
        .enumerate()
    {
        world.clock.advance_ms(jump_ms);
        if n % 2 == 1 {
            world.reopen();
        }
        world.put("things", i64::try_from(n).expect("small")).await;
    }
    let times = world.times("things");
    assert_eq!(times.len(), 7);
    assert!(times.is_sorted(), "{times:?}");
}

#[tokio::test]
async fn restore_is_correct_after_the_clock_went_back() {
    let world = World::new().await;
    let history = world.engine().set_history("things", Some(35));
    history.await.expect("kept");
    world.put("things", 1).await;
    for n in 2..10 {
        world.clock.advance_ms(1000);
        world.put("things", n).await;
    }
    world.clock.advance_ms(-HOUR_MS);
    for n in 10..40 {
        world.clock.advance_ms(1000);
        world.put("things", n).await;
    }
    let at = RestorePoint::At(START_MS + 4500);
    let restored = world.restored(at, "then").await.expect("an item");
    assert_eq!(restored.get("n"), Some(&5.into()));
    let latest = world.restored(RestorePoint::Latest, "latest").await;
    assert_eq!(latest.expect("an item").get("n"), Some(&39.into()));
}

#[tokio::test]
async fn stream_is_complete_after_the_clock_went_back() {
    let world = World::new().await;
    world.put("things", 1).await;
    world.clock.advance_ms(20 * HOUR_MS);
    world.put("things", 2).await;
    world.clock.advance_ms(-19 * HOUR_MS);
    for n in 3..20 {
        world.put("things", n).await;
    }
    // The first change is too old to be read, the others are not.
    world.clock.advance_ms(25 * HOUR_MS);
    let stream = world.engine().streams().remove(0);
    let shard = stream.shards[0].id;
    let page = world
        .engine()
        .read_shard(stream.id, shard, ShardPosition::Oldest, 100);
    assert_eq!(page.expect("a page").changes.len(), 18);
}

#[tokio::test]
async fn jump_ahead_deletes_no_expiring_items() {
    let mut world = World::new().await;
    world.put_expiring("soon", 60).await;
    world.put_expiring("later", 30 * 24 * 60 * 60).await;
    world.clock.advance_ms(400 * DAY_MS);
    for _ in 0..3 {
        world.clock.advance_ms(1000);
        // Written while the clock is wrong.
        world.put("others", 1).await;
        assert_eq!(world.engine().sweep().await.expect("swept").expired, 0);
        assert!(!world.is_visible("soon").await);
        assert!(!world.is_visible("later").await);
        world.reopen();
    }
    world.clock.advance_ms(-400 * DAY_MS);
    assert!(world.is_visible("later").await);
    assert!(world.is_visible("soon").await);
    world.clock.advance_ms(60_000);
    assert_eq!(world.engine().sweep().await.expect("swept").expired, 1);
    assert!(world.is_visible("later").await);
}

#[tokio::test]
async fn jump_ahead_trims_no_changes() {
    let world = World::new().await;
    let history = world.engine().set_history("others", Some(35));
    history.await.expect("kept");
    for table in ["things", "others"] {
        world.put(table, 1).await;
    }
    world.clock.advance_ms(400 * DAY_MS);
    world.put("things", 2).await;
    assert_eq!(
        world.engine().sweep().await.expect("swept").changes_trimmed,
        0
    );
    assert_eq!(world.times("things").len(), 2);
    assert_eq!(world.engine().streams().len(), 2);
}

#[tokio::test]
async fn change_during_a_jump_does_not_block_trimming() {
    let world = World::new().await;
    world.clock.advance_ms(400 * DAY_MS);
    for table in ["things", "others"] {
        world.put(table, 1).await;
    }
    world.clock.advance_ms(-400 * DAY_MS);
    for table in ["things", "others"] {
        world.put(table, 2).await;
    }
    world.clock.advance_ms(DAY_MS);
    world.engine().sweep().await.expect("swept");
    world.clock.advance_ms(1000);
    world.engine().sweep().await.expect("swept");
    assert_eq!(world.times("things"), Vec::<i64>::new());
    assert_eq!(world.times("others"), Vec::<i64>::new());
}

#[tokio::test]
async fn jump_ahead_forgets_no_client_token() {
    let world = World::new().await;
    let transaction = |n: i64| {
        let item = Item::new().with("id", "a").with("n", n);
        let mut transaction = Transaction::new(vec![Put::new("things", item).into()]);
        transaction.token = Some("token".to_owned());
        transaction
    };
    let first = world.engine().transact(transaction(1));
    first.await.expect("written");
    world.put("things", 2).await;
    world.clock.advance_ms(400 * DAY_MS);
    world.engine().sweep().await.expect("swept");
    let again = world.engine().transact(transaction(1));
    again.await.expect("a repeat");
    let get = Get::new("things", Item::new().with("id", "a"));
    let item = world.engine().get(get).await.expect("a get");
    assert_eq!(item.expect("an item").get("n"), Some(&2.into()));
}

#[tokio::test]
async fn backup_during_a_jump_has_expiring_items() {
    let world = World::new().await;
    world.put_expiring("later", 30 * 24 * 60 * 60).await;
    world.clock.advance_ms(400 * DAY_MS);
    let room = tempfile::tempdir().expect("a directory");
    let backup = room.path().join("backup");
    let summary = world.engine().backup(&backup).await.expect("a backup");
    assert_eq!(summary.items, 1);
    let created = world.engine().create_table_backup("things", "first");
    let id = created.await.expect("begun").id.clone();
    until(|| {
        let backup = world.engine().table_backup(&id).expect("there");
        backup.is_complete
    })
    .await;
    let target = NewTable {
        schema: TableSchema::new("copy", "id", KeyKind::S).with_ttl("until"),
        settings: String::new(),
    };
    let restoring = world.engine().restore_table_backup(&id, target);
    restoring.await.expect("begun");
    world.until_restored("copy").await;
    world.clock.advance_ms(-400 * DAY_MS);
    let get = |table: &str| Get::new(table, Item::new().with("id", "later"));
    let copied = world.engine().get(get("copy")).await;
    assert!(copied.expect("a get").is_some());
    let path = room.path().join("restored");
    let restored = restore(&backup, &path, world.options()).await;
    assert_eq!(restored.expect("restored").items, 1);
    let restored = Engine::open(&path, world.options()).expect("opens");
    let found = restored.get(get("things")).await;
    assert!(found.expect("a get").is_some());
}

#[tokio::test]
async fn copies_after_the_clock_went_back_have_visible_items() {
    let world = World::new().await;
    let history = world.engine().set_history("things", Some(35));
    history.await.expect("kept");
    world.put_expiring("a", 60).await;
    // Commit time stays an hour ahead of the clock; according to the clock, the item has not expired.
    world.clock.advance_ms(HOUR_MS);
    world.put("others", 1).await;
    world.clock.advance_ms(-HOUR_MS);
    assert!(world.is_visible("a").await);
    let room = tempfile::tempdir().expect("a directory");
    let backup = world.engine().backup(room.path().join("backup")).await;
    assert_eq!(backup.expect("a backup").items, 2);
    let latest = world.restored(RestorePoint::Latest, "latest").await;
    assert!(latest.is_some());
}
