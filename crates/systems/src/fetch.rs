//! Reading many items of a table by their keys.

use homeport_item::Item;
use homeport_item::expression::Projection;
use homeport_store::{BATCH_GET_MAX, BatchGet, Store, StoreError, TableKeys};

/// Attempts in a row that may return no item before the read fails.
const BARREN_MAX: usize = 8;

/// Reads the items that exist, consistently and in any order. The keys must be distinct.
pub(crate) async fn fetch(
    store: &dyn Store,
    table: &str,
    keys: impl IntoIterator<Item = Item>,
    projection: Option<Projection>,
) -> Result<Vec<Item>, StoreError> {
    let keys: Vec<Item> = keys.into_iter().collect();
    let mut found = Vec::with_capacity(keys.len());
    for chunk in keys.chunks(BATCH_GET_MAX) {
        let mut open = vec![TableKeys {
            table: table.to_owned(),
            keys: chunk.to_vec(),
            projection: projection.clone(),
            consistent: true,
        }];
        let mut barren = 0;
        while !open.is_empty() {
            if barren == BARREN_MAX {
                return Err(StoreError::Throttled);
            }
            let asked = count(&open);
            let answer = store.batch_get(BatchGet { tables: open }).await?;
            found.extend(answer.items.into_iter().map(|(_, item)| item));
            open = answer.unprocessed;
            // Large items do not all fit into one response.
            barren = if count(&open) < asked { 0 } else { barren + 1 };
        }
    }
    Ok(found)
}

fn count(tables: &[TableKeys]) -> usize {
    tables.iter().map(|table| table.keys.len()).sum()
}
