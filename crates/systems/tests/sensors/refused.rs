//! Readings that the store does not accept are reported neither as stored nor as invalid.

use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use homeport_item::schema::TableSchema;
use homeport_store::{
    BatchGet, BatchGetOutput, BatchWrite, BatchWriteOutput, CancelReason, Delete, Page, Put, Query,
    StoreError, TransactError, Transaction, Update, WriteError,
};

use super::*;

/// A store that cancels a number of transactions first.
struct Busy {
    store: Arc<dyn Store>,
    left: AtomicUsize,
    reason: CancelReason,
}

impl Busy {
    fn sensors(fixture: &Fixture, cancelled: usize, reason: CancelReason) -> Sensors {
        let busy = Self {
            store: Arc::clone(&fixture.store),
            left: AtomicUsize::new(cancelled),
            reason,
        };
        let clock = Arc::clone(&fixture.clock) as _;
        Sensors::new(Arc::new(busy), clock, Settings::default())
    }
}

#[async_trait]
impl Store for Busy {
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
        self.store.transact(transaction).await
    }

    async fn transact_each(
        &self,
        transactions: Vec<Transaction>,
    ) -> Vec<Result<(), TransactError>> {
        let mut answers = Vec::new();
        for transaction in transactions {
            let left = self.left.load(Ordering::SeqCst);
            self.left.store(left.saturating_sub(1), Ordering::SeqCst);
            answers.push(if left > 0 {
                let reasons = vec![self.reason.clone(), CancelReason::None];
                Err(TransactError::Cancelled(reasons))
            } else {
                self.store.transact(transaction).await
            });
        }
        answers
    }
}

fn reasons() -> [CancelReason; 3] {
    [
        CancelReason::Conflict,
        CancelReason::Throttled,
        // A marker that existed and has disappeared.
        CancelReason::ConditionFailed { old: None },
    ]
}

#[tokio::test]
async fn cancellation_without_duplicate_is_retried() {
    let (_, fixture) = sensors().await;
    for (device, reason) in (1..).zip(reasons()) {
        let busy = Busy::sensors(&fixture, 3, reason);
        let outcomes = busy
            .ingest(vec![reading(device, 0), reading(device, 5)])
            .await;
        assert_eq!(outcomes, Ok(vec![IngestOutcome::Stored; 2]));
    }
    assert_eq!(count(&*fixture.store, "device_readings").await, 6);
}

#[tokio::test]
async fn repeated_cancellation_is_a_store_failure() {
    let (_, fixture) = sensors().await;
    for (device, reason) in (1..).zip(reasons()) {
        let busy = Busy::sensors(&fixture, 1000, reason);
        let outcomes = busy.ingest(vec![reading(device, 0)]).await;
        assert_eq!(outcomes, Err(StoreError::Throttled.into()));
    }
    assert_eq!(count(&*fixture.store, "device_readings").await, 0);
}

#[tokio::test]
async fn table_that_rejects_readings_is_a_store_failure() {
    let (_, fixture) = sensors().await;
    let reason = CancelReason::invalid("an index wants a text");
    let busy = Busy::sensors(&fixture, 1, reason);
    let outcomes = busy.ingest(vec![reading(1, 0)]).await;
    assert!(
        matches!(
            outcomes,
            Err(SensorsError::Store(StoreError::Unavailable(_)))
        ),
        "{outcomes:?}"
    );
    assert_eq!(count(&*fixture.store, "processed_batches").await, 0);
}

#[tokio::test]
async fn repeat_of_rejected_reading_is_rejected() {
    let (sensors, _fixture) = sensors().await;
    let theirs = reading(1, 0);
    sensors.ingest(vec![theirs.clone()]).await.expect("ingests");
    let ours = Reading {
        hardware_id: hardware_id(2),
        ..theirs
    };
    let outcomes = sensors.ingest(vec![ours.clone(), ours]).await;
    let conflict = IngestOutcome::Rejected(Rejection::BatchIdConflict);
    assert_eq!(outcomes, Ok(vec![conflict; 2]));
}
