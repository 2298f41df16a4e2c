//! Backups and history of tables, and restoring tables from them.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use homeport_engine::{
    Engine, ManualClock, NewTable, Options, RestoreError, RestorePoint, TableBackup,
    TableBackupError,
};
use homeport_item::schema::{IndexSchema, KeyAttribute, StreamView, TableSchema};
use homeport_item::{Item, KeyKind};
use homeport_store::{Delete, Get, Put, Query, Scan, Store, Transaction};

const START_MS: i64 = 1_800_000_000_000;
const DAY_MS: i64 = 24 * 60 * 60 * 1000;

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
        let create = world.engine().create_table(schema("things"));
        create.await.expect("a table");
        world
    }

    fn close(&mut self) {
        self.engine = None;
    }

    fn reopen(&mut self) {
        self.close();
        let options = Options {
            clock: Arc::clone(&self.clock) as _,
            background_sweep: false,
            ..Options::default()
        };
        self.engine = Some(Engine::open(self.directory.path(), options).expect("opens"));
    }

    /// Lets days pass, one by one.
    async fn pass_days(&self, days: usize) {
        for _ in 0..days {
            self.clock.advance_ms(DAY_MS);
            self.engine().confirm_time().await.expect("confirmed");
        }
    }

    fn engine(&self) -> &Engine {
        self.engine.as_ref().expect("open")
    }

    async fn put(&self, id: usize, n: usize) {
        let put = Put::new("things", thing(id, n));
        self.engine().put(put).await.expect("a put");
    }

    /// Puts items, or deletes those without a number.
    async fn write(&self, changes: Vec<(usize, Option<usize>)>) {
        let mut transactions = Vec::with_capacity(changes.len());
        for (id, n) in changes {
            let action = match n {
                Some(n) => Put::new("things", thing(id, n)).into(),
                None => Delete::new("things", key(id)).into(),
            };
            transactions.push(Transaction::new(vec![action]));
        }
        for written in self.engine().transact_each(transactions).await {
            written.expect("written");
        }
    }

    async fn backup(&self, name: &str) -> Arc<TableBackup> {
        let begun = self.engine().create_table_backup("things", name).await;
        let id = begun.expect("begun").id.clone();
        self.completed(&id).await
    }

    async fn completed(&self, id: &str) -> Arc<TableBackup> {
        within(async || {
            let backup = self.engine().table_backup(id);
            backup.filter(|backup| backup.is_complete)
        })
        .await
    }

    /// Waits until a table is restored.
    async fn restored(&self, table: &str) {
        within(async || {
            let described = self.engine().describe_table(table).expect("being restored");
            (!described.is_restoring).then_some(())
        })
        .await;
    }

    async fn items(&self, table: &str) -> BTreeMap<String, Item> {
        scan(self.engine(), table).await
    }

    async fn is_whole(&self) {
        let report = self.engine().check().await.expect("a report");
        assert_eq!(report.descriptions, Vec::<String>::new());
    }
}

async fn within<T>(mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let wait = async {
        loop {
            if let Some(found) = look().await {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    let waited = tokio::time::timeout(Duration::from_secs(60), wait);
    waited.await.expect("timed out")
}

async fn scan(engine: &Engine, table: &str) -> BTreeMap<String, Item> {
    let mut items = BTreeMap::new();
    let mut start = None;
    loop {
        let page = engine.scan(Scan::new(table).starting_after(start)).await;
        let page = page.expect("a page");
        for item in page.items {
            let id = item.get("id").and_then(|id| id.as_str());
            items.insert(id.expect("a key").to_owned(), item);
        }
        start = page.next;
        if start.is_none() {
            return items;
        }
    }
}

fn schema(name: &str) -> TableSchema {
    let kind = KeyAttribute::new("kind", KeyKind::S);
    TableSchema::new(name, "id", KeyKind::S).with_index(IndexSchema::global("by-kind", kind, None))
}

fn target(name: &str) -> NewTable {
    NewTable {
        schema: schema(name),
        settings: String::new(),
    }
}

fn thing(id: usize, n: usize) -> Item {
    let n = i64::try_from(n).expect("small");
    let kind = if n % 3 == 0 { "fizz" } else { "plain" };
    Item::new()
        .with("id", id.to_string())
        .with("n", n)
        .with("kind", kind)
        .with("padding", "x".repeat(id % 50))
}

fn key(id: usize) -> Item {
    Item::new().with("id", id.to_string())
}

/// Equal seeds give equal numbers, so that failures can be reproduced.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let bound = u64::try_from(bound).expect("a bound");
        usize::try_from((self.0 >> 33) % bound).expect("below the bound")
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn backup_under_writes_shows_one_moment() {
    let mut world = World::new().await;
    for id in 0..2000 {
        world.put(id, 1).await;
    }
    // Both halves of a pair always have the same number.
    let pair = |n: usize| {
        let puts = [0, 1].map(|id| Put::new("things", thing(id, n)).into());
        Transaction::new(puts.into())
    };
    world.engine().transact(pair(0)).await.expect("a pair");
    let writer = world.engine().clone();
    let writing = tokio::spawn(async move {
        for n in 1..300 {
            writer.transact(pair(n)).await.expect("a pair");
        }
    });
    let backup = world.backup("while-busy").await;
    writing.await.expect("written");
    assert_eq!((backup.items, backup.name.as_str()), (2000, "while-busy"));
    assert!(backup.bytes > 0);
    world.put(5000, 1).await;
    world.reopen();
    let restore = world
        .engine()
        .restore_table_backup(&backup.id, target("copy"));
    let described = restore.await.expect("begun");
    assert!(described.is_restoring);
    world.restored("copy").await;
    let items = world.items("copy").await;
    assert_eq!(items.len(), 2000);
    assert_eq!(items["0"].get("n"), items["1"].get("n"));
    assert_eq!(items["77"], thing(77, 1));
    world.is_whole().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn restored_table_has_indexes_and_no_stream() {
    let world = World::new().await;
    for id in 0..30 {
        world.put(id, id).await;
    }
    let stream = world
        .engine()
        .set_stream("things", Some(StreamView::NewImage));
    stream.await.expect("a stream");
    let backup = world.backup("one").await;
    let mut without = target("bare");
    without.schema.indexes.clear();
    for (name, target) in [("copy", target("copy")), ("bare", without)] {
        let restore = world.engine().restore_table_backup(&backup.id, target);
        restore.await.expect("begun");
        world.restored(name).await;
        assert_eq!(world.items(name).await, world.items("things").await);
    }
    let fizz = homeport_item::expression::KeyCondition::new("kind", "fizz");
    let query = Query::new("copy", fizz).on_index("by-kind");
    assert_eq!(world.engine().query(query).await.expect("a page").count, 10);
    let copy = world.engine().describe_table("copy").expect("there").schema;
    assert_eq!(copy.stream, None);
    let bare = world.engine().describe_table("bare").expect("there").schema;
    assert_eq!(bare.indexes, []);
    world.is_whole().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn backup_of_a_deleted_table_is_complete() {
    let world = World::new().await;
    world
        .write((0..5000).map(|id| (id, Some(1))).collect())
        .await;
    let history = world.engine().set_history("things", Some(35));
    history.await.expect("kept");
    let begun = world.engine().create_table_backup("things", "last").await;
    let id = begun.expect("begun").id.clone();
    let restore = world
        .engine()
        .restore_table_to("things", RestorePoint::Latest, target("copy"));
    restore.await.expect("begun");
    let delete = world.engine().delete_table("things");
    delete.await.expect("deleted");
    assert_eq!(world.completed(&id).await.items, 5000);
    world.restored("copy").await;
    assert_eq!(world.items("copy").await.len(), 5000);
}

#[tokio::test]
async fn expired_items_are_not_backed_up() {
    let world = World::new().await;
    let ttl = world.engine().set_ttl("things", Some("until"));
    ttl.await.expect("a time to live");
    let now = START_MS / 1000;
    for (id, until) in [(1, now - 5), (2, now + 5)] {
        let item = thing(id, 1).with("until", until);
        let put = world.engine().put(Put::new("things", item));
        put.await.expect("a put");
    }
    assert_eq!(world.backup("one").await.items, 1);
}

#[tokio::test]
async fn deleted_backup_is_gone_with_its_file() {
    let mut world = World::new().await;
    world.put(1, 1).await;
    let backup = world.backup("one").await;
    let folder = world.directory.path().join("backups");
    assert_eq!(files(&folder), 1);
    let deleted = world.engine().delete_table_backup(&backup.id).await;
    assert_eq!(deleted.expect("deleted").id, backup.id);
    assert_eq!(files(&folder), 0);
    world.reopen();
    assert_eq!(world.engine().table_backups(), []);
    let again = world.engine().delete_table_backup(&backup.id).await;
    assert!(matches!(again, Err(TableBackupError::Missing(_))));
    let restore = world
        .engine()
        .restore_table_backup(&backup.id, target("copy"));
    let refused = restore.await;
    assert!(matches!(refused, Err(RestoreError::BackupMissing(_))));
}

fn files(folder: &Path) -> usize {
    std::fs::read_dir(folder).expect("a folder").count()
}

#[tokio::test]
async fn leftovers_of_an_interrupted_backup_are_deleted() {
    let mut world = World::new().await;
    world.put(1, 1).await;
    let backup = world.backup("one").await;
    let folder = world.directory.path().join("backups");
    world.close();
    for name in [
        "01800000000000-0badcafe.unfinished",
        "01800000000000-0badcafe.backup",
    ] {
        std::fs::write(folder.join(name), b"half").expect("a file");
    }
    world.reopen();
    assert_eq!(files(&folder), 1);
    assert_eq!(world.engine().table_backups(), [backup]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn damaged_backup_leaves_no_table() {
    let mut world = World::new().await;
    for id in 0..500 {
        world.put(id, 1).await;
    }
    let backup = world.backup("one").await;
    let file = format!("{}.backup", backup.id);
    let path = world.directory.path().join("backups").join(file);
    world.close();
    let mut bytes = std::fs::read(&path).expect("the backup");
    // Inside the data file, which follows one header.
    bytes[700] ^= 1;
    std::fs::write(&path, bytes).expect("written");
    world.reopen();
    let restore = world
        .engine()
        .restore_table_backup(&backup.id, target("copy"));
    restore.await.expect("begun");
    within(async || world.engine().describe_table("copy").err()).await;
    assert_eq!(world.engine().table_names(), ["things"]);
    let create = world.engine().create_table(schema("copy"));
    create.await.expect("the name is free again");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn interrupted_restore_leaves_nothing_and_can_be_repeated() {
    let mut world = World::new().await;
    for id in 0..3000 {
        world.put(id, 1).await;
    }
    let backup = world.backup("one").await;
    let restore = world
        .engine()
        .restore_table_backup(&backup.id, target("copy"));
    restore.await.expect("begun");
    let taken = world.engine().create_table(schema("copy")).await;
    assert!(taken.is_err(), "the name is taken");
    let get = world.engine().get(Get::new("copy", key(1))).await;
    assert!(get.is_err() || world.engine().describe_table("copy").is_ok());
    // Closing does not wait for the restore.
    world.reopen();
    if world.engine().describe_table("copy").is_err() {
        assert_eq!(world.engine().table_names(), ["things"]);
        let restore = world
            .engine()
            .restore_table_backup(&backup.id, target("copy"));
        restore.await.expect("begun");
        world.restored("copy").await;
    }
    assert_eq!(world.items("copy").await, world.items("things").await);
    world.is_whole().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn any_moment_of_the_history_can_be_restored() {
    const ITEMS: usize = 20_000;
    const SECONDS: usize = 40;
    const CHANGES_PER_SECOND: usize = 500;
    let mut world = World::new().await;
    let mut dice = Dice(7);
    world
        .write((0..ITEMS).map(|id| (id, Some(0))).collect())
        .await;
    let history = world.engine().set_history("things", Some(35));
    history.await.expect("kept");
    // The number of each item; `None` for missing items.
    let mut model: Vec<Option<usize>> = vec![Some(0); ITEMS];
    let mut moments = Vec::new();
    for second in 0..SECONDS {
        let mut changes = BTreeMap::new();
        for _ in 0..CHANGES_PER_SECOND {
            let n = (dice.below(4) > 0).then(|| dice.below(1000));
            changes.insert(dice.below(ITEMS), n);
        }
        for (id, n) in &changes {
            model[*id] = *n;
        }
        world.write(changes.into_iter().collect()).await;
        moments.push(model.clone());
        world.clock.advance_ms(1000);
        if second == SECONDS / 2 {
            world.reopen();
        }
    }
    // The source continues to change while it is restored.
    let (busy, seed) = (world.engine().clone(), 8);
    let writing = tokio::spawn(async move {
        let mut dice = Dice(seed);
        for _ in 0..500 {
            let put = Put::new("things", thing(dice.below(ITEMS), dice.below(1000)));
            busy.put(put).await.expect("a put");
        }
    });
    for at in [0, dice.below(SECONDS), dice.below(SECONDS), SECONDS - 1] {
        let at_ms = START_MS + i64::try_from(at).expect("small") * 1000 + 999;
        let name = format!("at-{at}");
        let point = RestorePoint::At(at_ms);
        let restore = world
            .engine()
            .restore_table_to("things", point, target(&name));
        match restore.await {
            Ok(_) => world.restored(&name).await,
            Err(RestoreError::TargetExists(_)) => {}
            Err(error) => panic!("{error}"),
        }
        let expected = moments[at].iter().enumerate();
        let expected: BTreeMap<String, Item> = expected
            .filter_map(|(id, n)| n.map(|n| (id.to_string(), thing(id, n))))
            .collect();
        assert!(world.items(&name).await == expected, "second {at}");
    }
    writing.await.expect("written");
    let restore = world
        .engine()
        .restore_table_to("things", RestorePoint::Latest, target("latest"));
    restore.await.expect("begun");
    world.restored("latest").await;
    assert!(world.items("latest").await == world.items("things").await);
    world.is_whole().await;
}

/// A put must load the old item even if nothing else of the table needs it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn plain_table_is_restored_from_its_history() {
    let world = World::new().await;
    let bare = |name: &str| TableSchema::new(name, "id", KeyKind::S);
    world
        .engine()
        .create_table(bare("bare"))
        .await
        .expect("a table");
    let put = async |n| {
        let put = world.engine().put(Put::new("bare", thing(1, n)));
        put.await.expect("a put");
        world.clock.advance_ms(1000);
    };
    put(1).await;
    let history = world.engine().set_history("bare", Some(35));
    history.await.expect("kept");
    put(2).await;
    put(3).await;
    for (after_ms, n) in [(1000, 2), (2000, 3)] {
        let name = format!("copy-{n}");
        let target = NewTable {
            schema: bare(&name),
            settings: String::new(),
        };
        let point = RestorePoint::At(START_MS + after_ms);
        let restore = world.engine().restore_table_to("bare", point, target);
        restore.await.expect("begun");
        world.restored(&name).await;
        assert_eq!(world.items(&name).await["1"], thing(1, n));
    }
}

#[tokio::test]
async fn only_kept_history_can_be_restored() {
    let world = World::new().await;
    let restore = |point| {
        world
            .engine()
            .restore_table_to("things", point, target("copy"))
    };
    let off = restore(RestorePoint::Latest).await;
    assert!(matches!(off, Err(RestoreError::HistoryOff(_))));
    let history = world.engine().set_history("things", Some(2));
    history.await.expect("kept");
    world.clock.advance_ms(DAY_MS);
    for at_ms in [START_MS - 1, START_MS + DAY_MS] {
        let refused = restore(RestorePoint::At(at_ms)).await;
        let reach = RestoreError::OutOfReach {
            earliest_ms: START_MS,
            latest_ms: START_MS + DAY_MS - 1,
        };
        assert_eq!(
            refused.expect_err("out of reach").to_string(),
            reach.to_string()
        );
    }
    world.pass_days(2).await;
    let refused = restore(RestorePoint::At(START_MS + DAY_MS - 1)).await;
    let earliest = START_MS + DAY_MS;
    assert!(
        matches!(refused, Err(RestoreError::OutOfReach { earliest_ms, .. }) if earliest_ms == earliest)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_are_kept_exactly_for_the_history_period() {
    let world = World::new().await;
    let history = world.engine().set_history("things", Some(3));
    history.await.expect("kept");
    world.put(1, 1).await;
    world.pass_days(2).await;
    world.put(1, 2).await;
    assert_eq!(
        world.engine().sweep().await.expect("swept").changes_trimmed,
        0
    );
    let point = RestorePoint::At(START_MS + DAY_MS);
    let restore = world
        .engine()
        .restore_table_to("things", point, target("copy"));
    restore.await.expect("begun");
    world.restored("copy").await;
    assert_eq!(world.items("copy").await["1"], thing(1, 1));
    world.pass_days(1).await;
    world.clock.advance_ms(1);
    assert_eq!(
        world.engine().sweep().await.expect("swept").changes_trimmed,
        1
    );
    let history = world.engine().set_history("things", None);
    history.await.expect("off");
    assert_eq!(
        world.engine().sweep().await.expect("swept").changes_trimmed,
        1
    );
    world.put(1, 3).await;
    assert_eq!(world.engine().check().await.expect("a report").changes, 0);
}

#[tokio::test]
async fn history_is_not_visible_in_a_stream() {
    let world = World::new().await;
    let history = world.engine().set_history("things", Some(35));
    history.await.expect("kept");
    world.put(1, 1).await;
    let page = world.engine().changes("things", 0, 10).expect("a page");
    assert_eq!(page.changes, []);
    let stream = world
        .engine()
        .set_stream("things", Some(StreamView::NewImage));
    stream.await.expect("a stream");
    world.put(1, 2).await;
    let page = world.engine().changes("things", 0, 10).expect("a page");
    assert_eq!(page.changes.len(), 1);
    assert_eq!(page.changes[0].old, None);
    assert_eq!(page.changes[0].new, Some(thing(1, 2)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn expiry_at_the_restored_moment_decides() {
    let world = World::new().await;
    let ttl = world.engine().set_ttl("things", Some("until"));
    ttl.await.expect("a time to live");
    let history = world.engine().set_history("things", Some(35));
    history.await.expect("kept");
    let start = START_MS / 1000;
    for (id, after) in [(1, 10), (2, 100), (3, 1000)] {
        let item = thing(id, 1).with("until", start + after);
        let put = world.engine().put(Put::new("things", item));
        put.await.expect("a put");
    }
    world.clock.advance_ms(500_000);
    assert_eq!(world.engine().sweep().await.expect("swept").expired, 2);
    let point = RestorePoint::At(START_MS + 50_000);
    let restore = world
        .engine()
        .restore_table_to("things", point, target("copy"));
    restore.await.expect("begun");
    world.restored("copy").await;
    let items = world.items("copy").await;
    assert_eq!(items.keys().collect::<Vec<_>>(), ["2", "3"]);
}
