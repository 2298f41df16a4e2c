//! Reads: items by key, queries, scans. All reads use a snapshot, so that none sees half a transaction, and
//! take no lock that the committer takes.

mod range;
mod source;
mod walk;

use std::ops::Bound;
use std::sync::Arc;

use homeport_item::Item;
use homeport_item::binary::DecodeError;
use homeport_item::expression::Projection;
use homeport_store::{
    BATCH_GET_MAX, BatchGet, BatchGetOutput, Get, Page, Query, Scan, StoreError,
    TRANSACTION_ACTIONS_MAX, TableKeys,
};

use crate::catalogue::table::Table;
use crate::error::unavailable;
use crate::shared::Shared;
use crate::storage::record::{Record, StoredItem};
use crate::storage::vault::{Snapshot, UserKey};
use range::{KeyRange, key_range, segment_range};
use source::ReadSource;
use walk::Walk;

/// The maximum size of all items in one batch get.
const BATCH_GET_SIZE_MAX_BYTES: usize = 16 * 1024 * 1024;

/// The attributes that the items of a page have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Attributes {
    /// Those that the table or the index carries; for a local index, all that the projection names.
    #[default]
    Projected,
    /// All attributes, including those that a local index does not carry. They are read from the same
    /// snapshot.
    All,
}

/// A page whose items are decoded on demand.
#[derive(Debug, Clone, Default)]
pub struct StoredPage {
    pub items: Vec<StoredItem>,
    pub count: usize,
    pub scanned: usize,
    pub scanned_bytes: usize,
    /// The sizes of items that were read from the table because a local index does not carry all requested
    /// attributes. They include items that the filter dropped, which cost the same.
    pub fetched_sizes: Vec<usize>,
    pub next: Option<Item>,
}

impl Shared {
    pub(crate) fn get(&self, request: &Get) -> Result<Option<StoredItem>, StoreError> {
        let table = self.catalogue.table(&request.table)?;
        let key = table.exact_key(&request.key)?;
        self.get_at(&self.database.snapshot(), &table, key)
    }

    fn get_at(
        &self,
        snapshot: &Snapshot,
        table: &Table,
        key: UserKey,
    ) -> Result<Option<StoredItem>, StoreError> {
        let Some(value) = snapshot.get(&table.items, &key).map_err(unavailable)? else {
            return Ok(None);
        };
        let record = Record::new(&table.key, &key, &value).map_err(unavailable)?;
        if table
            .is_expired(&record, self.now_secs())
            .map_err(unavailable)?
        {
            return Ok(None);
        }
        Ok(Some(StoredItem {
            schema: Arc::clone(&table.key),
            index: None,
            key,
            value,
        }))
    }

    pub(crate) fn transact_get(
        &self,
        requests: &[Get],
    ) -> Result<Vec<Option<StoredItem>>, StoreError> {
        if requests.is_empty() || requests.len() > TRANSACTION_ACTIONS_MAX {
            return Err(StoreError::invalid(
                "a transaction must have 1 to 100 actions",
            ));
        }
        let catalogue = self.catalogue.now();
        let snapshot = self.database.snapshot();
        requests
            .iter()
            .map(|request| {
                let table = catalogue.get(&request.table)?;
                self.get_at(&snapshot, table, table.exact_key(&request.key)?)
            })
            .collect()
    }

    pub(crate) fn batch_get(&self, request: &BatchGet) -> Result<BatchGetOutput, StoreError> {
        let asked: usize = request.tables.iter().map(|table| table.keys.len()).sum();
        if asked == 0 || asked > BATCH_GET_MAX {
            return Err(StoreError::invalid(
                "Too many items requested for the BatchGetItem call",
            ));
        }
        let catalogue = self.catalogue.now();
        let snapshot = self.database.snapshot();
        let mut answer = BatchGetOutput::default();
        let mut bytes = 0;
        for part in &request.tables {
            let table = catalogue.get(&part.table)?;
            let keys = part
                .keys
                .iter()
                .map(|key| table.exact_key(key))
                .collect::<Result<Vec<_>, _>>()?;
            let mut sorted = keys.clone();
            sorted.sort_unstable();
            if sorted.windows(2).any(|pair| pair[0] == pair[1]) {
                return Err(StoreError::invalid(
                    "Provided list of item keys contains duplicates",
                ));
            }
            for (at, key) in keys.into_iter().enumerate() {
                if bytes >= BATCH_GET_SIZE_MAX_BYTES {
                    answer.unprocessed.push(TableKeys {
                        keys: part.keys[at..].to_vec(),
                        ..part.clone()
                    });
                    break;
                }
                if let Some(item) = self.get_at(&snapshot, table, key)? {
                    let record = item.record().map_err(unavailable)?;
                    bytes += record.size();
                    let item = project(&record, part.projection.as_ref()).map_err(unavailable)?;
                    answer.items.push((part.table.clone(), item));
                }
            }
        }
        Ok(answer)
    }

    pub(crate) fn query(
        &self,
        request: &Query,
        attributes: Attributes,
    ) -> Result<StoredPage, StoreError> {
        let table = self.catalogue.table(&request.table)?;
        let source = ReadSource::of(&table, request.index.as_deref(), request.consistent)?;
        let needs_items = source.needs_items(request.projection.as_ref(), attributes)?;
        source.check_query_filter(request.filter.as_ref())?;
        let mut range = key_range(source.key(), &request.key_condition)?;
        if let Some(start) = &request.start {
            let start = source.start_key(start)?;
            if !range.contains(&start) {
                return Err(StoreError::invalid(
                    "The provided starting key is outside query boundaries based on provided conditions",
                ));
            }
            if request.descending {
                range.upper = Bound::Excluded(start);
            } else {
                range.lower = Bound::Excluded(start);
            }
        }
        self.walk(&Walk {
            source,
            range,
            descending: request.descending,
            filter: request.filter.as_ref(),
            limit: request.limit,
            count_only: request.count_only,
            needs_items,
        })
    }

    pub(crate) fn scan(
        &self,
        request: &Scan,
        attributes: Attributes,
    ) -> Result<StoredPage, StoreError> {
        let table = self.catalogue.table(&request.table)?;
        let source = ReadSource::of(&table, request.index.as_deref(), request.consistent)?;
        let needs_items = source.needs_items(request.projection.as_ref(), attributes)?;
        let mut range = match request.segment {
            Some(segment) => segment_range(segment)?,
            None => KeyRange::all(),
        };
        if let Some(start) = &request.start {
            let start = source.start_key(start)?;
            if !range.contains(&start) {
                let (index, total) = request
                    .segment
                    .map_or((0, 1), |segment| (segment.index, segment.total));
                return Err(StoreError::invalid(format!(
                    "The provided starting key is invalid: Invalid ExclusiveStartKey. Please use ExclusiveStartKey with correct Segment. TotalSegments: {total} Segment: {index}"
                )));
            }
            range.lower = Bound::Excluded(start);
        }
        self.walk(&Walk {
            source,
            range,
            descending: false,
            filter: request.filter.as_ref(),
            limit: request.limit,
            count_only: request.count_only,
            needs_items,
        })
    }
}

/// Decodes the items of a page.
pub(crate) fn decode_page(
    page: StoredPage,
    projection: Option<&Projection>,
) -> Result<Page, StoreError> {
    let items = page
        .items
        .iter()
        .map(|item| project(&item.record()?, projection))
        .collect::<Result<_, _>>()
        .map_err(unavailable)?;
    Ok(Page {
        items,
        count: page.count,
        scanned: page.scanned,
        scanned_bytes: page.scanned_bytes,
        next: page.next,
    })
}

/// Applies a projection to a stored item, decoding only the projected part if possible.
pub(crate) fn project(
    record: &Record<'_>,
    projection: Option<&Projection>,
) -> Result<Item, DecodeError> {
    match projection {
        Some(projection) => projection.read(record),
        None => record.to_item(),
    }
}
