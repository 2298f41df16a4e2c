//! Making sure of tables: what is missing is added, one thing at a time as DynamoDB wants it, and
//! nothing is taken away.

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

use crate::backoff::Backoff;
use crate::connect::Remote;
use crate::create::{definitions_with, global_index, stream_specification, tags};
use crate::describe::{TableStatus, indexes_filling, schema_of, status};
use crate::failure::{Failure, is_unknown_operation};
use crate::read::incomplete;
use crate::settings::TableOptions;

/// Tables that are worked on at the same time; DynamoDB allows 500 changes at once.
const TABLES_AT_ONCE: usize = 8;
/// How long a table may take to become usable. Filling an index of a large table takes longest.
const READY_TIMEOUT: Duration = Duration::from_secs(30 * 60);
/// The longest pause between two looks at a table.
const LOOK_PAUSE_MAX: Duration = Duration::from_secs(5);
/// The first pause between two looks at a table.
const LOOK_PAUSE_FIRST: Duration = Duration::from_millis(20);
/// How long a table that was created may stay unseen before it is taken for gone.
const UNSEEN_MAX: Duration = Duration::from_secs(20);
/// How often a table is created that others are deleting.
const CREATIONS_MAX: usize = 5;
/// How DynamoDB words that a table has the key already that it is to have.
const HAS_KEY_ALREADY: &str = "already encrypted with given KMSMasterKeyId";
/// How often a setting is tried that a new table does not take yet.
const SETTING_TRIES_MAX: u32 = 12;

impl Remote {
    pub(crate) async fn ensure_all(&self, tables: &[TableSchema]) -> Result<(), StoreError> {
        // Nothing is begun if one of them cannot be.
        for schema in tables {
            let checked = schema.check();
            checked.map_err(|error| StoreError::Invalid(error.to_string()))?;
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

    /// Makes sure of one table, with what it is to have beyond its schema.
    pub(crate) async fn ensure(
        &self,
        wanted: &TableSchema,
        options: &TableOptions,
    ) -> Result<(), StoreError> {
        let table = &wanted.name;
        let described = self.there(wanted).await?;
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
                Some(there) if there != view && wanted.stream.is_some() => {
                    return Err(StoreError::Invalid(format!(
                        "table {table:?} has a stream with other images than asked for; DynamoDB changes them only when the stream is switched off first"
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

    /// Creates a table that is not there, and waits until it can be used. One that is being deleted is
    /// created when it is gone.
    async fn there(&self, wanted: &TableSchema) -> Result<types::TableDescription, StoreError> {
        let table = &wanted.name;
        for _ in 0..CREATIONS_MAX {
            if self.described(table).await?.is_none() {
                tracing::info!(table, "creating a table");
                self.create(wanted).await?;
            }
            if let Some(described) = self.settled(table).await? {
                return Ok(described);
            }
        }
        Err(StoreError::Unavailable(format!(
            "table {table:?} was deleted each time that it was created"
        )))
    }

    /// Waits until a table and all its indexes can be used.
    pub(crate) async fn ready(&self, table: &str) -> Result<types::TableDescription, StoreError> {
        let settled = self.settled(table).await?;
        settled.ok_or_else(|| StoreError::TableMissing(table.to_owned()))
    }

    /// The same; nothing when the table is gone.
    async fn settled(&self, table: &str) -> Result<Option<types::TableDescription>, StoreError> {
        let begun = Instant::now();
        let deadline = begun + READY_TIMEOUT;
        let mut pause = LOOK_PAUSE_FIRST;
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
                None if was_deleting || begun.elapsed() > UNSEEN_MAX => return Ok(None),
                // A table that was just created may not be seen at once.
                None => {}
            }
            if Instant::now() > deadline {
                return Err(StoreError::Unavailable(format!(
                    "table {table:?} is not ready after {} minutes",
                    READY_TIMEOUT.as_secs() / 60
                )));
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LOOK_PAUSE_MAX);
        }
    }

    async fn add_index(&self, wanted: &TableSchema, index: &IndexSchema) -> Result<(), StoreError> {
        let table = &wanted.name;
        if index.local {
            return Err(StoreError::Invalid(format!(
                "table {table:?} has no local index {:?}, and DynamoDB adds none to a table that exists",
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
        self.ready(table).await.map(drop)
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
        self.ready(table).await.map(drop)
    }

    /// Switches the time to live on where it is asked for; the attribute that the table has then.
    async fn ensure_time_to_live(
        &self,
        wanted: &TableSchema,
    ) -> Result<Option<String>, StoreError> {
        let table = &wanted.name;
        let found = self.time_to_live(table).await?;
        match (&wanted.ttl_attribute, found) {
            (Some(wanted), Some(found)) if *wanted != found => Err(StoreError::Invalid(format!(
                "table {table:?} has its time to live in {found:?}, not in {wanted:?}; DynamoDB changes it only when it is switched off first"
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

    /// What tables get beyond their schema.
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
            if !found.is_some_and(|arn| names_key(arn, key)) {
                let request = self.client.update_table().table_name(table);
                let request = request.set_sse_specification(self.encryption());
                match self.change(table, || request.clone().send()).await {
                    Ok(_) => drop(self.ready(table).await?),
                    Err(StoreError::Invalid(reason)) if reason.contains(HAS_KEY_ALREADY) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        if options.deletion_protection && described.deletion_protection_enabled != Some(true) {
            let request = self.client.update_table().table_name(table);
            let request = request.deletion_protection_enabled(true);
            self.change(table, || request.clone().send()).await?;
            self.ready(table).await?;
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

    /// Sends a change of a table, again while the table is busy with another.
    pub(crate) async fn change<T, E, F>(
        &self,
        table: &str,
        send: impl Fn() -> F,
    ) -> Result<T, StoreError>
    where
        F: Future<Output = Result<T, E>>,
        Failure: From<E>,
    {
        let mut backoff = Backoff::new(SETTING_TRIES_MAX);
        loop {
            match send().await.map_err(Failure::from) {
                Ok(answer) => return Ok(answer),
                Err(failure) if is_busy(&failure) && backoff.wait().await => {}
                Err(failure) => return Err(failure.of_table(table)),
            }
        }
    }
}

/// Says what to do at a place that is compatible but has no point-in-time recovery.
fn without_recovery(error: StoreError) -> StoreError {
    match error {
        StoreError::Unavailable(reason) if is_unknown_operation(&reason) => StoreError::Invalid(
            "the tables are to have point-in-time recovery, which this place does not know: set store.point_in_time_recovery to false"
                .to_owned(),
        ),
        error => error,
    }
}

/// Whether a change may be taken later: another is under way, or the table is too new for it.
fn is_busy(failure: &Failure) -> bool {
    match failure {
        Failure::Other(StoreError::Unavailable(reason)) => {
            reason.starts_with("ContinuousBackupsUnavailableException")
        }
        failure => matches!(failure, Failure::InUse) || failure.is_throttling(),
    }
}

/// Whether an ARN is that of a key which was given by its ARN or its id. An alias is never taken for its
/// key.
fn names_key(arn: &str, key: &str) -> bool {
    arn == key || arn.rsplit('/').next() == Some(key)
}

/// Checks that what exists has the keys that are asked for.
fn check_keys(wanted: &TableSchema, found: &TableSchema) -> Result<(), StoreError> {
    let table = &wanted.name;
    if wanted.key != found.key {
        return Err(StoreError::Invalid(format!(
            "table {table:?} exists with other keys: {} instead of {}",
            shown(&found.key),
            shown(&wanted.key)
        )));
    }
    for index in &wanted.indexes {
        let Some(there) = found.index(&index.name) else {
            continue;
        };
        if there.key != index.key || there.local != index.local {
            return Err(StoreError::Invalid(format!(
                "index {:?} of table {table:?} exists with other keys: {} instead of {}",
                index.name,
                shown(&there.key),
                shown(&index.key)
            )));
        }
        if !same_projection(&there.projection, &index.projection) {
            return Err(StoreError::Invalid(format!(
                "index {:?} of table {table:?} exists with another projection: {:?} instead of {:?}",
                index.name, there.projection, index.projection
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

fn shown(key: &homeport_item::schema::KeySchema) -> String {
    let attributes: Vec<_> = key
        .attributes()
        .map(|attribute| format!("{} ({:?})", attribute.name, attribute.kind))
        .collect();
    attributes.join(", ")
}
