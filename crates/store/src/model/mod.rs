//! A store in memory that is as plain as can be: one lock, whole scans, no index that is kept. It
//! shares no technique with a real backend, so that one can be checked against it, and it is what
//! the contract itself is checked with. Not for use where data or speed matter.

mod read;
mod table;
mod write;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use homeport_item::Item;
use homeport_item::schema::TableSchema;

use crate::{
    Action, BatchGet, BatchGetAnswer, BatchWrite, BatchWriteAnswer, Delete, Get, Page, Put, Query,
    Scan, Store, StoreError, TRANSACTION_ACTIONS_MAX, TransactError, Transaction, Update,
    WriteError,
};
use table::Table;

/// Says what time it is, in epoch seconds.
pub type Clock = Arc<dyn Fn() -> i64 + Send + Sync>;

/// The plain store in memory.
pub struct MemoryStore {
    clock: Clock,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    tables: Tables,
    tokens: BTreeMap<String, Done>,
}

/// A transaction that a token stands for.
struct Done {
    actions: Vec<Action>,
    at_secs: i64,
}

type Tables = BTreeMap<String, Table>;

impl MemoryStore {
    #[must_use]
    pub fn new(clock: Clock) -> Self {
        Self {
            clock,
            state: Mutex::default(),
        }
    }

    /// A store that goes by the machine's clock.
    #[must_use]
    pub fn with_system_clock() -> Self {
        Self::new(Arc::new(|| {
            let since = SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .unwrap_or_default();
            i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
        }))
    }

    /// Does something with all of the state, at one moment.
    fn with<T>(&self, work: impl FnOnce(&mut State, i64) -> T) -> T {
        // Nothing here leaves the state half changed, so that of a panicking caller is as good.
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        work(&mut state, (self.clock)())
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("MemoryStore")
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn ensure_tables(&self, tables: &[TableSchema]) -> Result<(), StoreError> {
        self.with(|state, _| {
            let mut ensured = state.tables.clone();
            for schema in tables {
                schema.check().map_err(invalid)?;
                match ensured.get_mut(&schema.name) {
                    Some(table) => table.extend(schema)?,
                    None => {
                        ensured.insert(schema.name.clone(), Table::new(schema.clone()));
                    }
                }
            }
            state.tables = ensured;
            Ok(())
        })
    }

    async fn get(&self, request: Get) -> Result<Option<Item>, StoreError> {
        self.with(|state, now| read::get(&state.tables, &request, now))
    }

    async fn put(&self, request: Put) -> Result<Option<Item>, WriteError> {
        let returning = request.returning;
        self.with(|state, now| {
            let change = write::one(&mut state.tables, &request.into(), now)?;
            Ok(change.answer(returning))
        })
    }

    async fn update(&self, request: Update) -> Result<Option<Item>, WriteError> {
        let returning = request.returning;
        self.with(|state, now| {
            let change = write::one(&mut state.tables, &request.into(), now)?;
            Ok(change.answer(returning))
        })
    }

    async fn delete(&self, request: Delete) -> Result<Option<Item>, WriteError> {
        let returning = request.returning;
        self.with(|state, now| {
            let change = write::one(&mut state.tables, &request.into(), now)?;
            Ok(change.answer(returning))
        })
    }

    async fn query(&self, request: Query) -> Result<Page, StoreError> {
        self.with(|state, now| read::query(&state.tables, &request, now))
    }

    async fn scan(&self, request: Scan) -> Result<Page, StoreError> {
        self.with(|state, now| read::scan(&state.tables, &request, now))
    }

    async fn batch_get(&self, request: BatchGet) -> Result<BatchGetAnswer, StoreError> {
        self.with(|state, now| read::batch(&state.tables, request, now))
    }

    async fn batch_write(&self, request: BatchWrite) -> Result<BatchWriteAnswer, StoreError> {
        self.with(|state, now| write::batch(&mut state.tables, request, now))
    }

    async fn transact_get(&self, requests: Vec<Get>) -> Result<Vec<Option<Item>>, TransactError> {
        if requests.is_empty() || requests.len() > TRANSACTION_ACTIONS_MAX {
            return Err(invalid("a transaction reads 1 to 100 items").into());
        }
        self.with(|state, now| {
            let items = requests
                .iter()
                .map(|request| read::get(&state.tables, request, now));
            Ok(items.collect::<Result<_, _>>()?)
        })
    }

    async fn transact(&self, transaction: Transaction) -> Result<(), TransactError> {
        self.with(|state, now| write::transact(state, transaction, now))
    }

    async fn transact_each(
        &self,
        transactions: Vec<Transaction>,
    ) -> Vec<Result<(), TransactError>> {
        self.with(|state, now| {
            transactions
                .into_iter()
                .map(|transaction| write::transact(state, transaction, now))
                .collect()
        })
    }
}

fn table<'a>(tables: &'a Tables, name: &str) -> Result<&'a Table, StoreError> {
    tables
        .get(name)
        .ok_or_else(|| StoreError::TableMissing(name.to_owned()))
}

fn invalid(reason: impl fmt::Display) -> StoreError {
    StoreError::Invalid(reason.to_string())
}
