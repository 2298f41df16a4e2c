//! Time to live: items are hidden from the second of their expiry and deleted later, in all indexes and logs.

use std::sync::Arc;

use homeport_engine::{ChangeKind, Clock as _, Engine, ManualClock, Options, Swept};
use homeport_item::expression::{Condition, KeyCondition, Update};
use homeport_item::schema::{IndexProjection, IndexSchema, KeyAttribute, StreamView, TableSchema};
use homeport_item::{Item, KeyKind};
use homeport_store::{Delete, Get, Put, Query, Scan, Store, Update as UpdateRequest};

const NOW_SECS: i64 = 1_800_000_000;

struct Fixture {
    engine: Engine,
    clock: Arc<ManualClock>,
    _directory: tempfile::TempDir,
}

async fn fixture() -> Fixture {
    let directory = tempfile::tempdir().expect("a directory");
    let clock = Arc::new(ManualClock::at_ms(NOW_SECS * 1000));
    let options = Options {
        clock: Arc::clone(&clock) as _,
        background_sweep: false,
        ..Options::default()
    };
    let engine = Engine::open(directory.path(), options).expect("opens");
    let kind = KeyAttribute::new("kind", KeyKind::S);
    let table = TableSchema::new("things", "id", KeyKind::S)
        .with_ttl("until")
        .with_stream(StreamView::NewAndOldImages)
        .with_index(IndexSchema::global("whole", kind.clone(), None))
        .with_index(IndexSchema::global("keys", kind, None).projecting(IndexProjection::KeysOnly));
    engine.create_table(table).await.expect("a table");
    Fixture {
        engine,
        clock,
        _directory: directory,
    }
}

fn thing(id: &str, until: i64) -> Item {
    Item::new()
        .with("id", id)
        .with("kind", "k")
        .with("until", until)
}

fn key(id: &str) -> Item {
    Item::new().with("id", id)
}

/// What each kind of read returns.
async fn seen(engine: &Engine) -> [usize; 4] {
    let by_kind = |index| Query::new("things", KeyCondition::new("kind", "k")).on_index(index);
    [
        usize::from(
            engine
                .get(Get::new("things", key("a")))
                .await
                .expect("get")
                .is_some(),
        ),
        engine.scan(Scan::new("things")).await.expect("scan").count,
        engine.query(by_kind("whole")).await.expect("query").count,
        engine.query(by_kind("keys")).await.expect("query").count,
    ]
}

#[tokio::test]
async fn item_is_hidden_from_the_second_it_expires() {
    let Fixture {
        engine,
        clock,
        _directory,
    } = fixture().await;
    engine
        .put(Put::new("things", thing("a", NOW_SECS + 10)))
        .await
        .expect("a put");
    clock.advance_ms(9_999);
    assert_eq!(seen(&engine).await, [1, 1, 1, 1]);
    clock.advance_ms(1);
    assert_eq!(seen(&engine).await, [0, 0, 0, 0]);
    assert_eq!(engine.check().await.expect("a report").problems, 0);
}

#[tokio::test]
async fn keys_only_index_hides_the_expiry() {
    let Fixture {
        engine, _directory, ..
    } = fixture().await;
    engine
        .put(Put::new("things", thing("a", NOW_SECS + 10)))
        .await
        .expect("a put");
    let query = Query::new("things", KeyCondition::new("kind", "k")).on_index("keys");
    let items = engine.query(query.clone()).await.expect("a page").items;
    assert_eq!(items, [Item::new().with("id", "a").with("kind", "k")]);
    let hidden = query.filter(Condition::exists("until"));
    assert_eq!(engine.query(hidden).await.expect("a page").count, 0);
}

#[tokio::test]
async fn sweep_deletes_and_logs_expired_items() {
    let Fixture {
        engine,
        clock,
        _directory,
    } = fixture().await;
    for number in 0..600 {
        let item = thing(&format!("thing-{number}"), NOW_SECS + 10);
        engine.put(Put::new("things", item)).await.expect("a put");
    }
    engine
        .put(Put::new("things", thing("later", NOW_SECS + 100)))
        .await
        .expect("a put");
    let from = engine.changes("things", 0, 1000).expect("changes").next;
    clock.advance_ms(10_000);
    let swept = engine.sweep().await.expect("a sweep");
    assert_eq!(
        swept,
        Swept {
            expired: 600,
            ..Swept::default()
        }
    );
    let changes = engine
        .changes("things", from, 1000)
        .expect("changes")
        .changes;
    assert_eq!(changes.len(), 600);
    assert!(changes.iter().all(|change| {
        change.kind == ChangeKind::Remove && change.by_expiry && change.old.is_some()
    }));
    let report = engine.check().await.expect("a report");
    assert_eq!(
        (report.items, report.expiry_entries, report.problems),
        (1, 1, 0)
    );
}

#[tokio::test]
async fn write_over_an_expired_item_finds_nothing() {
    let Fixture {
        engine,
        clock,
        _directory,
    } = fixture().await;
    engine
        .put(Put::new("things", thing("a", NOW_SECS + 10)))
        .await
        .expect("a put");
    clock.advance_ms(20_000);
    let fresh = Put::new("things", thing("a", NOW_SECS + 100)).when(Condition::not_exists("id"));
    engine.put(fresh).await.expect("nothing was there");
    assert_eq!(seen(&engine).await, [1, 1, 1, 1]);
    let changes = engine.changes("things", 0, 10).expect("changes").changes;
    let kinds: Vec<_> = changes
        .iter()
        .map(|change| (change.kind, change.by_expiry))
        .collect();
    assert_eq!(
        kinds,
        [
            (ChangeKind::Insert, false),
            (ChangeKind::Remove, true),
            (ChangeKind::Insert, false)
        ]
    );
    assert_eq!(engine.sweep().await.expect("a sweep").expired, 0);
    assert_eq!(engine.check().await.expect("a report").problems, 0);
}

#[tokio::test]
async fn update_of_an_expired_item_starts_empty() {
    let Fixture {
        engine,
        clock,
        _directory,
    } = fixture().await;
    engine
        .put(Put::new("things", thing("a", NOW_SECS + 10).with("x", 1)))
        .await
        .expect("a put");
    clock.advance_ms(20_000);
    let update = UpdateRequest::new("things", key("a"), Update::new().set("y", 2));
    engine.update(update).await.expect("an update");
    let item = engine
        .get(Get::new("things", key("a")))
        .await
        .expect("a get");
    assert_eq!(item, Some(key("a").with("y", 2)));
    engine
        .delete(Delete::new("things", key("a")))
        .await
        .expect("a delete");
    assert_eq!(engine.check().await.expect("a report").items, 0);
}

#[tokio::test]
async fn ttl_can_be_changed_on_existing_data() {
    let directory = tempfile::tempdir().expect("a directory");
    let clock = Arc::new(ManualClock::at_ms(NOW_SECS * 1000));
    let options = Options {
        clock: Arc::clone(&clock) as _,
        background_sweep: false,
        ..Options::default()
    };
    let engine = Engine::open(directory.path(), options.clone()).expect("opens");
    let table = TableSchema::new("things", "id", KeyKind::S);
    engine.create_table(table).await.expect("a table");
    for number in 0..700 {
        let item = thing(&format!("thing-{number}"), NOW_SECS + 10);
        engine.put(Put::new("things", item)).await.expect("a put");
    }
    engine.set_ttl("things", Some("until")).await.expect("on");
    // Closing waits for running work or leaves it to the next start.
    drop(engine);
    let engine = Engine::open(directory.path(), options).expect("opens again");
    wait_for_entries(&engine, 700).await;
    engine.set_ttl("things", None).await.expect("off");
    wait_for_entries(&engine, 0).await;
    clock.advance_ms(60_000);
    assert_eq!(
        engine
            .scan(Scan::new("things"))
            .await
            .expect("a page")
            .count,
        700
    );
    assert!(clock.now_ms() > NOW_SECS * 1000);
}

async fn wait_for_entries(engine: &Engine, expected: u64) {
    for _ in 0..1000 {
        let report = engine.check().await.expect("a report");
        assert_eq!(report.problems, 0, "{:?}", report.descriptions);
        if report.expiry_entries == expected {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("the expiry entries never became {expected}");
}
