//! Checks a store: every item has its index entries and is listed where it expires, every index entry has its
//! item, and all bytes can be decoded.
//!
//! Pages list items in write order, while items are in key order. So a filter over the pages tells whether
//! all items are listed; it overlooks about one missing listing in a thousand.
//!
//! Everything is read in chunks, each from a snapshot of its own, because an open snapshot holds memory. Each
//! entry is compared with others from its chunk's snapshot, in which they agree despite concurrent writes
//! ([`ConcurrentWrites`]).

use std::path::Path;
use std::sync::Arc;

use homeport_item::Item;
use homeport_store::StoreError;

use crate::archive::copying::{CHUNK_ENTRIES_MAX, TableCopy};
use crate::archive::table_backups;
use crate::catalogue::keyspaces::Keyspaces;
use crate::catalogue::table::{ExpiryJob, Index, IndexState, Table};
use crate::catalogue::{self, Catalogue, SharedCatalogue};
use crate::changes::log;
use crate::error::{OpenError, unavailable};
use crate::expiry::pages;
use crate::options::Options;
use crate::storage::directory;
use crate::storage::filter::Filter;
use crate::storage::integrity::set_aside;
use crate::storage::integrity::verify::{self, VerifyScope};
use crate::storage::integrity::view::{self, View};
use crate::storage::layout;
use crate::storage::record::{self, Record};
use crate::storage::seal::file::FileKeys;
use crate::storage::vault::{self, Database, Keyspace, Snapshot, UserKey, UserValue};

/// Problems that a report describes; further ones are only counted.
const DESCRIBED_MAX: usize = 100;

/// The result of a check.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CheckReport {
    pub tables: u64,
    pub items: u64,
    pub index_entries: u64,
    /// The number of listings of items that expire.
    pub expiry_entries: u64,
    pub changes: u64,
    /// Table files that were read completely.
    pub table_files: u64,
    /// Backups of tables that were read completely.
    pub backups: u64,
    /// Unused keyspaces that were set aside; nothing reads them.
    pub set_aside: Vec<String>,
    /// The number of problems.
    pub problems: u64,
    /// Descriptions of the first problems.
    pub descriptions: Vec<String>,
}

impl CheckReport {
    fn problem(&mut self, description: String) {
        self.problems += 1;
        if self.descriptions.len() < DESCRIBED_MAX {
            self.descriptions.push(description);
        }
    }

    /// Adds the items, entries and problems of another report.
    fn add(&mut self, other: Self) {
        self.tables += other.tables;
        self.items += other.items;
        self.index_entries += other.index_entries;
        let undescribed = other.problems - other.descriptions.len() as u64;
        for description in other.descriptions {
            self.problem(description);
        }
        self.problems += undescribed;
    }

    /// The value that was read, if it is readable. A sealed value that cannot be decrypted is a problem,
    /// which `describe` words using its key; any other error ends the check.
    fn readable<T>(
        &mut self,
        read: Result<T, vault::Error>,
        describe: impl FnOnce(&UserKey) -> String,
    ) -> Result<Option<T>, StoreError> {
        match read {
            Ok(read) => Ok(Some(read)),
            Err(vault::Error::Unopened { key, .. }) => {
                self.problem(describe(&key));
                Ok(None)
            }
            Err(error) => Err(unavailable(error)),
        }
    }
}

/// Checks a data directory that no process has open, without changing it: all files completely, and that
/// items, index entries and expiry entries agree.
///
/// # Errors
/// Fails if another process has it open, it is sealed with another key, or it is too damaged to be opened.
pub fn check_directory(path: &Path, options: &Options) -> Result<CheckReport, OpenError> {
    let _lock = directory::lock_existing(path)?;
    let inspected = directory::inspect(path, options)?;
    let is_outdated = !inspected.format.is_current;
    let verified = verify::verify(path, is_outdated, inspected.store, VerifyScope::None)?;
    let mut damaged_files = CheckReport::default();
    for table in &verified.tables {
        damaged_files.table_files += 1;
        if let Err(damage) = table.verify() {
            damaged_files.problem(damage.to_string());
        }
    }
    let checked = view::open(path, &verified, options, inspected.sealer).and_then(|view| {
        let mut report = check(&view.catalogue, &view.database, &view.keyspaces, None)
            .map_err(|error| OpenError::Storage(error.to_string()))?;
        check_backups(path, &view, &mut report);
        // Versions without a mark did not record which keyspaces are unused.
        if verified.marked.is_some() {
            check_unnamed_keyspaces(&view, &mut report)
                .map_err(|error| OpenError::Storage(error.to_string()))?;
        }
        Ok(report)
    });
    let mut report = match checked {
        // The damaged files explain why the rest cannot be read.
        Err(error) if damaged_files.problems > 0 => {
            let mut report = CheckReport::default();
            report.problem(error.to_string());
            report
        }
        checked => checked?,
    };
    report.table_files = damaged_files.table_files;
    report.add(damaged_files);
    report.set_aside = set_aside::list(path)?;
    report.set_aside.extend(
        verified
            .unnamed
            .iter()
            .map(|folder| folder.display().to_string()),
    );
    Ok(report)
}

/// Reports keyspaces with entries of a lost table or index: the catalogue neither names them nor records that
/// they were deleted.
fn check_unnamed_keyspaces(view: &View, report: &mut CheckReport) -> Result<(), vault::Error> {
    for name in view.database.keyspace_names() {
        if Keyspaces::is_own(&name) || view.catalogue.uses_keyspace(&name) {
            continue;
        }
        let unused = catalogue::unused_key(&name);
        let is_unused = view.keyspaces.catalogue.contains_key(unused)?;
        if !is_unused && view.database.keyspace(&name)?.iter().next().is_some() {
            report.problem(format!(
                "keyspace \"{name}\" has entries of a table or index that the catalogue does not name"
            ));
        }
    }
    Ok(())
}

/// Reads the backups of tables like a restore would.
fn check_backups(path: &Path, view: &View, report: &mut CheckReport) {
    let keys = FileKeys::Store(view.database.sealer());
    for backup in view.catalogue.backups.values() {
        report.backups += 1;
        if let Err(error) = table_backups::verify(path, backup, keys) {
            report.problem(format!(
                "the backup {} of table {}: {error}",
                backup.id, backup.schema.name
            ));
        }
    }
}

/// Distinguishes problems from concurrent writes while an open store is checked.
pub(crate) struct ConcurrentWrites<'a> {
    /// Began before the pages were read.
    pub(crate) copy: &'a TableCopy,
    pub(crate) catalogue: &'a SharedCatalogue,
}

impl ConcurrentWrites<'_> {
    /// Whether the table was altered or deleted since the check began; then its items and entries need not
    /// match the old version of the table.
    fn was_altered(&self, table: &Arc<Table>) -> bool {
        let now = self.catalogue.now();
        now.by_id(table.id())
            .is_none_or(|now| !Arc::ptr_eq(now, table))
    }
}

/// Checks everything. With `writes`, the store may be written during the check; tables that are altered in
/// the meantime are skipped.
pub(crate) fn check(
    catalogue: &Catalogue,
    database: &Database,
    keyspaces: &Keyspaces,
    writes: Option<&ConcurrentWrites<'_>>,
) -> Result<CheckReport, StoreError> {
    let mut report = CheckReport::default();
    let listed = check_pages(keyspaces, database, catalogue, &mut report)?;
    let was_altered = |table: &Arc<Table>| writes.is_some_and(|writes| writes.was_altered(table));
    for table in catalogue.tables() {
        let mut of_table = CheckReport {
            tables: 1,
            ..CheckReport::default()
        };
        let copy = writes.map(|writes| writes.copy);
        check_items(keyspaces, database, table, &listed, copy, &mut of_table)?;
        for index in &table.indexes {
            if index.state == IndexState::Active {
                check_index(database, table, index, &mut of_table)?;
            }
        }
        if !was_altered(table) {
            report.add(of_table);
        }
    }
    walk(database, &keyspaces.expiry, |snapshot, entry| {
        let (key, _) = entry.map_err(unavailable)?;
        report.expiry_entries += 1;
        let found = layout::split_expiry_key(&key);
        let Some((window, table, name)) = found else {
            report.problem("an expiry entry's key cannot be read".to_owned());
            return Ok(());
        };
        // Entries of deleted tables, and entries being cleared, are deleted when they are due.
        let Some(table) = catalogue.by_id(table) else {
            return Ok(());
        };
        if matches!(table.record.expiry_job, Some(ExpiryJob::Clearing { .. })) {
            return Ok(());
        }
        // An item that cannot be decrypted was reported with its table.
        let item_key = layout::key_of_expiry_name(name);
        let Some(stored) = stored_window(snapshot, table, &item_key)? else {
            return Ok(());
        };
        if stored != Some(window) && !was_altered(table) {
            report.problem(format!(
                "table {}: an expiry entry at {window} has no item that expires then",
                table.name()
            ));
        }
        Ok(())
    })?;
    walk(database, &keyspaces.changes, |_, entry| {
        report.changes += 1;
        let entry = report.readable(entry, |_| {
            "a change cannot be decrypted: it was damaged or modified".to_owned()
        })?;
        let Some((key, value)) = entry else {
            return Ok(());
        };
        let table = key
            .first_chunk::<4>()
            .and_then(|id| catalogue.by_id(u32::from_be_bytes(*id)));
        if let Some(table) = table
            && log::decode(&table.key, 0, &value).is_err()
        {
            report.problem(format!("table {}: a change cannot be read", table.name()));
        }
        Ok(())
    })?;
    Ok(report)
}

/// Visits all entries of a keyspace, passing each with its snapshot to `take`.
fn walk(
    database: &Database,
    keyspace: &Keyspace,
    mut take: impl FnMut(
        &Snapshot,
        Result<(UserKey, UserValue), vault::Error>,
    ) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let mut from = Vec::new();
    loop {
        let snapshot = database.snapshot();
        let mut last = None;
        for guard in snapshot
            .range(keyspace, from.clone()..)
            .take(CHUNK_ENTRIES_MAX)
        {
            let entry = guard.into_inner();
            last = match &entry {
                Ok((key, _)) | Err(vault::Error::Unopened { key, .. }) => Some(key.clone()),
                Err(error) => return Err(unavailable(error)),
            };
            take(&snapshot, entry)?;
        }
        match last {
            Some(last) => from = [last.as_ref(), &[0]].concat(),
            None => return Ok(()),
        }
    }
}

/// Reads all pages and what they list. An item that changed later may be deleted or expire at another time;
/// then its listing does not count.
fn check_pages(
    keyspaces: &Keyspaces,
    database: &Database,
    catalogue: &Catalogue,
    report: &mut CheckReport,
) -> Result<Filter, StoreError> {
    let pages = &keyspaces.expiry_pages;
    let mut count = 0;
    walk(database, pages, |_, entry| {
        let entry = report.readable(entry, |_| {
            "a page of expiring items cannot be decrypted: it was damaged or modified".to_owned()
        })?;
        let Some((_, value)) = entry else {
            return Ok(());
        };
        match pages::read_page(&value) {
            Some((_, names)) => count += names.len(),
            None => report.problem("a page of expiring items cannot be read".to_owned()),
        }
        Ok(())
    })?;
    let mut listed = Filter::for_entries(count);
    walk(database, pages, |snapshot, entry| {
        // Unreadable pages have already been reported.
        let Ok((at, value)) = entry else {
            return Ok(());
        };
        let Some(window) = layout::window_of_page(&at) else {
            report.problem("the key of a page of expiring items cannot be read".to_owned());
            return Ok(());
        };
        let Some((table, names)) = pages::read_page(&value) else {
            return Ok(());
        };
        let Some(table) = catalogue.by_id(table) else {
            return Ok(());
        };
        for name in names {
            let item_key = layout::key_of_expiry_name(&name);
            if stored_window(snapshot, table, &item_key)? == Some(Some(window)) {
                report.expiry_entries += 1;
                listed.insert(&layout::expiry_key(window, table.id(), &item_key));
            }
        }
        Ok(())
    })?;
    Ok(listed)
}

/// The window that an item expires in, if it exists and expires; the outer `None` means that it cannot be
/// decrypted.
fn stored_window(
    snapshot: &Snapshot,
    table: &Table,
    item_key: &UserKey,
) -> Result<Option<Option<u64>>, StoreError> {
    let value = match snapshot.get(&table.items, item_key) {
        Err(error) if error.is_damage() => return Ok(None),
        value => value.map_err(unavailable)?,
    };
    let window = value.as_ref().and_then(|value| {
        let record = Record::new(&table.key, item_key, value).ok()?;
        table.expiry_window(&record).ok()?
    });
    Ok(Some(window))
}

fn check_items(
    keyspaces: &Keyspaces,
    database: &Database,
    table: &Table,
    listed: &Filter,
    copy: Option<&TableCopy>,
    report: &mut CheckReport,
) -> Result<(), StoreError> {
    let expiry_is_complete = table.record.expiry_job.is_none();
    walk(database, &table.items, |snapshot, entry| {
        report.items += 1;
        let entry = report.readable(entry, |key| {
            format!(
                "table {}: item {} cannot be decrypted: it was damaged or modified",
                table.name(),
                name_of_key(table, key)
            )
        })?;
        let Some((key, value)) = entry else {
            return Ok(());
        };
        let decoded = Record::new(&table.key, &key, &value)
            .and_then(|record| record.to_item().map(|item| (record, item)));
        let Ok((record, item)) = decoded else {
            report.problem(format!("table {}: an item cannot be read", table.name()));
            return Ok(());
        };
        if item.size() != record.size() {
            report.problem(format!(
                "table {}: item {} has {} bytes according to its record, but really {}",
                table.name(),
                name_of(&record),
                record.size(),
                item.size()
            ));
        }
        for index in &table.indexes {
            if index.state != IndexState::Active {
                continue;
            }
            let Some((entry_key, entry_value)) = index
                .entry(table.ttl_attribute(), &record, &key, &value)
                .map_err(unavailable)?
            else {
                continue;
            };
            let found = match snapshot.get(&index.entries, &entry_key) {
                // It is reported with its index.
                Err(error) if error.is_damage() => continue,
                found => found.map_err(unavailable)?,
            };
            // Entries contain the expiry of their items, which is being changed in all of them.
            let is_current = match &found {
                Some(found) => *found == entry_value || !expiry_is_complete,
                None => false,
            };
            if !is_current {
                report.problem(format!(
                    "table {}: item {} has {} entry in index {}",
                    table.name(),
                    name_of(&record),
                    if found.is_some() { "an outdated" } else { "no" },
                    index.schema.name
                ));
            }
        }
        if expiry_is_complete
            && let Some(window) = table.expiry_window(&record).map_err(unavailable)?
            && let expiry_key = layout::expiry_key(window, table.id(), &key)
            && !listed.may_contain(&expiry_key)
            && !snapshot
                .contains_key(&keyspaces.expiry, &expiry_key)
                .map_err(unavailable)?
            && !has_changed(snapshot, copy, table, &key)?
        {
            report.problem(format!(
                "table {}: item {} is not listed where it expires",
                table.name(),
                name_of(&record)
            ));
        }
        Ok(())
    })
}

/// Whether an item was written after the pages were read; then it is listed in a newer page.
fn has_changed(
    snapshot: &Snapshot,
    copy: Option<&TableCopy>,
    table: &Table,
    key: &UserKey,
) -> Result<bool, StoreError> {
    match copy {
        Some(copy) => copy
            .has_changed(snapshot, table.id(), key)
            .map_err(unavailable),
        None => Ok(false),
    }
}

fn check_index(
    database: &Database,
    table: &Table,
    index: &Index,
    report: &mut CheckReport,
) -> Result<(), StoreError> {
    walk(database, &index.entries, |snapshot, entry| {
        report.index_entries += 1;
        let entry = report.readable(entry, |_| {
            format!(
                "index {} of {}: an entry cannot be decrypted: it was damaged or modified",
                index.schema.name,
                table.name()
            )
        })?;
        let Some((entry_key, value)) = entry else {
            return Ok(());
        };
        let Ok(entry) = Record::of_index(&table.key, &index.schema, &entry_key, &value) else {
            report.problem(format!(
                "index {} of {}: an entry cannot be read",
                index.schema.name,
                table.name()
            ));
            return Ok(());
        };
        if !belongs(snapshot, table, index, &entry, &entry_key)? {
            report.problem(format!(
                "index {} of {}: the entry of {} has no item",
                index.schema.name,
                table.name(),
                name_of(&entry)
            ));
        }
        Ok(())
    })
}

/// Whether the item of an index entry has exactly this entry.
fn belongs(
    snapshot: &Snapshot,
    table: &Table,
    index: &Index,
    entry: &Record<'_>,
    entry_key: &UserKey,
) -> Result<bool, StoreError> {
    let Ok((partition, sort)) = entry.key_values() else {
        return Ok(false);
    };
    let key = layout::item_key(&partition, sort.as_ref());
    let value: Option<UserValue> = match snapshot.get(&table.items, &key) {
        // The item exists, and was reported as undecryptable.
        Err(error) if error.is_damage() => return Ok(true),
        value => value.map_err(unavailable)?,
    };
    let Some(value) = value else {
        return Ok(false);
    };
    let expected = Record::new(&table.key, &key, &value)
        .and_then(|record| index.entry(table.ttl_attribute(), &record, &key, &value))
        .map_err(unavailable)?;
    Ok(expected.is_some_and(|(key, _)| key == *entry_key))
}

fn name_of(record: &Record<'_>) -> String {
    match record.key_item() {
        Ok(key) => serde_json::to_string(&key).unwrap_or_default(),
        Err(_) => "with an unreadable key".to_owned(),
    }
}

/// An item's name if only its key can be read.
fn name_of_key(table: &Table, key: &UserKey) -> String {
    let empty = record::encode(&Item::new(), &table.key);
    match Record::new(&table.key, key, &empty) {
        Ok(record) => name_of(&record),
        Err(_) => "with an unreadable key".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use homeport_item::KeyKind;
    use homeport_item::schema::TableSchema;
    use homeport_store::{Put, Store as _};

    use super::*;
    use crate::engine::{self, Engine};
    use crate::storage::vault::PersistMode;
    use crate::storage::vault::files;

    async fn table(engine: &Engine, name: &str) -> Arc<Table> {
        let schema = TableSchema::new(name, "id", KeyKind::S);
        engine.create_table(schema).await.unwrap();
        let item = Item::new().with("id", "a");
        engine.put(Put::new(name, item)).await.unwrap();
        Arc::clone(engine.shared().catalogue.now().get(name).unwrap())
    }

    #[tokio::test]
    async fn check_reports_items_of_a_lost_table() {
        let directory = tempfile::tempdir().unwrap();
        let engine = Engine::open(directory.path(), Options::for_tests()).unwrap();
        table(&engine, "deleted").await;
        engine.delete_table("deleted").await.unwrap();
        let lost = table(&engine, "lost").await;
        let shared = engine.shared();
        let (key, _) = catalogue::table_entry(&lost.record);
        let mut batch = shared.database.batch();
        batch.remove(&shared.keyspaces.catalogue, key);
        batch.commit(PersistMode::SyncAll).unwrap();
        let name = lost.record.keyspace_name();
        drop((lost, engine));
        let report = check_directory(directory.path(), &Options::for_tests()).unwrap();
        let expected = format!(
            "keyspace \"{name}\" has entries of a table or index that the catalogue does not name"
        );
        assert_eq!(report.descriptions, [expected]);
        assert_eq!(report.problems, 1);
    }

    #[tokio::test]
    async fn check_counts_damaged_files_beyond_the_described() {
        const DAMAGED: usize = DESCRIBED_MAX + 5;
        let directory = tempfile::tempdir().unwrap();
        let engine = Engine::open(directory.path(), Options::for_tests()).unwrap();
        for number in 0..DAMAGED {
            let table = table(&engine, &format!("table-{number}")).await;
            for keyspace in table.keyspaces() {
                engine::flush(engine.shared(), keyspace).unwrap();
            }
        }
        let folders: Vec<_> = engine
            .shared()
            .catalogue
            .now()
            .tables()
            .flat_map(|table| table.keyspaces().map(|keyspace| keyspace.path().unwrap()))
            .collect();
        drop(engine);
        for folder in &folders {
            for table in files::table_files(folder).unwrap() {
                let mut bytes = std::fs::read(&table.path).unwrap();
                bytes[10] ^= 1;
                std::fs::write(&table.path, bytes).unwrap();
            }
        }
        let report = check_directory(directory.path(), &Options::for_tests()).unwrap();
        assert!(report.problems >= DAMAGED as u64, "{}", report.problems);
        assert_eq!(report.descriptions.len(), DESCRIBED_MAX);
    }
}
