//! Filling the index for broadcasts: devices that other programs wrote, or that were written before the table had the
//! index, lack the attribute of its key.

use homeport_item::Item;
use homeport_item::expression::{Condition, Path, Projection, Update};
use homeport_store::{Scan, Update as UpdateRequest, WriteError};

use crate::push::measured::store_error;
use crate::push::types::Platform;
use crate::push::{Push, PushError, schema};

/// Items that one step scans.
const SCANNED_AT_ONCE: usize = 500;

impl Push {
    /// Adds the devices of the next part of the table to the index. Returns where to continue; what is in the index
    /// stays as it is, so that starting again repeats nothing.
    pub(in crate::push) async fn fill_index(
        &self,
        after: Option<Item>,
    ) -> Result<Option<Item>, PushError> {
        let platform = || Path::from(schema::PLATFORM);
        let is_unlisted = Condition::not_exists(schema::ACTIVE_PLATFORM)
            .or(Path::from(schema::ACTIVE_PLATFORM).not_equals(platform()));
        let filter = Path::from(schema::IS_ACTIVE)
            .equals(true)
            .and(platform().is_in(Platform::ALL.map(Platform::as_str)))
            .and(is_unlisted);
        let mut scan = Scan::new(self.table())
            .filter(filter)
            .limit(SCANNED_AT_ONCE);
        let keys = [schema::USER_ID, schema::DEVICE_ID, schema::PLATFORM];
        scan.projection = Some(Projection::new(keys));
        scan.start = after;
        let page = self.store.scan(scan).await.map_err(store_error)?;
        for mut key in page.items {
            let Some(found) = key.remove(schema::PLATFORM) else {
                continue;
            };
            let is_unchanged = Path::from(schema::IS_ACTIVE)
                .equals(true)
                .and(platform().equals(found.clone()));
            let update = Update::new().set(schema::ACTIVE_PLATFORM, found);
            let update = UpdateRequest::new(self.table(), key, update).when(is_unchanged);
            match self.store.update(update).await {
                Ok(_) => metrics::counter!("homeport_push_devices_indexed_total").increment(1),
                Err(WriteError::ConditionFailed { .. }) => {}
                Err(WriteError::Store(error)) => return Err(store_error(error)),
            }
        }
        Ok(page.next)
    }
}
