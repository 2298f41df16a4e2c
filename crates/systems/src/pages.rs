//! Reads a list from a store page by page. Every page is full except the last one.

use homeport_item::Item;
use homeport_item::schema::TableSchema;
use homeport_store::{Query, Scan, Store, StoreError};

use crate::alerts::AlertsError;
use crate::api_keys::ApiKeyError;
use crate::chargers::ChargersError;
use crate::chargers::decoders::DecodersError;
use crate::cursor::{Cursor, CursorError};
use crate::people::PeopleError;
use crate::plain_json;
use crate::records::RecordsError;
use crate::sensors::SensorsError;
use crate::telemetry::TelemetryError;

/// The fewest items that one read of a filtered list requests, because most of them may not match.
const FILTERED_LOOK: usize = 256;

/// Why a page cannot be read.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(crate) enum PageError {
    #[error(transparent)]
    Cursor(#[from] CursorError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

macro_rules! from_page_error {
    ($($error:ty),+) => {$(
        impl From<PageError> for $error {
            fn from(error: PageError) -> Self {
                match error {
                    PageError::Cursor(error) => error.into(),
                    PageError::Store(error) => error.into(),
                }
            }
        }
    )+};
}

from_page_error!(
    AlertsError,
    ApiKeyError,
    ChargersError,
    DecodersError,
    PeopleError,
    RecordsError,
    SensorsError,
    TelemetryError
);

/// A page of a list.
#[derive(Debug, Clone, PartialEq)]
pub struct Page<T> {
    pub items: Vec<T>,
    /// Absent on the last page.
    pub next: Option<Cursor>,
}

impl<T> Default for Page<T> {
    fn default() -> Self {
        Self {
            items: Vec::new(),
            next: None,
        }
    }
}

impl Page<Item> {
    /// Parses the items and leaves out those that cannot be read: an item that another program wrote must not
    /// hide its neighbours.
    pub(crate) fn readable<T, E: std::fmt::Display>(
        self,
        schema: &TableSchema,
        read: impl Fn(&Item) -> Result<T, E>,
    ) -> Page<T> {
        let read = |item| match read(item) {
            Ok(value) => Some(value),
            Err(error) => {
                let key = plain_json::item(&key_of(schema, None, item));
                tracing::warn!(table = schema.name, %key, %error, "left an item out of a list");
                None
            }
        };
        Page {
            items: self.items.iter().filter_map(read).collect(),
            next: self.next,
        }
    }
}

/// Reads up to `limit` items of a query, across as many pages of the store as necessary. `list` names the list
/// in its cursors.
pub(crate) async fn read_page(
    store: &dyn Store,
    schema: &TableSchema,
    mut query: Query,
    list: &str,
    limit: usize,
) -> Result<Page<Item>, PageError> {
    let mut items = Vec::with_capacity(limit.min(128) + 1);
    let mut is_from_cursor = query.start.is_some();
    loop {
        // One more item than requested shows whether this is the last page.
        let wanted = limit + 1 - items.len();
        let look = match query.filter {
            Some(_) => wanted.max(FILTERED_LOOK),
            None => wanted,
        };
        let page = store.query(query.clone().limit(look)).await;
        let page = page.map_err(|error| failed(error, is_from_cursor))?;
        is_from_cursor = false;
        items.extend(page.items);
        query.start = page.next;
        if items.len() > limit || query.start.is_none() {
            break;
        }
    }
    let next = if items.len() > limit {
        items.truncate(limit);
        items
            .last()
            .map(|last| Cursor::new(list, key_of(schema, query.index.as_deref(), last)))
    } else {
        None
    };
    Ok(Page { items, next })
}

/// Reads up to `limit` items of a scan in the same way.
pub(crate) async fn scan_page(
    store: &dyn Store,
    schema: &TableSchema,
    mut scan: Scan,
    list: &str,
    limit: usize,
) -> Result<Page<Item>, PageError> {
    let mut items = Vec::with_capacity(limit.min(128) + 1);
    let mut is_from_cursor = scan.start.is_some();
    loop {
        let wanted = limit + 1 - items.len();
        let page = store.scan(scan.clone().limit(wanted)).await;
        let page = page.map_err(|error| failed(error, is_from_cursor))?;
        is_from_cursor = false;
        items.extend(page.items);
        scan.start = page.next;
        if items.len() > limit || scan.start.is_none() {
            break;
        }
    }
    let has_more = items.len() > limit;
    items.truncate(limit);
    let last = items.last().filter(|_| has_more);
    let next = last.map(|last| Cursor::new(list, key_of(schema, scan.index.as_deref(), last)));
    Ok(Page { items, next })
}

/// Our own requests are valid except for a start key from a client, who can put anything into a cursor.
fn failed(error: StoreError, is_from_cursor: bool) -> PageError {
    match error {
        StoreError::Invalid(_) if is_from_cursor => CursorError.into(),
        error => error.into(),
    }
}

/// The key attributes of an item in a table or index.
fn key_of(schema: &TableSchema, index: Option<&str>, item: &Item) -> Item {
    let index_key = index
        .and_then(|name| schema.index(name))
        .map(|index| &index.key);
    std::iter::once(&schema.key)
        .chain(index_key)
        .flat_map(|key| key.attributes())
        .filter_map(|attribute| {
            let value = item.get(&attribute.name)?;
            Some((attribute.name.clone(), value.clone()))
        })
        .collect()
}
