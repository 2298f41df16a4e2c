//! The engine's implementation of the `Store` trait.

use async_trait::async_trait;
use homeport_item::Item;
use homeport_item::schema::TableSchema;
use homeport_store::{
    Action, BATCH_WRITE_MAX, BatchGet, BatchGetOutput, BatchWrite, BatchWriteOutput, Delete, Get,
    Page, Put, Query, Scan, Store, StoreError, TransactError, Transaction, Update, WriteError,
};

use crate::catalogue::table::IndexState;
use crate::commit::prepare;
use crate::engine::Engine;
use crate::error::{TableError, unavailable};
use crate::read::{decode_page, project};
use crate::shared::stopped;

/// Larger pages are read on a blocking thread.
const INLINE_ITEMS_MAX: usize = 128;
/// Batches of more items are read on a blocking thread.
const INLINE_GETS_MAX: usize = 4;
/// How often a waiting call checks whether an index is complete.
const BUILD_POLL: std::time::Duration = std::time::Duration::from_millis(5);

#[async_trait]
impl Store for Engine {
    async fn ensure_tables(&self, tables: &[TableSchema]) -> Result<(), StoreError> {
        for schema in tables {
            self.ensure_table(schema)
                .await
                .map_err(|error| match error {
                    TableError::Store(error) => error,
                    other => StoreError::invalid(other.to_string()),
                })?;
        }
        Ok(())
    }

    async fn get(&self, request: Get) -> Result<Option<Item>, StoreError> {
        self.get_stored(&request)?
            .map(|item| project(&item.record()?, request.projection.as_ref()))
            .transpose()
            .map_err(unavailable)
    }

    async fn put(&self, request: Put) -> Result<Option<Item>, WriteError> {
        Ok(self.write(request, false).await?.attributes)
    }

    async fn update(&self, request: Update) -> Result<Option<Item>, WriteError> {
        Ok(self.write(request, false).await?.attributes)
    }

    async fn delete(&self, request: Delete) -> Result<Option<Item>, WriteError> {
        Ok(self.write(request, false).await?.attributes)
    }

    async fn query(&self, request: Query) -> Result<Page, StoreError> {
        if request.limit.is_some_and(|limit| limit <= INLINE_ITEMS_MAX) {
            return decode_page(self.query_stored(&request)?, request.projection.as_ref());
        }
        let engine = self.clone();
        blocking(move || decode_page(engine.query_stored(&request)?, request.projection.as_ref()))
            .await
    }

    async fn scan(&self, request: Scan) -> Result<Page, StoreError> {
        let engine = self.clone();
        blocking(move || decode_page(engine.scan_stored(&request)?, request.projection.as_ref()))
            .await
    }

    async fn batch_get(&self, request: BatchGet) -> Result<BatchGetOutput, StoreError> {
        let keys: usize = request.tables.iter().map(|part| part.keys.len()).sum();
        if keys <= INLINE_GETS_MAX {
            return self.batch_get_now(&request);
        }
        let engine = self.clone();
        blocking(move || engine.batch_get_now(&request)).await
    }

    async fn batch_write(&self, request: BatchWrite) -> Result<BatchWriteOutput, StoreError> {
        if request.writes.is_empty() || request.writes.len() > BATCH_WRITE_MAX {
            return Err(StoreError::invalid("a batch must have 1 to 25 writes"));
        }
        let actions = request.writes.iter().cloned().map(Action::from).collect();
        let outcomes = self.write_each(actions, false).await?;
        let mut answer = BatchWriteOutput::default();
        for (write, outcome) in request.writes.into_iter().zip(outcomes) {
            match outcome {
                Ok(_) => {}
                Err(WriteError::Store(StoreError::Throttled)) => answer.unprocessed.push(write),
                Err(WriteError::Store(error)) => return Err(error),
                Err(other) => return Err(StoreError::invalid(other.to_string())),
            }
        }
        Ok(answer)
    }

    async fn transact_get(&self, requests: Vec<Get>) -> Result<Vec<Option<Item>>, TransactError> {
        if requests.len() <= INLINE_GETS_MAX {
            return Ok(self.transact_get_now(&requests)?);
        }
        let engine = self.clone();
        Ok(blocking(move || engine.transact_get_now(&requests)).await?)
    }

    async fn transact(&self, transaction: Transaction) -> Result<(), TransactError> {
        let prepared = prepare::transaction(&self.shared().catalogue.now(), transaction)
            .map_err(StoreError::from)?;
        self.shared().submit_one(prepared).await.map(|_| ())
    }

    async fn transact_each(
        &self,
        transactions: Vec<Transaction>,
    ) -> Vec<Result<(), TransactError>> {
        let catalogue = self.shared().catalogue.now();
        let mut answers = Vec::with_capacity(transactions.len());
        let mut prepared = Vec::with_capacity(transactions.len());
        for transaction in transactions {
            match prepare::transaction(&catalogue, transaction) {
                Ok(ready) => {
                    prepared.push(ready);
                    answers.push(Ok(()));
                }
                Err(error) => answers.push(Err(StoreError::from(error).into())),
            }
        }
        if prepared.is_empty() {
            return answers;
        }
        let mut outcomes = self.shared().submit(prepared).await.into_iter();
        for answer in answers.iter_mut().filter(|answer| answer.is_ok()) {
            *answer = outcomes
                .next()
                .unwrap_or_else(|| Err(stopped().into()))
                .map(|_| ());
        }
        answers
    }
}

impl Engine {
    fn transact_get_now(&self, requests: &[Get]) -> Result<Vec<Option<Item>>, StoreError> {
        let found = self.get_stored_together(requests)?;
        found
            .iter()
            .zip(requests)
            .map(|(item, request)| match item {
                Some(item) => project(&item.record()?, request.projection.as_ref()).map(Some),
                None => Ok(None),
            })
            .collect::<Result<_, _>>()
            .map_err(unavailable)
    }

    async fn ensure_table(&self, schema: &TableSchema) -> Result<(), TableError> {
        match self.create_table(schema.clone()).await {
            Ok(_) => return Ok(()),
            Err(TableError::Exists(_)) => {}
            Err(error) => return Err(error),
        }
        let existing = self.describe_table(&schema.name)?.schema;
        if existing.key != schema.key {
            return Err(TableError::DifferentKeys(schema.name.clone()));
        }
        for index in &schema.indexes {
            match existing.index(&index.name) {
                None => self.add_index(&schema.name, index.clone()).await?,
                Some(found) if found.key == index.key => {}
                Some(_) => return Err(TableError::DifferentKeys(index.name.clone())),
            }
        }
        if schema.ttl_attribute.is_some() && existing.ttl_attribute != schema.ttl_attribute {
            self.set_ttl(&schema.name, schema.ttl_attribute.as_deref())
                .await?;
        }
        if schema.stream.is_some() && existing.stream != schema.stream {
            self.set_stream(&schema.name, schema.stream).await?;
        }
        self.wait_until_built(&schema.name).await
    }

    /// Waits until all indexes of a table can be read, and a change of its time to live has reached all
    /// items.
    ///
    /// # Errors
    /// Fails if the table is deleted or can no longer be written.
    pub async fn wait_until_built(&self, table: &str) -> Result<(), TableError> {
        loop {
            let description = self.describe_table(table)?;
            let is_building = description.index_states.contains(&IndexState::Building);
            if !is_building && !description.expiry_is_changing {
                return Ok(());
            }
            if let Some(reason) = self.shared().job_failure(description.id) {
                return Err(TableError::BackgroundWorkFailed {
                    table: table.to_owned(),
                    reason,
                });
            }
            self.shared().latch.check()?;
            tokio::time::sleep(BUILD_POLL).await;
        }
    }
}

async fn blocking<T: Send + 'static>(
    read: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    tokio::task::spawn_blocking(read)
        .await
        .map_err(|_| stopped())?
}
