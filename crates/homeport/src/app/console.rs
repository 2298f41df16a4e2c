//! Settings of the console, and descriptions of the tables of both stores for it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use homeport_engine::{Engine, IndexState, TableError};
use homeport_item::schema::TableSchema;
use homeport_remote::{Remote, TableStatus};
use homeport_server::{CommitTimes, Storage, StoredTable};
use homeport_store::StoreError;
use homeport_systems::fleet::{Expectations, SystemName};

use crate::app::state;
use crate::config::Settings;
use crate::storage::backend::Backend;

const SECS_PER_HOUR: i64 = 60 * 60;
/// How long counts are cached: counting reads tables.
const COUNTED_FOR: Duration = Duration::from_secs(10);
/// How long descriptions of Amazon DynamoDB are cached, which updates its counts every few hours.
const DESCRIBED_FOR: Duration = Duration::from_secs(60);

/// The tables of the open store.
pub(crate) fn storage(backend: &Backend, settings: &Settings) -> anyhow::Result<Arc<dyn Storage>> {
    Ok(match (&backend.engine, &backend.remote) {
        (Some(engine), _) => Arc::new(EngineStorage {
            engine: engine.clone(),
            counted: TableCache::new(COUNTED_FOR),
        }),
        (None, Some(remote)) => Arc::new(RemoteStorage {
            remote: Arc::clone(remote),
            tables: homeport_systems::schema::tables(&state::table_names(settings)),
            described: TableCache::new(DESCRIBED_FOR),
        }),
        (None, None) => anyhow::bail!("there is no store"),
    })
}

/// How long a session lasts.
pub(crate) fn session_secs(settings: &Settings) -> anyhow::Result<i64> {
    Ok(i64::try_from(settings.console.session_hours.get())? * SECS_PER_HOUR)
}

pub(crate) fn expectations(settings: &Settings) -> anyhow::Result<Expectations> {
    let fleet = &settings.fleet;
    let expected = [
        ("sensors", fleet.sensors_every_secs),
        ("chargers", fleet.chargers_every_secs),
        ("telemetry", fleet.telemetry_every_secs),
        ("records", fleet.records_every_secs),
        ("push", fleet.push_every_secs),
    ];
    let expected = expected
        .into_iter()
        .map(|(system, secs)| Ok((SystemName::new(system), i64::try_from(secs.get())?)));
    Ok(Expectations(expected.collect::<anyhow::Result<_>>()?))
}

/// Table descriptions that were read a short while ago.
struct TableCache {
    lasts: Duration,
    found: Mutex<Option<(Instant, Vec<StoredTable>)>>,
}

impl TableCache {
    fn new(lasts: Duration) -> Self {
        Self {
            lasts,
            found: Mutex::default(),
        }
    }

    fn get(&self) -> Option<Vec<StoredTable>> {
        let found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        let (at, tables) = found.as_ref()?;
        (at.elapsed() < self.lasts).then(|| tables.clone())
    }

    fn set(&self, tables: &[StoredTable]) {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        *found = Some((Instant::now(), tables.to_vec()));
    }
}

/// The embedded store with all of its tables, including those of other programs.
struct EngineStorage {
    engine: Engine,
    counted: TableCache,
}

#[async_trait]
impl Storage for EngineStorage {
    async fn tables(&self) -> Result<Vec<StoredTable>, StoreError> {
        if let Some(tables) = self.counted.get() {
            return Ok(tables);
        }
        let mut tables = Vec::new();
        for name in self.engine.table_names() {
            if let Some(mut table) = self.table(&name).await? {
                let extent = match self.engine.table_size(&name).await {
                    Ok(extent) => extent.table,
                    // Deleted in the meantime.
                    Err(StoreError::TableNotFound(_)) => continue,
                    Err(error) => return Err(error),
                };
                table.items = Some(extent.items);
                table.bytes = Some(extent.bytes);
                tables.push(table);
            }
        }
        self.counted.set(&tables);
        Ok(tables)
    }

    async fn table(&self, name: &str) -> Result<Option<StoredTable>, StoreError> {
        let described = match self.engine.describe_table(name) {
            Ok(described) => described,
            Err(TableError::Missing(_)) => return Ok(None),
            Err(error) => return Err(StoreError::Unavailable(error.to_string())),
        };
        let states = described.schema.indexes.iter().zip(&described.index_states);
        let filling = states.filter(|(_, state)| **state == IndexState::Building);
        let known = self.counted.get().unwrap_or_default();
        let known = known.into_iter().find(|table| table.schema.name == name);
        Ok(Some(StoredTable {
            status: "ACTIVE",
            indexes_filling: filling.map(|(index, _)| index.name.clone()).collect(),
            items: known.as_ref().and_then(|table| table.items),
            bytes: known.as_ref().and_then(|table| table.bytes),
            schema: described.schema,
        }))
    }

    fn disk_bytes(&self) -> Option<u64> {
        Some(self.engine.metrics().disk_bytes)
    }

    fn commit_times(&self) -> Option<CommitTimes> {
        let metrics = self.engine.metrics();
        let millis = |micros: u64| micros as f64 / 1000.0;
        Some(CommitTimes {
            count: metrics.commits,
            mean_ms: millis(metrics.commit_micros) / metrics.commits.max(1) as f64,
            p50_ms: millis(metrics.commit_p50_micros),
            p99_ms: millis(metrics.commit_p99_micros),
        })
    }
}

/// Amazon DynamoDB, with Homeport's tables.
struct RemoteStorage {
    remote: Arc<Remote>,
    tables: Vec<TableSchema>,
    described: TableCache,
}

#[async_trait]
impl Storage for RemoteStorage {
    async fn tables(&self) -> Result<Vec<StoredTable>, StoreError> {
        if let Some(tables) = self.described.get() {
            return Ok(tables);
        }
        let mut tables = Vec::new();
        for schema in &self.tables {
            tables.extend(self.table(&schema.name).await?);
        }
        tables.sort_by(|a, b| a.schema.name.cmp(&b.schema.name));
        self.described.set(&tables);
        Ok(tables)
    }

    async fn table(&self, name: &str) -> Result<Option<StoredTable>, StoreError> {
        // An AWS account also has tables of other programs.
        if !self.tables.iter().any(|schema| schema.name == name) {
            return Ok(None);
        }
        let Some(described) = self.remote.describe(name).await? else {
            return Ok(None);
        };
        Ok(Some(StoredTable {
            schema: described.schema,
            status: match described.status {
                TableStatus::Creating => "CREATING",
                TableStatus::Updating => "UPDATING",
                TableStatus::Active => "ACTIVE",
                TableStatus::Deleting => "DELETING",
                TableStatus::Unusable => "UNUSABLE",
            },
            indexes_filling: described.indexes_filling,
            items: Some(described.item_count),
            bytes: Some(described.size_bytes),
        }))
    }

    fn disk_bytes(&self) -> Option<u64> {
        None
    }

    fn commit_times(&self) -> Option<CommitTimes> {
        None
    }
}
