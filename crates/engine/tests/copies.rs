//! Backups, exports, restores, new indexes and checks of tables under writes: each shows one moment, and none
//! keeps a snapshot open for long.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use homeport_engine::{Engine, NewTable, Options, RestorePoint, restore};
use homeport_item::schema::{IndexSchema, KeyAttribute, TableSchema};
use homeport_item::{Item, KeyKind};
use homeport_store::{Clock as _, Delete, Put, Scan, Store as _, SystemClock, Transaction};

const PAIRS: u64 = 6_000;
/// Twice the limit of a chunk: items and their old values.
const ENTRIES_PER_SNAPSHOT_MAX: u64 = 2 * 1024 + 2;
const PATIENCE: Duration = Duration::from_secs(60);

fn options() -> Options {
    Options {
        background_sweep: false,
        durability: homeport_engine::Durability::Relaxed,
        ..Options::default()
    }
}

/// Two tables. Pair `n` is an item `n` in each of them with the same round, or in neither.
async fn with_pairs(engine: &Engine) {
    for table in ["left", "right"] {
        let schema = TableSchema::new(table, "id", KeyKind::S);
        engine.create_table(schema).await.unwrap();
    }
    for first in (0..PAIRS).step_by(50) {
        let actions = (first..first + 50).flat_map(|pair| puts(pair, 0));
        engine
            .transact(Transaction::new(actions.collect()))
            .await
            .unwrap();
    }
}

fn puts(pair: u64, round: u64) -> [homeport_store::Action; 2] {
    ["left", "right"].map(|table| {
        let item = Item::new().with("id", name(pair)).with("round", round);
        Put::new(table, item).into()
    })
}

fn name(pair: u64) -> String {
    format!("{pair:06}")
}

/// Changes, creates and deletes pairs until it is stopped; returns the number of answered transactions.
fn churn(
    engine: &Engine,
    stop: &Arc<AtomicBool>,
    done: &Arc<AtomicU64>,
) -> tokio::task::JoinHandle<()> {
    let (engine, stop, done) = (engine.clone(), Arc::clone(stop), Arc::clone(done));
    tokio::spawn(async move {
        let mut round = 0;
        while !stop.load(Ordering::SeqCst) {
            round += 1;
            // Spread over all pairs, and some new ones.
            let pair = round * 7919 % (PAIRS * 2);
            let actions = if round % 3 == 0 {
                ["left", "right"]
                    .map(|table| Delete::new(table, Item::new().with("id", name(pair))).into())
                    .into()
            } else {
                puts(pair, round).into()
            };
            engine.transact(Transaction::new(actions)).await.unwrap();
            done.fetch_add(1, Ordering::SeqCst);
        }
    })
}

async fn rounds(engine: &Engine, table: &str) -> BTreeMap<String, String> {
    let mut rounds = BTreeMap::new();
    let mut scan = Scan::new(table);
    loop {
        let page = engine.scan(scan.clone()).await.unwrap();
        for item in page.items {
            let text = |name| format!("{:?}", item.get(name).unwrap());
            rounds.insert(text("id"), text("round"));
        }
        scan.start = page.next;
        if scan.start.is_none() {
            return rounds;
        }
    }
}

/// Tables are too large to be printed.
#[track_caller]
fn assert_same(left: &BTreeMap<String, String>, right: &BTreeMap<String, String>) {
    let all = left.keys().chain(right.keys());
    let different: Vec<_> = all.filter(|id| left.get(*id) != right.get(*id)).collect();
    assert!(different.is_empty(), "{} items differ", different.len());
}

async fn until(mut reached: impl FnMut() -> bool) {
    let started = Instant::now();
    while !reached() {
        assert!(started.elapsed() < PATIENCE, "timed out");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn backup_under_writes_shows_one_moment() {
    let room = tempfile::tempdir().unwrap();
    let engine = Engine::open(room.path().join("data"), options()).unwrap();
    with_pairs(&engine).await;
    let (stop, done) = (Arc::default(), Arc::default());
    let writer = churn(&engine, &stop, &done);
    until(|| done.load(Ordering::SeqCst) > 10).await;
    let before = done.load(Ordering::SeqCst);
    let backup = room.path().join("backup");
    let summary = engine.backup(&backup).await.unwrap();
    assert!(
        done.load(Ordering::SeqCst) > before,
        "nothing was written meanwhile"
    );
    stop.store(true, Ordering::SeqCst);
    writer.await.unwrap();
    let entries = engine.metrics().snapshot_entries_max;
    assert!(
        entries <= ENTRIES_PER_SNAPSHOT_MAX,
        "{entries} from one snapshot"
    );
    restore(&backup, &room.path().join("restored"), options())
        .await
        .unwrap();
    let restored = Engine::open(room.path().join("restored"), options()).unwrap();
    let left = rounds(&restored, "left").await;
    // Both tables are in the state between the same two transactions.
    assert_same(&left, &rounds(&restored, "right").await);
    assert_eq!(left.len() as u64 * 2, summary.items);
    // No undo record is left.
    engine.sweep().await.unwrap();
    assert!(engine.check().await.unwrap().descriptions.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn table_backups_and_restores_under_writes_show_one_moment() {
    let room = tempfile::tempdir().unwrap();
    let engine = Engine::open(room.path(), options()).unwrap();
    with_pairs(&engine).await;
    engine.set_history("left", Some(1)).await.unwrap();
    let then = rounds(&engine, "left").await;
    // Writes start after the backup has begun.
    let walked = engine.metrics().snapshot_entries_max;
    let backup = engine.create_table_backup("left", "first").await.unwrap();
    let target = |name: &str| NewTable {
        schema: TableSchema::new(name, "id", KeyKind::S),
        settings: String::new(),
    };
    let past = engine.restore_table_to("left", RestorePoint::Latest, target("past"));
    past.await.unwrap();
    let (stop, done) = (Arc::default(), Arc::default());
    let writer = churn(&engine, &stop, &done);
    let index = IndexSchema::global("by-round", KeyAttribute::new("round", KeyKind::N), None);
    engine.add_index("left", index).await.unwrap();
    until(|| {
        let backup = engine.table_backup(&backup.id);
        let is_restored = |name| !engine.describe_table(name).unwrap().is_restoring;
        backup.is_some_and(|backup| backup.is_complete) && is_restored("past")
    })
    .await;
    engine.wait_until_built("left").await.unwrap();
    engine
        .restore_table_backup(&backup.id, target("saved"))
        .await
        .unwrap();
    until(|| !engine.describe_table("saved").unwrap().is_restoring).await;
    stop.store(true, Ordering::SeqCst);
    writer.await.unwrap();
    let entries = engine.metrics().snapshot_entries_max;
    // Scans by the test itself read pages of their own size.
    let allowed = walked.max(ENTRIES_PER_SNAPSHOT_MAX);
    assert!(entries <= allowed, "{entries} from one snapshot");
    assert_same(&rounds(&engine, "past").await, &then);
    assert_same(&rounds(&engine, "saved").await, &then);
    assert!(engine.check().await.unwrap().descriptions.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn check_under_writes_reads_in_chunks() {
    const ITEMS: u64 = 3_000;
    let room = tempfile::tempdir().unwrap();
    let engine = Engine::open(room.path(), options()).unwrap();
    let mut schema = TableSchema::new("things", "id", KeyKind::S).with_ttl("until");
    let key = KeyAttribute::new("round", KeyKind::N);
    schema
        .indexes
        .push(IndexSchema::global("by-round", key, None));
    engine.create_table(schema).await.unwrap();
    let now_secs = SystemClock.now_secs();
    let thing = move |id: u64, round: u64| {
        let until = now_secs + 3600 * i64::try_from(round % 50 + 1).unwrap();
        let item = Item::new().with("id", name(id)).with("round", round);
        Put::new("things", item.with("until", until))
    };
    for first in (0..ITEMS).step_by(50) {
        let puts = (first..first + 50).map(|id| thing(id, 0).into());
        let transaction = Transaction::new(puts.collect());
        engine.transact(transaction).await.unwrap();
    }
    let (stop, done): (Arc<AtomicBool>, Arc<AtomicU64>) = Default::default();
    let writer = {
        let (engine, stop, done) = (engine.clone(), Arc::clone(&stop), Arc::clone(&done));
        tokio::spawn(async move {
            while !stop.load(Ordering::SeqCst) {
                let round = done.fetch_add(1, Ordering::SeqCst) + 1;
                let id = round * 7919 % (ITEMS * 2);
                if round % 3 == 0 {
                    let delete = Delete::new("things", Item::new().with("id", name(id)));
                    engine.delete(delete).await.unwrap();
                } else {
                    engine.put(thing(id, round)).await.unwrap();
                }
            }
        })
    };
    for _ in 0..3 {
        let before = done.load(Ordering::SeqCst);
        let report = engine.check().await.unwrap();
        assert_eq!(report.descriptions, Vec::<String>::new());
        assert!(
            done.load(Ordering::SeqCst) > before,
            "nothing was written meanwhile"
        );
    }
    stop.store(true, Ordering::SeqCst);
    writer.await.unwrap();
    let entries = engine.metrics().snapshot_entries_max;
    assert!(
        entries <= ENTRIES_PER_SNAPSHOT_MAX,
        "{entries} from one snapshot"
    );
}
