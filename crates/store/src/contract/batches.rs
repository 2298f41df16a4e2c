//! Batches of independent reads or writes.

use homeport_item::expression::Projection;
use homeport_item::{Item, KeyKind};

use super::case::{Case, in_order, item, sorted_item};
use super::outcome::Outcome;
use crate::{BATCH_GET_MAX, BATCH_WRITE_MAX, BatchGet, BatchWrite, TableKeys, WriteRequest};

pub async fn batch_get_reads_several_tables(case: &Case) {
    let (first, second) = (case.keyed().await, case.sorted(KeyKind::N).await);
    let ours: Vec<_> = ["a", "b"].map(|pk| item(pk).with("n", 1)).into();
    let theirs: Vec<_> = (0..3).map(|n| sorted_item("p", n).with("n", n)).collect();
    case.put_all(&first, ours.clone()).await;
    case.put_all(&second, theirs.clone()).await;
    let keys = [
        asked(&first, ["a", "absent", "b"].map(item)),
        asked(&second, (0..5).map(|n| sorted_item("p", n))),
    ];
    let found = read_all(case, keys.into()).await;
    let of = |table: &str| -> Vec<Item> {
        let items = found.iter().filter(|(name, _)| name == table);
        in_order(items.map(|(_, item)| item.clone()).collect())
    };
    assert_eq!(of(&first), in_order(ours));
    assert_eq!(of(&second), in_order(theirs));
    assert_eq!(found.len(), 5);
}

pub async fn batch_get_applies_projection_per_table(case: &Case) {
    let (first, second) = (case.keyed().await, case.sorted(KeyKind::N).await);
    case.put(&first, item("a").with("n", 1).with("m", 2)).await;
    case.put(&second, sorted_item("p", 1).with("n", 3)).await;
    let mut keys = asked(&first, [item("a")]);
    keys.projection = Some(Projection::new(["m"]));
    let found = read_all(case, vec![keys, asked(&second, [sorted_item("p", 1)])]).await;
    let found = in_order(found.into_iter().map(|(_, item)| item).collect());
    let expected = vec![Item::new().with("m", 2), sorted_item("p", 1).with("n", 3)];
    assert_eq!(found, in_order(expected));
}

pub async fn batch_get_returns_many_large_items(case: &Case) {
    let table = case.sorted(KeyKind::N).await;
    let text = "x".repeat(200 * 1024);
    let all: Vec<_> = (0..12)
        .map(|n| sorted_item("p", n).with("text", text.as_str()))
        .collect();
    for item in &all {
        case.put(&table, item.clone()).await;
    }
    let keys = asked(&table, (0..12).map(|n| sorted_item("p", n)));
    let found = read_all(case, vec![keys]).await;
    let found = in_order(found.into_iter().map(|(_, item)| item).collect());
    assert_eq!(found, in_order(all));
}

pub async fn batch_get_accepts_1_to_100_keys(case: &Case) {
    let table = case.keyed().await;
    for (count, outcome) in [
        (0, Outcome::Invalid),
        (BATCH_GET_MAX, Outcome::Success),
        (BATCH_GET_MAX + 1, Outcome::Invalid),
    ] {
        let keys = (0..count).map(|n| item(&format!("item-{n}")));
        let tables = vec![asked(&table, keys)];
        let result = case.store.batch_get(BatchGet { tables }).await;
        assert_eq!(Outcome::of(result), outcome, "{count} keys");
    }
    let nothing = case.store.batch_get(BatchGet::default()).await;
    assert_eq!(Outcome::of(nothing), Outcome::Invalid);
}

pub async fn batch_get_rejects_duplicate_keys(case: &Case) {
    let table = case.keyed().await;
    let tables = vec![asked(&table, ["a", "b", "a"].map(item))];
    let result = case.store.batch_get(BatchGet { tables }).await;
    assert_eq!(Outcome::of(result), Outcome::Invalid);
}

pub async fn batch_write_puts_and_deletes(case: &Case) {
    let (first, second) = (case.keyed().await, case.sorted(KeyKind::N).await);
    case.put_all(&first, ["a", "b"].map(|pk| item(pk).with("n", 1)))
        .await;
    case.write_all(vec![
        put(&first, item("a").with("n", 2)),
        delete(&first, item("b")),
        delete(&first, item("absent")),
        put(&first, item("c")),
        put(&second, sorted_item("a", 1)),
    ])
    .await;
    for (pk, expected) in [
        ("a", Some(item("a").with("n", 2))),
        ("b", None),
        ("c", Some(item("c"))),
    ] {
        assert_eq!(case.get(&first, item(pk)).await, expected, "{pk}");
    }
    let there = case.get(&second, sorted_item("a", 1)).await;
    assert_eq!(there, Some(sorted_item("a", 1)));
}

pub async fn batch_write_accepts_1_to_25_writes(case: &Case) {
    let table = case.keyed().await;
    let puts = |count: usize| -> Vec<_> {
        (0..count)
            .map(|n| put(&table, item(&format!("item-{n}"))))
            .collect()
    };
    for count in [0, BATCH_WRITE_MAX + 1] {
        let writes = puts(count);
        let result = case.store.batch_write(BatchWrite { writes }).await;
        assert_eq!(Outcome::of(result), Outcome::Invalid, "{count} writes");
    }
    assert_eq!(case.get(&table, item("item-0")).await, None);
    case.write_all(puts(BATCH_WRITE_MAX)).await;
    let last = item(&format!("item-{}", BATCH_WRITE_MAX - 1));
    assert_eq!(case.get(&table, last.clone()).await, Some(last));
}

pub async fn batch_write_rejects_duplicate_keys(case: &Case) {
    let table = case.keyed().await;
    let a = || item("a");
    for pair in [
        [put(&table, a()), put(&table, a().with("n", 1))],
        [put(&table, a()), delete(&table, a())],
        [delete(&table, a()), delete(&table, a())],
    ] {
        let writes = vec![pair[0].clone(), put(&table, item("b")), pair[1].clone()];
        let result = case.store.batch_write(BatchWrite { writes }).await;
        assert_eq!(Outcome::of(result), Outcome::Invalid, "{pair:?}");
    }
    assert_eq!(case.get(&table, item("b")).await, None);
}

pub async fn invalid_write_fails_the_whole_batch(case: &Case) {
    let table = case.keyed().await;
    for invalid in [
        put(&table, Item::new().with("n", 1)),
        put(&table, item("")),
        delete(&table, item("b").with("n", 1)),
        put(&table, item("b").with("text", "x".repeat(400 * 1024))),
    ] {
        let writes = vec![put(&table, item("a")), invalid];
        let result = case.store.batch_write(BatchWrite { writes }).await;
        assert_eq!(Outcome::of(result), Outcome::Invalid);
        assert_eq!(case.get(&table, item("a")).await, None);
    }
}

/// Reads a batch and repeats the request for unprocessed keys.
async fn read_all(case: &Case, mut tables: Vec<TableKeys>) -> Vec<(String, Item)> {
    let mut found = Vec::new();
    while !tables.is_empty() {
        let answer = case.store.batch_get(BatchGet { tables }).await;
        let answer = answer.expect("the batch is read");
        found.extend(answer.items);
        tables = answer.unprocessed;
    }
    found
}

fn asked(table: &str, keys: impl IntoIterator<Item = Item>) -> TableKeys {
    TableKeys {
        table: table.to_owned(),
        keys: keys.into_iter().collect(),
        projection: None,
        consistent: true,
    }
}

fn put(table: &str, item: Item) -> WriteRequest {
    WriteRequest::Put {
        table: table.to_owned(),
        item,
    }
}

fn delete(table: &str, key: Item) -> WriteRequest {
    WriteRequest::Delete {
        table: table.to_owned(),
        key,
    }
}
