//! `ensure_tables` is idempotent and never damages existing data.

use homeport_item::schema::{IndexSchema, KeyAttribute, StreamView, TableSchema};
use homeport_item::{KeyKind, Value};

use super::case::{Case, item, now_secs, partition_of};
use super::outcome::Outcome;
use crate::{Put, Query, Scan};

pub async fn ensuring_existing_table_keeps_its_items(case: &Case) {
    let schema = TableSchema::new(case.name("kept"), "pk", KeyKind::S)
        .with_index(by_group())
        .with_ttl("expires")
        .with_stream(StreamView::NewAndOldImages);
    let table = case.ensure(schema.clone()).await;
    let there = item("a").with("g", "g");
    case.put(&table, there.clone()).await;
    for _ in 0..3 {
        case.ensure(schema.clone()).await;
    }
    assert_eq!(case.get(&table, item("a")).await, Some(there.clone()));
    case.index_gives(group(&table), &[there]).await;
}

pub async fn several_tables_are_created_together(case: &Case) {
    let schemas =
        ["one", "two", "three"].map(|name| TableSchema::new(case.name(name), "pk", KeyKind::S));
    assert_eq!(case.store.ensure_tables(&schemas).await, Ok(()));
    for schema in &schemas {
        case.put(&schema.name, item(&schema.name)).await;
    }
    for schema in &schemas {
        let found = case.scan(Scan::new(&schema.name)).await;
        assert_eq!(found, [item(&schema.name)]);
    }
    assert_eq!(case.store.ensure_tables(&[]).await, Ok(()));
}

pub async fn added_index_contains_existing_items(case: &Case) {
    let schema = TableSchema::new(case.name("grown"), "pk", KeyKind::S);
    let table = case.ensure(schema.clone()).await;
    let members: Vec<_> = (0..40)
        .map(|n| item(&format!("p{n:02}")).with("g", "g").with("n", n))
        .collect();
    case.put_all(&table, members.clone()).await;
    // These values do not fit the index, which is added later.
    case.put_all(
        &table,
        [
            item("none"),
            item("number").with("g", 1),
            item("empty").with("g", ""),
            item("null").with("g", Value::Null),
        ],
    )
    .await;
    case.ensure(schema.with_index(by_group())).await;
    let scan = Scan::new(&table).on_index("by-group");
    case.index_scan_gives(scan.clone(), &members).await;
    let later = item("q").with("g", "g");
    case.put(&table, later.clone()).await;
    let all: Vec<_> = members.into_iter().chain([later]).collect();
    case.index_scan_gives(scan, &all).await;
    let refused = Put::new(&table, item("r").with("g", 1));
    assert_eq!(Outcome::of(case.store.put(refused).await), Outcome::Invalid);
}

pub async fn unlisted_index_is_kept(case: &Case) {
    let schema = TableSchema::new(case.name("stays"), "pk", KeyKind::S);
    let table = case.ensure(schema.clone().with_index(by_group())).await;
    case.ensure(schema).await;
    let there = item("a").with("g", "g");
    case.put(&table, there.clone()).await;
    case.index_gives(group(&table), &[there]).await;
}

pub async fn time_to_live_can_be_added_later(case: &Case) {
    let schema = TableSchema::new(case.name("expiring"), "pk", KeyKind::S);
    let table = case.ensure(schema.clone()).await;
    let expired = item("a").with("expires", now_secs() - 60);
    case.put(&table, expired.clone()).await;
    assert_eq!(case.get(&table, item("a")).await, Some(expired));
    case.ensure(schema.with_ttl("expires")).await;
    assert_eq!(case.get(&table, item("a")).await, None);
}

pub async fn changed_table_keys_are_rejected(case: &Case) {
    let name = case.name("fixed");
    let schema = TableSchema::new(&name, "pk", KeyKind::S).with_sort("sk", KeyKind::N);
    case.ensure(schema).await;
    for other in [
        TableSchema::new(&name, "pk", KeyKind::S),
        TableSchema::new(&name, "pk", KeyKind::B).with_sort("sk", KeyKind::N),
        TableSchema::new(&name, "pk", KeyKind::S).with_sort("sk", KeyKind::S),
        TableSchema::new(&name, "key", KeyKind::S).with_sort("sk", KeyKind::N),
        TableSchema::new(&name, "sk", KeyKind::N).with_sort("pk", KeyKind::S),
    ] {
        let result = case.store.ensure_tables(std::slice::from_ref(&other)).await;
        assert_eq!(Outcome::of(result), Outcome::Invalid, "{other:?}");
    }
}

pub async fn changed_index_keys_are_rejected(case: &Case) {
    let schema = TableSchema::new(case.name("fixed"), "pk", KeyKind::S);
    case.ensure(schema.clone().with_index(by_group())).await;
    let other = IndexSchema::global("by-group", KeyAttribute::new("h", KeyKind::S), None);
    let result = case.store.ensure_tables(&[schema.with_index(other)]).await;
    assert_eq!(Outcome::of(result), Outcome::Invalid);
}

pub async fn invalid_schemas_are_rejected(case: &Case) {
    let name = case.name("impossible");
    for schema in [
        TableSchema::new("x", "pk", KeyKind::S),
        TableSchema::new(format!("{name}/"), "pk", KeyKind::S),
        TableSchema::new(&name, "pk", KeyKind::S).with_sort("pk", KeyKind::S),
        TableSchema::new(&name, "", KeyKind::S),
        TableSchema::new(&name, "g", KeyKind::N).with_index(by_group()),
    ] {
        let result = case
            .store
            .ensure_tables(std::slice::from_ref(&schema))
            .await;
        assert_eq!(Outcome::of(result), Outcome::Invalid, "{schema:?}");
    }
    let scan = case.store.scan(Scan::new(&name)).await;
    assert_eq!(Outcome::of(scan), Outcome::TableNotFound);
}

/// A global index on `g`.
fn by_group() -> IndexSchema {
    IndexSchema::global("by-group", KeyAttribute::new("g", KeyKind::S), None)
}

fn group(table: &str) -> Query {
    Query::new(table, partition_of("g", "g")).on_index("by-group")
}
