//! Reads pages of old tables and converts their items.

use std::sync::Arc;

use homeport_item::Item;
use homeport_item::schema::KeySchema;
use homeport_store::{Scan, Store, StoreError};
use tokio::task::JoinHandle;

use super::old::{self, Moved};
use super::progress::Source;

/// An item of an old table.
pub(super) struct OldItem {
    /// The key, as its table names it.
    pub(super) key: Item,
    /// The new form, or the reason why it cannot be migrated.
    pub(super) moved: Result<Moved, String>,
}

pub(super) struct OldPage {
    pub(super) items: Vec<OldItem>,
    pub(super) next: Option<Item>,
}

/// A page that is being read while the one before it is written.
pub(super) struct ReadAhead {
    pub(super) source: Source,
    pub(super) start: Option<Item>,
    pub(super) page: JoinHandle<Result<OldPage, StoreError>>,
}

/// Reads one old table.
#[derive(Clone)]
pub(super) struct OldReader {
    pub(super) store: Arc<dyn Store>,
    pub(super) source: Source,
    pub(super) key: KeySchema,
    pub(super) step_items: usize,
}

impl OldReader {
    /// The page after `start`. A missing table is empty.
    pub(super) async fn read(self, start: Option<Item>) -> Result<OldPage, StoreError> {
        let mut scan = Scan::new(self.source.table())
            .limit(self.step_items)
            .starting_after(start);
        scan.consistent = true;
        let page = match self.store.scan(scan).await {
            Err(StoreError::TableNotFound(_)) => {
                return Ok(OldPage {
                    items: Vec::new(),
                    next: None,
                });
            }
            page => page?,
        };
        let items = page.items.into_iter();
        Ok(OldPage {
            items: items.map(|item| self.old_item(item)).collect(),
            next: page.next,
        })
    }

    pub(super) fn old_item(&self, item: Item) -> OldItem {
        let names = [Some(&self.key.partition), self.key.sort.as_ref()];
        let attributes = names.into_iter().flatten();
        let attributes = attributes
            .filter_map(|attribute| {
                let name = attribute.name.as_str();
                Some((name.to_owned(), item.get(name)?.clone()))
            })
            .collect();
        let documented = old::with_documented_key(self.source, item, &self.key);
        OldItem {
            key: attributes,
            moved: old::moved(self.source.table(), &documented),
        }
    }
}
