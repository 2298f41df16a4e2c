//! Pages of queries and scans.

use std::collections::HashSet;

use aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder;
use aws_sdk_dynamodb::operation::scan::builders::ScanFluentBuilder;
use aws_sdk_dynamodb::types::Select;
use homeport_item::Item;
use homeport_item::expression::Projection;
use homeport_item::schema::{KeySchema, TableSchema};
use homeport_store::{BATCH_GET_MAX, BatchGet, Page, Query, Scan, StoreError, TableKeys};

use crate::connect::Remote;
use crate::convert::expressions::Expressions;
use crate::convert::failure::Failure;
use crate::convert::value::{Attributes, attributes, item};
use crate::expiry::Expiry;
use crate::read::items::shape;
use crate::read::projection::ReadProjection;

/// Maximum number of DynamoDB reads for one of our pages. More than one is needed if items have
/// expired; after the last one the page is returned as it is, with a start key for the next.
const READS_PER_PAGE_MAX: usize = 64;
/// Growth factor of the read limit, because expired items are likely to be next to each other.
const READ_LIMIT_GROWTH: usize = 4;
/// Maximum read limit after growth.
const READ_LIMIT_MAX: usize = 256;

/// A query or a scan without its limit and start key.
enum Request {
    Query(QueryFluentBuilder),
    Scan(ScanFluentBuilder),
}

/// One page from DynamoDB.
struct DynamoPage {
    items: Vec<Attributes>,
    count: usize,
    scanned: usize,
    next: Option<Attributes>,
}

/// The result of adding one of DynamoDB's pages.
#[derive(Default)]
struct AddedPage {
    expired: usize,
    /// The last item that fit, if the page was cut.
    cut_after: Option<Item>,
}

/// The parameters of reading a page.
struct PageRead<'a> {
    schema: &'a TableSchema,
    index: Option<&'a str>,
    /// `None` in a table without time to live.
    expiry: Option<Expiry<'a>>,
    /// The index lacks the time-to-live attribute, which must be read from the table.
    is_narrow: bool,
    shape: ReadProjection,
    count_only: bool,
    /// Filtered items are scanned but not returned, so the page cannot be cut by its number of
    /// scanned items.
    is_filtered: bool,
    limit: Option<usize>,
    start: Option<Item>,
}

impl Remote {
    pub(crate) async fn query_page(&self, query: Query) -> Result<Page, StoreError> {
        let schema = self.table(&query.table).await?;
        let index = query.index.as_deref();
        let projection = query.projection.as_ref();
        let reading = PageRead {
            is_filtered: query.filter.is_some(),
            limit: query.limit,
            start: query.start,
            ..self.reading(&schema, index, projection, query.count_only)?
        };
        let mut expressions = Expressions::default();
        let request = self
            .client
            .query()
            .table_name(&query.table)
            .set_index_name(query.index.clone())
            .key_condition_expression(expressions.key_condition(&query.key_condition))
            .set_filter_expression(expressions.condition(query.filter.as_ref()))
            .set_projection_expression(expressions.projection(reading.projection()))
            .set_select(reading.select())
            .scan_index_forward(!query.descending)
            .consistent_read(query.consistent);
        let (names, values) = expressions.placeholders();
        let request = request
            .set_expression_attribute_names(names)
            .set_expression_attribute_values(values);
        self.page(&Request::Query(request), reading).await
    }

    pub(crate) async fn scan_page(&self, scan: Scan) -> Result<Page, StoreError> {
        let schema = self.table(&scan.table).await?;
        let index = scan.index.as_deref();
        let projection = scan.projection.as_ref();
        let reading = PageRead {
            is_filtered: scan.filter.is_some(),
            limit: scan.limit,
            start: scan.start,
            ..self.reading(&schema, index, projection, scan.count_only)?
        };
        let mut expressions = Expressions::default();
        let mut request = self
            .client
            .scan()
            .table_name(&scan.table)
            .set_index_name(scan.index.clone())
            .set_filter_expression(expressions.condition(scan.filter.as_ref()))
            .set_projection_expression(expressions.projection(reading.projection()))
            .set_select(reading.select())
            .consistent_read(scan.consistent);
        if let Some(segment) = scan.segment {
            request = request
                .segment(whole_number(segment.index))
                .total_segments(whole_number(segment.total));
        }
        let (names, values) = expressions.placeholders();
        let request = request
            .set_expression_attribute_names(names)
            .set_expression_attribute_values(values);
        self.page(&Request::Scan(request), reading).await
    }

    fn reading<'a>(
        &self,
        schema: &'a TableSchema,
        index: Option<&'a str>,
        asked: Option<&Projection>,
        count_only: bool,
    ) -> Result<PageRead<'a>, StoreError> {
        let expiry = Expiry::of(schema, self.clock.now_secs());
        let carried = |expiry: Expiry<'_>| {
            let index = index.and_then(|name| schema.index(name));
            index.is_none_or(|index| index.projects(&schema.key, expiry.attribute))
        };
        let is_narrow = expiry.is_some_and(|expiry| !carried(expiry));
        // A count needs no attributes except the expiry time.
        let nothing = Projection::default();
        let asked = if count_only { Some(&nothing) } else { asked };
        let shape = match expiry {
            // The keys give the start key after a cut, and identify the item of an index entry.
            Some(expiry) => {
                shape(asked, None)?;
                let of_index = index.and_then(|name| schema.index(name));
                let keys = std::iter::once(&schema.key).chain(of_index.map(|index| &index.key));
                let mut needs: Vec<_> = keys
                    .flat_map(KeySchema::attributes)
                    .map(|key| key.name.as_str())
                    .collect();
                if !is_narrow {
                    needs.push(expiry.attribute);
                }
                ReadProjection::new(asked, &needs)
            }
            None => shape(asked, None)?,
        };
        Ok(PageRead {
            schema,
            index,
            expiry,
            is_narrow,
            shape,
            count_only,
            is_filtered: false,
            limit: None,
            start: None,
        })
    }

    /// Reads until the page is full or the data ends, because expired items leave room.
    async fn page(&self, request: &Request, reading: PageRead<'_>) -> Result<Page, StoreError> {
        let mut page = Page::default();
        let mut start = reading.start.clone().map(attributes);
        let mut read_limit_min = 0;
        for _ in 0..READS_PER_PAGE_MAX {
            let room = reading.limit.map(|limit| limit - page.scanned.min(limit));
            let read_limit = room.map(|room| room.max(read_limit_min));
            let raw = request
                .send(read_limit, start.take())
                .await
                .map_err(|failure| {
                    if matches!(failure, Failure::NotFound) {
                        self.forget(&reading.schema.name);
                    }
                    failure.of_index(&reading.schema.name, reading.index)
                })?;
            let scanned = raw.scanned;
            start.clone_from(&raw.next);
            let added = self.add(&mut page, raw, &reading).await?;
            if let Some(last) = added.cut_after {
                start = Some(attributes(last));
                break;
            }
            let is_full = reading.limit.is_some_and(|limit| page.scanned >= limit);
            // A page that ends before its limit was cut by its size.
            let ended_at_limit = read_limit.is_some_and(|read_limit| scanned >= read_limit);
            // Unless the read asked for more than fits and none of it is visible.
            let has_nothing = page.scanned == 0 && read_limit > room;
            if start.is_none() || added.expired == 0 || is_full || !(ended_at_limit || has_nothing)
            {
                break;
            }
            if !reading.is_filtered {
                read_limit_min = added
                    .expired
                    .saturating_mul(READ_LIMIT_GROWTH)
                    .min(READ_LIMIT_MAX);
            }
        }
        page.next = start.map(item).transpose()?;
        Ok(page)
    }

    /// Adds the visible items of one of DynamoDB's pages, as far as they fit.
    async fn add(
        &self,
        page: &mut Page,
        raw: DynamoPage,
        reading: &PageRead<'_>,
    ) -> Result<AddedPage, StoreError> {
        let Some(expiry) = reading.expiry else {
            page.scanned += raw.scanned;
            page.count += raw.count;
            for found in raw.items {
                let found = item(found)?;
                page.scanned_bytes += found.size();
                page.items.push(found);
            }
            return Ok(AddedPage::default());
        };
        let found: Vec<_> = raw.items.into_iter().map(item).collect::<Result<_, _>>()?;
        let all = found.len();
        let mut visible: Vec<_> = if reading.is_narrow {
            self.unexpired_in_table(found, reading.schema, expiry)
                .await?
        } else {
            found
                .into_iter()
                .filter_map(|item| expiry.visible(item))
                .collect()
        };
        let mut added = AddedPage {
            expired: all - visible.len(),
            cut_after: None,
        };
        let mut scanned = raw.scanned - added.expired.min(raw.scanned);
        let room = reading.limit.map(|limit| limit - page.scanned.min(limit));
        if let Some(room) = room
            && visible.len() > room
        {
            visible.truncate(room);
            scanned = room;
            added.cut_after = visible.last().map(|last| reading.position_of(last));
        }
        page.scanned += scanned;
        page.count += visible.len();
        for item in visible {
            page.scanned_bytes += item.size();
            if !reading.count_only {
                page.items.push(reading.shape.restore(item));
            }
        }
        Ok(added)
    }

    /// Filters index entries by the expiry of their items in the table.
    async fn unexpired_in_table(
        &self,
        entries: Vec<Item>,
        schema: &TableSchema,
        expiry: Expiry<'_>,
    ) -> Result<Vec<Item>, StoreError> {
        let mut alive = HashSet::new();
        for some in entries.chunks(BATCH_GET_MAX) {
            let mut names: Vec<&str> = vec![expiry.attribute];
            names.extend(schema.key.attributes().map(|key| key.name.as_str()));
            names.dedup();
            let keys = TableKeys {
                table: schema.name.clone(),
                keys: some.iter().map(|entry| key_of(schema, entry)).collect(),
                projection: Some(Projection::new(names)),
                consistent: true,
            };
            // Excludes expired items, as every read does.
            let tables = vec![keys];
            let answer = self.get_batch(BatchGet { tables }).await?;
            if !answer.unprocessed.is_empty() {
                return Err(StoreError::Throttled);
            }
            let found = answer.items.iter();
            alive.extend(found.map(|(_, item)| key_of(schema, item)));
        }
        let is_alive = |entry: &Item| alive.contains(&key_of(schema, entry));
        Ok(entries.into_iter().filter(is_alive).collect())
    }
}

impl PageRead<'_> {
    /// The start key after an item: its table keys and index keys.
    fn position_of(&self, item: &Item) -> Item {
        let mut position = key_of(self.schema, item);
        let index = self.index.and_then(|name| self.schema.index(name));
        for key in index.iter().flat_map(|index| index.key.attributes()) {
            if let Some(value) = item.get(&key.name) {
                position.insert(key.name.clone(), value.clone());
            }
        }
        position
    }

    /// The projection to request from DynamoDB.
    fn projection(&self) -> Option<&Projection> {
        let projection = self.shape.projection.as_ref();
        projection.filter(|_| self.select().is_none())
    }

    /// DynamoDB can count if no item can have expired.
    fn select(&self) -> Option<Select> {
        (self.count_only && self.expiry.is_none()).then_some(Select::Count)
    }
}

impl Request {
    async fn send(
        &self,
        limit: Option<usize>,
        start: Option<Attributes>,
    ) -> Result<DynamoPage, Failure> {
        let limit = limit.map(whole_number);
        let count = |count: i32| usize::try_from(count).unwrap_or(0);
        Ok(match self {
            Self::Query(query) => {
                let query = query
                    .clone()
                    .set_limit(limit)
                    .set_exclusive_start_key(start);
                let answer = query.send().await?;
                DynamoPage {
                    count: count(answer.count),
                    scanned: count(answer.scanned_count),
                    next: answer.last_evaluated_key,
                    items: answer.items.unwrap_or_default(),
                }
            }
            Self::Scan(scan) => {
                let scan = scan.clone().set_limit(limit).set_exclusive_start_key(start);
                let answer = scan.send().await?;
                DynamoPage {
                    count: count(answer.count),
                    scanned: count(answer.scanned_count),
                    next: answer.last_evaluated_key,
                    items: answer.items.unwrap_or_default(),
                }
            }
        })
    }
}

/// The table key of an item or of an index entry.
pub(crate) fn key_of(schema: &TableSchema, item: &Item) -> Item {
    schema
        .key
        .attributes()
        .filter_map(|key| Some((key.name.as_str(), item.get(&key.name)?.clone())))
        .collect()
}

/// DynamoDB's numbers have 32 bits; larger ones are equivalent to the maximum.
fn whole_number(number: impl TryInto<i32>) -> i32 {
    number.try_into().unwrap_or(i32::MAX)
}
