//! What the model does as time passes, which the contract cannot wait for.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use homeport_item::expression::Update as Changes;
use homeport_item::schema::TableSchema;
use homeport_item::{Item, KeyKind};
use homeport_store::model::MemoryStore;
use homeport_store::{Get, Put, Store, TOKEN_LIFETIME_SECS, Transaction, Update};

const START_SECS: i64 = 1_800_000_000;

/// A store with one table, and the clock it goes by.
async fn store() -> (MemoryStore, Arc<AtomicI64>) {
    let clock = Arc::new(AtomicI64::new(START_SECS));
    let shown = Arc::clone(&clock);
    let store = MemoryStore::new(Arc::new(move || shown.load(Ordering::Relaxed)));
    let schema = TableSchema::new("items", "pk", KeyKind::S).with_ttl("expires");
    store.ensure_tables(&[schema]).await.expect("a table");
    (store, clock)
}

fn key() -> Item {
    Item::new().with("pk", "a")
}

#[tokio::test]
async fn an_item_is_gone_from_the_second_it_expires() {
    let (store, clock) = store().await;
    let item = key().with("expires", START_SECS + 10);
    store.put(Put::new("items", item.clone())).await.unwrap();
    let get = || store.get(Get::new("items", key()));
    clock.store(START_SECS + 9, Ordering::Relaxed);
    assert_eq!(get().await, Ok(Some(item)));
    clock.store(START_SECS + 10, Ordering::Relaxed);
    assert_eq!(get().await, Ok(None));
}

#[tokio::test]
async fn a_token_is_forgotten_after_ten_minutes() {
    let (store, clock) = store().await;
    let count = || {
        let update = Update::new("items", key(), Changes::new().add("n", 1));
        store.transact(Transaction::new(vec![update.into()]).with_token("t"))
    };
    count().await.unwrap();
    clock.store(START_SECS + TOKEN_LIFETIME_SECS - 1, Ordering::Relaxed);
    count().await.unwrap();
    let get = || store.get(Get::new("items", key()));
    assert_eq!(get().await, Ok(Some(key().with("n", 1))));
    clock.store(START_SECS + TOKEN_LIFETIME_SECS, Ordering::Relaxed);
    count().await.unwrap();
    assert_eq!(get().await, Ok(Some(key().with("n", 2))));
}
