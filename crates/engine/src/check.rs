//! Verifying a store: every item has its index entries and its expiry entry, every such entry has
//! its item, and every byte can be decoded.

use fjall::{Readable, Snapshot, UserKey};
use homeport_store::StoreError;

use crate::changes;
use crate::error::unavailable;
use crate::layout;
use crate::record::Record;
use crate::shared::Shared;
use crate::table::{ExpiryJob, Index, IndexState, Table};

/// Problems that a report describes one by one; more are only counted.
const DESCRIBED_MAX: usize = 100;

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CheckReport {
    pub tables: u64,
    pub items: u64,
    pub index_entries: u64,
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
}

/// Checks everything as it is at one moment; writes may go on meanwhile.
pub(crate) fn check(shared: &Shared) -> Result<CheckReport, StoreError> {
    let mut report = CheckReport::default();
    // The catalogue first: what it holds is then in the snapshot.
    let catalogue = shared.catalogue.now();
    let snapshot = shared.database.snapshot();
    for table in catalogue.tables() {
        report.tables += 1;
        check_items(shared, &snapshot, table, &mut report)?;
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
        let Some((window, table, item_key)) = found else {
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
        let value = snapshot.get(&table.items, &item_key).map_err(unavailable)?;
        let stored_expiry = value.as_ref().and_then(|value| {
            let record = Record::new(&table.key, &item_key, value).ok()?;
            record.expires_at(table.ttl_attribute()?).ok()?
        });
        if stored_expiry.map(layout::expiry_window) != Some(window) {
            report.problem(format!(
                "table {}: an expiry entry at {window} has no item that expires then",
                table.name()
            ));
        }
    }
    for guard in snapshot.iter(&shared.keyspaces.changes) {
        let (key, value) = guard.into_inner().map_err(unavailable)?;
        report.changes += 1;
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

fn check_items(
    shared: &Shared,
    snapshot: &Snapshot,
    table: &Table,
    report: &mut CheckReport,
) -> Result<(), StoreError> {
    let expiry_is_complete = table.record.expiry_job.is_none();
    for guard in snapshot.iter(&table.items) {
        let (key, value) = guard.into_inner().map_err(unavailable)?;
        report.items += 1;
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
            let found = snapshot
                .get(&index.entries, &entry_key)
                .map_err(unavailable)?;
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
        if let Some(expiry) = table.expiry_key(&record, &key).map_err(unavailable)?
            && expiry_is_complete
            && !snapshot
                .contains_key(&shared.keyspaces.expiry, &expiry)
                .map_err(unavailable)?
        {
            report.problem(format!(
                "table {}: item {} has no expiry entry",
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
        let (entry_key, value) = guard.into_inner().map_err(unavailable)?;
        report.index_entries += 1;
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
    let Some(value) = snapshot.get(&table.items, &key).map_err(unavailable)? else {
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
