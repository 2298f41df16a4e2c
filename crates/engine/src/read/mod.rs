//! Reads: items by key, queries, scans. All reads use a snapshot, so that none sees half a transaction, and
//! take no lock that the committer takes.

use std::ops::Bound;
use std::sync::Arc;

use homeport_item::Item;
use homeport_item::Value;
use homeport_item::binary::DecodeError;
use homeport_item::expression::{Condition, KeyCondition, Projection, SortCondition};
use homeport_item::key;
use homeport_item::schema::{IndexProjection, KeyError, KeySchema};
use homeport_store::{
    BATCH_GET_MAX, BatchGet, BatchGetOutput, Get, InvalidRequest, PAGE_SIZE_MAX_BYTES, Page, Query,
    Scan, Segment, StoreError, TRANSACTION_ACTIONS_MAX, TableKeys,
};

use crate::catalogue::table::{Index, Table};
use crate::error::unavailable;
use crate::shared::Shared;
use crate::storage::layout;
use crate::storage::record::{Record, StoredItem};
use crate::storage::vault::{Guard, Keyspace, Snapshot, UserKey, UserValue};

/// The maximum size of all items in one batch get.
const BATCH_GET_SIZE_MAX_BYTES: usize = 16 * 1024 * 1024;
/// The maximum number of segments of a parallel scan.
const SEGMENTS_MAX: u32 = 1_000_000;
/// The number of values of a key's first byte.
const BUCKETS: u64 = 256;

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

    /// Reads a range until it ends or the page is full.
    fn walk(&self, walk: &Walk<'_>) -> Result<StoredPage, StoreError> {
        if walk.limit == Some(0) {
            return Err(StoreError::invalid("a limit must be at least 1"));
        }
        let mut page = StoredPage::default();
        if walk.range.is_empty() {
            return Ok(page);
        }
        let now_secs = self.now_secs();
        let bounds = (walk.range.lower.clone(), walk.range.upper.clone());
        let snapshot = self.database.snapshot();
        let mut entries = snapshot.range(walk.source.keyspace(), bounds);
        // Expired items count towards the page's size, so that many of them cannot keep one call busy for
        // long, but towards nothing that the caller sees.
        let mut page_bytes = 0;
        loop {
            let guard: Option<Guard<'_>> = if walk.descending {
                entries.next_back()
            } else {
                entries.next()
            };
            let Some(guard) = guard else {
                return Ok(page);
            };
            let (key, value) = guard.into_inner().map_err(unavailable)?;
            let mut verdict = walk.examine(&key, &value, now_secs).map_err(unavailable)?;
            if !verdict.expired && walk.may_hide_expiry() {
                let item_key = walk.item_key(&key, &value).map_err(unavailable)?;
                let item = self.get_at(&snapshot, walk.source.table(), item_key)?;
                verdict.expired = item.is_none();
                verdict.matches &= item.is_some();
            }
            page_bytes += verdict.size;
            if !verdict.expired {
                page.scanned += 1;
                page.scanned_bytes += verdict.size;
            }
            let is_full = walk.limit.is_some_and(|limit| page.scanned >= limit)
                || page_bytes >= PAGE_SIZE_MAX_BYTES;
            if is_full {
                page.next = Some(
                    walk.source
                        .page_key(&key)
                        .ok_or_else(|| unavailable("a stored key is damaged"))?,
                );
            }
            page.count += usize::from(verdict.matches);
            if walk.needs_items && !verdict.expired {
                let item_key = walk.item_key(&key, &value).map_err(unavailable)?;
                if let Some(item) = self.get_at(&snapshot, walk.source.table(), item_key)? {
                    page.fetched_sizes
                        .push(item.record().map_err(unavailable)?.size());
                    if verdict.matches {
                        page.items.push(item);
                    }
                }
            } else if verdict.matches && !walk.count_only {
                page.items.push(walk.source.stored(key, value));
            }
            if is_full {
                return Ok(page);
            }
        }
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

/// The table or index that a query or scan reads.
enum ReadSource<'a> {
    Table(&'a Table),
    Index(&'a Table, &'a Index),
}

impl<'a> ReadSource<'a> {
    fn of(table: &'a Table, index: Option<&str>, consistent: bool) -> Result<Self, StoreError> {
        let Some(name) = index else {
            return Ok(Self::Table(table));
        };
        let index = table.readable_index(name)?;
        if consistent && !index.schema.local {
            return Err(StoreError::invalid(InvalidRequest::ConsistentRead(
                name.to_owned(),
            )));
        }
        Ok(Self::Index(table, index))
    }

    /// Whether the items themselves must be read for the requested attributes. A local index reads them; a
    /// global index can only return what it carries.
    fn needs_items(
        &self,
        projection: Option<&Projection>,
        attributes: Attributes,
    ) -> Result<bool, StoreError> {
        let Self::Index(table, index) = self else {
            return Ok(false);
        };
        if attributes == Attributes::All && index.schema.projection != IndexProjection::All {
            if index.schema.local {
                return Ok(true);
            }
            return Err(StoreError::invalid(InvalidRequest::AllAttributes(
                index.schema.name.clone(),
            )));
        }
        let Some(projection) = projection else {
            return Ok(false);
        };
        let missing: Vec<_> = projection
            .paths
            .iter()
            .map(|path| path.name())
            .filter(|name| !index.schema.projects(&table.key, name))
            .collect();
        if missing.is_empty() {
            return Ok(false);
        }
        if index.schema.local {
            return Ok(true);
        }
        Err(StoreError::invalid(format!(
            "One or more parameter values were invalid: Global secondary index {} does not project [{}]",
            index.schema.name,
            missing.join(", ")
        )))
    }

    /// A filter must not contain key attributes; those belong in the key condition.
    fn check_query_filter(&self, filter: Option<&Condition>) -> Result<(), StoreError> {
        let paths = filter.map(Condition::paths).unwrap_or_default();
        match paths.iter().find(|path| self.key().has(path.name())) {
            None => Ok(()),
            Some(path) => Err(StoreError::invalid(format!(
                "Filter Expression can only contain non-primary key attributes: Primary key attribute: {}",
                path.name()
            ))),
        }
    }

    fn key(&self) -> &'a KeySchema {
        match self {
            Self::Table(table) => &table.key,
            Self::Index(_, index) => &index.schema.key,
        }
    }

    fn keyspace(&self) -> &'a Keyspace {
        match self {
            Self::Table(table) => &table.items,
            Self::Index(_, index) => &index.entries,
        }
    }

    fn table(&self) -> &'a Table {
        match self {
            Self::Table(table) | Self::Index(table, _) => table,
        }
    }

    fn record<'r>(&self, key: &'r [u8], value: &'r [u8]) -> Result<Record<'r>, DecodeError>
    where
        'a: 'r,
    {
        match self {
            Self::Table(table) => Record::new(&table.key, key, value),
            Self::Index(table, index) => Record::of_index(&table.key, &index.schema, key, value),
        }
    }

    fn stored(&self, key: UserKey, value: UserValue) -> StoredItem {
        let (table, index) = match self {
            Self::Table(table) => (table, None),
            Self::Index(table, index) => (table, Some(Arc::clone(&index.schema))),
        };
        StoredItem {
            schema: Arc::clone(&table.key),
            index,
            key,
            value,
        }
    }

    /// The attributes that identify the end of a page.
    fn page_key(&self, key: &[u8]) -> Option<Item> {
        match self {
            Self::Index(table, index) => index.page_key(&table.key, key),
            Self::Table(table) => {
                let mut bytes = key.get(1..)?;
                let (partition, sort) = layout::take_key_values(&table.key, &mut bytes).ok()?;
                let mut item = Item::new().with(table.key.partition.name.as_str(), partition);
                if let (Some(attribute), Some(sort)) = (&table.key.sort, sort) {
                    item.insert(attribute.name.as_str(), sort);
                }
                Some(item)
            }
        }
    }

    /// The stored key of the position that a page ended at.
    fn start_key(&self, start: &Item) -> Result<UserKey, StoreError> {
        let malformed = |error: KeyError| match error {
            KeyError::DoesNotMatchSchema | KeyError::Missing(_) => {
                StoreError::invalid("The provided starting key is invalid")
            }
            other => StoreError::invalid(other),
        };
        match self {
            Self::Table(table) => {
                let (partition, sort) = table.key.exact_values(start).map_err(malformed)?;
                Ok(layout::item_key(partition, sort))
            }
            Self::Index(table, index) => {
                let names = [&index.schema.key, table.key.as_ref()];
                let known = |name: &str| names.iter().any(|schema| schema.has(name));
                if start.iter().any(|(name, _)| !known(name)) {
                    return Err(malformed(KeyError::DoesNotMatchSchema));
                }
                let (partition, sort) = table.key.values(start).map_err(malformed)?;
                let item_key = layout::item_key(partition, sort);
                let key = &index.schema.key;
                let values = key.all_values(start).map_err(malformed)?;
                Ok(layout::index_entry_key(key, values, &item_key))
            }
        }
    }
}

struct Walk<'a> {
    source: ReadSource<'a>,
    range: KeyRange,
    descending: bool,
    filter: Option<&'a Condition>,
    limit: Option<usize>,
    count_only: bool,
    /// Return the full items instead of the attributes that the index carries.
    needs_items: bool,
}

struct EntryVerdict {
    size: usize,
    expired: bool,
    matches: bool,
}

impl Walk<'_> {
    fn examine(
        &self,
        key: &[u8],
        value: &[u8],
        now_secs: i64,
    ) -> Result<EntryVerdict, DecodeError> {
        let record = self.source.record(key, value)?;
        let expired = self.is_expired(&record, now_secs)?;
        let matches = match self.filter {
            _ if expired => false,
            Some(filter) => filter.matches(&record)?,
            None => true,
        };
        Ok(EntryVerdict {
            size: record.size(),
            expired,
            matches,
        })
    }

    /// Whether entries may lack the expiry of their items: a TTL attribute was just set, and the entries of
    /// an index that does not carry it are still being rewritten.
    fn may_hide_expiry(&self) -> bool {
        match &self.source {
            ReadSource::Table(_) => false,
            ReadSource::Index(table, index) => {
                table.record.expiry_job.is_some() && index.schema.projection != IndexProjection::All
            }
        }
    }

    /// The key of the item that an entry belongs to.
    fn item_key(&self, key: &[u8], value: &[u8]) -> Result<UserKey, DecodeError> {
        let (partition, sort) = self.source.record(key, value)?.key_values()?;
        Ok(layout::item_key(&partition, sort.as_ref()))
    }

    fn is_expired(&self, record: &Record<'_>, now_secs: i64) -> Result<bool, DecodeError> {
        self.source.table().is_expired(record, now_secs)
    }
}

/// A range of stored keys.
#[derive(Debug, Clone)]
struct KeyRange {
    lower: Bound<UserKey>,
    upper: Bound<UserKey>,
}

impl KeyRange {
    fn all() -> Self {
        Self {
            lower: Bound::Unbounded,
            upper: Bound::Unbounded,
        }
    }

    fn starting_with(prefix: Vec<u8>) -> Self {
        Self {
            upper: end_of(&prefix),
            lower: Bound::Included(prefix.into()),
        }
    }

    fn contains(&self, key: &UserKey) -> bool {
        let above = match &self.lower {
            Bound::Included(lower) => key >= lower,
            Bound::Excluded(lower) => key > lower,
            Bound::Unbounded => true,
        };
        let below = match &self.upper {
            Bound::Included(upper) => key <= upper,
            Bound::Excluded(upper) => key < upper,
            Bound::Unbounded => true,
        };
        above && below
    }

    fn is_empty(&self) -> bool {
        match (&self.lower, &self.upper) {
            (Bound::Included(lower), Bound::Included(upper)) => lower > upper,
            (
                Bound::Included(lower) | Bound::Excluded(lower),
                Bound::Included(upper) | Bound::Excluded(upper),
            ) => lower >= upper,
            _ => false,
        }
    }
}

fn end_of(prefix: &[u8]) -> Bound<UserKey> {
    match layout::prefix_end(prefix) {
        Some(end) => Bound::Excluded(end.into()),
        None => Bound::Unbounded,
    }
}

/// The stored keys that match a key condition: always one range.
fn key_range(schema: &KeySchema, condition: &KeyCondition) -> Result<KeyRange, StoreError> {
    condition.check(schema).map_err(StoreError::invalid)?;
    let (partition_rest, leading) = condition.rest.split_at(schema.partition_rest.len());
    let further = partition_rest.iter().map(|(_, value)| value);
    let mut partition =
        layout::partition_prefix(std::iter::once(&condition.partition).chain(further));
    layout::encode_all(leading.iter().map(|(_, value)| value), &mut partition);
    let Some((_, sort)) = &condition.sort else {
        return Ok(KeyRange::starting_with(partition));
    };
    let at = |value: &Value| -> Vec<u8> {
        let mut bytes = partition.clone();
        let is_key = key::encode(value, &mut bytes);
        debug_assert!(is_key, "the condition was just checked");
        bytes
    };
    let from_start = Bound::Included(UserKey::from(partition.as_slice()));
    let to_end = end_of(&partition);
    Ok(match sort {
        SortCondition::Equal(value) => KeyRange::starting_with(at(value)),
        SortCondition::Less(value) => KeyRange {
            lower: from_start,
            upper: Bound::Excluded(at(value).into()),
        },
        SortCondition::LessOrEqual(value) => KeyRange {
            lower: from_start,
            upper: end_of(&at(value)),
        },
        SortCondition::Greater(value) => KeyRange {
            lower: after_prefix(&at(value)),
            upper: to_end,
        },
        SortCondition::GreaterOrEqual(value) => KeyRange {
            lower: Bound::Included(at(value).into()),
            upper: to_end,
        },
        SortCondition::Between(from, to) => KeyRange {
            lower: Bound::Included(at(from).into()),
            upper: end_of(&at(to)),
        },
        SortCondition::BeginsWith(prefix) => {
            let bytes: &[u8] = match prefix {
                Value::S(text) => text.as_bytes(),
                Value::B(bytes) => bytes,
                _ => {
                    return Err(StoreError::invalid(
                        "begins_with needs a string or a binary",
                    ));
                }
            };
            let mut start = partition.clone();
            key::encode_prefix(bytes, &mut start);
            KeyRange::starting_with(start)
        }
    })
}

/// The position after every key that starts with `prefix`.
fn after_prefix(prefix: &[u8]) -> Bound<UserKey> {
    match layout::prefix_end(prefix) {
        Some(end) => Bound::Included(end.into()),
        None => Bound::Excluded(prefix.into()),
    }
}

/// A segment is a range of buckets; with more segments than buckets, some are empty.
fn segment_range(segment: Segment) -> Result<KeyRange, StoreError> {
    if segment.total == 0 || segment.total > SEGMENTS_MAX || segment.index >= segment.total {
        return Err(StoreError::invalid(format!(
            "segment {} of {} does not exist",
            segment.index, segment.total
        )));
    }
    let first = |index: u32| u64::from(index) * BUCKETS / u64::from(segment.total);
    let bound = |bucket: u64| UserKey::from([bucket.min(BUCKETS - 1) as u8].as_slice());
    let (from, to) = (first(segment.index), first(segment.index + 1));
    Ok(KeyRange {
        lower: Bound::Included(bound(from)),
        upper: if to >= BUCKETS {
            Bound::Unbounded
        } else {
            Bound::Excluded(bound(to))
        },
    })
}
