//! Scans return every item once: as a whole, in pages and in segments.

use homeport_item::expression::{Condition, Path, Projection};
use homeport_item::{Item, KeyKind};

use super::case::{Case, in_order, item, sorted_item};
use super::outcome::Outcome;
use crate::Scan;

pub async fn scan_returns_each_item_once(case: &Case) {
    let (table, all) = filled(case).await;
    assert_eq!(in_order(case.scan(Scan::new(&table)).await), all);
}

pub async fn scan_pages_return_each_item_once(case: &Case) {
    let (table, all) = filled(case).await;
    for limit in [1, 7, 1000] {
        let found = case.scan(Scan::new(&table).limit(limit)).await;
        assert_eq!(in_order(found), all, "limit {limit}");
    }
}

pub async fn scan_of_empty_table_returns_nothing(case: &Case) {
    let table = case.keyed().await;
    assert_eq!(case.scan(Scan::new(&table)).await, []);
}

pub async fn segments_partition_the_table(case: &Case) {
    let (table, all) = filled(case).await;
    for total in [1, 2, 3, 16] {
        let mut found = Vec::new();
        for segment in 0..total {
            let scan = Scan::new(&table).segment(segment, total);
            let part = case.scan(scan.clone()).await;
            let paged = case.scan(scan.limit(3)).await;
            assert_eq!(in_order(paged), in_order(part.clone()), "{segment}/{total}");
            found.extend(part);
        }
        assert_eq!(in_order(found), all, "{total} segments");
    }
}

pub async fn invalid_segments_are_rejected(case: &Case) {
    let table = case.keyed().await;
    for (segment, total) in [(0, 0), (1, 1), (5, 4)] {
        let scan = Scan::new(&table).segment(segment, total);
        let outcome = Outcome::of(case.store.scan(scan).await);
        assert_eq!(outcome, Outcome::Invalid, "{segment} of {total}");
    }
}

pub async fn filtered_scan_counts_scanned_items(case: &Case) {
    let (table, all) = filled(case).await;
    let scan = Scan {
        consistent: true,
        filter: Some(is_three()),
        ..Scan::new(&table)
    };
    let pages = case.scan_pages(scan.clone()).await;
    let count: usize = pages.iter().map(|page| page.count).sum();
    let scanned: usize = pages.iter().map(|page| page.scanned).sum();
    assert_eq!((count, scanned), (8, all.len()));
    assert_eq!(super::case::items(pages).len(), 8);
    let counting = Scan {
        count_only: true,
        ..scan
    };
    let pages = case.scan_pages(counting).await;
    assert_eq!(pages.iter().map(|page| page.count).sum::<usize>(), 8);
    assert!(pages.iter().all(|page| page.items.is_empty()));
}

pub async fn scan_can_filter_on_keys_and_project(case: &Case) {
    let table = case.keyed().await;
    case.put_all(&table, ["a", "b"].map(|pk| item(pk).with("n", 1)))
        .await;
    let mut scan = Scan::new(&table).filter(Path::new("pk").equals("b"));
    scan.projection = Some(Projection::new(["n"]));
    assert_eq!(case.scan(scan).await, [Item::new().with("n", 1)]);
}

/// A table with 8 partitions of 6 items, and its items.
async fn filled(case: &Case) -> (String, Vec<Item>) {
    let table = case.sorted(KeyKind::N).await;
    let all: Vec<_> = (0..8)
        .flat_map(|pk| (0..6).map(move |n| sorted_item(&format!("p{pk}"), n).with("n", n)))
        .collect();
    case.put_all(&table, all.clone()).await;
    (table, in_order(all))
}

fn is_three() -> Condition {
    Path::new("n").equals(3)
}
