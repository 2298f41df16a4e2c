//! Secondary indexes: their projections, that they follow their table, and what they reject.

use homeport_item::expression::{Path, Projection, SortCondition, Update as Changes};
use homeport_item::schema::{IndexProjection, IndexSchema, KeyAttribute, TableSchema};
use homeport_item::{Item, KeyKind, Value};

use super::case::{Case, in_order, item, items, partition, partition_of, sorted_item};
use super::outcome::Outcome;
use crate::{Action, Delete, Put, Query, Scan, Transaction, Update};

pub async fn index_with_all_projection_returns_whole_items(case: &Case) {
    let table = grouped(case, IndexProjection::All).await;
    let whole = member("a", "g", 1).with("x", 1).with("y", 2);
    case.put(&table, whole.clone()).await;
    case.index_gives(group(&table, "g"), &[whole]).await;
}

pub async fn keys_only_index_returns_both_keys(case: &Case) {
    let table = grouped(case, IndexProjection::KeysOnly).await;
    case.put(&table, member("a", "g", 1).with("x", 1)).await;
    case.index_gives(group(&table, "g"), &[member("a", "g", 1)])
        .await;
}

pub async fn include_index_returns_included_attributes(case: &Case) {
    let table = grouped(case, IndexProjection::Include(vec!["x".into()])).await;
    case.put(&table, member("a", "g", 1).with("x", 1).with("y", 2))
        .await;
    case.put(&table, member("b", "g", 2).with("y", 2)).await;
    let expected = [member("a", "g", 1).with("x", 1), member("b", "g", 2)];
    case.index_gives(group(&table, "g"), &expected).await;
}

pub async fn index_sorts_by_its_own_key(case: &Case) {
    let table = grouped(case, IndexProjection::All).await;
    let all = [("c", -5), ("a", 0), ("d", 9), ("b", 10)].map(|(pk, at)| member(pk, "g", at));
    case.put_all(&table, all.clone()).await;
    case.put(&table, member("e", "h", 3)).await;
    case.index_gives(group(&table, "g"), &all).await;
    let mut backwards = all.to_vec();
    backwards.reverse();
    case.index_gives(group(&table, "g").descending(), &backwards)
        .await;
    let from_zero = partition_of("g", "g").with_sort("at", SortCondition::GreaterOrEqual(0.into()));
    let query = Query::new(&table, from_zero).on_index("by-group");
    case.index_gives(query.clone(), &all[1..]).await;
    case.index_gives(query.limit(1), &all[1..]).await;
}

pub async fn items_without_index_key_are_not_indexed(case: &Case) {
    let table = grouped(case, IndexProjection::All).await;
    let whole = member("a", "g", 1);
    case.put_all(
        &table,
        [
            item("b"),
            item("c").with("g", "g"),
            item("d").with("at", 1),
            whole.clone(),
        ],
    )
    .await;
    case.index_gives(group(&table, "g"), std::slice::from_ref(&whole))
        .await;
    case.index_scan_gives(Scan::new(&table).on_index("by-group"), &[whole])
        .await;
}

pub async fn paging_returns_all_equal_index_keys(case: &Case) {
    let table = grouped(case, IndexProjection::KeysOnly).await;
    let pks = ["a", "a\0", "aa", "b", "c", "d", "e"];
    case.put_all(&table, pks.map(|pk| member(pk, "g", 1))).await;
    case.put_all(&table, ["f", "g"].map(|pk| member(pk, "g", 2)))
        .await;
    let all: Vec<_> = pks
        .map(|pk| member(pk, "g", 1))
        .into_iter()
        .chain(["f", "g"].map(|pk| member(pk, "g", 2)))
        .collect();
    case.index_scan_gives(Scan::new(&table).on_index("by-group"), &all)
        .await;
    // The order of equal keys is up to the store, but must not depend on the page size.
    let once = case.query_pages(group(&table, "g")).await;
    let order = items(once);
    assert_eq!(in_order(order.clone()), in_order(all));
    for limit in 1..=4 {
        case.index_gives(group(&table, "g").limit(limit), &order)
            .await;
        let mut found = items(
            case.query_pages(group(&table, "g").limit(limit).descending())
                .await,
        );
        found.reverse();
        assert_eq!(in_order(found), in_order(order.clone()));
    }
}

pub async fn changed_index_key_moves_the_entry(case: &Case) {
    let table = grouped(case, IndexProjection::All).await;
    case.put(&table, member("a", "g", 1)).await;
    case.index_gives(group(&table, "g"), &[member("a", "g", 1)])
        .await;
    let set = |name: &str, value: Value| {
        let changes = Changes::new().set(name, value);
        Update::new(&table, item("a"), changes)
    };
    assert_eq!(case.store.update(set("at", 5.into())).await, Ok(None));
    case.index_gives(group(&table, "g"), &[member("a", "g", 5)])
        .await;
    assert_eq!(case.store.update(set("g", "h".into())).await, Ok(None));
    case.index_gives(group(&table, "h"), &[member("a", "h", 5)])
        .await;
    case.index_gives(group(&table, "g"), &[]).await;
    case.put(&table, member("a", "i", 6)).await;
    case.index_gives(group(&table, "i"), &[member("a", "i", 6)])
        .await;
    case.index_scan_gives(
        Scan::new(&table).on_index("by-group"),
        &[member("a", "i", 6)],
    )
    .await;
}

pub async fn removed_index_key_deletes_the_entry(case: &Case) {
    let table = grouped(case, IndexProjection::All).await;
    let remove = Changes::new().remove("at");
    let leave: [Action; 3] = [
        Update::new(&table, item("a"), remove).into(),
        Put::new(&table, item("a").with("x", 1)).into(),
        Delete::new(&table, item("a")).into(),
    ];
    for action in leave {
        case.put(&table, member("a", "g", 1)).await;
        case.index_gives(group(&table, "g"), &[member("a", "g", 1)])
            .await;
        let outcome = case
            .store
            .transact(Transaction::new(vec![action.clone()]))
            .await;
        assert_eq!(outcome, Ok(()));
        case.index_gives(group(&table, "g"), &[]).await;
    }
}

pub async fn index_follows_non_key_attributes(case: &Case) {
    let table = grouped(case, IndexProjection::All).await;
    case.put(&table, member("a", "g", 1).with("x", 1)).await;
    let add = Changes::new().add("x", 1);
    let update = Update::new(&table, item("a"), add);
    assert_eq!(case.store.update(update).await, Ok(None));
    case.index_gives(group(&table, "g"), &[member("a", "g", 1).with("x", 2)])
        .await;
}

pub async fn local_index_sorts_by_its_own_key(case: &Case) {
    let table = local(case).await;
    let all = [(3, "a"), (1, "b"), (2, "c")]
        .map(|(sk, name)| sorted_item("p", sk).with("name", name).with("x", 1));
    case.put_all(&table, all.clone()).await;
    case.put_all(
        &table,
        [sorted_item("p", 4), sorted_item("o", 1).with("name", "d")],
    )
    .await;
    let query = Query::new(&table, partition("p")).on_index("by-name");
    case.index_gives(query.clone(), &all).await;
    case.index_gives(query.clone().limit(1), &all).await;
    let mut consistent = query.descending();
    consistent.consistent = true;
    let found = items(case.query_pages(consistent).await);
    assert_eq!(found, [all[2].clone(), all[1].clone(), all[0].clone()]);
}

pub async fn indexes_support_scans_and_filters(case: &Case) {
    let table = grouped(case, IndexProjection::KeysOnly).await;
    let all: Vec<_> = (0..7).map(|n| member(&format!("p{n}"), "g", n)).collect();
    case.put_all(&table, all.iter().map(|item| item.clone().with("x", 1)))
        .await;
    let scan = Scan::new(&table).on_index("by-group");
    case.index_scan_gives(scan.clone().limit(2), &all).await;
    let late = Path::new("at").at_least(5);
    case.index_scan_gives(scan.filter(late), &all[5..]).await;
}

pub async fn invalid_index_key_values_are_rejected(case: &Case) {
    let table = grouped(case, IndexProjection::All).await;
    case.put(&table, member("a", "g", 1)).await;
    for (name, value) in [
        ("g", Value::from(1)),
        ("g", Value::Null),
        ("g", Value::from("")),
        ("g", Value::from("x".repeat(2049))),
        ("at", Value::from("1")),
        ("at", Value::L(vec![])),
    ] {
        let unfit = item("b").with(name, value.clone());
        let outcome = Outcome::of(case.store.put(Put::new(&table, unfit.clone())).await);
        assert_eq!(outcome, Outcome::Invalid, "put {name} = {value:?}");
        assert_eq!(case.get(&table, item("b")).await, None);
        let changes = Changes::new().set(name, value.clone());
        let update = Update::new(&table, item("a"), changes);
        let outcome = Outcome::of(case.store.update(update.clone()).await);
        assert_eq!(outcome, Outcome::Invalid, "update {name} = {value:?}");
        for action in [Put::new(&table, unfit).into(), Action::from(update)] {
            let transaction = Transaction::new(vec![action]);
            let outcome = Outcome::of(case.store.transact(transaction).await);
            assert_eq!(outcome, Outcome::Invalid, "transact {name} = {value:?}");
        }
    }
    assert_eq!(case.get(&table, item("a")).await, Some(member("a", "g", 1)));
}

pub async fn consistent_read_of_global_index_is_rejected(case: &Case) {
    let table = grouped(case, IndexProjection::All).await;
    let mut query = group(&table, "g");
    query.consistent = true;
    assert_eq!(Outcome::of(case.store.query(query).await), Outcome::Invalid);
    let mut scan = Scan::new(&table).on_index("by-group");
    scan.consistent = true;
    assert_eq!(Outcome::of(case.store.scan(scan).await), Outcome::Invalid);
}

pub async fn projection_beyond_global_index_is_rejected(case: &Case) {
    let table = grouped(case, IndexProjection::Include(vec!["x".into()])).await;
    for (name, outcome) in [
        ("x", Outcome::Success),
        ("pk", Outcome::Success),
        ("y", Outcome::Invalid),
    ] {
        let mut query = group(&table, "g");
        query.projection = Some(Projection::new([name]));
        let result = case.store.query(query).await;
        assert_eq!(Outcome::of(result), outcome, "{name}");
    }
}

pub async fn index_start_key_contains_both_keys_only(case: &Case) {
    let table = grouped(case, IndexProjection::All).await;
    for (start, outcome) in [
        (member("a", "g", 1), Outcome::Success),
        (item("a"), Outcome::Invalid),
        (Item::new().with("g", "g").with("at", 1), Outcome::Invalid),
        (member("a", "h", 1), Outcome::Invalid),
        (member("a", "g", 1).with("x", 1), Outcome::Invalid),
    ] {
        let query = group(&table, "g").starting_after(Some(start.clone()));
        let result = case.store.query(query).await;
        assert_eq!(Outcome::of(result), outcome, "{start:?}");
    }
}

/// A table with a global index on `g` and `at`.
async fn grouped(case: &Case, projection: IndexProjection) -> String {
    let index = IndexSchema::global(
        "by-group",
        KeyAttribute::new("g", KeyKind::S),
        Some(KeyAttribute::new("at", KeyKind::N)),
    );
    let schema = TableSchema::new(case.name("grouped"), "pk", KeyKind::S);
    case.ensure(schema.with_index(index.projecting(projection)))
        .await
}

/// A table with a sort key and a local index on `name`.
async fn local(case: &Case) -> String {
    let mut index = IndexSchema::global(
        "by-name",
        KeyAttribute::new("pk", KeyKind::S),
        Some(KeyAttribute::new("name", KeyKind::S)),
    );
    index.local = true;
    let schema = TableSchema::new(case.name("local"), "pk", KeyKind::S).with_sort("sk", KeyKind::N);
    case.ensure(schema.with_index(index)).await
}

/// A query for a whole group.
fn group(table: &str, group: &str) -> Query {
    Query::new(table, partition_of("g", group)).on_index("by-group")
}

fn member(pk: &str, group: &str, at: i32) -> Item {
    item(pk).with("g", group).with("at", at)
}
