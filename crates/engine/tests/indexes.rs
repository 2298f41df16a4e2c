//! Indexes beyond the seam's contract: building them under way, restarts, local ones.

use homeport_engine::{Engine, IndexState, Options, TableError};
use homeport_item::expression::{KeyCondition, Projection, SortCondition};
use homeport_item::schema::{IndexProjection, IndexSchema, KeyAttribute, TableSchema};
use homeport_item::{Item, KeyKind};
use homeport_store::{Put, Query, Scan, Store, StoreError};

fn index(name: &str) -> IndexSchema {
    let colour = KeyAttribute::new("colour", KeyKind::S);
    IndexSchema::global(name, colour, Some(KeyAttribute::new("n", KeyKind::N)))
}

fn thing(number: i32) -> Item {
    let colour = if number % 2 == 0 { "red" } else { "blue" };
    Item::new()
        .with("id", format!("thing-{number:05}"))
        .with("n", number)
        .with("colour", colour)
}

async fn fill(engine: &Engine, numbers: std::ops::Range<i32>) {
    for number in numbers {
        engine
            .put(Put::new("things", thing(number)))
            .await
            .expect("a put");
    }
}

fn red(index: &str) -> Query {
    Query::new("things", KeyCondition::new("colour", "red")).on_index(index)
}

#[tokio::test]
async fn an_index_added_while_writes_go_on_misses_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    let engine = Engine::open(directory.path(), Options::default()).expect("opens");
    let table = TableSchema::new("things", "id", KeyKind::S);
    engine.create_table(table).await.expect("a table");
    fill(&engine, 0..600).await;
    engine
        .add_index("things", index("by-colour"))
        .await
        .expect("an index");
    fill(&engine, 600..900).await;
    engine.wait_until_built("things").await.expect("built");
    let page = engine.query(red("by-colour")).await.expect("a page");
    let numbers: Vec<_> = page.items.iter().filter_map(|item| item.get("n")).collect();
    let expected: Vec<_> = (0..900)
        .step_by(2)
        .map(homeport_item::Value::from)
        .collect();
    assert_eq!(numbers, expected.iter().collect::<Vec<_>>());
    assert_eq!(engine.check().await.expect("a report").problems, 0);
}

#[tokio::test]
async fn an_index_that_was_interrupted_is_completed_by_the_next_start() {
    let directory = tempfile::tempdir().expect("a directory");
    let engine = Engine::open(directory.path(), Options::default()).expect("opens");
    engine
        .create_table(TableSchema::new("things", "id", KeyKind::S))
        .await
        .expect("a table");
    fill(&engine, 0..500).await;
    engine
        .add_index("things", index("by-colour"))
        .await
        .expect("an index");
    drop(engine);
    let engine = Engine::open(directory.path(), Options::default()).expect("opens again");
    engine.wait_until_built("things").await.expect("built");
    assert_eq!(
        engine.query(red("by-colour")).await.expect("a page").count,
        250
    );
    let states = engine
        .describe_table("things")
        .expect("a table")
        .index_states;
    assert_eq!(states, [IndexState::Active]);
    assert_eq!(engine.check().await.expect("a report").problems, 0);
}

#[tokio::test]
async fn a_deleted_index_is_gone_and_its_name_is_free() {
    let directory = tempfile::tempdir().expect("a directory");
    let engine = Engine::open(directory.path(), Options::default()).expect("opens");
    let table = TableSchema::new("things", "id", KeyKind::S).with_index(index("by-colour"));
    engine.create_table(table).await.expect("a table");
    fill(&engine, 0..10).await;
    engine
        .delete_index("things", "by-colour")
        .await
        .expect("deleted");
    assert!(matches!(
        engine.query(red("by-colour")).await,
        Err(StoreError::IndexMissing { .. })
    ));
    assert!(matches!(
        engine.delete_index("things", "by-colour").await,
        Err(TableError::IndexMissing { .. })
    ));
    fill(&engine, 10..20).await;
    engine
        .add_index("things", index("by-colour"))
        .await
        .expect("again");
    engine.wait_until_built("things").await.expect("built");
    assert_eq!(
        engine.query(red("by-colour")).await.expect("a page").count,
        10
    );
    assert_eq!(engine.check().await.expect("a report").problems, 0);
}

#[tokio::test]
async fn a_table_made_again_under_its_name_is_empty() {
    let directory = tempfile::tempdir().expect("a directory");
    let engine = Engine::open(directory.path(), Options::default()).expect("opens");
    let table = TableSchema::new("things", "id", KeyKind::S).with_index(index("by-colour"));
    engine.create_table(table.clone()).await.expect("a table");
    fill(&engine, 0..10).await;
    engine.delete_table("things").await.expect("deleted");
    engine.create_table(table).await.expect("a table again");
    assert_eq!(
        engine
            .scan(Scan::new("things"))
            .await
            .expect("a page")
            .count,
        0
    );
    drop(engine);
    let engine = Engine::open(directory.path(), Options::default()).expect("opens again");
    assert_eq!(
        engine
            .scan(Scan::new("things"))
            .await
            .expect("a page")
            .count,
        0
    );
    assert_eq!(
        engine.query(red("by-colour")).await.expect("a page").count,
        0
    );
}

#[tokio::test]
async fn a_local_index_fetches_what_it_does_not_carry() {
    let directory = tempfile::tempdir().expect("a directory");
    let engine = Engine::open(directory.path(), Options::default()).expect("opens");
    let mut local = IndexSchema::global(
        "by-score",
        KeyAttribute::new("player", KeyKind::S),
        Some(KeyAttribute::new("score", KeyKind::N)),
    )
    .projecting(IndexProjection::KeysOnly);
    local.local = true;
    let table = TableSchema::new("games", "player", KeyKind::S)
        .with_sort("game", KeyKind::S)
        .with_index(local);
    engine.create_table(table).await.expect("a table");
    let item = Item::new()
        .with("player", "ann")
        .with("game", "chess")
        .with("score", 7)
        .with("note", "won");
    engine.put(Put::new("games", item)).await.expect("a put");
    let condition = KeyCondition::new("player", "ann")
        .with_sort("score", SortCondition::GreaterOrEqual(5.into()));
    let mut query = Query::new("games", condition).on_index("by-score");
    let carried = engine.query(query.clone()).await.expect("a page").items;
    assert_eq!(carried[0].get("note"), None);
    query.projection = Some(Projection::new(["note"]));
    let fetched = engine.query(query).await.expect("a page").items;
    assert_eq!(fetched, [Item::new().with("note", "won")]);
}
