//! Verifying a store: every item has its index entries and is listed where it expires, every index
//! entry has its item, and every byte can be decoded.
//!
//! Pages list items in the order of their writes, and items are in the order of their keys: that all
//! are listed is looked up in a filter over the pages, which overlooks about one missing in a thousand.

use homeport_item::Item;
use homeport_store::StoreError;

use crate::catalogue::Catalogue;
use crate::changes;
use crate::error::unavailable;
use crate::expiry;
use crate::filter::Filter;
use crate::layout;
use crate::record::{self, Record};
use crate::shared::Shared;
use crate::table::{ExpiryJob, Index, IndexState, Table};
use crate::vault::{self, Snapshot, UserKey, UserValue};

/// Problems that a report describes one by one; more are only counted.
const DESCRIBED_MAX: usize = 100;

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CheckReport {
    pub tables: u64,
    pub items: u64,
    pub index_entries: u64,
    /// How often an item is listed where it expires.
    pub expiry_entries: u64,
    pub changes: u64,
    /// How many problems there are.
    pub problems: u64,
    /// The first problems in words.
    pub descriptions: Vec<String>,
}

impl CheckReport {
    fn problem(&mut self, description: String) {
        self.problems += 1;
        if self.descriptions.len() < DESCRIBED_MAX {
            self.descriptions.push(description);
        }
    }

    /// What could be read, if it could. A sealed value that does not open is a problem, described by
    /// `describe` with its key; whatever else is wrong with the store ends the check.
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

/// Checks everything as it is at one moment; writes may go on meanwhile.
pub(crate) fn check(shared: &Shared) -> Result<CheckReport, StoreError> {
    let mut report = CheckReport::default();
    // The catalogue first: what it holds is then in the snapshot.
    let catalogue = shared.catalogue.now();
    let snapshot = shared.database.snapshot();
    let listed = check_pages(shared, &snapshot, &catalogue, &mut report)?;
    for table in catalogue.tables() {
        report.tables += 1;
        check_items(shared, &snapshot, table, &listed, &mut report)?;
        for index in &table.indexes {
            if index.state == IndexState::Active {
                check_index(&snapshot, table, index, &mut report)?;
            }
        }
    }
    for guard in snapshot.iter(&shared.keyspaces.expiry) {
        let key = guard.key().map_err(unavailable)?;
        report.expiry_entries += 1;
        let found = layout::split_expiry_key(&key);
        let Some((window, table, name)) = found else {
            report.problem("an expiry entry's key cannot be read".to_owned());
            continue;
        };
        // Entries of tables that are gone, or being cleared, go when they are due.
        let Some(table) = catalogue.by_id(table) else {
            continue;
        };
        if matches!(table.record.expiry_job, Some(ExpiryJob::Clearing { .. })) {
            continue;
        }
        // An item that does not open has been described with its table.
        let item_key = layout::key_of_expiry_name(name);
        let Some(stored) = stored_window(&snapshot, table, &item_key)? else {
            continue;
        };
        if stored != Some(window) {
            report.problem(format!(
                "table {}: an expiry entry at {window} has no item that expires then",
                table.name()
            ));
        }
    }
    for guard in snapshot.iter(&shared.keyspaces.changes) {
        report.changes += 1;
        let entry = report.readable(guard.into_inner(), |_| {
            "a change does not open: it was damaged or changed".to_owned()
        })?;
        let Some((key, value)) = entry else {
            continue;
        };
        let table = key
            .first_chunk::<4>()
            .and_then(|id| catalogue.by_id(u32::from_be_bytes(*id)));
        if let Some(table) = table
            && changes::decode(&table.key, 0, &value).is_err()
        {
            report.problem(format!("table {}: a change cannot be read", table.name()));
        }
    }
    Ok(report)
}

/// Reads all pages, and what they list. An item that has changed since may be gone, or expire at another
/// time: then the page no longer counts for it.
fn check_pages(
    shared: &Shared,
    snapshot: &Snapshot,
    catalogue: &Catalogue,
    report: &mut CheckReport,
) -> Result<Filter, StoreError> {
    let pages = &shared.keyspaces.expiry_pages;
    let mut count = 0;
    for guard in snapshot.iter(pages) {
        let value = report.readable(guard.value(), |_| {
            "a page of items that expire does not open: it was damaged or changed".to_owned()
        })?;
        let Some(value) = value else { continue };
        match expiry::read_page(&value) {
            Some((_, names)) => count += names.len(),
            None => report.problem("a page of items that expire cannot be read".to_owned()),
        }
    }
    let mut listed = Filter::for_entries(count);
    for guard in snapshot.iter(pages) {
        // What cannot be read has been described.
        let Ok((at, value)) = guard.into_inner() else {
            continue;
        };
        let Some(window) = layout::window_of_page(&at) else {
            report.problem("the key of a page of items that expire cannot be read".to_owned());
            continue;
        };
        let Some((table, names)) = expiry::read_page(&value) else {
            continue;
        };
        let Some(table) = catalogue.by_id(table) else {
            continue;
        };
        for name in names {
            let item_key = layout::key_of_expiry_name(&name);
            if stored_window(snapshot, table, &item_key)? == Some(Some(window)) {
                report.expiry_entries += 1;
                listed.insert(&layout::expiry_key(window, table.id(), &item_key));
            }
        }
    }
    Ok(listed)
}

/// The window that an item expires in, if it is there and does; nothing where it does not open.
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
    shared: &Shared,
    snapshot: &Snapshot,
    table: &Table,
    listed: &Filter,
    report: &mut CheckReport,
) -> Result<(), StoreError> {
    let expiry_is_complete = table.record.expiry_job.is_none();
    for guard in snapshot.iter(&table.items) {
        report.items += 1;
        let entry = report.readable(guard.into_inner(), |key| {
            format!(
                "table {}: item {} does not open: it was damaged or changed",
                table.name(),
                name_of_key(table, key)
            )
        })?;
        let Some((key, value)) = entry else {
            continue;
        };
        let decoded = Record::new(&table.key, &key, &value)
            .and_then(|record| record.to_item().map(|item| (record, item)));
        let Ok((record, item)) = decoded else {
            report.problem(format!("table {}: an item cannot be read", table.name()));
            continue;
        };
        if item.size() != record.size() {
            report.problem(format!(
                "table {}: item {} says {} bytes and has {}",
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
                // It is described with its index.
                Err(error) if error.is_damage() => continue,
                found => found.map_err(unavailable)?,
            };
            // Entries say when their item expires, which is being changed in all of them.
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
                .contains_key(&shared.keyspaces.expiry, &expiry_key)
                .map_err(unavailable)?
        {
            report.problem(format!(
                "table {}: item {} is not listed where it expires",
                table.name(),
                name_of(&record)
            ));
        }
    }
    Ok(())
}

fn check_index(
    snapshot: &Snapshot,
    table: &Table,
    index: &Index,
    report: &mut CheckReport,
) -> Result<(), StoreError> {
    for guard in snapshot.iter(&index.entries) {
        report.index_entries += 1;
        let entry = report.readable(guard.into_inner(), |_| {
            format!(
                "index {} of {}: an entry does not open: it was damaged or changed",
                index.schema.name,
                table.name()
            )
        })?;
        let Some((entry_key, value)) = entry else {
            continue;
        };
        let Ok(entry) = Record::of_index(&table.key, &index.schema, &entry_key, &value) else {
            report.problem(format!(
                "index {} of {}: an entry cannot be read",
                index.schema.name,
                table.name()
            ));
            continue;
        };
        if !belongs(snapshot, table, index, &entry, &entry_key)? {
            report.problem(format!(
                "index {} of {}: the entry of {} has no item",
                index.schema.name,
                table.name(),
                name_of(&entry)
            ));
        }
    }
    Ok(())
}

/// Whether the item that an index entry leads to has this very entry.
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
        // Its item is there, and described as what does not open.
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

/// An item's name where its key alone can be read.
fn name_of_key(table: &Table, key: &UserKey) -> String {
    let empty = record::encode(&Item::new(), &table.key);
    match Record::new(&table.key, key, &empty) {
        Ok(record) => name_of(&record),
        Err(_) => "with an unreadable key".to_owned(),
    }
}
