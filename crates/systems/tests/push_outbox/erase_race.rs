//! Erasing a user at the moment at which a broadcast writes the user's notification.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use homeport_item::Item;
use homeport_item::schema::TableSchema;
use homeport_store::{
    Action, BatchGet, BatchGetOutput, BatchWrite, BatchWriteOutput, Delete, Get, Page, Put, Query,
    Scan, Store, StoreError, TransactError, Transaction, Update, WriteError,
};
use homeport_systems::push::{BroadcastState, Push, Settings};

use crate::world::{World, user, world};

/// Erases a user right before the first step of a broadcast is committed.
struct ErasingStore {
    store: Arc<dyn Store>,
    push: Push,
    is_erased: AtomicBool,
}

#[async_trait]
impl Store for ErasingStore {
    async fn ensure_tables(&self, tables: &[TableSchema]) -> Result<(), StoreError> {
        self.store.ensure_tables(tables).await
    }

    async fn get(&self, request: Get) -> Result<Option<Item>, StoreError> {
        self.store.get(request).await
    }

    async fn put(&self, request: Put) -> Result<Option<Item>, WriteError> {
        self.store.put(request).await
    }

    async fn update(&self, request: Update) -> Result<Option<Item>, WriteError> {
        self.store.update(request).await
    }

    async fn delete(&self, request: Delete) -> Result<Option<Item>, WriteError> {
        self.store.delete(request).await
    }

    async fn query(&self, request: Query) -> Result<Page, StoreError> {
        self.store.query(request).await
    }

    async fn scan(&self, request: Scan) -> Result<Page, StoreError> {
        self.store.scan(request).await
    }

    async fn batch_get(&self, request: BatchGet) -> Result<BatchGetOutput, StoreError> {
        self.store.batch_get(request).await
    }

    async fn batch_write(&self, request: BatchWrite) -> Result<BatchWriteOutput, StoreError> {
        self.store.batch_write(request).await
    }

    async fn transact_get(&self, requests: Vec<Get>) -> Result<Vec<Option<Item>>, TransactError> {
        self.store.transact_get(requests).await
    }

    async fn transact(&self, transaction: Transaction) -> Result<(), TransactError> {
        let is_step = transaction.actions.len() > 2
            && matches!(&transaction.actions[0], Action::Put(put) if put.item.get("broadcast").is_some());
        if is_step && !self.is_erased.swap(true, Ordering::SeqCst) {
            self.push.erase_user(&user("user-1")).await.expect("erased");
        }
        self.store.transact(transaction).await
    }

    async fn transact_each(
        &self,
        transactions: Vec<Transaction>,
    ) -> Vec<Result<(), TransactError>> {
        self.store.transact_each(transactions).await
    }
}

#[tokio::test]
async fn nothing_is_left_of_a_user_erased_in_between() {
    let world = world().await;
    world.register("user-1", "a", "a").await;
    world.register("user-2", "b", "b").await;
    let store = ErasingStore {
        store: Arc::clone(&world.fixture.store),
        push: world.push.clone(),
        is_erased: AtomicBool::new(false),
    };
    let clock = Arc::clone(&world.fixture.clock);
    let push = Push::new(Arc::new(store), clock as _, Settings::default());
    let world = World { push, ..world };
    let broadcast = world.broadcast(None).await;
    world.run(&mut world.worker()).await;
    assert_eq!(world.reached(), ["b"]);
    let page = world.push.notifications(&user("user-1"), 10, None).await;
    assert!(page.expect("a page").items.is_empty());
    let progress = world.progress(&broadcast).await;
    assert_eq!(
        (progress.state, progress.devices.found),
        (BroadcastState::Finished, 1)
    );
}
