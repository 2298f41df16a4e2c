//! Tables that are created and deleted all the time: what they leave behind, and what reused keyspaces
//! contain.

use std::path::Path;
use std::time::{Duration, Instant};

use homeport_engine::{Engine, Options};
use homeport_item::expression::KeyCondition;
use homeport_item::schema::{IndexSchema, KeyAttribute, TableSchema};
use homeport_item::{Item, KeyKind};
use homeport_store::{Put, Query, Scan, Store};

fn indexed(name: &str) -> TableSchema {
    let colour = KeyAttribute::new("colour", KeyKind::S);
    let mut table = TableSchema::new(name, "id", KeyKind::S);
    table
        .indexes
        .push(IndexSchema::global("by-colour", colour, None));
    table
}

fn thing(number: i32) -> Item {
    Item::new()
        .with("id", format!("thing-{number}"))
        .with("colour", "red")
}

fn files(directory: &Path) -> usize {
    let entries = std::fs::read_dir(directory).expect("a directory");
    entries
        .map(|entry| {
            let path = entry.expect("an entry").path();
            if path.is_dir() { files(&path) } else { 1 }
        })
        .sum()
}

async fn make_and_delete(engine: &Engine, name: &str, items: i32) {
    engine.create_table(indexed(name)).await.expect("a table");
    for number in 0..items {
        let put = Put::new(name, thing(number));
        engine.put(put).await.expect("a put");
    }
    engine.delete_table(name).await.expect("deleted");
}

#[tokio::test]
async fn short_lived_tables_leave_no_files() {
    let directory = tempfile::tempdir().expect("a directory");
    let engine = Engine::open(directory.path(), Options::default()).expect("opens");
    make_and_delete(&engine, "first", 3).await;
    let after_one = files(directory.path());
    for turn in 0..50 {
        make_and_delete(&engine, &format!("table-{turn}"), 3).await;
    }
    assert_eq!(files(directory.path()), after_one);
}

#[tokio::test]
async fn table_in_a_reused_keyspace_is_empty() {
    let directory = tempfile::tempdir().expect("a directory");
    let engine = Engine::open(directory.path(), Options::default()).expect("opens");
    make_and_delete(&engine, "old", 500).await;
    engine.create_table(indexed("new")).await.expect("a table");
    let all = engine.scan(Scan::new("new")).await.expect("a page");
    assert!(all.items.is_empty());
    let red = || Query::new("new", KeyCondition::new("colour", "red")).on_index("by-colour");
    assert!(engine.query(red()).await.expect("a page").items.is_empty());
    let put = Put::new("new", thing(7));
    engine.put(put).await.expect("a put");
    drop(engine);

    let engine = Engine::open(directory.path(), Options::default()).expect("opens again");
    let all = engine.scan(Scan::new("new")).await.expect("a page");
    assert_eq!(all.items, [thing(7)]);
    let found = engine.query(red()).await.expect("a page");
    assert_eq!(found.items, [thing(7)]);
    let report = engine.check().await.expect("a report");
    assert_eq!((report.items, report.problems), (1, 0));
}

#[tokio::test]
async fn index_in_a_reused_keyspace_is_empty() {
    let directory = tempfile::tempdir().expect("a directory");
    let engine = Engine::open(directory.path(), Options::default()).expect("opens");
    make_and_delete(&engine, "old", 5).await;
    let plain = TableSchema::new("plain", "id", KeyKind::S);
    engine.create_table(plain).await.expect("a table");
    let put = Put::new("plain", thing(1));
    engine.put(put).await.expect("a put");
    let colour = KeyAttribute::new("colour", KeyKind::S);
    let index = IndexSchema::global("by-colour", colour, None);
    engine.add_index("plain", index).await.expect("an index");
    engine.wait_until_built("plain").await.expect("built");
    let red = Query::new("plain", KeyCondition::new("colour", "red")).on_index("by-colour");
    let found = engine.query(red).await.expect("a page");
    assert_eq!(found.items, [thing(1)]);
    assert_eq!(engine.check().await.expect("a report").problems, 0);
}

#[tokio::test]
async fn deleted_large_table_frees_its_space() {
    let directory = tempfile::tempdir().expect("a directory");
    let engine = Engine::open(directory.path(), Options::default()).expect("opens");
    engine.create_table(indexed("big")).await.expect("a table");
    for number in 0..20 {
        let put = Put::new("big", thing(number).with("text", "x".repeat(200_000)));
        engine.put(put).await.expect("a put");
    }
    let keyspaces = directory.path().join("store/keyspaces");
    let count = || std::fs::read_dir(&keyspaces).expect("keyspaces").count();
    let before = count();
    engine.delete_table("big").await.expect("deleted");
    // Their memtables are flushed first.
    let deadline = Instant::now() + Duration::from_secs(30);
    while count() != before - 2 {
        assert!(Instant::now() < deadline, "{} keyspaces are left", count());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
