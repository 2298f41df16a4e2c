//! Reads readings: the latest one, and ranges in either direction.

use homeport_item::expression::{KeyCondition, SortCondition};
use homeport_store::Query;

use super::reading::{Reading, ts_batch};
use super::types::HardwareId;
use super::{PAGE_MAX, Sensors, SensorsError, schema};
use crate::cursor::Cursor;
use crate::pages::{self, Page};
use crate::time::{EpochMillis, Order};

/// The largest time that 13 digits can hold.
const LAST_MS: i64 = 9_999_999_999_999;

/// Which readings are wanted; both ends are included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReadingRange {
    pub from: Option<EpochMillis>,
    pub to: Option<EpochMillis>,
    pub order: Order,
}

impl Sensors {
    /// The newest reading of a device.
    ///
    /// # Errors
    /// When there are no readings or the store fails.
    pub async fn latest_reading(&self, hardware_id: &HardwareId) -> Result<Reading, SensorsError> {
        let newest_first = ReadingRange::default();
        let mut page = self.readings(hardware_id, newest_first, 1, None).await?;
        if page.items.is_empty() && page.next.is_some() {
            // Another program wrote the newest item.
            let cursor = page.next;
            page = self
                .readings(hardware_id, newest_first, PAGE_MAX, cursor)
                .await?;
        }
        let newest = page.items.into_iter().next();
        newest.ok_or_else(|| SensorsError::NoReadings(hardware_id.clone()))
    }

    /// Readings of a device in a range of time.
    ///
    /// # Errors
    /// When the cursor belongs to another list or the store fails.
    pub async fn readings(
        &self,
        hardware_id: &HardwareId,
        range: ReadingRange,
        limit: usize,
        cursor: Option<Cursor>,
    ) -> Result<Page<Reading>, SensorsError> {
        let from = range.from.unwrap_or(EpochMillis(0)).0.clamp(0, LAST_MS);
        let to = range.to.unwrap_or(EpochMillis(LAST_MS)).0.clamp(0, LAST_MS);
        if from > to || self.is_removed(hardware_id).await? {
            return Ok(Page::default());
        }
        let list = format!(
            "sensors/readings/{hardware_id}/{from}/{to}/{:?}",
            range.order
        );
        let start = cursor.map(|cursor| cursor.start_of(&list)).transpose()?;
        let between = SortCondition::Between(
            ts_batch(EpochMillis(from), "").into(),
            ts_batch(EpochMillis(to), "\u{ffff}").into(),
        );
        let condition = KeyCondition::new(schema::HARDWARE_ID, hardware_id)
            .with_sort(schema::TS_BATCH, between);
        let mut query = Query::new(schema::DEVICE_READINGS, condition).starting_after(start);
        query.descending = range.order == Order::NewestFirst;
        let limit = limit.clamp(1, PAGE_MAX);
        let schema = schema::device_readings();
        let page = pages::read_page(&*self.store, &schema, query, &list, limit).await?;
        Ok(page.readable(&schema, Reading::from_item))
    }
}
