//! A store whose batch reads can be held back, like those of a slow store.

use std::sync::Arc;

use async_trait::async_trait;
use homeport_item::Item;
use homeport_item::schema::TableSchema;
use homeport_store::{
    BatchGet, BatchGetOutput, BatchWrite, BatchWriteOutput, Delete, Get, Page, Put, Query, Scan,
    Store, StoreError, TransactError, Transaction, Update, WriteError,
};
use tokio::sync::watch;

use crate::world::PATIENCE;

pub(crate) struct HeldStore {
    store: Arc<dyn Store>,
    is_open: watch::Sender<bool>,
    held: watch::Sender<usize>,
}

impl HeldStore {
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        Self {
            store,
            is_open: watch::Sender::new(true),
            held: watch::Sender::new(0),
        }
    }

    /// Holds batch reads back, or lets them continue.
    pub(crate) fn hold(&self, is_held: bool) {
        self.is_open.send_replace(!is_held);
    }

    /// Waits until a batch read is held back.
    pub(crate) async fn until_held(&self) {
        let mut held = self.held.subscribe();
        let reached = held.wait_for(|held| *held > 0);
        let outcome = tokio::time::timeout(PATIENCE, reached).await;
        outcome.expect("a batch read").expect("the store");
    }
}

#[async_trait]
impl Store for HeldStore {
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
        if !*self.is_open.borrow() {
            self.held.send_modify(|held| *held += 1);
            let mut is_open = self.is_open.subscribe();
            let _ = is_open.wait_for(|is_open| *is_open).await;
        }
        self.store.batch_get(request).await
    }

    async fn batch_write(&self, request: BatchWrite) -> Result<BatchWriteOutput, StoreError> {
        self.store.batch_write(request).await
    }

    async fn transact_get(&self, requests: Vec<Get>) -> Result<Vec<Option<Item>>, TransactError> {
        self.store.transact_get(requests).await
    }

    async fn transact(&self, transaction: Transaction) -> Result<(), TransactError> {
        self.store.transact(transaction).await
    }

    async fn transact_each(
        &self,
        transactions: Vec<Transaction>,
    ) -> Vec<Result<(), TransactError>> {
        self.store.transact_each(transactions).await
    }
}
