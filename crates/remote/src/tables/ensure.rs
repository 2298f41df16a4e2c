//! Implements `ensure_tables`: adds what is missing, one change at a time as DynamoDB requires, and
//! never removes anything.

use std::collections::BTreeSet;
use std::time::Duration;

use aws_sdk_dynamodb::types::{
    self, CreateGlobalSecondaryIndexAction, GlobalSecondaryIndexUpdate,
    PointInTimeRecoverySpecification, TimeToLiveSpecification,
};
use futures_util::{StreamExt, TryStreamExt};
use homeport_item::schema::{IndexProjection, IndexSchema, TableSchema};
use homeport_store::StoreError;
use tokio::time::Instant;

use crate::connect::Remote;
use crate::connect::backoff::Backoff;
use crate::connect::settings::TableOptions;
use crate::convert::failure::{Failure, is_unknown_operation};
use crate::read::items::incomplete;
use crate::tables::create::{definitions_with, global_index, stream_specification, tags};
use crate::tables::describe::{TableStatus, indexes_filling, schema_of, status};

/// Number of tables processed concurrently; DynamoDB allows 500 concurrent changes.
const TABLES_AT_ONCE: usize = 8;
/// Timeout until a table is usable. Filling an index of a large table takes longest.
const READY_TIMEOUT: Duration = Duration::from_secs(30 * 60);
/// Maximum delay between two polls of a table.
const POLL_DELAY_MAX: Duration = Duration::from_secs(5);
/// Initial delay between two polls of a table.
const POLL_DELAY_FIRST: Duration = Duration::from_millis(20);
/// How long a new table may be missing from responses before it counts as deleted.
const VISIBILITY_TIMEOUT: Duration = Duration::from_secs(20);
/// Maximum number of attempts to create a table that others delete.
const CREATIONS_MAX: usize = 5;
/// DynamoDB's message for a table that already uses the requested key.
const SAME_KEY_MESSAGE: &str = "already encrypted with given KMSMasterKeyId";
/// Maximum number of attempts to change a setting that a new table does not accept yet.
const SETTING_ATTEMPTS_MAX: u32 = 12;

impl Remote {
    pub(crate) async fn ensure_all(&self, tables: &[TableSchema]) -> Result<(), StoreError> {
        // Start nothing if one of the schemas is invalid.
        for schema in tables {
            let checked = schema.check();
            checked.map_err(|error| StoreError::invalid(error.to_string()))?;
        }
        let work = tables
            .iter()
            .cloned()
            .map(|schema| async move { self.ensure(&schema, &self.options).await });
        futures_util::stream::iter(work)
            .buffer_unordered(TABLES_AT_ONCE)
            .try_collect::<()>()
            .await
    }

    /// Ensures one table and its options beyond the schema.
    pub(crate) async fn ensure(
        &self,
        wanted: &TableSchema,
        options: &TableOptions,
    ) -> Result<(), StoreError> {
        let table = &wanted.name;
        let described = self.create_if_missing(wanted).await?;
        let mut found = schema_of(&described)?;
        check_keys(wanted, &found)?;
        for index in &wanted.indexes {
            if found.index(&index.name).is_none() {
                self.add_index(wanted, index).await?;
                found.indexes.push(index.clone());
            }
        }
        if let Some(view) = wanted.stream.or(options.stream) {
            match found.stream {
                None => self.add_stream(table, view).await?,
                Some(existing) if existing != view && wanted.stream.is_some() => {
                    return Err(StoreError::invalid(format!(
                        "table {table:?} has a stream with a different view type than requested; disable the stream first, because DynamoDB cannot change it"
                    )));
                }
                Some(_) => {}
            }
            found.stream = found.stream.or(Some(view));
        }
        found.ttl_attribute = self.ensure_time_to_live(wanted).await?;
        self.ensure_options(&described, options).await?;
        self.remember(found);
        Ok(())
    }

    /// Creates a table if it is missing and waits until it is usable. A table that is being deleted
    /// is created again afterwards.
    async fn create_if_missing(
        &self,
        wanted: &TableSchema,
    ) -> Result<types::TableDescription, StoreError> {
        let table = &wanted.name;
        for _ in 0..CREATIONS_MAX {
            if self.described(table).await?.is_none() {
                tracing::info!(table, "creating a table");
                self.create(wanted).await?;
            }
            if let Some(described) = self.poll_until_ready(table).await? {
                return Ok(described);
            }
        }
        Err(StoreError::Unavailable(format!(
            "table {table:?} was deleted by others after each creation"
        )))
    }

    /// Waits until a table and all its indexes are usable.
    pub(crate) async fn wait_until_ready(
        &self,
        table: &str,
    ) -> Result<types::TableDescription, StoreError> {
        let described = self.poll_until_ready(table).await?;
        described.ok_or_else(|| StoreError::TableNotFound(table.to_owned()))
    }

    /// Like `wait_until_ready`; `None` if the table was deleted.
    async fn poll_until_ready(
        &self,
        table: &str,
    ) -> Result<Option<types::TableDescription>, StoreError> {
        let started = Instant::now();
        let deadline = started + READY_TIMEOUT;
        let mut pause = POLL_DELAY_FIRST;
        let mut was_deleting = false;
        loop {
            match self.described(table).await? {
                Some(described) => match status(&described) {
                    TableStatus::Active if indexes_filling(&described).is_empty() => {
                        return Ok(Some(described));
                    }
                    TableStatus::Unusable => {
                        return Err(StoreError::Unavailable(format!(
                            "table {table:?} is {:?}",
                            described.table_status
                        )));
                    }
                    TableStatus::Deleting => was_deleting = true,
                    _ => {}
                },
                None if was_deleting || started.elapsed() > VISIBILITY_TIMEOUT => return Ok(None),
                // A table that was just created may not be visible at once.
                None => {}
            }
            if Instant::now() > deadline {
                return Err(StoreError::Unavailable(format!(
                    "table {table:?} is not ready after {} minutes",
                    READY_TIMEOUT.as_secs() / 60
                )));
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(POLL_DELAY_MAX);
        }
    }

    async fn add_index(&self, wanted: &TableSchema, index: &IndexSchema) -> Result<(), StoreError> {
        let table = &wanted.name;
        if index.local {
            return Err(StoreError::invalid(format!(
                "table {table:?} has no local index {:?}, and DynamoDB cannot add one to an existing table",
                index.name
            )));
        }
        tracing::info!(table, index = index.name, "adding an index");
        let new = global_index(index)?;
        let create = CreateGlobalSecondaryIndexAction::builder()
            .index_name(new.index_name)
            .set_key_schema(Some(new.key_schema))
            .set_projection(new.projection)
            .build()
            .map_err(incomplete)?;
        let change = GlobalSecondaryIndexUpdate::builder().create(create).build();
        let request = self
            .client
            .update_table()
            .table_name(table)
            .set_attribute_definitions(Some(definitions_with(wanted, index)?))
            .global_secondary_index_updates(change);
        self.change(table, || request.clone().send()).await?;
        self.wait_until_ready(table).await.map(drop)
    }

    pub(crate) async fn add_stream(
        &self,
        table: &str,
        view: homeport_item::schema::StreamView,
    ) -> Result<(), StoreError> {
        let request = self
            .client
            .update_table()
            .table_name(table)
            .stream_specification(stream_specification(view)?);
        self.change(table, || request.clone().send()).await?;
        self.wait_until_ready(table).await.map(drop)
    }

    /// Enables time to live if requested. Returns the table's resulting attribute.
    async fn ensure_time_to_live(
        &self,
        wanted: &TableSchema,
    ) -> Result<Option<String>, StoreError> {
        let table = &wanted.name;
        let found = self.time_to_live(table).await?;
        match (&wanted.ttl_attribute, found) {
            (Some(wanted), Some(found)) if *wanted != found => Err(StoreError::invalid(format!(
                "table {table:?} has the time-to-live attribute {found:?} instead of {wanted:?}; disable time to live first, because DynamoDB cannot change it"
            ))),
            (Some(wanted), None) => {
                let specification = TimeToLiveSpecification::builder()
                    .enabled(true)
                    .attribute_name(wanted)
                    .build()
                    .map_err(incomplete)?;
                let request = self
                    .client
                    .update_time_to_live()
                    .table_name(table)
                    .time_to_live_specification(specification);
                self.change(table, || request.clone().send()).await?;
                Ok(Some(wanted.clone()))
            }
            (_, found) => Ok(found),
        }
    }

    /// Applies the table options beyond the schema.
    async fn ensure_options(
        &self,
        described: &types::TableDescription,
        options: &TableOptions,
    ) -> Result<(), StoreError> {
        let table = described.table_name.as_deref().unwrap_or_default();
        if options.point_in_time_recovery && !self.point_in_time_recovery(table).await? {
            let specification = PointInTimeRecoverySpecification::builder()
                .point_in_time_recovery_enabled(true)
                .build()
                .map_err(incomplete)?;
            let request = self
                .client
                .update_continuous_backups()
                .table_name(table)
                .point_in_time_recovery_specification(specification);
            let switched_on = self.change(table, || request.clone().send()).await;
            switched_on.map_err(without_recovery)?;
        }
        if let Some(key) = &options.kms_key_id {
            let encryption = described.sse_description.as_ref();
            let found = encryption.and_then(|encryption| encryption.kms_master_key_arn.as_deref());
            if !found.is_some_and(|arn| matches_key(arn, key)) {
                let request = self.client.update_table().table_name(table);
                let request = request.set_sse_specification(self.encryption());
                match self.change(table, || request.clone().send()).await {
                    Ok(_) => drop(self.wait_until_ready(table).await?),
                    Err(StoreError::Invalid(reason))
                        if reason.to_string().contains(SAME_KEY_MESSAGE) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        if options.deletion_protection && described.deletion_protection_enabled != Some(true) {
            let request = self.client.update_table().table_name(table);
            let request = request.deletion_protection_enabled(true);
            self.change(table, || request.clone().send()).await?;
            self.wait_until_ready(table).await?;
        }
        if let Some(arn) = described.table_arn.as_deref()
            && !options.tags.is_empty()
        {
            let found = self.tags(arn).await?;
            let mut missing = options.tags.clone();
            missing.retain(|key, value| found.get(key) != Some(value));
            if let Some(tags) = tags(&missing)? {
                let request = self.client.tag_resource().resource_arn(arn);
                let request = request.set_tags(Some(tags));
                self.change(table, || request.clone().send()).await?;
            }
        }
        Ok(())
    }

    /// Sends a change of a table and retries while another change is in progress.
    pub(crate) async fn change<T, E, F>(
        &self,
        table: &str,
        send: impl Fn() -> F,
    ) -> Result<T, StoreError>
    where
        F: Future<Output = Result<T, E>>,
        Failure: From<E>,
    {
        let mut backoff = Backoff::new(SETTING_ATTEMPTS_MAX);
        loop {
            match send().await.map_err(Failure::from) {
                Ok(answer) => return Ok(answer),
                Err(failure) if is_busy(&failure) && backoff.wait().await => {}
                Err(failure) => return Err(failure.of_table(table)),
            }
        }
    }
}

/// Adds advice for a compatible service without point-in-time recovery.
fn without_recovery(error: StoreError) -> StoreError {
    match error {
        StoreError::Unavailable(reason) if is_unknown_operation(&reason) => StoreError::invalid(
            "the endpoint does not support point-in-time recovery; set store.point_in_time_recovery to false",
        ),
        error => error,
    }
}

/// Whether a change may succeed later, because another is in progress or the table is too new.
fn is_busy(failure: &Failure) -> bool {
    match failure {
        Failure::Other(StoreError::Unavailable(reason)) => {
            reason.starts_with("ContinuousBackupsUnavailableException")
        }
        failure => matches!(failure, Failure::InUse) || failure.is_throttling(),
    }
}

/// Whether `arn` belongs to the key given by its ARN or id. An alias never matches.
fn matches_key(arn: &str, key: &str) -> bool {
    arn == key || arn.rsplit('/').next() == Some(key)
}

/// Checks that an existing table has the requested keys.
fn check_keys(wanted: &TableSchema, found: &TableSchema) -> Result<(), StoreError> {
    let table = &wanted.name;
    if wanted.key != found.key {
        return Err(StoreError::invalid(format!(
            "table {table:?} exists with different keys: {} instead of {}",
            describe_key(&found.key),
            describe_key(&wanted.key)
        )));
    }
    for index in &wanted.indexes {
        let Some(existing) = found.index(&index.name) else {
            continue;
        };
        if existing.key != index.key || existing.local != index.local {
            return Err(StoreError::invalid(format!(
                "index {:?} of table {table:?} exists with different keys: {} instead of {}",
                index.name,
                describe_key(&existing.key),
                describe_key(&index.key)
            )));
        }
        if !same_projection(&existing.projection, &index.projection) {
            return Err(StoreError::invalid(format!(
                "index {:?} of table {table:?} exists with a different projection: {:?} instead of {:?}",
                index.name, existing.projection, index.projection
            )));
        }
    }
    Ok(())
}

/// The order of the included attributes does not matter.
fn same_projection(one: &IndexProjection, other: &IndexProjection) -> bool {
    match (one, other) {
        (IndexProjection::Include(one), IndexProjection::Include(other)) => {
            one.iter().collect::<BTreeSet<_>>() == other.iter().collect::<BTreeSet<_>>()
        }
        (one, other) => one == other,
    }
}

fn describe_key(key: &homeport_item::schema::KeySchema) -> String {
    let attributes: Vec<_> = key
        .attributes()
        .map(|attribute| format!("{} ({:?})", attribute.name, attribute.kind))
        .collect();
    attributes.join(", ")
}
