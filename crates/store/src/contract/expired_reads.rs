//! Time to live in reads: an expired item is invisible, deleted or not.

use homeport_item::expression::Projection;
use homeport_item::schema::{IndexSchema, KeyAttribute, TableSchema};
use homeport_item::{Item, KeyKind, Value};

use super::case::{Case, in_order, now_secs, number, partition, partition_of, sorted_item};
use crate::{BatchGet, Get, Query, Scan, TTL_AGE_MAX_SECS, TableKeys};

const HOUR_SECS: i64 = 3600;

pub async fn get_does_not_see_expired_items(case: &Case) {
    let (table, keys, visible) = filled(case).await;
    for key in keys {
        let found = case.get(&table, key.clone()).await;
        let expected = visible.iter().find(|item| item.get("sk") == key.get("sk"));
        assert_eq!(found.as_ref(), expected, "{key:?}");
    }
}

pub async fn query_does_not_see_expired_items(case: &Case) {
    let (table, _, visible) = filled(case).await;
    for limit in [1, 3, 1000] {
        let query = Query::new(&table, partition("p")).limit(limit);
        assert_eq!(case.query(query.clone()).await, visible, "limit {limit}");
        let mut found = case.query(query.descending()).await;
        found.reverse();
        assert_eq!(found, visible, "limit {limit}, descending");
    }
}

pub async fn counts_exclude_expired_items(case: &Case) {
    let (table, _, visible) = filled(case).await;
    let mut query = Query::new(&table, partition("p"));
    query.consistent = true;
    query.count_only = true;
    let pages = case.query_pages(query).await;
    let count: usize = pages.iter().map(|page| page.count).sum();
    assert_eq!(count, visible.len());
}

pub async fn scan_does_not_see_expired_items(case: &Case) {
    let (table, _, visible) = filled(case).await;
    let found = case.scan(Scan::new(&table)).await;
    assert_eq!(in_order(found), in_order(visible.clone()));
    let paged = case.scan(Scan::new(&table).limit(2)).await;
    assert_eq!(in_order(paged), in_order(visible));
}

pub async fn index_does_not_show_expired_items(case: &Case) {
    let (table, _, visible) = filled(case).await;
    let query = Query::new(&table, partition_of("g", "g")).on_index("by-group");
    case.index_gives(query, &visible).await;
    let scan = Scan::new(&table).on_index("by-group");
    case.index_scan_gives(scan, &visible).await;
}

pub async fn batch_get_does_not_see_expired_items(case: &Case) {
    let (table, keys, visible) = filled(case).await;
    let asked = TableKeys {
        table,
        keys,
        projection: None,
        consistent: true,
    };
    let answer = case
        .store
        .batch_get(BatchGet {
            tables: vec![asked],
        })
        .await
        .expect("the batch is read");
    assert_eq!(answer.unprocessed, []);
    let found = answer.items.into_iter().map(|(_, item)| item).collect();
    assert_eq!(in_order(found), in_order(visible));
}

pub async fn transact_get_does_not_see_expired_items(case: &Case) {
    let (table, keys, visible) = filled(case).await;
    let gets = keys.into_iter().map(|key| Get::new(&table, key));
    let found = case
        .store
        .transact_get(gets.collect())
        .await
        .expect("the items are read");
    let found: Vec<_> = found.into_iter().flatten().collect();
    assert_eq!(found, visible);
}

pub async fn projection_without_ttl_attribute_hides_expired_items(case: &Case) {
    let (table, _, visible) = filled(case).await;
    let mut query = Query::new(&table, partition("p"));
    query.projection = Some(Projection::new(["sk"]));
    let keys: Vec<_> = visible
        .iter()
        .map(|item| Item::new().with("sk", item.get("sk").expect("a key").clone()))
        .collect();
    assert_eq!(case.query(query).await, keys);
}

/// As in DynamoDB, so a value in the wrong unit or a zero does not delete items.
pub async fn expiry_over_five_years_old_is_ignored(case: &Case) {
    let table = case.ensure(expiring(case)).await;
    let now = now_secs();
    let items: Vec<_> = [0, 1, -1, now - TTL_AGE_MAX_SECS - HOUR_SECS]
        .into_iter()
        .enumerate()
        .map(|(sk, expires)| sorted_item("p", sk.to_string()).with("expires", expires))
        .collect();
    case.put_all(&table, items.clone()).await;
    assert_eq!(case.query(Query::new(&table, partition("p"))).await, items);
    let recent = now - TTL_AGE_MAX_SECS + HOUR_SECS;
    case.put(&table, sorted_item("p", "recent").with("expires", recent))
        .await;
    assert_eq!(case.query(Query::new(&table, partition("p"))).await, items);
}

/// Writes items of all kinds; returns all keys, and the items that are visible.
async fn filled(case: &Case) -> (String, Vec<Item>, Vec<Item>) {
    let table = case.ensure(expiring(case)).await;
    let now = now_secs();
    let values = [
        ("expired", Some(Value::from(now - 5)), false),
        (
            "expired-fraction",
            Some(number(&format!("{}.5", now - 60))),
            false,
        ),
        (
            "expired-long-ago",
            Some(Value::from(now - 30 * 24 * HOUR_SECS)),
            false,
        ),
        ("future", Some(Value::from(now + HOUR_SECS)), true),
        ("future-far", Some(number("1E40")), true),
        ("none", None, true),
        ("text", Some(Value::from((now - 60).to_string())), true),
        ("zz-expired", Some(Value::from(now - 60)), false),
    ];
    let (mut keys, mut visible) = (Vec::new(), Vec::new());
    for (sk, expires, is_visible) in values {
        keys.push(sorted_item("p", sk));
        let mut item = sorted_item("p", sk).with("g", "g");
        if let Some(expires) = expires {
            item.insert("expires", expires);
        }
        case.put(&table, item.clone()).await;
        if is_visible {
            visible.push(item);
        }
    }
    (table, keys, visible)
}

/// A table with time to live and a global index on `g`.
fn expiring(case: &Case) -> TableSchema {
    let index = IndexSchema::global(
        "by-group",
        KeyAttribute::new("g", KeyKind::S),
        Some(KeyAttribute::new("sk", KeyKind::S)),
    );
    TableSchema::new(case.name("expiring"), "pk", KeyKind::S)
        .with_sort("sk", KeyKind::S)
        .with_ttl("expires")
        .with_index(index)
}
