//! Registered sensors: one device, the list by activity, and names.

use homeport_item::expression::{Condition, KeyCondition, Update};
use homeport_item::{Item, Value};
use homeport_store::{Get, Query, ReturnValues, Update as UpdateRequest, WriteError};

use super::types::{Capabilities, FirmwareVersion, FriendlyName, HardwareId, NameChange};
use super::{PAGE_MAX, Sensors, SensorsError, schema};
use crate::cursor::Cursor;
use crate::ids::UuidV4;
use crate::pages::{self, Page};
use crate::time::UtcSecond;

const LIST: &str = "sensors/devices";

/// A registered device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    pub hardware_id: HardwareId,
    pub confirmation_id: UuidV4,
    pub capabilities: Capabilities,
    pub first_registered_at: UtcSecond,
    pub last_seen_at: UtcSecond,
    pub last_boot_id: UuidV4,
    pub firmware_version: FirmwareVersion,
    pub friendly_name: Option<FriendlyName>,
}

impl Device {
    pub(super) fn to_item(&self) -> Item {
        let mut item = Item::new()
            .with(schema::HARDWARE_ID, &self.hardware_id)
            .with(schema::CONFIRMATION_ID, self.confirmation_id.to_string())
            .with(schema::CAPABILITIES, self.capabilities.to_value())
            .with(
                schema::FIRST_REGISTERED_AT,
                self.first_registered_at.to_string(),
            )
            .with(schema::LAST_SEEN_AT, self.last_seen_at.to_string())
            .with(schema::LAST_BOOT_ID, self.last_boot_id.to_string())
            .with(schema::FIRMWARE_VERSION, &self.firmware_version)
            .with(schema::GSI1PK, schema::DEVICES_PARTITION)
            .with(schema::GSI1SK, self.last_seen_at.to_string());
        if let Some(name) = &self.friendly_name {
            item.insert(schema::FRIENDLY_NAME, name);
        }
        item
    }

    pub(super) fn from_item(item: &Item) -> Result<Self, SensorsError> {
        fn parse<T: std::str::FromStr<Err: std::fmt::Display>>(
            item: &Item,
            name: &'static str,
        ) -> Result<T, SensorsError> {
            let malformed = |reason: String| SensorsError::Malformed {
                table: schema::DEVICES,
                reason,
            };
            item.get(name)
                .and_then(Value::as_str)
                .ok_or_else(|| malformed(format!("{name} is missing or no string")))?
                .parse()
                .map_err(|error| malformed(format!("{name}: {error}")))
        }
        Ok(Self {
            hardware_id: parse(item, schema::HARDWARE_ID)?,
            confirmation_id: parse(item, schema::CONFIRMATION_ID)?,
            capabilities: item
                .get(schema::CAPABILITIES)
                .map(Capabilities::from_value)
                .unwrap_or_default(),
            first_registered_at: parse(item, schema::FIRST_REGISTERED_AT)?,
            last_seen_at: parse(item, schema::LAST_SEEN_AT)?,
            last_boot_id: parse(item, schema::LAST_BOOT_ID)?,
            firmware_version: parse(item, schema::FIRMWARE_VERSION)?,
            friendly_name: match item.get(schema::FRIENDLY_NAME) {
                Some(_) => Some(parse(item, schema::FRIENDLY_NAME)?),
                None => None,
            },
        })
    }
}

impl Sensors {
    /// Lists devices, most recently active first.
    ///
    /// # Errors
    /// When the cursor belongs to another list or the store fails.
    pub async fn list_devices(
        &self,
        limit: usize,
        cursor: Option<Cursor>,
    ) -> Result<Page<Device>, SensorsError> {
        let condition = KeyCondition::new(schema::GSI1PK, schema::DEVICES_PARTITION);
        let start = cursor.map(|cursor| cursor.start_of(LIST)).transpose()?;
        let query = Query::new(schema::DEVICES, condition)
            .on_index(schema::ACTIVITY_INDEX)
            .descending()
            .starting_after(start);
        let limit = limit.clamp(1, PAGE_MAX);
        let schema = schema::devices();
        let page = pages::read_page(&*self.store, &schema, query, LIST, limit).await?;
        Ok(page.readable(&schema, Device::from_item))
    }

    /// One device.
    ///
    /// # Errors
    /// When there is no such device or the store fails.
    pub async fn device(&self, hardware_id: &HardwareId) -> Result<Device, SensorsError> {
        let request = Get::new(schema::DEVICES, key(hardware_id));
        match self.store.get(request).await? {
            Some(item) => Device::from_item(&item),
            None => Err(SensorsError::DeviceMissing(hardware_id.clone())),
        }
    }

    /// Sets or removes the name of a device.
    ///
    /// # Errors
    /// When there is no such device or the store fails.
    pub async fn rename_device(
        &self,
        hardware_id: &HardwareId,
        name: NameChange,
    ) -> Result<Device, SensorsError> {
        let update = match name {
            NameChange::Keep => return self.device(hardware_id).await,
            NameChange::Set(name) => Update::new().set(schema::FRIENDLY_NAME, &name),
            NameChange::Remove => Update::new().remove(schema::FRIENDLY_NAME),
        };
        let request = UpdateRequest::new(schema::DEVICES, key(hardware_id), update)
            .when(Condition::exists(schema::HARDWARE_ID))
            .returning(ReturnValues::AllNew);
        match self.store.update(request).await {
            Ok(Some(item)) => Device::from_item(&item),
            Ok(None) | Err(WriteError::ConditionFailed { .. }) => {
                Err(SensorsError::DeviceMissing(hardware_id.clone()))
            }
            Err(WriteError::Store(error)) => Err(error.into()),
        }
    }
}

pub(super) fn key(hardware_id: &HardwareId) -> Item {
    Item::new().with(schema::HARDWARE_ID, hardware_id)
}
