//! Deletes items by key in batches, within a budget, so that removals of any size can be interrupted.

use homeport_store::{BATCH_WRITE_MAX, BatchWrite, Store, StoreError, WriteRequest};

/// Attempts at deletions that the store has not processed.
const ATTEMPTS_MAX: usize = 8;

/// The result of one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Swept {
    /// Deleted items.
    pub items: usize,
    /// Whether nothing was left at the end.
    pub is_finished: bool,
}

/// The number of batches that may still be deleted.
#[derive(Debug)]
pub(crate) struct Budget(pub(crate) usize);

impl Budget {
    pub(crate) fn take(&mut self) -> bool {
        let is_left = self.0 > 0;
        self.0 = self.0.saturating_sub(1);
        is_left
    }
}

/// Deletes items; returns their number and whether all are gone.
///
/// # Errors
/// When the store fails. Deleted items stay deleted.
pub(crate) async fn delete_all(
    store: &dyn Store,
    deletes: Vec<WriteRequest>,
    budget: &mut Budget,
) -> Result<Swept, StoreError> {
    let mut swept = Swept {
        items: 0,
        is_finished: true,
    };
    for batch in deletes.chunks(BATCH_WRITE_MAX) {
        if !budget.take() {
            swept.is_finished = false;
            return Ok(swept);
        }
        let mut writes = batch.to_vec();
        for _ in 0..ATTEMPTS_MAX {
            let answer = store.batch_write(BatchWrite { writes }).await?;
            writes = answer.unprocessed;
            if writes.is_empty() {
                break;
            }
        }
        if !writes.is_empty() {
            return Err(StoreError::Throttled);
        }
        swept.items += batch.len();
    }
    Ok(swept)
}
