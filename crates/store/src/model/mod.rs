//! The reference model: an in-memory store, as simple as possible, with one lock, full scans and no
//! stored indexes. It shares no technique with a real backend, so backends can be checked against
//! it, and it checks the contract suite itself. Not for production use.

mod read;
mod table;
mod write;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use homeport_item::Item;
use homeport_item::schema::TableSchema;

use crate::{
    Action, BatchGet, BatchGetOutput, BatchWrite, BatchWriteOutput, Clock, Delete, Get, Page, Put,
    Query, Scan, Store, StoreError, SystemClock, TRANSACTION_ACTIONS_MAX, TransactError,
    Transaction, Update, WriteError,
};
use table::Table;

/// The reference store in memory.
pub struct MemoryStore {
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    tables: Tables,
    tokens: BTreeMap<String, TokenRecord>,
}

/// The transaction behind a token.
struct TokenRecord {
    actions: Vec<Action>,
    at_secs: i64,
}

type Tables = BTreeMap<String, Table>;

impl MemoryStore {
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            state: Mutex::default(),
        }
    }

    /// A store that uses the system clock.
    #[must_use]
    pub fn with_system_clock() -> Self {
        Self::new(Arc::new(SystemClock))
    }

    /// Runs `work` on the locked state with the current time in seconds.
    fn with_state<T>(&self, work: impl FnOnce(&mut State, i64) -> T) -> T {
        // No operation leaves the state partially changed, so a lock poisoned by a panic is safe to
        // use.
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        work(&mut state, self.clock.now_secs())
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
        self.with_state(|state, _| {
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
        self.with_state(|state, now| read::get(&state.tables, &request, now))
    }

    async fn put(&self, request: Put) -> Result<Option<Item>, WriteError> {
        let returning = request.returning;
        self.with_state(|state, now| {
            let change = write::one(&mut state.tables, &request.into(), now)?;
            Ok(change.answer(returning))
        })
    }

    async fn update(&self, request: Update) -> Result<Option<Item>, WriteError> {
        let returning = request.returning;
        self.with_state(|state, now| {
            let change = write::one(&mut state.tables, &request.into(), now)?;
            Ok(change.answer(returning))
        })
    }

    async fn delete(&self, request: Delete) -> Result<Option<Item>, WriteError> {
        let returning = request.returning;
        self.with_state(|state, now| {
            let change = write::one(&mut state.tables, &request.into(), now)?;
            Ok(change.answer(returning))
        })
    }

    async fn query(&self, request: Query) -> Result<Page, StoreError> {
        self.with_state(|state, now| read::query(&state.tables, &request, now))
    }

    async fn scan(&self, request: Scan) -> Result<Page, StoreError> {
        self.with_state(|state, now| read::scan(&state.tables, &request, now))
    }

    async fn batch_get(&self, request: BatchGet) -> Result<BatchGetOutput, StoreError> {
        self.with_state(|state, now| read::batch(&state.tables, request, now))
    }

    async fn batch_write(&self, request: BatchWrite) -> Result<BatchWriteOutput, StoreError> {
        self.with_state(|state, now| write::batch(&mut state.tables, request, now))
    }

    async fn transact_get(&self, requests: Vec<Get>) -> Result<Vec<Option<Item>>, TransactError> {
        if requests.is_empty() || requests.len() > TRANSACTION_ACTIONS_MAX {
            return Err(invalid("a transaction must read 1 to 100 items").into());
        }
        self.with_state(|state, now| {
            let items = requests
                .iter()
                .map(|request| read::get(&state.tables, request, now));
            Ok(items.collect::<Result<_, _>>()?)
        })
    }

    async fn transact(&self, transaction: Transaction) -> Result<(), TransactError> {
        self.with_state(|state, now| write::transact(state, transaction, now))
    }

    async fn transact_each(
        &self,
        transactions: Vec<Transaction>,
    ) -> Vec<Result<(), TransactError>> {
        self.with_state(|state, now| {
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
        .ok_or_else(|| StoreError::TableNotFound(name.to_owned()))
}

fn invalid(reason: impl fmt::Display) -> StoreError {
    StoreError::invalid(reason.to_string())
}
