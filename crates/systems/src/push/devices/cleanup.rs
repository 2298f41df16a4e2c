//! The clean-up: deletes devices that were inactive for a long time.

use homeport_item::Value;
use homeport_item::expression::{Condition, Path, Projection};
use homeport_store::{Delete, Scan, WriteError};

use crate::push::measured::store_error;
use crate::push::{Push, PushError, schema};
use crate::time::{EpochMillis, UtcMillis};

const MS_PER_DAY: i64 = 24 * 60 * 60 * 1000;
/// Items in a page of the scan.
const SCANNED_AT_ONCE: usize = 1000;

/// The result of a clean-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CleanedUp {
    /// Inactive devices that were not updated since the cut-off.
    pub found: usize,
    /// Fewer than found in a dry run, or if devices registered again meanwhile.
    pub deleted: usize,
}

impl Push {
    /// Deletes devices with `isActive = false AND updatedAt < cut-off`. Each is deleted on the same
    /// condition, so that a device that registers again meanwhile stays.
    ///
    /// # Errors
    /// When the store fails; running it again continues.
    pub async fn clean_up(
        &self,
        older_than_days: u32,
        dry_run: bool,
    ) -> Result<CleanedUp, PushError> {
        let age_ms = i64::from(older_than_days) * MS_PER_DAY;
        let now_ms = self.removal_clock.now_ms();
        let cutoff = UtcMillis::new(EpochMillis(now_ms.saturating_sub(age_ms)));
        let is_stale = || {
            Path::from(schema::IS_ACTIVE)
                .equals(false)
                .and(Path::from(schema::UPDATED_AT).less_than(cutoff.to_string()))
        };
        let mut scan = Scan::new(self.table())
            .filter(is_stale())
            .limit(SCANNED_AT_ONCE);
        scan.projection = Some(Projection::new([schema::USER_ID, schema::DEVICE_ID]));
        let mut cleaned = CleanedUp::default();
        loop {
            let page = self.store.scan(scan.clone()).await.map_err(store_error)?;
            cleaned.found += page.items.len();
            if !dry_run {
                for key in page.items {
                    cleaned.deleted += usize::from(self.delete_stale(key, is_stale()).await?);
                }
            }
            scan.start = page.next;
            if scan.start.is_none() {
                break;
            }
        }
        metrics::counter!("homeport_push_tokens_cleaned_up_total")
            .increment(u64::try_from(cleaned.deleted).unwrap_or(u64::MAX));
        Ok(cleaned)
    }

    async fn delete_stale(
        &self,
        key: homeport_item::Item,
        is_stale: Condition,
    ) -> Result<bool, PushError> {
        let is_key = [schema::USER_ID, schema::DEVICE_ID]
            .iter()
            .all(|name| key.get(name).and_then(Value::as_str).is_some());
        if !is_key {
            return Err(PushError::Malformed("a key is incomplete".to_owned()));
        }
        match self
            .store
            .delete(Delete::new(self.table(), key).when(is_stale))
            .await
        {
            Ok(_) => Ok(true),
            Err(WriteError::ConditionFailed { .. }) => Ok(false),
            Err(WriteError::Store(error)) => Err(store_error(error)),
        }
    }
}
