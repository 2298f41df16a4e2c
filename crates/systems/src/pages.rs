//! Reading a list page by page from a store, so that a page is full or the last one.

use homeport_item::Item;
use homeport_item::schema::TableSchema;
use homeport_store::{Query, Scan, Store, StoreError};

use crate::cursor::Cursor;

/// Items that one look of a filtered list takes in, at least: most of them may not pass.
const FILTERED_LOOK: usize = 256;

/// A page of a list.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ItemPage {
    pub(crate) items: Vec<Item>,
    /// Absent on the last page.
    pub(crate) next: Option<Cursor>,
}

/// Reads up to `limit` items of a query, across as many of the store's own pages as it takes.
/// `list` names the list for its cursors.
pub(crate) async fn read_page(
    store: &dyn Store,
    schema: &TableSchema,
    mut query: Query,
    list: &str,
    limit: usize,
) -> Result<ItemPage, StoreError> {
    let mut items = Vec::with_capacity(limit.min(128) + 1);
    loop {
        // One more than asked for: it tells whether this page is the last one.
        let wanted = limit + 1 - items.len();
        let look = match query.filter {
            Some(_) => wanted.max(FILTERED_LOOK),
            None => wanted,
        };
        let page = store.query(query.clone().limit(look)).await?;
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
    Ok(ItemPage { items, next })
}

/// Reads up to `limit` items of a scan, likewise.
pub(crate) async fn scan_page(
    store: &dyn Store,
    schema: &TableSchema,
    mut scan: Scan,
    list: &str,
    limit: usize,
) -> Result<ItemPage, StoreError> {
    let mut items = Vec::with_capacity(limit.min(128) + 1);
    loop {
        let wanted = limit + 1 - items.len();
        let page = store.scan(scan.clone().limit(wanted)).await?;
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
    Ok(ItemPage { items, next })
}

/// The attributes that say where an item stands in a table or index.
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
