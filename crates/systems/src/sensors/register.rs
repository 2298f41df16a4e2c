//! Registers a device: the first time creates it, later times update it. It keeps its confirmation id even when
//! registrations race.

use homeport_item::Item;
use homeport_item::expression::{Condition, Path, Update};
use homeport_store::{
    CancelReason, Put, ReturnValues, StoreError, TransactError, Transaction,
    Update as UpdateRequest, WriteError,
};

use super::decommission::SYSTEM;
use super::devices::Device;
use super::schema;
use super::types::{Capabilities, FirmwareVersion, HardwareId, NameChange};
use super::{Sensors, SensorsError};
use crate::ids::UuidV4;
use crate::removal;
use crate::time::UtcSecond;

/// Attempts at a registration while other requests change the device.
const ATTEMPTS_MAX: usize = 4;

/// The registration that a device sends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registration {
    pub hardware_id: HardwareId,
    pub boot_id: UuidV4,
    pub firmware_version: FirmwareVersion,
    pub friendly_name: NameChange,
    pub capabilities: Capabilities,
}

/// The answer to a registration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registered {
    pub hardware_id: HardwareId,
    pub confirmation_id: UuidV4,
    pub registered_at: UtcSecond,
    /// Whether this was the first registration.
    pub is_new: bool,
}

/// The outcome of creating a registration.
enum Created {
    Yes,
    Exists(Option<Box<Item>>),
    /// Another request is changing it.
    Busy,
}

impl Sensors {
    /// Registers a device, for the first time or again.
    ///
    /// # Errors
    /// When the device is being decommissioned or the store fails.
    pub async fn register(&self, registration: Registration) -> Result<Registered, SensorsError> {
        for _ in 0..ATTEMPTS_MAX {
            let device = self.new_device(&registration);
            let known = match self.create(&device).await? {
                Created::Yes => return Ok(registered(&device, true)),
                Created::Exists(known) => known,
                Created::Busy => continue,
            };
            match self.update_device(&registration, known.as_deref()).await {
                Ok(Some(item)) => return Ok(registered(&Device::from_item(&item)?, false)),
                // The device was removed in the meantime, or a server with a fast clock has seen it: try again.
                Ok(None) | Err(WriteError::ConditionFailed { .. }) => {}
                Err(WriteError::Store(error)) => return Err(error.into()),
            }
        }
        Err(StoreError::Throttled.into())
    }

    /// Creates the registration, unless there is one or the device is being decommissioned.
    async fn create(&self, device: &Device) -> Result<Created, SensorsError> {
        let put = Put {
            old_on_failure: true,
            ..Put::new(schema::DEVICES, device.to_item())
                .when(Condition::not_exists(schema::HARDWARE_ID))
        };
        let none_open = removal::none_open(SYSTEM, device.hardware_id.as_str());
        let transaction = Transaction::new(vec![put.into(), none_open]);
        let reasons = match self.store.transact(transaction).await {
            Ok(()) => return Ok(Created::Yes),
            Err(TransactError::Cancelled(reasons)) => reasons,
            Err(TransactError::Store(StoreError::Throttled)) => return Ok(Created::Busy),
            Err(TransactError::Store(error)) => return Err(error.into()),
            Err(TransactError::TokenMismatch) => return Ok(Created::Busy),
        };
        let mut reasons = reasons.into_iter();
        match (reasons.next(), reasons.next()) {
            (Some(CancelReason::ConditionFailed { old }), _) => Ok(Created::Exists(old)),
            (_, Some(CancelReason::ConditionFailed { .. })) => Err(
                SensorsError::BeingDecommissioned(device.hardware_id.clone()),
            ),
            (Some(CancelReason::Invalid(reason)), _) => Err(StoreError::Invalid(reason).into()),
            _ => Ok(Created::Busy),
        }
    }

    fn new_device(&self, registration: &Registration) -> Device {
        let now = self.now_second();
        Device {
            hardware_id: registration.hardware_id.clone(),
            confirmation_id: UuidV4::random(),
            capabilities: registration.capabilities.clone(),
            first_registered_at: now,
            last_seen_at: now,
            last_boot_id: registration.boot_id,
            firmware_version: registration.firmware_version.clone(),
            friendly_name: match &registration.friendly_name {
                NameChange::Set(name) => Some(name.clone()),
                NameChange::Keep | NameChange::Remove => None,
            },
        }
    }

    async fn update_device(
        &self,
        registration: &Registration,
        known: Option<&Item>,
    ) -> Result<Option<Item>, WriteError> {
        // The time of last activity never goes back, even if the clock does.
        let known_seen = known
            .and_then(|item| item.get(schema::LAST_SEEN_AT)?.as_str()?.parse().ok())
            .unwrap_or_else(|| self.now_second());
        let seen = self.now_second().max(known_seen).to_string();
        let update = Update::new()
            .set(schema::LAST_SEEN_AT, seen.as_str())
            .set(schema::GSI1SK, seen.as_str())
            .set(schema::LAST_BOOT_ID, registration.boot_id.to_string())
            .set(schema::FIRMWARE_VERSION, &registration.firmware_version)
            .set(schema::CAPABILITIES, registration.capabilities.to_value());
        let update = match &registration.friendly_name {
            NameChange::Keep => update,
            NameChange::Set(name) => update.set(schema::FRIENDLY_NAME, name),
            NameChange::Remove => update.remove(schema::FRIENDLY_NAME),
        };
        let key = Item::new().with(schema::HARDWARE_ID, &registration.hardware_id);
        let last_seen = Path::new(schema::LAST_SEEN_AT);
        let is_as_read = match known.and_then(|item| item.get(schema::LAST_SEEN_AT)) {
            Some(read) => last_seen.clone().equals(read.clone()),
            None => Condition::not_exists(schema::LAST_SEEN_AT),
        };
        let is_not_later = is_as_read.or(last_seen.at_most(seen));
        let request = UpdateRequest::new(schema::DEVICES, key, update)
            .when(Condition::exists(schema::HARDWARE_ID).and(is_not_later))
            .returning(ReturnValues::AllNew);
        self.store.update(request).await
    }
}

fn registered(device: &Device, is_new: bool) -> Registered {
    Registered {
        hardware_id: device.hardware_id.clone(),
        confirmation_id: device.confirmation_id,
        registered_at: device.first_registered_at,
        is_new,
    }
}
