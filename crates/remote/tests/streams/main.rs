//! Changes from a stream with shard splits, expiring iterators and trimmed records.

mod model;
#[path = "../script/mod.rs"]
#[allow(dead_code)]
mod script;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use homeport_remote::{AccessKey, Remote, Settings};
use homeport_store::{Change, ChangeFeed, Position, StoreError, SystemClock};
use model::Model;

const TABLE: &str = "things";

/// Connects without any cached stream state.
async fn connect(model: &Model) -> Remote {
    let settings = Settings {
        endpoint_url: Some(model.serve().await),
        region: Some("us-east-1".to_owned()),
        access_key: Some(AccessKey::new("test", "test")),
        ..Settings::default()
    };
    let connected = Remote::connect(settings, Arc::new(SystemClock)).await;
    connected.expect("the settings are complete")
}

fn text(change: &Change) -> String {
    let value = change.new.as_ref().and_then(|item| item.get("value"));
    let id = change.key.get("id").and_then(|id| id.as_str());
    format!(
        "{}{}",
        id.expect("a key"),
        value.and_then(|value| value.as_str()).expect("a value")
    )
}

/// All changes after a position, in pages of `limit`, and the position after them.
async fn read_all(remote: &Remote, from: &Position, limit: usize) -> (Vec<String>, Position) {
    let mut from = from.clone();
    let mut seen = Vec::new();
    loop {
        let page = remote.changes(TABLE, &from, limit, Duration::ZERO).await;
        let page = page.expect("a page");
        assert!(!page.has_gap);
        assert!(page.changes.len() <= limit);
        seen.extend(page.changes.iter().map(text));
        if page.changes.is_empty() && page.next == from {
            return (seen, from);
        }
        from = page.next;
    }
}

#[tokio::test]
async fn end_separates_earlier_from_later_changes() {
    let model = Model::new();
    model.write("root", "a", "1");
    let remote = connect(&model).await;
    let first = remote.end(TABLE).await.expect("an end");
    model.write("root", "a", "2");
    let second = remote.end(TABLE).await.expect("an end");
    model.write("root", "a", "3");
    assert_eq!(read_all(&remote, &second, 10).await.0, ["a3"]);
    assert_eq!(read_all(&remote, &first, 10).await.0, ["a2", "a3"]);
    // Read again, as after a failure to process the changes.
    assert_eq!(read_all(&remote, &first, 10).await.0, ["a2", "a3"]);
}

#[tokio::test]
async fn end_of_another_process_loses_no_changes() {
    let model = Model::new();
    model.write("root", "a", "1");
    let end = connect(&model).await.end(TABLE).await.expect("an end");
    model.write("root", "a", "2");
    let (seen, next) = read_all(&connect(&model).await, &end, 10).await;
    assert_eq!(seen, ["a1", "a2"]);
    // From here on there is a sequence number.
    model.write("root", "a", "3");
    assert_eq!(read_all(&connect(&model).await, &next, 10).await.0, ["a3"]);
}

#[tokio::test]
async fn item_order_survives_shard_splits_and_restarts() {
    let model = Model::new();
    let mut remote = connect(&model).await;
    let mut position = remote.end(TABLE).await.expect("an end");
    // One change is read before the first restart; see the test of an end without a cached
    // iterator.
    model.write("root", "a", "000");
    let mut seen: BTreeMap<char, Vec<u32>> = BTreeMap::new();
    // The shard of each item's changes.
    let mut shards = BTreeMap::from([('a', "root".to_owned()), ('b', "root".to_owned())]);
    let mut written = 1_u32;
    for generation in 0..6 {
        for _ in 0..5 {
            for (item, shard) in &shards {
                model.write(shard, &item.to_string(), &format!("{written:03}"));
                written += 1;
            }
        }
        let read_now = generation % 2 == 0;
        let limit = if read_now { 3 } else { 4 };
        if read_now {
            collect(&remote, &mut position, limit, &mut seen).await;
            remote = connect(&model).await;
        }
        let closing: std::collections::BTreeSet<String> = shards.values().cloned().collect();
        if closing.len() == 1 {
            let (left, right) = (format!("l{generation}"), format!("r{generation}"));
            model.split(shards[&'a'].as_str(), &[&left, &right]);
            shards = BTreeMap::from([('a', left), ('b', right)]);
        } else {
            for (item, shard) in shards.clone() {
                let child = format!("{item}{generation}");
                model.split(&shard, &[&child]);
                shards.insert(item, child);
            }
        }
    }
    collect(&remote, &mut position, 7, &mut seen).await;
    let total: usize = seen.values().map(Vec::len).sum();
    assert_eq!(total, written as usize, "each change once");
    for (item, values) in &seen {
        assert!(values.is_sorted(), "{item}: {values:?}");
    }
}

async fn collect(
    remote: &Remote,
    position: &mut Position,
    limit: usize,
    seen: &mut BTreeMap<char, Vec<u32>>,
) {
    let (changes, next) = read_all(remote, position, limit).await;
    *position = next;
    for change in changes {
        let (item, value) = change.split_at(1);
        let item = item.chars().next().expect("an item");
        let value = value.parse().expect("a number");
        seen.entry(item).or_default().push(value);
    }
}

#[tokio::test]
async fn expired_iterator_is_renewed_from_sequence_number() {
    let model = Model::new();
    let remote = connect(&model).await;
    let end = remote.end(TABLE).await.expect("an end");
    model.write("root", "a", "1");
    let (_, next) = read_all(&remote, &end, 10).await;
    model.expire_iterators();
    model.write("root", "a", "2");
    assert_eq!(read_all(&remote, &next, 10).await.0, ["a2"]);
    assert_eq!(model.with(|state| state.iterators_expired), 1);
}

/// Reads once from an outdated position.
async fn expect_gap(remote: &Remote, from: &Position, model: &Model, shard: &str) {
    let page = remote.changes(TABLE, from, 10, Duration::ZERO).await;
    let page = page.expect("a page");
    assert!(page.has_gap && page.changes.is_empty(), "{page:?}");
    model.write(shard, "z", "9");
    assert_eq!(read_all(remote, &page.next, 10).await.0, ["z9"]);
}

#[tokio::test]
async fn records_lost_before_reading_are_a_gap() {
    let model = Model::new();
    let remote = connect(&model).await;
    let end = remote.end(TABLE).await.expect("an end");
    model.write("root", "a", "1");
    let (_, next) = read_all(&remote, &end, 10).await;
    model.write("root", "a", "2");
    model.trim("root");
    expect_gap(&remote, &next, &model, "root").await;
    expect_gap(&connect(&model).await, &next, &model, "root").await;
    // The shard itself no longer exists.
    model.split("root", &["child"]);
    model.with(|state| state.shards.retain(|shard| shard.id != "root"));
    expect_gap(&remote, &next, &model, "child").await;
}

#[tokio::test]
async fn replaced_stream_is_a_gap() {
    let model = Model::new();
    let remote = connect(&model).await;
    let end = remote.end(TABLE).await.expect("an end");
    model.with(|state| state.label = "second".to_owned());
    expect_gap(&connect(&model).await, &end, &model, "root").await;
}

#[tokio::test]
async fn waiting_ends_at_the_first_change() {
    let model = Model::new();
    let remote = Arc::new(connect(&model).await);
    let end = remote.end(TABLE).await.expect("an end");
    let waiting = {
        let remote = Arc::clone(&remote);
        tokio::spawn(async move {
            let wait = Duration::from_secs(60);
            remote.changes(TABLE, &end, 10, wait).await.expect("a page")
        })
    };
    model.write("root", "a", "1");
    let page = tokio::time::timeout(Duration::from_secs(30), waiting).await;
    let page = page.expect("in time").expect("no panic");
    assert_eq!(page.changes.iter().map(text).collect::<Vec<_>>(), ["a1"]);
}

#[tokio::test]
async fn missing_stream_and_invalid_position_are_reported() {
    let model = Model::new();
    let remote = connect(&model).await;
    let wrong = Position::new("4711");
    let refused = remote.changes(TABLE, &wrong, 10, Duration::ZERO).await;
    assert!(
        matches!(refused, Err(StoreError::Invalid(_))),
        "{refused:?}"
    );
    model.with(|state| state.label = "no stream".to_owned());
    let refused = remote.end(TABLE).await;
    assert!(
        matches!(refused, Err(StoreError::Invalid(_))),
        "{refused:?}"
    );
    model.with(|state| state.label = "no table".to_owned());
    let refused = remote.end(TABLE).await;
    assert_eq!(refused, Err(StoreError::TableNotFound(TABLE.to_owned())));
}
