//! Paging returns each item exactly once, for every page size and direction.

use homeport_item::expression::SortCondition;
use homeport_item::{Item, KeyKind, Value};

use super::case::{Case, in_order, item, items, partition, sorted_item};
use super::outcome::Outcome;
use crate::{Delete, PAGE_SIZE_MAX_BYTES, Query, Scan};

const COUNT: i32 = 23;

pub async fn pages_return_each_item_once(case: &Case) {
    let table = filled(case).await;
    let all: Vec<_> = (0..COUNT).map(|n| sorted_item("p", n)).collect();
    let backwards: Vec<_> = all.iter().rev().cloned().collect();
    for limit in [1, 2, 5, 22, 23, 24, 1000] {
        let query = Query::new(&table, partition("p")).limit(limit);
        let pages = case.query_pages(consistent(query.clone())).await;
        for page in &pages {
            assert!(page.items.len() <= limit, "a page of {}", page.items.len());
            assert_eq!(page.count, page.items.len());
        }
        assert_eq!(items(pages), all, "limit {limit}");
        let found = case.query(query.descending()).await;
        assert_eq!(found, backwards, "limit {limit}, descending");
    }
}

pub async fn pages_stay_within_the_key_condition(case: &Case) {
    let table = filled(case).await;
    let within = partition("p").with_sort(
        "sk",
        SortCondition::Between(Value::from(5), Value::from(15)),
    );
    let mut expected: Vec<_> = (5..=15).map(|n| sorted_item("p", n)).collect();
    let query = Query::new(&table, within).limit(3);
    assert_eq!(case.query(query.clone()).await, expected);
    expected.reverse();
    assert_eq!(case.query(query.descending()).await, expected);
}

pub async fn paging_continues_after_a_deleted_item(case: &Case) {
    let table = filled(case).await;
    let query = consistent(Query::new(&table, partition("p")).limit(5));
    let first = case.store.query(query.clone()).await.expect("a page");
    let next = first.next.expect("there is more");
    let delete = Delete::new(&table, sorted_item("p", 4));
    assert_eq!(case.store.delete(delete).await, Ok(None));
    let rest = case.query(query.starting_after(Some(next))).await;
    let expected: Vec<_> = (5..COUNT).map(|n| sorted_item("p", n)).collect();
    assert_eq!(rest, expected);
}

pub async fn any_key_of_the_partition_can_start_a_page(case: &Case) {
    let table = filled(case).await;
    let half = super::case::number("6.5");
    let start = Some(sorted_item("p", half));
    let query = Query::new(&table, partition("p")).starting_after(start);
    let later: Vec<_> = (7..COUNT).map(|n| sorted_item("p", n)).collect();
    assert_eq!(case.query(query.clone()).await, later);
    let earlier: Vec<_> = (0..7).rev().map(|n| sorted_item("p", n)).collect();
    assert_eq!(case.query(query.descending()).await, earlier);
}

pub async fn page_ends_at_1_mib(case: &Case) {
    let table = case.sorted(KeyKind::N).await;
    let text = "x".repeat(100 * 1024);
    let all: Vec<_> = (0..25)
        .map(|n| sorted_item("p", n).with("text", text.as_str()))
        .collect();
    // One by one, because a batch of all of them might be too large.
    for item in &all {
        case.put(&table, item.clone()).await;
    }
    let query = consistent(Query::new(&table, partition("p")));
    let pages = case.query_pages(query).await;
    let scan = Scan {
        consistent: true,
        ..Scan::new(&table)
    };
    let scanned = case.scan_pages(scan).await;
    for page in pages.iter().chain(&scanned) {
        let size: usize = page.items.iter().map(Item::size).sum();
        // The page may include the item that crosses the limit.
        assert!(size <= PAGE_SIZE_MAX_BYTES + 110 * 1024, "{size} bytes");
    }
    assert!(pages.len() > 1 && scanned.len() > 1);
    assert_eq!(items(pages), all);
    assert_eq!(in_order(items(scanned)), in_order(all));
}

pub async fn invalid_start_keys_are_rejected(case: &Case) {
    let table = filled(case).await;
    for start in [
        Item::new(),
        item("p"),
        Item::new().with("sk", 1),
        sorted_item("p", "1"),
        sorted_item("p", 1).with("n", 1),
        sorted_item("o", 1),
    ] {
        let query = Query::new(&table, partition("p")).starting_after(Some(start.clone()));
        let outcome = Outcome::of(case.store.query(query).await);
        assert_eq!(outcome, Outcome::Invalid, "query after {start:?}");
    }
    for start in [Item::new(), item("p"), sorted_item("p", "1")] {
        let scan = Scan::new(&table).starting_after(Some(start.clone()));
        let outcome = Outcome::of(case.store.scan(scan).await);
        assert_eq!(outcome, Outcome::Invalid, "scan after {start:?}");
    }
}

pub async fn zero_limit_is_rejected(case: &Case) {
    let table = case.sorted(KeyKind::N).await;
    let query = Query::new(&table, partition("p")).limit(0);
    assert_eq!(Outcome::of(case.store.query(query).await), Outcome::Invalid);
    let scan = Scan::new(&table).limit(0);
    assert_eq!(Outcome::of(case.store.scan(scan).await), Outcome::Invalid);
}

/// A table whose partition `p`, between other partitions, has the sort keys 0 to `COUNT` - 1.
async fn filled(case: &Case) -> String {
    let table = case.sorted(KeyKind::N).await;
    for pk in ["o", "p", "q"] {
        case.put_all(&table, (0..COUNT).map(|n| sorted_item(pk, n)))
            .await;
    }
    table
}

fn consistent(mut query: Query) -> Query {
    query.consistent = true;
    query
}
