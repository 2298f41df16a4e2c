//! Changes of tables. Each change is one commit of the catalogue; a background job then processes existing
//! items.

use std::collections::BTreeSet;
use std::sync::Arc;

use homeport_item::schema::{IndexSchema, StreamView, TableSchema};
use homeport_store::StoreError;

use crate::catalogue::jobs;
use crate::catalogue::keyspaces::Keyspaces;
use crate::catalogue::table::{
    ExpiryJob, IndexRecord, IndexState, Table, TableDescription, TableRecord,
};
use crate::catalogue::{self, Catalogue};
use crate::changes::streams::{self, ChangeMoment};
use crate::commit::committer::Committer;
use crate::commit::group::Group;
use crate::engine;
use crate::error::{TableError, unavailable};
use crate::shared::{Shared, stopped};
use crate::storage::integrity::set_aside;
use crate::storage::vault::{self, PersistMode, UserValue, files};

impl Shared {
    /// Runs a change of the catalogue on the committer's thread.
    async fn change_tables<T: Send + 'static, E: From<TableError> + Send + 'static>(
        &self,
        change: impl FnOnce(&mut Committer) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E> {
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

    /// Changes a table's settings atomically: nothing else changes between the settings that `change` sees
    /// and those it returns.
    pub(crate) async fn change_settings<E: From<TableError> + Send + 'static>(
        &self,
        table: String,
        change: impl FnOnce(&str) -> Result<String, E> + Send + 'static,
    ) -> Result<(), E> {
        self.change_tables(move |committer| {
            alter_or(committer, &table, |record| {
                record.settings = change(&record.settings)?;
                Ok(())
            })
            .map(|_| ())
        })
        .await
    }

    /// Changes a table's record with `change`, which also gets the current time.
    pub(crate) async fn alter_table(
        &self,
        table: String,
        change: impl FnOnce(&mut TableRecord, i64) -> Result<(), TableError> + Send + 'static,
    ) -> Result<(), TableError> {
        self.change_tables(move |committer| {
            let now_ms = committer.shared.times().commit_ms;
            alter(committer, &table, |record| change(record, now_ms)).map(|_| ())
        })
        .await
    }

    /// Deletes a table atomically with `check`, which sees its settings and may refuse.
    pub(crate) async fn delete_table<E: From<TableError> + Send + 'static>(
        &self,
        name: String,
        check: impl FnOnce(&str) -> Result<(), E> + Send + 'static,
    ) -> Result<TableDescription, E> {
        self.change_tables(move |committer| delete(committer, &name, check))
            .await
    }

    pub(crate) async fn add_index(
        self: &Arc<Self>,
        table: String,
        index: IndexSchema,
    ) -> Result<(), TableError> {
        let shared = Arc::clone(self);
        self.change_tables(move |committer| {
            let spare = committer.take_spare()?;
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
                committer.retire_keyspace(spare);
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
                    .ok_or_else(|| TableError::IndexNotFound {
                        table: record.schema.name.clone(),
                        index: index.clone(),
                    })?;
                record.schema.indexes.remove(at);
                record.indexes.remove(at);
                Ok(())
            })?;
            for dropped in &before.indexes {
                if dropped.schema.name == index {
                    committer.retire_keyspace(Arc::clone(&dropped.entries));
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
        // In this order, because a table that finishes restoring in between is then found in the catalogue.
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
    let now_ms = shared.times().commit_ms;
    let mut record = TableRecord::new(catalogue.next_id, schema, settings, now_ms);
    committer.assign_spare_keyspaces(&mut record)?;
    catalogue.next_id += 1;
    let streams = streams::update_streams(
        &mut catalogue,
        None,
        Some(&mut record),
        ChangeMoment::now(&shared),
    );
    // Create the keyspaces first: a crash in between leaves empty ones, which the next start deletes.
    let table = catalogue::open_table(&shared.database, record, None).map_err(unavailable)?;
    let entries = [
        catalogue::table_entry(&table.record),
        catalogue::next_id_entry(catalogue.next_id),
    ];
    committer.write(|group| {
        for (key, value) in entries {
            group.insert(&shared.keyspaces.catalogue, key.into(), value.into());
        }
        note_used(group, &shared, table.record.keyspace_names());
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

fn delete<E: From<TableError>>(
    committer: &mut Committer,
    name: &str,
    check: impl FnOnce(&str) -> Result<(), E>,
) -> Result<TableDescription, E> {
    let shared = Arc::clone(&committer.shared);
    let mut catalogue = Catalogue::clone(&shared.catalogue.now());
    let table = catalogue
        .remove(name)
        .ok_or_else(|| TableError::Missing(name.to_owned()))?;
    check(&table.record.settings)?;
    let key = catalogue::table_key(name);
    let now = ChangeMoment::now(&shared);
    let streams = streams::update_streams(&mut catalogue, Some(&table.record), None, now);
    let written = committer.write(|group| {
        group.remove(&shared.keyspaces.catalogue, key.into());
        note_unused(group, &shared, table.record.keyspace_names());
        for (key, value) in streams {
            group.insert(&shared.keyspaces.catalogue, key, value);
        }
        Ok(())
    });
    written.map_err(TableError::from)?;
    shared.catalogue.replace(catalogue);
    for keyspace in table.keyspaces() {
        committer.retire_keyspace(Arc::clone(keyspace));
    }
    Ok(TableDescription::of(&table))
}

/// Changes one table's record durably, and then publishes it.
pub(crate) fn alter(
    committer: &mut Committer,
    name: &str,
    change: impl FnOnce(&mut TableRecord) -> Result<(), TableError>,
) -> Result<Arc<Table>, TableError> {
    alter_or(committer, name, change)
}

/// Like [`alter`], for a change that may fail with its own error.
fn alter_or<E: From<TableError>>(
    committer: &mut Committer,
    name: &str,
    change: impl FnOnce(&mut TableRecord) -> Result<(), E>,
) -> Result<Arc<Table>, E> {
    let shared = Arc::clone(&committer.shared);
    let mut catalogue = Catalogue::clone(&shared.catalogue.now());
    let before = Arc::clone(catalogue.get(name).map_err(missing)?);
    let mut record = before.record.clone();
    change(&mut record)?;
    let now = ChangeMoment::now(&shared);
    let streams =
        streams::update_streams(&mut catalogue, Some(&before.record), Some(&mut record), now);
    let table = catalogue::open_table(&shared.database, record, Some(&before));
    let table = table.map_err(|error| TableError::Store(unavailable(error)))?;
    let table = Arc::new(table);
    let (key, value) = catalogue::table_entry(&table.record);
    let used_before: BTreeSet<String> = before.record.keyspace_names().collect();
    let used_now: BTreeSet<String> = table.record.keyspace_names().collect();
    let written = committer.write(|group| {
        group.insert(&shared.keyspaces.catalogue, key.into(), value.into());
        note_unused(group, &shared, used_before.difference(&used_now).cloned());
        note_used(group, &shared, used_now.difference(&used_before).cloned());
        for (key, value) in streams {
            group.insert(&shared.keyspaces.catalogue, key, value);
        }
        Ok(())
    });
    written.map_err(TableError::from)?;
    catalogue.insert(Arc::clone(&table));
    shared.catalogue.replace(catalogue);
    Ok(table)
}

/// Records that no table uses these keyspaces, so that the next start may delete them.
pub(crate) fn note_unused(
    group: &mut Group<'_>,
    shared: &Shared,
    keyspaces: impl Iterator<Item = String>,
) {
    for keyspace in keyspaces {
        let key = catalogue::unused_key(&keyspace);
        group.insert(&shared.keyspaces.catalogue, key.into(), UserValue::empty());
    }
}

/// Records that a table uses these keyspaces.
pub(crate) fn note_used(
    group: &mut Group<'_>,
    shared: &Shared,
    keyspaces: impl Iterator<Item = String>,
) {
    for keyspace in keyspaces {
        let key = catalogue::unused_key(&keyspace);
        group.remove(&shared.keyspaces.catalogue, key.into());
    }
}

/// Deletes the keyspaces that are recorded as unused or are empty. Other keyspaces without a table are set
/// aside, because their tables were lost. Directories with `is_outdated` predate the records, and all such
/// keyspaces are deleted there.
pub(crate) fn drop_unused_keyspaces(shared: &Shared, is_outdated: bool) {
    let catalogue = shared.catalogue.now();
    for name in shared.database.keyspace_names() {
        if Keyspaces::is_own(&name) || catalogue.uses_keyspace(&name) {
            continue;
        }
        if let Err(error) = drop_unused(shared, &name, is_outdated) {
            tracing::warn!(keyspace = %name, %error, "cannot delete an unused keyspace now");
        }
    }
    if let Err(error) = forget_unused(shared) {
        tracing::warn!(%error, "cannot update the list of unused keyspaces now");
    }
}

fn drop_unused(shared: &Shared, name: &str, is_outdated: bool) -> Result<(), StoreError> {
    let keyspace = shared.database.keyspace(name).map_err(unavailable)?;
    let unused = catalogue::unused_key(name);
    let is_known = shared.keyspaces.catalogue.contains_key(unused);
    let may_go = is_outdated || is_known.map_err(unavailable)? || keyspace.iter().next().is_none();
    if !may_go {
        engine::flush(shared, &keyspace)?;
        let path = keyspace.path().map_err(unavailable)?;
        let number = files::keyspace_number(&path).unwrap_or_default();
        let place = format!("{name}-{number}");
        let place =
            set_aside::link_folder(&shared.directory, &path, &place).map_err(unavailable)?;
        tracing::warn!(
            keyspace = name,
            place = %place.display(),
            "set aside a keyspace that no table uses"
        );
    }
    shared.delete_keyspace(keyspace)
}

/// Deletes the records of unused keyspaces that no longer exist.
fn forget_unused(shared: &Shared) -> Result<(), vault::Error> {
    let mut batch = shared.database.batch();
    for guard in shared.keyspaces.catalogue.prefix(catalogue::UNUSED_PREFIX) {
        let key = guard.key()?;
        let name = String::from_utf8_lossy(&key[catalogue::UNUSED_PREFIX.len()..]);
        if !shared.database.has_keyspace(&name) {
            batch.remove(&shared.keyspaces.catalogue, key.clone());
        }
    }
    if batch.is_empty() {
        return Ok(());
    }
    batch.commit(PersistMode::Buffer)
}

fn missing(error: StoreError) -> TableError {
    match error {
        StoreError::TableNotFound(name) => TableError::Missing(name),
        other => TableError::Store(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Engine, Options};
    use homeport_item::KeyKind;

    /// A store with one table that has settings.
    async fn engine(directory: &std::path::Path) -> Engine {
        let engine = Engine::open(directory, Options::default()).expect("opens");
        let schema = TableSchema::new("things", "id", KeyKind::S);
        let created = engine.create_table_with(schema, "open".to_owned()).await;
        created.expect("a table");
        engine
    }

    fn unless_protected(settings: &str) -> Result<(), TableError> {
        match settings {
            "protected" => Err(TableError::DifferentKeys("protected".to_owned())),
            _ => Ok(()),
        }
    }

    #[tokio::test]
    async fn deletion_checks_the_current_settings() {
        let directory = tempfile::tempdir().expect("a directory");
        let engine = engine(directory.path()).await;
        // The deletion is requested before the protection is committed.
        let (protected, deleted) = tokio::join!(
            engine.change_settings("things", |_| Ok::<_, TableError>("protected".to_owned())),
            engine.delete_table_if("things", unless_protected),
        );
        assert_eq!(protected, Ok(()));
        assert!(matches!(deleted, Err(TableError::DifferentKeys(_))));
        assert!(engine.describe_table("things").is_ok());
    }

    #[tokio::test]
    async fn settings_changes_are_serialized() {
        let directory = tempfile::tempdir().expect("a directory");
        let engine = engine(directory.path()).await;
        let add = |text: &'static str| {
            engine.change_settings("things", move |settings| {
                Ok::<_, TableError>(format!("{settings} {text}"))
            })
        };
        let (one, two) = tokio::join!(add("one"), add("two"));
        assert_eq!((one, two), (Ok(()), Ok(())));
        let refused = engine.change_settings("things", |settings| {
            assert_eq!(settings, "open one two");
            Err(TableError::Missing("nothing".to_owned()))
        });
        let refused = refused.await;
        assert_eq!(refused, Err(TableError::Missing("nothing".to_owned())));
        let described = engine.describe_table("things").expect("a table");
        assert_eq!(described.settings, "open one two");
    }
}
