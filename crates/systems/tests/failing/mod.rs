//! A store that fails after a number of writes, like a machine that goes down.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use homeport_item::Item;
use homeport_item::schema::TableSchema;
use homeport_store::{
    BatchGet, BatchGetOutput, BatchWrite, BatchWriteOutput, Delete, Get, Page, Put, Query, Scan,
    Store, StoreError, TransactError, Transaction, Update, WriteError,
};

pub(crate) struct FailingStore {
    store: Arc<dyn Store>,
    left: AtomicUsize,
    /// Whether the first failing write still takes effect.
    loses_answer: bool,
}

impl FailingStore {
    pub(crate) fn new(store: Arc<dyn Store>, writes: usize, loses_answer: bool) -> Self {
        Self {
            store,
            // The last of these writes is the failing one.
            left: AtomicUsize::new(writes + 1),
            loses_answer,
        }
    }

    /// Whether a write takes effect, and whether its answer arrives.
    fn take(&self) -> (bool, bool) {
        let left = self.left.load(Ordering::SeqCst);
        self.left.store(left.saturating_sub(1), Ordering::SeqCst);
        match left {
            0 => (false, false),
            1 => (self.loses_answer, false),
            _ => (true, true),
        }
    }
}

fn down() -> StoreError {
    StoreError::Unavailable("the test took it down".to_owned())
}

#[async_trait]
impl Store for FailingStore {
    async fn ensure_tables(&self, tables: &[TableSchema]) -> Result<(), StoreError> {
        self.store.ensure_tables(tables).await
    }

    async fn get(&self, request: Get) -> Result<Option<Item>, StoreError> {
        self.store.get(request).await
    }

    async fn put(&self, request: Put) -> Result<Option<Item>, WriteError> {
        let (happens, arrives) = self.take();
        let answer = if happens {
            self.store.put(request).await?
        } else {
            None
        };
        arrives.then_some(answer).ok_or(down().into())
    }

    async fn update(&self, request: Update) -> Result<Option<Item>, WriteError> {
        let (happens, arrives) = self.take();
        let answer = if happens {
            self.store.update(request).await?
        } else {
            None
        };
        arrives.then_some(answer).ok_or(down().into())
    }

    async fn delete(&self, request: Delete) -> Result<Option<Item>, WriteError> {
        let (happens, arrives) = self.take();
        let answer = if happens {
            self.store.delete(request).await?
        } else {
            None
        };
        arrives.then_some(answer).ok_or(down().into())
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
        let (happens, arrives) = self.take();
        let answer = if happens {
            self.store.batch_write(request).await?
        } else {
            BatchWriteOutput::default()
        };
        arrives.then_some(answer).ok_or_else(down)
    }

    async fn transact_get(&self, requests: Vec<Get>) -> Result<Vec<Option<Item>>, TransactError> {
        self.store.transact_get(requests).await
    }

    async fn transact(&self, _: Transaction) -> Result<(), TransactError> {
        Err(down().into())
    }

    async fn transact_each(
        &self,
        transactions: Vec<Transaction>,
    ) -> Vec<Result<(), TransactError>> {
        let mut answers = Vec::with_capacity(transactions.len());
        for transaction in transactions {
            let (happens, arrives) = self.take();
            let answer = if happens {
                self.store.transact(transaction).await
            } else {
                Ok(())
            };
            answers.push(if arrives { answer } else { Err(down().into()) });
        }
        answers
    }
}
