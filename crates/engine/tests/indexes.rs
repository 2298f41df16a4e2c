//! Indexes beyond the contract suite: builds during writes, restarts, local indexes.

use homeport_engine::{Engine, IndexState, Options, TableError};
use homeport_item::expression::{KeyCondition, Projection, SortCondition};
use homeport_item::schema::{IndexProjection, IndexSchema, KeyAttribute, KeySchema, TableSchema};
use homeport_item::{Item, KeyKind, Value};
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
async fn index_added_under_writes_is_complete() {
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
    let expected: Vec<_> = (0..900).step_by(2).map(Value::from).collect();
    assert_eq!(numbers, expected.iter().collect::<Vec<_>>());
    assert_eq!(engine.check().await.expect("a report").problems, 0);
}

#[tokio::test]
async fn interrupted_index_is_completed_after_a_restart() {
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
async fn deleted_index_is_gone_and_its_name_free() {
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
        Err(StoreError::IndexNotFound { .. })
    ));
    assert!(matches!(
        engine.delete_index("things", "by-colour").await,
        Err(TableError::IndexNotFound { .. })
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
async fn recreated_table_is_empty() {
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
async fn local_index_fetches_missing_attributes() {
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

/// A key of two strings, followed by two numbers and a string.
fn several() -> IndexSchema {
    let [text, number] = [KeyKind::S, KeyKind::N];
    let attribute = |(name, kind)| KeyAttribute::new(name, kind);
    let partition = [("colour", text), ("shape", text)].map(attribute);
    let sort = [("n", number), ("m", number), ("tag", text)].map(attribute);
    IndexSchema {
        key: KeySchema::from_attributes(partition, sort).expect("a partition key"),
        ..index("several")
    }
}

/// Items with all combinations of a few values, in the order of the index's sort key; each fifth lacks a key
/// attribute.
fn combinations() -> Vec<Item> {
    let mut items = Vec::new();
    for n in [-10, 2, 10] {
        for m in [0, 1] {
            for tag in ["t", "ta", "u"] {
                // Strings that would collide if they were concatenated without separator.
                for (colour, shape) in [("a", "bc"), ("ab", "c"), ("a", "b")] {
                    let number = items.len();
                    let item = Item::new()
                        .with("id", format!("{number:05}"))
                        .with("colour", colour)
                        .with("n", n)
                        .with("m", m)
                        .with("tag", tag);
                    items.push(match number % 5 {
                        4 => item,
                        _ => item.with("shape", shape),
                    });
                }
            }
        }
    }
    items
}

fn asked(rest: &[(&str, Value)], sort: Option<(&str, SortCondition)>) -> KeyCondition {
    let named = |(name, value): &(&str, Value)| ((*name).to_owned(), value.clone());
    let shape = ("shape".to_owned(), Value::from("b"));
    KeyCondition {
        rest: std::iter::once(shape)
            .chain(rest.iter().map(named))
            .collect(),
        sort: sort.map(|(name, condition)| (name.to_owned(), condition)),
        ..KeyCondition::new("colour", "a")
    }
}

#[tokio::test]
async fn multi_attribute_index_matches_its_conditions() {
    let directory = tempfile::tempdir().expect("a directory");
    let engine = Engine::open(directory.path(), Options::default()).expect("opens");
    let table = TableSchema::new("things", "id", KeyKind::S).with_index(several());
    engine.create_table(table).await.expect("a table");
    let items = combinations();
    for item in &items {
        let put = Put::new("things", item.clone());
        engine.put(put).await.expect("a put");
    }
    drop(engine);
    let engine = Engine::open(directory.path(), Options::default()).expect("opens again");
    let (two, one) = (Value::from(2), Value::from(1));
    let from = || ("n", two.clone());
    for condition in [
        asked(&[], None),
        asked(&[], Some(("n", SortCondition::Greater((-10).into())))),
        asked(&[], Some(("n", SortCondition::Less(two.clone())))),
        asked(&[], Some(("n", SortCondition::LessOrEqual(two.clone())))),
        asked(&[from()], None),
        asked(&[from()], Some(("m", SortCondition::Equal(one.clone())))),
        asked(
            &[from()],
            Some(("m", SortCondition::GreaterOrEqual(one.clone()))),
        ),
        asked(
            &[from(), ("m", one.clone())],
            Some(("tag", SortCondition::BeginsWith("t".into()))),
        ),
        asked(
            &[from(), ("m", one)],
            Some(("tag", SortCondition::Between("t".into(), "ta".into()))),
        ),
    ] {
        let mut expected: Vec<&Item> = items
            .iter()
            .filter(|item| condition.matches(*item).expect("a whole item"))
            .collect();
        assert!(!expected.is_empty(), "{condition:?}");
        let mut query = Query::new("things", condition.clone()).on_index("several");
        let page = engine.query(query.clone()).await.expect("a page");
        assert_eq!(
            page.items.iter().collect::<Vec<_>>(),
            expected,
            "{condition:?}"
        );
        query.descending = true;
        expected.reverse();
        let page = engine.query(query).await.expect("a page");
        assert_eq!(
            page.items.iter().collect::<Vec<_>>(),
            expected,
            "{condition:?}"
        );
    }
    assert_eq!(engine.check().await.expect("a report").problems, 0);
}
