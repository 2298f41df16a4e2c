//! Deletes single readings, and devices with all of their data.

use homeport_item::expression::Condition;
use homeport_item::{Item, Value};
use homeport_store::{Delete, WriteError};

use super::reading::ts_batch;
use super::types::{BatchId, HardwareId};
use super::{Sensors, SensorsError, devices, schema};
use crate::removal::{self, DeviceData, DevicePartition};
use crate::time::EpochMillis;

/// The name of the system in removals.
pub(super) const SYSTEM: &str = "sensors";

/// Everything that a sensor stores.
pub(crate) const DATA: DeviceData = DeviceData {
    system: SYSTEM,
    partitions: &[DevicePartition {
        table: schema::DEVICE_READINGS,
        device: schema::HARDWARE_ID,
        sort: Some(schema::TS_BATCH),
        companion: Some(marker_of),
    }],
};

/// The marker of a reading, so that a device that registers again may send it again.
fn marker_of(reading: &Item) -> Option<(&'static str, Item)> {
    let key = reading.get(schema::TS_BATCH).and_then(Value::as_str)?;
    let (_, batch_id) = key.split_once('#')?;
    let marker = Item::new().with(schema::BATCH_ID, batch_id);
    Some((schema::PROCESSED_BATCHES, marker))
}

impl Sensors {
    /// Deletes a reading. Its marker stays, so that a repetition counts as a duplicate.
    ///
    /// # Errors
    /// When there is no such reading or the store fails.
    pub async fn delete_reading(
        &self,
        hardware_id: &HardwareId,
        timestamp: EpochMillis,
        batch_id: &BatchId,
    ) -> Result<(), SensorsError> {
        let key = devices::key(hardware_id)
            .with(schema::TS_BATCH, ts_batch(timestamp, batch_id.as_str()));
        let delete =
            Delete::new(schema::DEVICE_READINGS, key).when(Condition::exists(schema::HARDWARE_ID));
        match self.store.delete(delete).await {
            Ok(_) => Ok(()),
            Err(WriteError::ConditionFailed { .. }) => Err(SensorsError::ReadingMissing),
            Err(WriteError::Store(error)) => Err(error.into()),
        }
    }

    /// Removes a device with its readings. They are invisible at once and deleted in the background; until then the
    /// device cannot register. Removing it again changes nothing.
    ///
    /// # Errors
    /// When there is no such device or the store fails.
    pub async fn decommission(&self, hardware_id: &HardwareId) -> Result<(), SensorsError> {
        let registration = Delete::new(schema::DEVICES, devices::key(hardware_id))
            .when(Condition::exists(schema::HARDWARE_ID));
        let (id, now) = (hardware_id.as_str(), EpochMillis(self.clock.now_ms()));
        let actions = vec![registration.into()];
        let has_begun = removal::begin(&*self.store, SYSTEM, id, actions, now).await?;
        if has_begun || self.is_removed(hardware_id).await? {
            Ok(())
        } else {
            Err(SensorsError::DeviceMissing(hardware_id.clone()))
        }
    }

    /// Whether a device is being removed, so that nothing of it may be shown.
    pub(crate) async fn is_removed(&self, hardware_id: &HardwareId) -> Result<bool, SensorsError> {
        Ok(removal::is_open(&*self.store, SYSTEM, hardware_id.as_str()).await?)
    }
}
