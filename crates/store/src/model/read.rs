//! Reads: one item, a batch, and pages of sorted tables.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use homeport_item::Item;
use homeport_item::expression::{Condition, Projection};
use homeport_item::schema::IndexSchema;

use super::table::{RowPosition, Table, exact_key, key_value};
use super::{Tables, invalid, table};
use crate::{
    BATCH_GET_MAX, BatchGet, BatchGetOutput, Get, PAGE_SIZE_MAX_BYTES, Page, Query, Scan,
    StoreError, TableKeys,
};

pub(super) fn get(tables: &Tables, get: &Get, now_secs: i64) -> Result<Option<Item>, StoreError> {
    let table = table(tables, &get.table)?;
    check_projection(get.projection.as_ref())?;
    let key = exact_key(&table.schema.key, &get.key)?;
    let item = table.get(&key, now_secs);
    Ok(item.map(|item| project(get.projection.as_ref(), item)))
}

pub(super) fn batch(
    tables: &Tables,
    batch: BatchGet,
    now_secs: i64,
) -> Result<BatchGetOutput, StoreError> {
    let count: usize = batch
        .tables
        .iter()
        .map(|table_keys| table_keys.keys.len())
        .sum();
    if count == 0 || count > BATCH_GET_MAX {
        return Err(invalid("a batch must read 1 to 100 items"));
    }
    let mut seen = BTreeSet::new();
    for table_keys in &batch.tables {
        let table = table(tables, &table_keys.table)?;
        check_projection(table_keys.projection.as_ref())?;
        for key in &table_keys.keys {
            let key = exact_key(&table.schema.key, key)?;
            if !seen.insert((table_keys.table.clone(), key)) {
                return Err(invalid("the batch contains a key twice"));
            }
        }
    }
    let mut answer = BatchGetOutput::default();
    let mut bytes = 0;
    for table_keys in batch.tables {
        let table = table(tables, &table_keys.table)?;
        let mut rest = Vec::new();
        for key in table_keys.keys {
            if bytes >= PAGE_SIZE_MAX_BYTES {
                rest.push(key);
                continue;
            }
            let values = exact_key(&table.schema.key, &key)?;
            if let Some(item) = table.get(&values, now_secs) {
                bytes += item.size();
                let item = project(table_keys.projection.as_ref(), item);
                answer.items.push((table_keys.table.clone(), item));
            }
        }
        if !rest.is_empty() {
            answer.unprocessed.push(TableKeys {
                keys: rest,
                ..table_keys
            });
        }
    }
    Ok(answer)
}

pub(super) fn query(tables: &Tables, query: &Query, now_secs: i64) -> Result<Page, StoreError> {
    let table = table(tables, &query.table)?;
    let index = index_of(table, query.index.as_deref(), query.consistent)?;
    let schema = index.map_or(&table.schema.key, |index| &index.key);
    query.key_condition.check(schema).map_err(invalid)?;
    if let Some(filter) = &query.filter
        && filter.paths().iter().any(|path| schema.has(path.name()))
    {
        return Err(invalid("a filter must not contain key attributes"));
    }
    let reading = PageRead {
        table,
        index,
        filter: query.filter.as_ref(),
        projection: query.projection.as_ref(),
        limit: query.limit,
        count_only: query.count_only,
    };
    let start = reading.check_start(query.start.as_ref())?;
    let partition = key_value(&query.key_condition.partition);
    if let Some((outer, _)) = &start
        && outer.first() != partition.as_ref()
    {
        return Err(invalid("the start key is not in the partition"));
    }
    let mut rows = Vec::new();
    for (position, item) in table.rows(index, now_secs) {
        if query.key_condition.matches(item).map_err(invalid)? {
            rows.push((position, item));
        }
    }
    if query.descending {
        rows.reverse();
    }
    if let Some(start) = start {
        rows.retain(|(position, _)| match query.descending {
            false => *position > start,
            true => *position < start,
        });
    }
    reading.page(&rows)
}

pub(super) fn scan(tables: &Tables, scan: &Scan, now_secs: i64) -> Result<Page, StoreError> {
    let table = table(tables, &scan.table)?;
    let index = index_of(table, scan.index.as_deref(), scan.consistent)?;
    if let Some(segment) = scan.segment
        && segment.index >= segment.total
    {
        return Err(invalid("the segment does not exist"));
    }
    let reading = PageRead {
        table,
        index,
        filter: scan.filter.as_ref(),
        projection: scan.projection.as_ref(),
        limit: scan.limit,
        count_only: scan.count_only,
    };
    let start = reading.check_start(scan.start.as_ref())?;
    let mut rows = table.rows(index, now_secs);
    rows.retain(|(position, item)| {
        let after_start = start.as_ref().is_none_or(|start| position > start);
        let in_segment = scan.segment.is_none_or(|segment| {
            let mut hasher = DefaultHasher::new();
            item.get(&table.schema.key.partition.name).hash(&mut hasher);
            hasher.finish() % u64::from(segment.total) == u64::from(segment.index)
        });
        after_start && in_segment
    });
    reading.page(&rows)
}

fn index_of<'a>(
    table: &'a Table,
    name: Option<&str>,
    consistent: bool,
) -> Result<Option<&'a IndexSchema>, StoreError> {
    let index = name.map(|name| table.index(name)).transpose()?;
    match index {
        Some(index) if consistent && !index.local => {
            Err(invalid("a global index does not support consistent reads"))
        }
        index => Ok(index),
    }
}

/// The shared part of queries and scans.
struct PageRead<'a> {
    table: &'a Table,
    index: Option<&'a IndexSchema>,
    filter: Option<&'a Condition>,
    projection: Option<&'a Projection>,
    limit: Option<usize>,
    count_only: bool,
}

impl PageRead<'_> {
    /// Validates the start key, which must have exactly the keys of the table and the index.
    fn check_start(&self, start: Option<&Item>) -> Result<Option<RowPosition>, StoreError> {
        let Some(start) = start else {
            return Ok(None);
        };
        let position = self.table.position(self.index, start);
        if start.iter().any(|(name, _)| !self.is_key(name)) {
            return Err(invalid(
                "the start key contains other attributes than the keys",
            ));
        }
        position
            .map(Some)
            .ok_or_else(|| invalid("the start key is incomplete"))
    }

    fn is_key(&self, name: &str) -> bool {
        self.table.schema.key.has(name) || self.index.is_some_and(|index| index.key.has(name))
    }

    fn page(&self, rows: &[(RowPosition, &Item)]) -> Result<Page, StoreError> {
        self.check()?;
        let mut page = Page::default();
        for (at, (_, item)) in rows.iter().enumerate() {
            let entry = self.entry(item);
            page.scanned += 1;
            page.scanned_bytes += entry.size();
            let matches = match self.filter {
                Some(filter) => filter.matches(&entry).map_err(invalid)?,
                None => true,
            };
            if matches {
                page.count += 1;
                if !self.count_only {
                    page.items.push(project(self.projection, &entry));
                }
            }
            let is_full =
                Some(page.scanned) == self.limit || page.scanned_bytes >= PAGE_SIZE_MAX_BYTES;
            if is_full && at + 1 < rows.len() {
                page.next = Some(keep(item, |name| self.is_key(name)));
                break;
            }
        }
        Ok(page)
    }

    fn check(&self) -> Result<(), StoreError> {
        if self.limit == Some(0) {
            return Err(invalid("a limit must be at least 1"));
        }
        check_projection(self.projection)?;
        if let (Some(index), Some(projection)) = (self.index, self.projection)
            && !index.local
            && projection
                .paths
                .iter()
                .any(|path| !index.projects(&self.table.schema.key, path.name()))
        {
            return Err(invalid("the index does not project the attribute"));
        }
        Ok(())
    }

    /// The attributes of an item that the table or index can return. A local index fetches further
    /// attributes of a projection from its table.
    fn entry(&self, item: &Item) -> Item {
        match self.index {
            Some(index) if !(index.local && self.projection.is_some()) => {
                keep(item, |name| index.projects(&self.table.schema.key, name))
            }
            _ => item.clone(),
        }
    }
}

fn check_projection(projection: Option<&Projection>) -> Result<(), StoreError> {
    projection.map_or(Ok(()), |projection| projection.check().map_err(invalid))
}

fn project(projection: Option<&Projection>, item: &Item) -> Item {
    projection.map_or_else(|| item.clone(), |projection| projection.apply(item))
}

fn keep(item: &Item, wanted: impl Fn(&str) -> bool) -> Item {
    item.iter()
        .filter(|(name, _)| wanted(name))
        .map(|(name, value)| (name, value.clone()))
        .collect()
}
