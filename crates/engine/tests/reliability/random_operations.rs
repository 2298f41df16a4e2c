//! Tens of thousands of random operations, compared with a reference model, across restarts, changes of
//! indexes and expiry, and the passage of time.
//!
//! `HOMEPORT_SEED` repeats a seed, `HOMEPORT_ROUNDS` sets the number of operations per seed.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use homeport_engine::{Engine, ManualClock, Options};
use homeport_item::Item;
use homeport_item::schema::TableSchema;
use homeport_store::{
    Action, BatchGet, CancelReason, Delete, Get, Put, Scan, Store, StoreError, TableKeys,
    TransactError, WriteError, WriteRequest,
};

use crate::dice::{self, Dice};
use crate::model::Model;
use crate::requests::{self, TABLES, TTL_ATTRIBUTE};
use crate::verify::{self, Kept};

const SEEDS: u64 = 4;
const ROUNDS: u64 = 4000;
const START_MS: i64 = 1_800_000_000_000;

#[test]
fn random_operations_match_the_model() {
    operate_often(Kept::Plain, SEEDS);
}

#[test]
fn random_operations_match_the_model_when_sealed() {
    operate_often(Kept::Sealed, SEEDS / 2);
}

fn operate_often(kept: Kept, seeds: u64) {
    let rounds = dice::from_env("HOMEPORT_ROUNDS").unwrap_or(ROUNDS);
    let first = dice::seed();
    let count = if dice::from_env("HOMEPORT_SEED").is_some() {
        1
    } else {
        seeds
    };
    std::thread::scope(|scope| {
        for seed in (0..count).map(|at| first.wrapping_add(at)) {
            scope.spawn(move || {
                let room = tempfile::tempdir().unwrap();
                let told = Told(seed);
                verify::runtime().block_on(Run::new(room.path(), kept, seed).operate(rounds));
                std::mem::forget(told);
            });
        }
    });
}

/// Prints how to reproduce a failure.
struct Told(u64);

impl Drop for Told {
    fn drop(&mut self) {
        eprintln!("to reproduce: HOMEPORT_SEED={}", self.0);
    }
}

struct Run<'a> {
    path: &'a Path,
    kept: Kept,
    clock: Arc<ManualClock>,
    engine: Option<Engine>,
    model: Model,
    dice: Dice,
}

impl<'a> Run<'a> {
    fn new(path: &'a Path, kept: Kept, seed: u64) -> Self {
        Self {
            path,
            kept,
            clock: Arc::new(ManualClock::at_ms(START_MS)),
            engine: None,
            model: Model::at_ms(START_MS),
            dice: Dice::new(seed),
        }
    }

    async fn operate(mut self, rounds: u64) {
        self.open();
        for schema in requests::tables() {
            self.engine().create_table(schema.clone()).await.unwrap();
            self.model.add_table(schema);
        }
        for _ in 0..rounds {
            self.one_operation().await;
        }
        self.compare_everything().await;
        self.restart().await;
    }

    fn open(&mut self) {
        let options = Options {
            clock: Arc::clone(&self.clock) as _,
            background_sweep: false,
            change_retention_ms: i64::MAX / 2,
            workers: 1,
            background_write_min_bytes: *self.dice.pick(&[0, 64 * 1024]),
            master_key: self.kept.master_key(),
            ..Options::default()
        };
        self.engine = Some(Engine::open(self.path, options).unwrap());
    }

    fn engine(&self) -> &Engine {
        self.engine.as_ref().unwrap()
    }

    fn schemas(&self) -> Vec<TableSchema> {
        let tables = self.model.tables.values();
        tables.map(|table| table.schema.clone()).collect()
    }

    fn any_schema(&mut self) -> TableSchema {
        let table = *self.dice.pick(&TABLES);
        self.model.tables[table].schema.clone()
    }

    async fn one_operation(&mut self) {
        match self.dice.below(1000) {
            0..=399 => self.write_one().await,
            400..=549 => self.transact().await,
            550..=609 => self.transact_each().await,
            610..=669 => self.batch_write().await,
            670..=849 => self.query().await,
            850..=899 => self.scan().await,
            900..=949 => self.get().await,
            950..=969 => self.pass_time(),
            970..=979 => self.sweep().await,
            980..=987 => self.change_index().await,
            988..=993 => self.change_expiry().await,
            994..=996 => self.engine().compact().await.unwrap(),
            _ => self.restart().await,
        }
    }

    async fn write_one(&mut self) {
        let schema = self.any_schema();
        let action = requests::action(&mut self.dice, &schema, self.model.now_secs());
        let found = match action.clone() {
            Action::Put(put) => self.engine().put(put).await,
            Action::Update(update) => self.engine().update(update).await,
            Action::Delete(delete) => self.engine().delete(delete).await,
            Action::Check(_) => return,
        };
        let expected = self.model.write_one(action.clone());
        assert_eq!(plain_write(found), plain_write(expected), "{action:?}");
    }

    async fn transact(&mut self) {
        let schemas = self.schemas();
        let transaction = requests::transaction(&mut self.dice, &schemas, self.model.now_secs());
        let found = self.engine().transact(transaction.clone()).await;
        let expected = self.model.transact(transaction.clone());
        assert_eq!(plain(found), plain(expected), "{transaction:?}");
        if transaction.token.is_some() && self.dice.one_in(2) {
            // A retry, like a caller without an answer sends.
            let found = self.engine().transact(transaction.clone()).await;
            let expected = self.model.transact(transaction.clone());
            assert_eq!(plain(found), plain(expected), "repeated {transaction:?}");
        }
    }

    async fn transact_each(&mut self) {
        let schemas = self.schemas();
        let now_secs = self.model.now_secs();
        let transactions: Vec<_> = (0..=self.dice.below(8))
            .map(|_| requests::transaction(&mut self.dice, &schemas, now_secs))
            .collect();
        let found = self.engine().transact_each(transactions.clone()).await;
        for (transaction, found) in transactions.into_iter().zip(found) {
            let expected = self.model.transact(transaction.clone());
            assert_eq!(plain(found), plain(expected), "{transaction:?}");
        }
    }

    async fn batch_write(&mut self) {
        let schemas = self.schemas();
        let batch = requests::batch(&mut self.dice, &schemas, self.model.now_secs());
        let found = self.engine().batch_write(batch.clone()).await;
        match found {
            Ok(answer) => assert!(answer.unprocessed.is_empty()),
            // An invalid batch writes nothing; the model finds the same first error.
            Err(StoreError::Invalid(_)) => return,
            Err(error) => panic!("{error:?} from {batch:?}"),
        }
        for write in batch.writes {
            let action = match write {
                WriteRequest::Put { table, item } => Put::new(table, item).into(),
                WriteRequest::Delete { table, key } => Delete::new(table, key).into(),
            };
            self.model.write_one(action).unwrap();
        }
    }

    async fn query(&mut self) {
        let schema = self.any_schema();
        let mut query = requests::query(&mut self.dice, &schema);
        // All pages, one after another.
        loop {
            let found = self.engine().query(query.clone()).await.unwrap();
            let expected = self.model.query(&query);
            assert_eq!(found, expected, "{query:?}");
            match found.next {
                Some(next) => query.start = Some(next),
                None => return,
            }
        }
    }

    async fn scan(&mut self) {
        let schema = self.any_schema();
        let index = match self.dice.below(schema.indexes.len() + 1) {
            0 => None,
            at => Some(&schema.indexes[at - 1]),
        };
        let total = 1 + self.dice.below(5) as u32;
        let limit = self.dice.one_in(2).then(|| 1 + self.dice.below(5));
        let mut found = Vec::new();
        for segment in 0..total {
            let mut scan = Scan::new(&schema.name).segment(segment, total);
            scan.index = index.map(|index| index.name.clone());
            scan.limit = limit;
            loop {
                let page = self.engine().scan(scan.clone()).await.unwrap();
                found.extend(page.items);
                match page.next {
                    Some(next) => scan.start = Some(next),
                    None => break,
                }
            }
        }
        let rows = self.model.tables[&schema.name].rows(index, self.model.now_secs());
        let expected = rows.into_iter().map(|(_, item)| item).collect();
        assert_eq!(sorted(found), sorted(expected), "{schema:?} {index:?}");
    }

    async fn get(&mut self) {
        let schema = self.any_schema();
        let mut keys: Vec<Item> = Vec::new();
        for _ in 0..=self.dice.below(4) {
            let key = requests::key(&mut self.dice, &schema);
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        let requests = keys.iter().map(|key| Get::new(&schema.name, key.clone()));
        let expected: Vec<_> = keys
            .iter()
            .map(|key| self.model.get(&schema.name, key))
            .collect();
        let found = self.engine().transact_get(requests.collect()).await;
        assert_eq!(found, Ok(expected.clone()), "{keys:?}");
        let batch = BatchGet {
            tables: vec![TableKeys {
                table: schema.name.clone(),
                keys,
                projection: None,
                consistent: true,
            }],
        };
        let found = self.engine().batch_get(batch).await.unwrap();
        let found = found.items.into_iter().map(|(_, item)| item).collect();
        assert_eq!(
            sorted(found),
            sorted(expected.into_iter().flatten().collect())
        );
    }

    fn pass_time(&mut self) {
        let by_ms = match self.dice.below(10) {
            // Long enough for client tokens to be forgotten.
            0 => 11 * 60 * 1000,
            _ => self.dice.below(60_000) as i64,
        };
        self.clock.advance_ms(by_ms);
        self.model.now_ms += by_ms;
    }

    async fn sweep(&mut self) {
        let found = self.engine().sweep().await.unwrap();
        assert_eq!(found.expired, self.model.sweep());
    }

    async fn change_index(&mut self) {
        let schema = self.any_schema();
        let index = self.dice.pick(&requests::indexes()).clone();
        let table = self.model.tables.get_mut(&schema.name).unwrap();
        let engine = self.engine.as_ref().unwrap();
        if schema.index(&index.name).is_some() {
            engine
                .delete_index(&schema.name, &index.name)
                .await
                .unwrap();
            table.schema.indexes.retain(|kept| kept.name != index.name);
        } else {
            engine.add_index(&schema.name, index.clone()).await.unwrap();
            engine.wait_until_built(&schema.name).await.unwrap();
            table.schema.indexes.push(index);
        }
    }

    async fn change_expiry(&mut self) {
        let schema = self.any_schema();
        let table = self.model.tables.get_mut(&schema.name).unwrap();
        let attribute = match schema.ttl_attribute {
            Some(_) => None,
            None => Some(TTL_ATTRIBUTE.to_owned()),
        };
        let engine = self.engine.as_ref().unwrap();
        engine
            .set_ttl(&schema.name, attribute.as_deref())
            .await
            .unwrap();
        engine.wait_until_built(&schema.name).await.unwrap();
        table.schema.ttl_attribute = attribute;
    }

    async fn restart(&mut self) {
        self.engine = None;
        self.open();
        self.compare_everything().await;
    }

    /// Compares tables, indexes and the change log with the model.
    async fn compare_everything(&self) {
        let engine = self.engine();
        let now_secs = self.model.now_secs();
        let report = engine.check().await.unwrap();
        assert_eq!(report.descriptions, Vec::<String>::new());
        for (name, table) in &self.model.tables {
            let sources = std::iter::once(None).chain(table.schema.indexes.iter().map(Some));
            for index in sources {
                let index_name = index.map(|index| index.name.as_str());
                let found = verify::scan(engine, name, index_name).await;
                let rows = table.rows(index, now_secs);
                let expected = rows.into_iter().map(|(_, item)| item).collect();
                assert_eq!(sorted(found), sorted(expected), "{name} {index_name:?}");
            }
            let replayed = verify::replay(engine, name);
            let kept: BTreeMap<String, Item> = table
                .items
                .values()
                .map(|item| {
                    let key: Item = item
                        .iter()
                        .filter(|(name, _)| table.schema.key.has(name))
                        .map(|(name, value)| (name, value.clone()))
                        .collect();
                    (format!("{key:?}"), item.clone())
                })
                .collect();
            assert_eq!(replayed, kept, "the change log of {name}");
        }
    }
}

fn sorted(items: Vec<Item>) -> Vec<String> {
    let mut texts: Vec<_> = items.iter().map(|item| format!("{item:?}")).collect();
    texts.sort_unstable();
    texts
}

/// An outcome without the wording of errors, which is specific to the engine.
fn plain(outcome: Result<(), TransactError>) -> Result<(), TransactError> {
    outcome.map_err(|error| match error {
        TransactError::Store(error) => TransactError::Store(plain_error(error)),
        TransactError::Cancelled(reasons) => TransactError::Cancelled(
            reasons
                .into_iter()
                .map(|reason| match reason {
                    CancelReason::Invalid(_) => CancelReason::invalid(String::new()),
                    other => other,
                })
                .collect(),
        ),
        other => other,
    })
}

fn plain_write(outcome: Result<Option<Item>, WriteError>) -> Result<Option<Item>, WriteError> {
    outcome.map_err(|error| match error {
        WriteError::Store(error) => WriteError::Store(plain_error(error)),
        other => other,
    })
}

fn plain_error(error: StoreError) -> StoreError {
    match error {
        StoreError::Invalid(_) => StoreError::invalid(String::new()),
        other => other,
    }
}
