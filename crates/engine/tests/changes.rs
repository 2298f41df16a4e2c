//! The change log: order, images, pages, waiting, trimming.

use std::sync::Arc;

use homeport_engine::{Change, ChangeKind, Engine, ManualClock, Options};
use homeport_item::expression::Update;
use homeport_item::schema::{StreamView, TableSchema};
use homeport_item::{Item, KeyKind};
use homeport_store::{Delete, Put, Store, Transaction, Update as UpdateRequest};

async fn engine(view: Option<StreamView>) -> (Engine, Arc<ManualClock>, tempfile::TempDir) {
    let directory = tempfile::tempdir().expect("a directory");
    let clock = Arc::new(ManualClock::at_ms(1_800_000_000_000));
    let options = Options {
        clock: Arc::clone(&clock) as _,
        background_sweep: false,
        ..Options::default()
    };
    let engine = Engine::open(directory.path(), options).expect("opens");
    let mut table = TableSchema::new("things", "id", KeyKind::S);
    table.stream = view;
    engine.create_table(table).await.expect("a table");
    (engine, clock, directory)
}

fn thing(id: &str, n: i32) -> Item {
    Item::new().with("id", id).with("n", n)
}

async fn write_a_life(engine: &Engine) {
    engine
        .put(Put::new("things", thing("a", 1)))
        .await
        .expect("a put");
    // The same put again changes nothing and is not logged.
    engine
        .put(Put::new("things", thing("a", 1)))
        .await
        .expect("a put");
    let update = UpdateRequest::new("things", key("a"), Update::new().set("n", 2));
    engine.update(update).await.expect("an update");
    engine
        .delete(Delete::new("things", key("a")))
        .await
        .expect("a delete");
    engine
        .delete(Delete::new("things", key("a")))
        .await
        .expect("a delete");
}

fn key(id: &str) -> Item {
    Item::new().with("id", id)
}

fn changes(engine: &Engine) -> Vec<Change> {
    engine.changes("things", 0, 100).expect("changes").changes
}

#[tokio::test]
async fn every_view_keeps_its_images() {
    for (view, old, new) in [
        (StreamView::KeysOnly, false, false),
        (StreamView::NewImage, false, true),
        (StreamView::OldImage, true, false),
        (StreamView::NewAndOldImages, true, true),
    ] {
        let (engine, _clock, _directory) = engine(Some(view)).await;
        write_a_life(&engine).await;
        let log = changes(&engine);
        let kinds: Vec<_> = log.iter().map(|change| change.kind).collect();
        assert_eq!(
            kinds,
            [ChangeKind::Insert, ChangeKind::Modify, ChangeKind::Remove]
        );
        assert!(log.iter().all(|change| change.key == key("a")));
        let image = |kept: bool, item: Item| kept.then_some(item);
        assert_eq!(log[0].old, None);
        assert_eq!(log[0].new, image(new, thing("a", 1)));
        assert_eq!(log[1].old, image(old, thing("a", 1)));
        assert_eq!(log[1].new, image(new, thing("a", 2)));
        assert_eq!(log[2].old, image(old, thing("a", 2)));
        assert_eq!(log[2].new, None);
        assert!(
            log.windows(2)
                .all(|pair| pair[0].sequence < pair[1].sequence)
        );
    }
}

#[tokio::test]
async fn table_without_a_stream_has_no_log() {
    let (engine, _clock, _directory) = engine(None).await;
    write_a_life(&engine).await;
    assert!(changes(&engine).is_empty());
    engine
        .set_stream("things", Some(StreamView::NewImage))
        .await
        .expect("on");
    engine
        .put(Put::new("things", thing("b", 1)))
        .await
        .expect("a put");
    assert_eq!(changes(&engine).len(), 1);
}

#[tokio::test]
async fn pages_continue_without_gaps() {
    let (engine, _clock, _directory) = engine(Some(StreamView::NewImage)).await;
    for number in 0..25 {
        let pair = ["a", "b"].map(|id| Put::new("things", thing(id, number)).into());
        engine
            .transact(Transaction::new(pair.into()))
            .await
            .expect("a transaction");
    }
    let mut from = 0;
    let mut read = Vec::new();
    loop {
        let page = engine.changes("things", from, 7).expect("a page");
        if page.changes.is_empty() {
            break;
        }
        assert!(page.next > from);
        from = page.next;
        read.extend(page.changes);
    }
    assert_eq!(read, changes(&engine));
    assert_eq!(read.len(), 50);
}

#[tokio::test]
async fn sequence_numbers_continue_after_a_restart() {
    let (engine, _clock, directory) = engine(Some(StreamView::KeysOnly)).await;
    write_a_life(&engine).await;
    let before = changes(&engine);
    drop(engine);
    let engine = Engine::open(directory.path(), Options::default()).expect("opens again");
    engine
        .put(Put::new("things", thing("b", 1)))
        .await
        .expect("a put");
    let after = changes(&engine);
    assert_eq!(after[..before.len()], before);
    assert!(after[before.len()].sequence > before[before.len() - 1].sequence);
}

#[tokio::test]
async fn waiting_reader_wakes_up_for_new_changes() {
    let (engine, _clock, _directory) = engine(Some(StreamView::KeysOnly)).await;
    let next = engine.changes("things", 0, 10).expect("a page").next;
    let follower = engine.clone();
    let waiting = tokio::spawn(async move { follower.wait_for_changes(next).await });
    engine
        .put(Put::new("things", thing("a", 1)))
        .await
        .expect("a put");
    let woken = tokio::time::timeout(std::time::Duration::from_secs(10), waiting).await;
    woken.expect("in time").expect("no panic");
}

#[tokio::test]
async fn late_reader_learns_of_trimmed_changes() {
    let (engine, clock, _directory) = engine(Some(StreamView::NewImage)).await;
    for number in 0..300 {
        engine
            .put(Put::new("things", thing("a", number)))
            .await
            .expect("a put");
    }
    let first = changes(&engine)[0].sequence;
    clock.advance_ms(24 * 60 * 60 * 1000);
    engine
        .put(Put::new("things", thing("b", 1)))
        .await
        .expect("a put");
    clock.advance_ms(1);
    assert_eq!(engine.sweep().await.expect("a sweep").changes_trimmed, 300);
    let page = engine.changes("things", first + 1, 10).expect("a page");
    assert_eq!(page.changes.len(), 1);
    assert_eq!(page.trimmed_to, Some(page.changes[0].sequence));
    let page = engine.changes("things", page.next, 10).expect("a page");
    assert_eq!(page.trimmed_to, None);
}

#[tokio::test]
async fn changes_of_other_tables_are_no_gap() {
    let (engine, _clock, _directory) = engine(Some(StreamView::KeysOnly)).await;
    let other = TableSchema::new("others", "id", KeyKind::S).with_stream(StreamView::KeysOnly);
    engine.create_table(other).await.expect("a table");
    engine
        .put(Put::new("things", thing("a", 1)))
        .await
        .expect("a put");
    let next = engine.changes("things", 0, 10).expect("a page").next;
    for number in 0..5 {
        engine
            .put(Put::new("others", thing("a", number)))
            .await
            .expect("a put");
    }
    engine
        .put(Put::new("things", thing("b", 1)))
        .await
        .expect("a put");
    let page = engine.changes("things", next, 10).expect("a page");
    assert_eq!((page.changes.len(), page.trimmed_to), (1, None));
}
