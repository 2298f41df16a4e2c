//! Changing the tables themselves. Each change is one commit of the catalogue; what follows from it
//! for items that are there already is left to a job in the background.

use std::sync::Arc;

use homeport_item::schema::{IndexSchema, StreamView, TableSchema};

use crate::catalogue::{self, Catalogue};
use crate::committer::Committer;
use crate::error::{TableError, unavailable};
use crate::jobs;
use crate::shared::{Shared, stopped};
use crate::streams::{self, Moment};
use crate::table::{ExpiryJob, IndexRecord, IndexState, Table, TableDescription, TableRecord};

impl Shared {
    /// Runs a change of the catalogue on the committer's thread.
    async fn change_tables<T: Send + 'static>(
        &self,
        change: impl FnOnce(&mut Committer) -> Result<T, TableError> + Send + 'static,
    ) -> Result<T, TableError> {
        self.exclusive(change)
            .await
            .map_err(|_| TableError::Store(stopped()))?
    }

    pub(crate) async fn create_table(
        &self,
        schema: TableSchema,
        settings: String,
    ) -> Result<TableDescription, TableError> {
        schema.check()?;
        self.change_tables(move |committer| create(committer, schema, settings))
            .await
    }

    pub(crate) async fn change_settings(
        &self,
        table: String,
        change: impl FnOnce(&str) -> String + Send + 'static,
    ) -> Result<(), TableError> {
        self.change_tables(move |committer| {
            alter(committer, &table, |record| {
                record.settings = change(&record.settings);
                Ok(())
            })
            .map(|_| ())
        })
        .await
    }

    /// Changes a table's record with `change`, which is told the time.
    pub(crate) async fn alter_table(
        &self,
        table: String,
        change: impl FnOnce(&mut TableRecord, i64) -> Result<(), TableError> + Send + 'static,
    ) -> Result<(), TableError> {
        self.change_tables(move |committer| {
            let now_ms = committer.shared.options.clock.now_ms();
            alter(committer, &table, |record| change(record, now_ms)).map(|_| ())
        })
        .await
    }

    pub(crate) async fn delete_table(&self, name: String) -> Result<TableDescription, TableError> {
        self.change_tables(move |committer| delete(committer, &name))
            .await
    }

    pub(crate) async fn add_index(
        self: &Arc<Self>,
        table: String,
        index: IndexSchema,
    ) -> Result<(), TableError> {
        let shared = Arc::clone(self);
        self.change_tables(move |committer| {
            let spare = committer.spare()?;
            let keyspace = spare.as_ref().map(|spare| spare.name().to_string());
            let altered = alter(committer, &table, |record| {
                if record.schema.index(&index.name).is_some() {
                    return Err(TableError::IndexExists {
                        table: record.schema.name.clone(),
                        index: index.name,
                    });
                }
                record.schema.indexes.push(index);
                record.schema.check()?;
                record.indexes.push(IndexRecord {
                    id: record.next_index_id,
                    state: IndexState::Building,
                    keyspace,
                });
                record.next_index_id += 1;
                Ok(())
            });
            if let (Err(_), Some(spare)) = (&altered, spare) {
                committer.give_up(spare);
            }
            altered.map(|table| jobs::start(&shared, table.id()))
        })
        .await
    }

    pub(crate) async fn delete_index(
        &self,
        table: String,
        index: String,
    ) -> Result<(), TableError> {
        self.change_tables(move |committer| {
            let before = committer.shared.catalogue.table(&table).map_err(missing)?;
            alter(committer, &table, |record| {
                let at = record
                    .schema
                    .indexes
                    .iter()
                    .position(|candidate| candidate.name == index)
                    .ok_or_else(|| TableError::IndexMissing {
                        table: record.schema.name.clone(),
                        index: index.clone(),
                    })?;
                record.schema.indexes.remove(at);
                record.indexes.remove(at);
                Ok(())
            })?;
            for dropped in &before.indexes {
                if dropped.schema.name == index {
                    committer.give_up(Arc::clone(&dropped.entries));
                }
            }
            Ok(())
        })
        .await
    }

    pub(crate) async fn set_ttl(
        self: &Arc<Self>,
        table: String,
        attribute: Option<String>,
    ) -> Result<(), TableError> {
        let shared = Arc::clone(self);
        self.change_tables(move |committer| {
            alter(committer, &table, |record| {
                let before = record.schema.ttl_attribute.take();
                if before == attribute {
                    record.schema.ttl_attribute = before;
                    return Ok(());
                }
                if let (Some(_), Some(_)) = (&before, &attribute) {
                    return Err(TableError::TimeToLiveInUse);
                }
                if record.expiry_job.is_some() {
                    return Err(TableError::TimeToLiveBusy);
                }
                record.expiry_job = Some(match before {
                    Some(attribute) => ExpiryJob::Clearing { attribute },
                    None => ExpiryJob::Building,
                });
                record.schema.ttl_attribute = attribute;
                Ok(())
            })
            .map(|table| jobs::start(&shared, table.id()))
        })
        .await
    }

    pub(crate) async fn set_stream(
        &self,
        table: String,
        stream: Option<StreamView>,
    ) -> Result<(), TableError> {
        self.change_tables(move |committer| {
            alter(committer, &table, |record| {
                record.schema.stream = stream;
                Ok(())
            })
            .map(|_| ())
        })
        .await
    }

    pub(crate) fn describe_table(&self, name: &str) -> Result<TableDescription, TableError> {
        // In this order: a table that becomes whole in between is found in the catalogue.
        if let Some(description) = self.restoring.describe(name) {
            return Ok(description);
        }
        let table = self.catalogue.table(name).map_err(missing)?;
        Ok(TableDescription::of(&table))
    }
}

fn create(
    committer: &mut Committer,
    schema: TableSchema,
    settings: String,
) -> Result<TableDescription, TableError> {
    let shared = Arc::clone(&committer.shared);
    let mut catalogue = Catalogue::clone(&shared.catalogue.now());
    if catalogue.get(&schema.name).is_ok() || shared.restoring.has(&schema.name) {
        return Err(TableError::Exists(schema.name));
    }
    let now_ms = shared.options.clock.now_ms();
    let mut record = TableRecord::new(catalogue.next_id, schema, settings, now_ms);
    committer.furnish(&mut record)?;
    catalogue.next_id += 1;
    let streams = streams::follow(
        &mut catalogue,
        None,
        Some(&mut record),
        Moment::now(&shared),
    );
    // The keyspaces come first: a crash in between leaves empty ones, which the next start drops.
    let table = catalogue::open_table(&shared.database, record, None).map_err(unavailable)?;
    let entries = [
        catalogue::table_entry(&table.record),
        catalogue::next_id_entry(catalogue.next_id),
    ];
    committer.write(|group| {
        for (key, value) in entries {
            group.insert(&shared.keyspaces.catalogue, key.into(), value.into());
        }
        for (key, value) in streams {
            group.insert(&shared.keyspaces.catalogue, key, value);
        }
        Ok(())
    })?;
    let description = TableDescription::of(&table);
    catalogue.insert(Arc::new(table));
    shared.catalogue.replace(catalogue);
    Ok(description)
}

fn delete(committer: &mut Committer, name: &str) -> Result<TableDescription, TableError> {
    let shared = Arc::clone(&committer.shared);
    let mut catalogue = Catalogue::clone(&shared.catalogue.now());
    let table = catalogue
        .remove(name)
        .ok_or_else(|| TableError::Missing(name.to_owned()))?;
    let key = catalogue::table_key(name);
    let now = Moment::now(&shared);
    let streams = streams::follow(&mut catalogue, Some(&table.record), None, now);
    committer.write(|group| {
        group.remove(&shared.keyspaces.catalogue, key.into());
        for (key, value) in streams {
            group.insert(&shared.keyspaces.catalogue, key, value);
        }
        Ok(())
    })?;
    shared.catalogue.replace(catalogue);
    for keyspace in table.keyspaces() {
        committer.give_up(Arc::clone(keyspace));
    }
    Ok(TableDescription::of(&table))
}

/// Changes one table's record, durably, and then for everyone.
pub(crate) fn alter(
    committer: &mut Committer,
    name: &str,
    change: impl FnOnce(&mut TableRecord) -> Result<(), TableError>,
) -> Result<Arc<Table>, TableError> {
    let shared = Arc::clone(&committer.shared);
    let mut catalogue = Catalogue::clone(&shared.catalogue.now());
    let before = Arc::clone(catalogue.get(name).map_err(missing)?);
    let mut record = before.record.clone();
    change(&mut record)?;
    let now = Moment::now(&shared);
    let streams = streams::follow(&mut catalogue, Some(&before.record), Some(&mut record), now);
    let table = catalogue::open_table(&shared.database, record, Some(&before));
    let table = Arc::new(table.map_err(unavailable)?);
    let (key, value) = catalogue::table_entry(&table.record);
    committer.write(|group| {
        group.insert(&shared.keyspaces.catalogue, key.into(), value.into());
        for (key, value) in streams {
            group.insert(&shared.keyspaces.catalogue, key, value);
        }
        Ok(())
    })?;
    catalogue.insert(Arc::clone(&table));
    shared.catalogue.replace(catalogue);
    Ok(table)
}

/// Drops keyspaces that no table in the catalogue uses: leftovers of a crash.
pub(crate) fn drop_orphans(shared: &Shared) {
    let catalogue = shared.catalogue.now();
    for name in shared.database.keyspace_names() {
        if crate::keyspaces::Keyspaces::is_own(&name) || catalogue.uses_keyspace(&name) {
            continue;
        }
        let dropped = shared
            .database
            .keyspace(&name)
            .and_then(|keyspace| shared.database.delete_keyspace(keyspace));
        if let Err(error) = dropped {
            tracing::warn!(keyspace = %name, %error, "cannot drop an unused keyspace now");
        }
    }
}

fn missing(error: homeport_store::StoreError) -> TableError {
    match error {
        homeport_store::StoreError::TableMissing(name) => TableError::Missing(name),
        other => TableError::Store(other),
    }
}
