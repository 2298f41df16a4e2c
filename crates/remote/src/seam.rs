//! The seam, operation by operation; the work is done in the other files.

use std::collections::HashSet;

use async_trait::async_trait;
use futures_util::StreamExt;
use homeport_item::Item;
use homeport_item::schema::TableSchema;
use homeport_store::{
    Action, BatchGet, BatchGetAnswer, BatchWrite, BatchWriteAnswer, Delete, Get, Page, Put, Query,
    Scan, Store, StoreError, TransactError, Transaction, Update, WriteError,
};

use crate::connect::Remote;
use crate::pages::key_of;

/// Transactions of one call that are under way at the same time.
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

    async fn batch_get(&self, request: BatchGet) -> Result<BatchGetAnswer, StoreError> {
        self.get_batch(request).await
    }

    async fn batch_write(&self, request: BatchWrite) -> Result<BatchWriteAnswer, StoreError> {
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
        // Side by side only as far as the outcome does not depend on it: a transaction on an item that
        // an earlier one is working on waits for it, as if they were handed over one after another.
        let mut outcomes = Vec::with_capacity(transactions.len());
        let mut wave = Vec::new();
        let mut held = HashSet::new();
        for transaction in transactions {
            let touched = self.touched(&transaction).await;
            if touched.iter().any(|item| held.contains(item)) {
                outcomes.extend(self.side_by_side(std::mem::take(&mut wave)).await);
                held.clear();
            }
            held.extend(touched);
            wave.push(transaction);
        }
        outcomes.extend(self.side_by_side(wave).await);
        outcomes
    }
}

/// What two transactions cannot work on at the same time.
#[derive(PartialEq, Eq, Hash)]
enum Held {
    Item(String, Item),
    Token(String),
}

impl Remote {
    async fn side_by_side(&self, wave: Vec<Transaction>) -> Vec<Result<(), TransactError>> {
        let outcomes = wave
            .into_iter()
            .map(|transaction| self.write_together(transaction));
        futures_util::stream::iter(outcomes)
            .buffered(TRANSACTIONS_AT_ONCE)
            .collect()
            .await
    }

    /// The items of a transaction, and its token. Those of a table that is missing do not matter: the
    /// transaction will fail.
    async fn touched(&self, transaction: &Transaction) -> Vec<Held> {
        let mut touched: Vec<_> = transaction
            .token
            .clone()
            .map(Held::Token)
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
            touched.push(Held::Item(action.table().to_owned(), key));
        }
        touched
    }
}
