//! Time-dependent behaviour of the reference model that the contract suite cannot wait for.

use std::sync::Arc;

use homeport_item::expression::Update as Changes;
use homeport_item::schema::TableSchema;
use homeport_item::{Item, KeyKind};
use homeport_store::model::MemoryStore;
use homeport_store::{Get, ManualClock, Put, Store, TOKEN_LIFETIME_SECS, Transaction, Update};

const START_SECS: i64 = 1_800_000_000;

/// A store with one table, and its clock.
async fn store() -> (MemoryStore, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::at_ms(START_SECS * 1000));
    let store = MemoryStore::new(clock.clone());
    let schema = TableSchema::new("items", "pk", KeyKind::S).with_ttl("expires");
    store.ensure_tables(&[schema]).await.expect("a table");
    (store, clock)
}

fn key() -> Item {
    Item::new().with("pk", "a")
}

#[tokio::test]
async fn item_disappears_at_its_expiry_second() {
    let (store, clock) = store().await;
    let item = key().with("expires", START_SECS + 10);
    store.put(Put::new("items", item.clone())).await.unwrap();
    let get = || store.get(Get::new("items", key()));
    clock.advance_ms(9_000);
    assert_eq!(get().await, Ok(Some(item)));
    clock.advance_ms(1_000);
    assert_eq!(get().await, Ok(None));
}

#[tokio::test]
async fn token_expires_after_ten_minutes() {
    let (store, clock) = store().await;
    let count = || {
        let update = Update::new("items", key(), Changes::new().add("n", 1));
        store.transact(Transaction::new(vec![update.into()]).with_token("t"))
    };
    count().await.unwrap();
    clock.advance_ms((TOKEN_LIFETIME_SECS - 1) * 1000);
    count().await.unwrap();
    let get = || store.get(Get::new("items", key()));
    assert_eq!(get().await, Ok(Some(key().with("n", 1))));
    clock.advance_ms(1000);
    count().await.unwrap();
    assert_eq!(get().await, Ok(Some(key().with("n", 2))));
}
