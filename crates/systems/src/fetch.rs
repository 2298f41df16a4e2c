//! Reading many items of a table by their keys.

use homeport_item::Item;
use homeport_item::expression::Projection;
use homeport_store::{BATCH_GET_MAX, BatchGet, Store, StoreError, TableKeys};

/// How often in a row a store may read nothing of what it is asked for.
const BARREN_MAX: usize = 8;

/// The items that are there, whole and as the newest write left them, in no promised order. Each key may
/// be asked for once only.
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
            // Large items do not all fit into one answer.
            barren = if count(&open) < asked { 0 } else { barren + 1 };
        }
    }
    Ok(found)
}

fn count(tables: &[TableKeys]) -> usize {
    tables.iter().map(|table| table.keys.len()).sum()
}
