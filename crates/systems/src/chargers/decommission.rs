//! Names chargers, deletes single events, and removes chargers with all of their data.

use homeport_item::Item;
use homeport_item::expression::{Condition, Path, Update};
use homeport_store::{Action, Delete, Update as UpdateRequest, WriteError};

use super::devices::missing;
use super::event::event_key;
use super::mountain::MountainTime;
use super::state::state_key;
use super::types::{DeviceName, ScId};
use super::{Charger, Chargers, ChargersError, schema};
use crate::removal::{self, DeviceData, DevicePartition};
use crate::sensors::NameChange;

/// The name of the system in removals.
pub(super) const SYSTEM: &str = "chargers";

/// Everything that a charger stores.
pub(crate) const DATA: DeviceData = DeviceData {
    system: SYSTEM,
    partitions: &[
        DevicePartition {
            table: schema::DEVICE_STATE,
            device: schema::DEVICE_ID,
            sort: None,
            companion: None,
        },
        DevicePartition {
            table: schema::EVENTS,
            device: schema::DEVICE_ID,
            sort: Some(schema::TIMESTAMP_MT),
            companion: None,
        },
        DevicePartition {
            table: schema::DAILY_STATS,
            device: schema::DEVICE_ID,
            sort: Some(schema::DATE),
            companion: None,
        },
    ],
};

impl Chargers {
    /// Sets or removes the friendly name of a charger.
    ///
    /// # Errors
    /// When there is no such charger or the store fails.
    pub async fn rename(
        &self,
        name: &DeviceName,
        change: NameChange,
    ) -> Result<Charger, ChargersError> {
        let device_id = self.find(name).await?;
        let update = match change {
            NameChange::Keep => return self.charger(&device_id).await,
            NameChange::Set(name) => Update::new().set(schema::FRIENDLY_NAME, &name),
            NameChange::Remove => Update::new().remove(schema::FRIENDLY_NAME),
        };
        let registration = self.device(&device_id).await?;
        let request = UpdateRequest::new(schema::DEVICES, state_key(&device_id), update)
            .when(is_unchanged(&registration));
        match self.store.update(request).await {
            Ok(_) => self.charger(&device_id).await,
            Err(WriteError::ConditionFailed { .. }) => Err(missing(&device_id)),
            Err(WriteError::Store(error)) => Err(error.into()),
        }
    }

    /// Deletes an event. The statistics of its day are counted again in the background. The state keeps the values that
    /// the event reported. A device that sends the event again stores it again.
    ///
    /// # Errors
    /// When there is no such event or the store fails.
    pub async fn delete_event(
        &self,
        name: &DeviceName,
        timestamp_mt: MountainTime,
    ) -> Result<(), ChargersError> {
        let device_id = self.find(name).await?;
        let delete = Delete::new(schema::EVENTS, event_key(&device_id, timestamp_mt))
            .when(Condition::exists(schema::DEVICE_ID));
        match self.store.delete(delete).await {
            Ok(_) => Ok(()),
            Err(WriteError::ConditionFailed { .. }) => {
                Err(ChargersError::EventMissing(device_id, timestamp_mt))
            }
            Err(WriteError::Store(error)) => Err(error.into()),
        }
    }

    /// Removes a charger with its state, events and statistics. They are invisible at once and deleted in the
    /// background; until then the charger cannot register. Removing it again changes nothing.
    ///
    /// # Errors
    /// When there is no such charger or the store fails.
    pub async fn decommission(&self, name: &DeviceName) -> Result<(), ChargersError> {
        let device_id = self.find(name).await?;
        if self.is_removed(&device_id).await? {
            return Ok(());
        }
        self.charger(&device_id).await?;
        let registration = self.registration(&device_id).await?.unwrap_or_default();
        let key = || state_key(&device_id);
        let actions: Vec<Action> = vec![
            Delete::new(schema::DEVICES, key())
                .when(is_unchanged(&registration))
                .into(),
            Delete::new(schema::DEVICE_STATE, key()).into(),
        ];
        let (id, now) = (device_id.as_str(), self.now_ms());
        let has_begun = removal::begin(&*self.store, SYSTEM, id, actions, now).await?;
        if has_begun || self.is_removed(&device_id).await? {
            Ok(())
        } else {
            Err(missing(&device_id))
        }
    }

    /// Whether a charger is being removed, so that nothing of it may be shown.
    pub(crate) async fn is_removed(&self, device_id: &ScId) -> Result<bool, ChargersError> {
        Ok(removal::is_open(&*self.store, SYSTEM, device_id.as_str()).await?)
    }
}

/// The condition that an SC-ID still belongs to the device whose registration was read.
pub(super) fn is_unchanged(registration: &Item) -> Condition {
    match registration.get(schema::WIRELESS_DEVICE_ID) {
        Some(owner) => Path::new(schema::WIRELESS_DEVICE_ID).equals(owner.clone()),
        None => Condition::not_exists(schema::WIRELESS_DEVICE_ID),
    }
}
