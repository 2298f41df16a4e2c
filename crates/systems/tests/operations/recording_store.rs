//! A store that records the operations on each table.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use homeport_item::Item;
use homeport_item::schema::TableSchema;
use homeport_store::{
    Action, BatchGet, BatchGetOutput, BatchWrite, BatchWriteOutput, Delete, Get, Page, Put, Query,
    Scan, Store, StoreError, TransactError, Transaction, Update, WriteError, WriteRequest,
};
use homeport_systems::schema::Operation;

/// Table, index and operation.
pub(crate) type Used = BTreeSet<(String, Option<String>, Operation)>;

/// A store that records the operations on each table.
pub(crate) struct RecordingStore {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) used: Mutex<Used>,
}

impl RecordingStore {
    pub(crate) fn record(&self, table: &str, index: Option<&String>, operation: Operation) {
        let entry = (table.to_owned(), index.cloned(), operation);
        self.used.lock().expect("no panic").insert(entry);
    }

    pub(crate) fn record_transaction(&self, transaction: &Transaction) {
        for action in &transaction.actions {
            match action {
                Action::Put(put) => self.record(&put.table, None, Operation::Put),
                Action::Update(update) => self.record(&update.table, None, Operation::Update),
                Action::Delete(delete) => self.record(&delete.table, None, Operation::Delete),
                Action::Check(check) => self.record(&check.table, None, Operation::Check),
            }
        }
    }
}

#[async_trait]
impl Store for RecordingStore {
    async fn ensure_tables(&self, tables: &[TableSchema]) -> Result<(), StoreError> {
        self.store.ensure_tables(tables).await
    }

    async fn get(&self, request: Get) -> Result<Option<Item>, StoreError> {
        self.record(&request.table, None, Operation::Get);
        self.store.get(request).await
    }

    async fn put(&self, request: Put) -> Result<Option<Item>, WriteError> {
        self.record(&request.table, None, Operation::Put);
        self.store.put(request).await
    }

    async fn update(&self, request: Update) -> Result<Option<Item>, WriteError> {
        self.record(&request.table, None, Operation::Update);
        self.store.update(request).await
    }

    async fn delete(&self, request: Delete) -> Result<Option<Item>, WriteError> {
        self.record(&request.table, None, Operation::Delete);
        self.store.delete(request).await
    }

    async fn query(&self, request: Query) -> Result<Page, StoreError> {
        self.record(&request.table, request.index.as_ref(), Operation::Query);
        self.store.query(request).await
    }

    async fn scan(&self, request: Scan) -> Result<Page, StoreError> {
        self.record(&request.table, request.index.as_ref(), Operation::Scan);
        self.store.scan(request).await
    }

    async fn batch_get(&self, request: BatchGet) -> Result<BatchGetOutput, StoreError> {
        for keys in &request.tables {
            self.record(&keys.table, None, Operation::BatchGet);
        }
        self.store.batch_get(request).await
    }

    async fn batch_write(&self, request: BatchWrite) -> Result<BatchWriteOutput, StoreError> {
        for write in &request.writes {
            let (WriteRequest::Put { table, .. } | WriteRequest::Delete { table, .. }) = write;
            self.record(table, None, Operation::BatchWrite);
        }
        self.store.batch_write(request).await
    }

    async fn transact_get(&self, requests: Vec<Get>) -> Result<Vec<Option<Item>>, TransactError> {
        for request in &requests {
            self.record(&request.table, None, Operation::Get);
        }
        self.store.transact_get(requests).await
    }

    async fn transact(&self, transaction: Transaction) -> Result<(), TransactError> {
        self.record_transaction(&transaction);
        self.store.transact(transaction).await
    }

    async fn transact_each(
        &self,
        transactions: Vec<Transaction>,
    ) -> Vec<Result<(), TransactError>> {
        for transaction in &transactions {
            self.record_transaction(transaction);
        }
        self.store.transact_each(transactions).await
    }
}
