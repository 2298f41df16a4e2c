//! Implements the `Store` trait; the other files do the work.

use std::collections::HashSet;

use async_trait::async_trait;
use futures_util::StreamExt;
use homeport_item::Item;
use homeport_item::schema::TableSchema;
use homeport_store::{
    Action, BatchGet, BatchGetOutput, BatchWrite, BatchWriteOutput, Delete, Get, Page, Put, Query,
    Scan, Store, StoreError, TransactError, Transaction, Update, WriteError,
};

use crate::connect::Remote;
use crate::read::pages::key_of;

/// Number of concurrent transactions of one call.
const TRANSACTIONS_AT_ONCE: usize = 16;

#[async_trait]
impl Store for Remote {
    async fn ensure_tables(&self, tables: &[TableSchema]) -> Result<(), StoreError> {
        self.ensure_all(tables).await
    }

    async fn get(&self, request: Get) -> Result<Option<Item>, StoreError> {
        self.get_item(request).await
    }

    async fn put(&self, request: Put) -> Result<Option<Item>, WriteError> {
        self.put_item(request).await
    }

    async fn update(&self, request: Update) -> Result<Option<Item>, WriteError> {
        self.update_item(request).await
    }

    async fn delete(&self, request: Delete) -> Result<Option<Item>, WriteError> {
        self.delete_item(request).await
    }

    async fn query(&self, request: Query) -> Result<Page, StoreError> {
        self.query_page(request).await
    }

    async fn scan(&self, request: Scan) -> Result<Page, StoreError> {
        self.scan_page(request).await
    }

    async fn batch_get(&self, request: BatchGet) -> Result<BatchGetOutput, StoreError> {
        self.get_batch(request).await
    }

    async fn batch_write(&self, request: BatchWrite) -> Result<BatchWriteOutput, StoreError> {
        self.write_batch(request).await
    }

    async fn transact_get(&self, requests: Vec<Get>) -> Result<Vec<Option<Item>>, TransactError> {
        self.get_together(requests).await
    }

    async fn transact(&self, transaction: Transaction) -> Result<(), TransactError> {
        self.write_together(transaction).await
    }

    async fn transact_each(
        &self,
        transactions: Vec<Transaction>,
    ) -> Vec<Result<(), TransactError>> {
        // Concurrent only where the outcome is independent: a transaction waits for earlier ones on
        // the same items, as if they were submitted one by one.
        let mut outcomes = Vec::with_capacity(transactions.len());
        let mut wave = Vec::new();
        let mut held = HashSet::new();
        for transaction in transactions {
            let resources = self.resources(&transaction).await;
            if resources.iter().any(|item| held.contains(item)) {
                outcomes.extend(self.run_concurrently(std::mem::take(&mut wave)).await);
                held.clear();
            }
            held.extend(resources);
            wave.push(transaction);
        }
        outcomes.extend(self.run_concurrently(wave).await);
        outcomes
    }
}

/// A resource that two transactions cannot use at the same time.
#[derive(PartialEq, Eq, Hash)]
enum LockedResource {
    Item(String, Item),
    Token(String),
}

impl Remote {
    async fn run_concurrently(&self, wave: Vec<Transaction>) -> Vec<Result<(), TransactError>> {
        let outcomes = wave
            .into_iter()
            .map(|transaction| self.write_together(transaction));
        futures_util::stream::iter(outcomes)
            .buffered(TRANSACTIONS_AT_ONCE)
            .collect()
            .await
    }

    /// The items and the token of a transaction. Items of missing tables do not matter, because the
    /// transaction fails.
    async fn resources(&self, transaction: &Transaction) -> Vec<LockedResource> {
        let mut resources: Vec<_> = transaction
            .token
            .clone()
            .map(LockedResource::Token)
            .into_iter()
            .collect();
        for action in &transaction.actions {
            let key = match action {
                Action::Update(update) => update.key.clone(),
                Action::Delete(delete) => delete.key.clone(),
                Action::Check(check) => check.key.clone(),
                Action::Put(put) => match self.table(&put.table).await {
                    Ok(schema) => key_of(&schema, &put.item),
                    Err(_) => continue,
                },
            };
            resources.push(LockedResource::Item(action.table().to_owned(), key));
        }
        resources
    }
}
