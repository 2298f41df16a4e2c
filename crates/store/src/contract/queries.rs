//! Queries: partitions, filters, counts, projections, and invalid key conditions.

use homeport_item::expression::{Condition, Path, Projection, SortCondition};
use homeport_item::schema::TableSchema;
use homeport_item::{Item, KeyKind, Value};

use super::case::{Case, item, partition, partition_of, sorted_item, values};
use super::outcome::Outcome;
use crate::{Get, Query};

pub async fn partitions_do_not_mix(case: &Case) {
    let table = case.sorted(KeyKind::S).await;
    // Keys that are prefixes of each other, and pairs that differ only in where they are split.
    let keys = ["a", "a\0", "a\u{1}", "aa", "ab", "b", "a\u{10ffff}"];
    let sorts = ["a", "aa", "b", "\0"];
    for pk in keys {
        case.put_all(&table, sorts.map(|sk| sorted_item(pk, sk)))
            .await;
    }
    for pk in keys {
        let found = case.query(Query::new(&table, partition(pk))).await;
        let expected = ["\0", "a", "aa", "b"].map(|sk| sorted_item(pk, sk));
        assert_eq!(found, expected, "{pk:?}");
    }
    assert_eq!(case.query(Query::new(&table, partition("c"))).await, []);
}

pub async fn partition_keys_may_be_numbers_and_binaries(case: &Case) {
    for (name, kind, ours, other) in [
        ("numbers", KeyKind::N, Value::from(10), Value::from(1)),
        (
            "binaries",
            KeyKind::B,
            Value::B(vec![0]),
            Value::B(vec![0, 0]),
        ),
    ] {
        let schema = TableSchema::new(case.name(name), "pk", kind).with_sort("sk", KeyKind::N);
        let table = case.ensure(schema).await;
        let item = |pk: &Value, sk: i32| Item::new().with("pk", pk.clone()).with("sk", sk);
        case.put_all(&table, [item(&ours, 1), item(&other, 1), item(&ours, 2)])
            .await;
        let found = case
            .query(Query::new(&table, partition_of("pk", ours.clone())))
            .await;
        assert_eq!(found, [item(&ours, 1), item(&ours, 2)]);
    }
}

pub async fn table_without_sort_key_has_one_item_per_partition(case: &Case) {
    let table = case.keyed().await;
    case.put_all(&table, ["a", "b"].map(item)).await;
    let found = case.query(Query::new(&table, partition("a"))).await;
    assert_eq!(found, [item("a")]);
}

pub async fn filter_limits_returned_not_scanned_items(case: &Case) {
    let table = numbered(case).await;
    let query = Query::new(&table, partition("p")).filter(at_least(7));
    let pages = case.query_pages(consistent(query)).await;
    let count: usize = pages.iter().map(|page| page.count).sum();
    let scanned: usize = pages.iter().map(|page| page.scanned).sum();
    assert_eq!((count, scanned), (3, 10));
    let found = super::case::items(pages);
    assert_eq!(values(&found, "n"), [7, 8, 9].map(Value::from));
}

pub async fn limit_counts_items_before_the_filter(case: &Case) {
    let table = numbered(case).await;
    let query = Query::new(&table, partition("p"))
        .filter(at_least(7))
        .limit(4);
    let first = case
        .store
        .query(consistent(query.clone()))
        .await
        .expect("a page");
    assert_eq!((first.count, first.scanned), (0, 4));
    assert!(first.items.is_empty());
    assert!(first.next.is_some());
    let found = case.query(query).await;
    assert_eq!(values(&found, "n"), [7, 8, 9].map(Value::from));
}

pub async fn count_returns_no_items(case: &Case) {
    let table = numbered(case).await;
    let mut query = consistent(Query::new(&table, partition("p")).filter(at_least(7)));
    query.count_only = true;
    let pages = case.query_pages(query).await;
    assert_eq!(pages.iter().map(|page| page.count).sum::<usize>(), 3);
    assert_eq!(pages.iter().map(|page| page.scanned).sum::<usize>(), 10);
    assert!(pages.iter().all(|page| page.items.is_empty()));
}

pub async fn projection_returns_only_selected_attributes(case: &Case) {
    let table = case.sorted(KeyKind::N).await;
    let map = Value::M([("x".to_owned(), 1.into()), ("y".to_owned(), 2.into())].into());
    let list = Value::L(vec![10.into(), 20.into(), 30.into()]);
    let whole = sorted_item("p", 1)
        .with("map", map)
        .with("list", list)
        .with("n", 5);
    case.put(&table, whole.clone()).await;
    let x = || Value::M([("x".to_owned(), Value::from(1))].into());
    for (paths, expected) in [
        (vec![Path::new("n")], Item::new().with("n", 5)),
        (
            vec![Path::new("pk"), Path::new("absent")],
            Item::new().with("pk", "p"),
        ),
        (
            vec![Path::new("map").member("x"), Path::new("n")],
            Item::new().with("map", x()).with("n", 5),
        ),
        (
            vec![Path::new("list").element(2), Path::new("list").element(0)],
            Item::new().with("list", Value::L(vec![10.into(), 30.into()])),
        ),
        (vec![Path::new("map").member("absent")], Item::new()),
    ] {
        let projection = Some(Projection::new(paths));
        let mut query = Query::new(&table, partition("p"));
        query.projection.clone_from(&projection);
        let found = case.query(query).await;
        assert_eq!(found, std::slice::from_ref(&expected), "{projection:?}");
        let mut get = Get::new(&table, sorted_item("p", 1));
        get.projection.clone_from(&projection);
        let found = case.store.get(get).await;
        assert_eq!(found, Ok(Some(expected)), "get, {projection:?}");
    }
}

pub async fn filter_sees_attributes_outside_the_projection(case: &Case) {
    let table = numbered(case).await;
    let mut query = Query::new(&table, partition("p")).filter(at_least(9));
    query.projection = Some(Projection::new(["sk"]));
    assert_eq!(case.query(query).await, [Item::new().with("sk", 9)]);
}

pub async fn mismatched_key_conditions_are_rejected(case: &Case) {
    let strings = case.sorted(KeyKind::S).await;
    let numbers = TableSchema::new(case.name("numbers"), "pk", KeyKind::S);
    let numbers = case.ensure(numbers.with_sort("sk", KeyKind::N)).await;
    let keyed = case.keyed().await;
    let sort = |name: &str, condition| partition("p").with_sort(name, condition);
    for (table, condition) in [
        (&strings, partition_of("other", "p")),
        (&strings, partition_of("sk", "p")),
        (&strings, partition_of("pk", 1)),
        (&strings, partition_of("pk", true)),
        (&strings, partition_of("pk", "")),
        (&strings, sort("other", SortCondition::Equal("a".into()))),
        (&strings, sort("pk", SortCondition::Equal("a".into()))),
        (&strings, sort("sk", SortCondition::Less(1.into()))),
        (
            &strings,
            sort("sk", SortCondition::Between("b".into(), "a".into())),
        ),
        (&numbers, sort("sk", SortCondition::BeginsWith(1.into()))),
        (&numbers, sort("sk", SortCondition::BeginsWith("1".into()))),
        (&keyed, sort("sk", SortCondition::Equal("a".into()))),
    ] {
        let result = case.store.query(Query::new(table, condition.clone())).await;
        assert_eq!(Outcome::of(result), Outcome::Invalid, "{condition:?}");
    }
}

pub async fn query_filters_on_keys_are_rejected(case: &Case) {
    let table = case.sorted(KeyKind::N).await;
    for name in ["pk", "sk"] {
        let filter = at_least(1).and(Condition::exists(name));
        let query = Query::new(&table, partition("p")).filter(filter);
        let outcome = Outcome::of(case.store.query(query).await);
        assert_eq!(outcome, Outcome::Invalid, "{name}");
    }
}

/// A table whose partition `p` has the sort keys 0 to 9, the same as `n`.
async fn numbered(case: &Case) -> String {
    let table = case.sorted(KeyKind::N).await;
    case.put_all(&table, (0..10).map(|n| sorted_item("p", n).with("n", n)))
        .await;
    table
}

fn consistent(mut query: Query) -> Query {
    query.consistent = true;
    query
}

fn at_least(n: i32) -> Condition {
    Path::new("n").at_least(n)
}
