//! The tables of a move: selecting them, checking the target's tables, and preparing both sides for
//! the copy.

use std::collections::BTreeMap;
use std::time::Duration;

use aws_sdk_dynamodb::types::{
    self, BillingMode, OnDemandThroughput, ProvisionedThroughput, ProvisionedThroughputDescription,
    StreamSpecification, TableClass,
};
use futures_util::{StreamExt as _, TryStreamExt as _};
use homeport_item::schema::{StreamView, TableSchema};
use homeport_store::StoreError;
use tokio::time::Instant;

use super::state::{Stage, TableState};
use super::{Move, MoveError, MoveEvent, MoveTables, Side, at};
use crate::connect::Remote;
use crate::connect::settings::TableOptions;
use crate::convert::failure::Failure;
use crate::convert::value::unreadable;
use crate::read::items::incomplete;
use crate::tables::create::{global_index, local_index};
use crate::tables::describe::TableDescription;

/// Maximum number of tables per endpoint, as many as Amazon allows per region.
const TABLES_MAX: usize = 10_000;
/// Timeout until a stream is enabled.
const STREAM_TIMEOUT: Duration = Duration::from_secs(10 * 60);
const STREAM_POLL_DELAY: Duration = Duration::from_millis(500);

/// Number of tables processed concurrently; DynamoDB allows 500 concurrent changes.
const TABLES_AT_ONCE: usize = 8;

/// A source table.
struct SourceTable {
    described: types::TableDescription,
    details: TableDescription,
}

/// Processes several tables concurrently.
async fn for_each_table<T, C: Default + Extend<T>>(
    works: impl Iterator<Item = impl Future<Output = Result<T, MoveError>>>,
) -> Result<C, MoveError> {
    futures_util::stream::iter(works)
        .buffer_unordered(TABLES_AT_ONCE)
        .try_collect()
        .await
}

impl Move {
    /// The tables to move. Fails before any change if a target table contains foreign items.
    pub(super) async fn tables_to_move(&mut self) -> Result<Vec<String>, MoveError> {
        let tables = self.source.all_tables().await;
        let mut tables = tables.map_err(at(Side::Source, "*"))?;
        let all = tables.len();
        self.select(&mut tables)?;
        if tables.is_empty() {
            return Err(MoveError::Nothing);
        }
        self.report(&MoveEvent::Tables {
            moved: tables.len(),
            others: all - tables.len(),
        });
        let mut foreign = Vec::new();
        let mut started = Vec::new();
        let requests = tables.iter().map(|table| async {
            let (state, has_foreign) = self.inspect_target(table).await?;
            Ok((table.clone(), state, has_foreign))
        });
        let requests: Vec<(String, TableState, bool)> = for_each_table(requests).await?;
        for (table, state, has_foreign) in requests {
            if has_foreign && !self.options.replace {
                foreign.push(table.clone());
            }
            started.push((table, state));
        }
        if !foreign.is_empty() {
            foreign.sort_unstable();
            return Err(MoveError::Foreign(foreign));
        }
        let known = &mut self.file.state.tables;
        let mut missing = std::mem::take(known);
        missing.retain(|table, _| !tables.contains(table));
        known.extend(started);
        self.file.save()?;
        for table in missing.keys() {
            self.report(&MoveEvent::TableGone { table });
        }
        Ok(tables)
    }

    /// Keeps the requested tables and those that the move has started with.
    fn select(&self, tables: &mut Vec<String>) -> Result<(), MoveError> {
        let wanted = match &self.options.tables {
            MoveTables::All => return Ok(()),
            MoveTables::Known(wanted) => wanted,
            MoveTables::Named(wanted) => {
                match wanted.iter().find(|table| !tables.contains(table)) {
                    Some(missing) => return Err(MoveError::NoTable(missing.clone())),
                    None => wanted,
                }
            }
        };
        let started = &self.file.state.tables;
        tables.retain(|table| wanted.contains(table) || started.contains_key(table));
        Ok(())
    }

    /// The state of a table, and whether the target's table contains foreign items.
    async fn inspect_target(&self, table: &str) -> Result<(TableState, bool), MoveError> {
        let known = self.file.state.tables.get(table);
        let found = self.target.described(table).await;
        let found = found.map_err(at(Side::Target, table))?;
        let arn = found.and_then(|found| found.table_arn);
        if let Some(known) = known
            && known.target_arn.is_some()
            && known.target_arn == arn
        {
            return Ok((known.clone(), false));
        }
        let page = match arn {
            Some(_) => self.target.first_item(table).await,
            None => Ok(false),
        };
        let has_foreign = page.map_err(at(Side::Target, table))?;
        let mut state = known.cloned();
        // The earlier writes went to another table that no longer exists.
        if let Some(state) = &mut state
            && state.target_arn.take().is_some()
        {
            state.restart_copy(None);
        }
        let mut state = state.unwrap_or_else(|| TableState::new(Stage::Copying));
        if has_foreign {
            state.restart_copy(None);
        }
        Ok((state, has_foreign))
    }

    /// Prepares tables for the copy: their streams, and the tables at the target. Several are
    /// processed concurrently, because each takes long on Amazon.
    pub(super) async fn prepare(&mut self, tables: &[String]) -> Result<(), MoveError> {
        let requests = tables.iter().map(|table| self.inspect_source(table));
        let mut found: Vec<SourceTable> = for_each_table(requests).await?;
        // IMPORTANT: recorded first. A stream that is enabled but not recorded as ours would stay
        // enabled forever.
        for found in &found {
            if found.details.schema.stream.is_none()
                && let Some(state) = self.file.state.tables.get_mut(&found.details.schema.name)
            {
                state.stream_is_ours = true;
            }
        }
        self.file.save()?;
        let streams = found.iter().map(|found| self.ensure_stream(found));
        for_each_table::<(), ()>(streams).await?;
        for found in &mut found {
            let state = self.file.state.tables.get(&found.details.schema.name);
            if state.is_some_and(|state| state.stream_is_ours) {
                // The target gets only what the source has without the move.
                found.details.schema.stream = None;
            }
        }
        let made = found.iter().map(|found| async {
            let table = &found.details.schema.name;
            let arn = self.target.ensure_like(&found.described, &found.details);
            let arn = arn.await.map_err(at(Side::Target, table))?;
            Ok((table.clone(), arn))
        });
        let made: Vec<(String, String)> = for_each_table(made).await?;
        for (table, arn) in made {
            if let Some(state) = self.file.state.tables.get_mut(&table) {
                state.target_arn = Some(arn);
            }
        }
        self.file.save()
    }

    async fn inspect_source(&self, table: &str) -> Result<SourceTable, MoveError> {
        let missing = || MoveError::NoTable(table.to_owned());
        let described = self.source.described(table).await;
        let described = described.map_err(at(Side::Source, table))?;
        let details = self.source.describe(table).await;
        let details = details.map_err(at(Side::Source, table))?;
        Ok(SourceTable {
            described: described.ok_or_else(missing)?,
            details: details.ok_or_else(missing)?,
        })
    }

    /// Enables a stream if the table has none.
    async fn ensure_stream(&self, found: &SourceTable) -> Result<(), MoveError> {
        let table = found.details.schema.name.as_str();
        if found.details.schema.stream.is_none() {
            let added = self.source.add_stream(table, StreamView::NewImage).await;
            added.map_err(at(Side::Source, table))?;
            self.report(&MoveEvent::StreamOn { table });
        }
        let deadline = Instant::now() + STREAM_TIMEOUT;
        loop {
            let is_on = self.source.stream_is_on(table).await;
            if is_on.map_err(at(Side::Source, table))? {
                return Ok(());
            }
            if Instant::now() > deadline {
                let error = StoreError::Unavailable("its stream is not enabled yet".to_owned());
                return Err(at(Side::Source, table)(error));
            }
            tokio::time::sleep(STREAM_POLL_DELAY).await;
        }
    }

    /// Disables the streams that were enabled for the move.
    pub(super) async fn switch_streams_off(&mut self) -> Result<(), MoveError> {
        let tables = self.file.state.tables.iter();
        let ours: Vec<String> = tables
            .filter(|(_, state)| state.stream_is_ours)
            .map(|(table, _)| table.clone())
            .collect();
        for table in ours {
            let is_off = self.source.remove_stream(&table).await;
            if is_off.map_err(at(Side::Source, &table))? {
                self.report(&MoveEvent::StreamOff { table: &table });
            }
            if let Some(state) = self.file.state.tables.get_mut(&table) {
                state.stream_is_ours = false;
            }
            self.file.save()?;
        }
        Ok(())
    }
}

impl Remote {
    async fn all_tables(&self) -> Result<Vec<String>, StoreError> {
        let mut tables = Vec::new();
        let mut start = None;
        loop {
            let request = self.client.list_tables();
            let answer = request.set_exclusive_start_table_name(start).send().await;
            let answer = answer.map_err(|error| Failure::from(error).of_table(""))?;
            tables.extend(answer.table_names.unwrap_or_default());
            if tables.len() > TABLES_MAX {
                return Err(StoreError::invalid(format!(
                    "the endpoint has more than {TABLES_MAX} tables"
                )));
            }
            start = answer.last_evaluated_table_name;
            if start.is_none() {
                // Amazon returns them sorted, others may not; every run should process them in the
                // same order.
                tables.sort_unstable();
                return Ok(tables);
            }
        }
    }

    /// Whether a table contains any item, even an expired one.
    async fn first_item(&self, table: &str) -> Result<bool, StoreError> {
        self.wait_until_ready(table).await?;
        let request = self.client.scan().table_name(table).limit(1);
        let answer = request.consistent_read(true).send().await;
        let answer = answer.map_err(|error| Failure::from(error).of_table(table))?;
        Ok(answer.items.is_some_and(|items| !items.is_empty()))
    }

    /// Disables a stream; false if there is no stream or no table.
    async fn remove_stream(&self, table: &str) -> Result<bool, StoreError> {
        let Some(described) = self.described(table).await? else {
            return Ok(false);
        };
        let stream = described.stream_specification;
        if !stream.is_some_and(|stream| stream.stream_enabled) {
            return Ok(false);
        }
        let off = StreamSpecification::builder().stream_enabled(false);
        let request = self.client.update_table().table_name(table);
        let request = request.stream_specification(off.build().map_err(incomplete)?);
        self.change(table, || request.clone().send()).await?;
        self.wait_until_ready(table).await?;
        Ok(true)
    }

    /// Creates a table like the source's, or extends an existing one. Returns its ARN.
    async fn ensure_like(
        &self,
        source: &types::TableDescription,
        details: &TableDescription,
    ) -> Result<String, StoreError> {
        let schema = &details.schema;
        if self.described(&schema.name).await?.is_none() {
            self.create_like(source, details).await?;
        }
        let options = TableOptions {
            point_in_time_recovery: details.point_in_time_recovery,
            kms_key_id: None,
            stream: None,
            tags: user_tags(details),
            deletion_protection: details.deletion_protection,
        };
        self.ensure(schema, &options).await?;
        let described = self.described(&schema.name).await?;
        let arn = described.and_then(|described| described.table_arn);
        arn.ok_or_else(|| unreadable("a table has no ARN"))
    }

    /// Creates a table with the billing mode and table class of the source's.
    async fn create_like(
        &self,
        source: &types::TableDescription,
        details: &TableDescription,
    ) -> Result<(), StoreError> {
        let schema: &TableSchema = &details.schema;
        let provisioned = throughput(source.provisioned_throughput.as_ref())?;
        let mut request = self
            .create_request(schema)?
            .set_table_class(class(source))
            .set_on_demand_throughput(source.on_demand_throughput.clone().filter(has_limit))
            .billing_mode(if provisioned.is_some() {
                BillingMode::Provisioned
            } else {
                BillingMode::PayPerRequest
            })
            .set_provisioned_throughput(provisioned);
        for index in &schema.indexes {
            if index.local {
                request = request.local_secondary_indexes(local_index(index)?);
                continue;
            }
            let mut created = global_index(index)?;
            let same = |found: &&types::GlobalSecondaryIndexDescription| {
                found.index_name.as_ref() == Some(&index.name)
            };
            let found = source.global_secondary_indexes().iter().find(same);
            let found = found.and_then(|found| found.provisioned_throughput.as_ref());
            created.provisioned_throughput = throughput(found)?;
            request = request.global_secondary_indexes(created);
        }
        match request.send().await.map_err(Failure::from) {
            Ok(_) | Err(Failure::InUse) => self.wait_until_ready(&schema.name).await.map(drop),
            Err(failure) => Err(failure.of_table(&schema.name)),
        }
    }
}

/// The tags without those reserved for AWS.
fn user_tags(details: &TableDescription) -> BTreeMap<String, String> {
    let mut tags = details.tags.clone();
    tags.retain(|name, _| !name.starts_with("aws:"));
    tags
}

/// The provisioned throughput; `None` for on-demand billing.
fn throughput(
    described: Option<&ProvisionedThroughputDescription>,
) -> Result<Option<ProvisionedThroughput>, StoreError> {
    let units = described.and_then(|found| {
        let read = found.read_capacity_units.filter(|units| *units > 0)?;
        let write = found.write_capacity_units.filter(|units| *units > 0)?;
        Some((read, write))
    });
    units
        .map(|(read, write)| {
            ProvisionedThroughput::builder()
                .read_capacity_units(read)
                .write_capacity_units(write)
                .build()
                .map_err(incomplete)
        })
        .transpose()
}

/// The table class, if it is not the standard one.
fn class(source: &types::TableDescription) -> Option<TableClass> {
    let class = source.table_class_summary.as_ref()?.table_class.clone();
    class.filter(|class| *class != TableClass::Standard)
}

fn has_limit(throughput: &OnDemandThroughput) -> bool {
    throughput.max_read_request_units.is_some() || throughput.max_write_request_units.is_some()
}
