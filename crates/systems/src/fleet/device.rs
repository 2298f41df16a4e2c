//! The page of one device: identity, state and latest values.

use std::collections::BTreeMap;

use homeport_item::expression::KeyCondition;
use homeport_item::{Item, Value};
use homeport_store::{Get, Query};

use super::directory::DeviceSummary;
use super::gather::{integer, moment, text};
use super::health::Health;
use super::name::{self, DeviceRef, SystemName};
use super::rows::Row;
use super::samples::{samples, unit_of};
use super::{Fleet, FleetError};
use crate::chargers::ScId;
use crate::push::{DeviceId as PhoneId, UserId};
use crate::sensors::{HardwareId, SensorsError};
use crate::telemetry::ThingName;
use crate::time::EpochMillis;
use crate::{chargers, push, records, sensors, telemetry};

/// The newest messages of a thing in which its latest values are searched.
const MESSAGES_LOOKED_AT: usize = 200;
/// Latest values that a page shows.
const LATEST_MAX: usize = 200;

/// A device as its page shows it.
#[derive(Debug, Clone, PartialEq)]
pub struct DeviceView {
    pub summary: DeviceSummary,
    pub health: Health,
    pub identity: Item,
    pub state: Item,
    pub latest: Vec<LatestValue>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct LatestValue {
    pub name: String,
    pub value: Value,
    pub unit: Option<String>,
    pub at: EpochMillis,
}

/// A device without its health.
struct Found {
    summary: DeviceSummary,
    identity: Item,
    state: Item,
    latest: Vec<LatestValue>,
}

impl Fleet {
    /// The page of one device.
    ///
    /// # Errors
    /// When there is no such device, or the store fails.
    pub async fn device(&self, device: &DeviceRef) -> Result<DeviceView, FleetError> {
        let mut found = match device {
            DeviceRef::Sensor(hardware_id) => self.sensor(hardware_id).await?,
            DeviceRef::Charger(id) => self.charger(id).await?,
            DeviceRef::Thing(thing) => self.thing(thing).await?,
            DeviceRef::Recorder { group, device } => self.recorder(*group, *device).await?,
            DeviceRef::Phone { user, device } => self.phone(user, device).await?,
        };
        found.latest.truncate(LATEST_MAX);
        Ok(DeviceView {
            health: self.health(&found.summary),
            summary: found.summary,
            identity: found.identity,
            state: found.state,
            latest: found.latest,
        })
    }

    async fn sensor(&self, hardware_id: &HardwareId) -> Result<Found, FleetError> {
        use sensors::schema;
        let device = self.0.parts.sensors.device(hardware_id).await?;
        let seen_ms = device.last_seen_at.seconds().0.saturating_mul(1000);
        let name = device.friendly_name.as_ref().map(ToString::to_string);
        let mut identity = Item::new()
            .with(schema::HARDWARE_ID, hardware_id)
            .with(schema::FIRMWARE_VERSION, &device.firmware_version)
            .with(schema::CONFIRMATION_ID, device.confirmation_id.to_string())
            .with(schema::CAPABILITIES, device.capabilities.to_value())
            .with(
                schema::FIRST_REGISTERED_AT,
                device.first_registered_at.to_string(),
            );
        if let Some(name) = &name {
            identity.insert(schema::FRIENDLY_NAME, name.as_str());
        }
        let mut state = Item::new()
            .with(schema::LAST_SEEN_AT, device.last_seen_at.to_string())
            .with(schema::LAST_BOOT_ID, device.last_boot_id.to_string());
        let mut latest = Vec::new();
        match self.0.parts.sensors.latest_reading(hardware_id).await {
            Ok(reading) => {
                for (sensor, status) in reading.sensor_status.iter() {
                    state.insert(format!("{sensor}_status"), status.as_str());
                }
                latest.extend(reading.sensors.iter().map(|(sensor, value)| LatestValue {
                    name: sensor.to_string(),
                    unit: unit_of(sensor.as_str()).map(str::to_owned),
                    value: Value::N(*value),
                    at: reading.timestamp,
                }));
            }
            Err(SensorsError::NoReadings(_)) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(Found {
            summary: DeviceSummary {
                kind: Some(format!("firmware {}", device.firmware_version)),
                last_seen: Some(EpochMillis(seen_ms)),
                ..DeviceSummary::new(SystemName::Sensors, hardware_id.to_string())
                    .named(name.as_deref())
            },
            identity,
            state,
            latest,
        })
    }

    async fn charger(&self, id: &ScId) -> Result<Found, FleetError> {
        use chargers::schema;
        let charger = self.0.parts.chargers.charger(id).await?;
        let stored = Get::new(
            schema::DEVICE_STATE,
            Item::new().with(schema::DEVICE_ID, id),
        );
        let stored = self.store().get(stored).await?.unwrap_or_default();
        let reported = stored.get(schema::REPORTED_UTC_MS).and_then(Value::as_map);
        let mut latest = Vec::new();
        for (name, at) in reported.into_iter().flatten() {
            let at = at.as_number().and_then(|at| at.to_i64());
            if let (Some(value), Some(at)) = (stored.get(name.as_str()), at) {
                latest.push(LatestValue {
                    name: name.to_string(),
                    unit: unit_of(name.as_str()).map(str::to_owned),
                    value: value.clone(),
                    at: EpochMillis(at),
                });
            }
        }
        Ok(Found {
            summary: DeviceSummary {
                kind: text(&charger.registration, schema::WIRELESS_DEVICE_ID).map(str::to_owned),
                name: text(&charger.registration, schema::FRIENDLY_NAME).map(str::to_owned),
                last_seen: integer(&stored, schema::LAST_SEEN_UTC_MS).map(EpochMillis),
                ..DeviceSummary::new(SystemName::Chargers, id.to_string())
            },
            identity: charger.registration,
            state: charger.state,
            latest,
        })
    }

    /// No table lists things. The state of a thing is its newest message of type `status`.
    async fn thing(&self, thing: &ThingName) -> Result<Found, FleetError> {
        use telemetry::schema;
        let condition = KeyCondition::new(schema::THING_NAME, thing);
        let query = Query::new(&self.0.telemetry.name, condition)
            .descending()
            .limit(MESSAGES_LOOKED_AT);
        let page = self.store().query(query).await?;
        let newest = page.items.first().ok_or(FleetError::DeviceMissing)?;
        let last_seen = integer(newest, schema::TIMESTAMP).map(EpochMillis);
        let mut by_type: BTreeMap<&str, &Item> = BTreeMap::new();
        for item in &page.items {
            let kind = text(item, schema::MESSAGE_TYPE).unwrap_or_default();
            by_type.entry(kind).or_insert(item);
        }
        let state = by_type.get("status").map(|item| (*item).clone());
        let mut latest: BTreeMap<String, LatestValue> = BTreeMap::new();
        for item in by_type.values() {
            let at = integer(item, schema::TIMESTAMP).map_or(EpochMillis(0), EpochMillis);
            let row = Row::new(at, (*item).clone());
            samples(SystemName::Telemetry, &row, &mut |sample| {
                let value = LatestValue {
                    name: sample.name.to_owned(),
                    value: sample.value.clone(),
                    unit: sample.unit().map(str::to_owned),
                    at,
                };
                let known = latest.get(sample.name);
                if known.is_none_or(|known| known.at < at) {
                    latest.insert(sample.name.to_owned(), value);
                }
            });
        }
        Ok(Found {
            summary: DeviceSummary {
                last_seen,
                ..DeviceSummary::new(SystemName::Telemetry, thing.to_string())
            },
            identity: Item::new().with(schema::THING_NAME, thing),
            state: state.unwrap_or_default(),
            latest: latest.into_values().collect(),
        })
    }

    async fn recorder(
        &self,
        group: records::GroupId,
        device: records::DeviceId,
    ) -> Result<Found, FleetError> {
        use records::schema;
        let records = &self.0.parts.records;
        let ids = self.record_ids().await?.ok_or(FleetError::DeviceMissing)?;
        let known = records.device(group, device).await?;
        let group_name = records.group(group).await?.name;
        let journals = self.journals(group, device).await?;
        let page = records
            .latest(group, Some(device), records::PAGE_MAX, None)
            .await?;
        let latest = page.records.iter().map(|record| LatestValue {
            name: journals
                .get(&record.journal.0)
                .cloned()
                .unwrap_or_else(|| ids.journal(record.journal)),
            value: (&record.value).into(),
            unit: Some(record.unit.as_str().to_owned()),
            at: EpochMillis(record.timestamp.millis()),
        });
        let latest: Vec<LatestValue> = latest.collect();
        let mut identity = Item::new()
            .with(schema::NAME, &known.name)
            .with("group", group_name.as_str())
            .with("gid", ids.group(group))
            .with("did", ids.device(device));
        if let Some(model) = &known.model {
            identity.insert(schema::MODEL, model);
        }
        let journals = i64::try_from(journals.len()).unwrap_or(i64::MAX);
        Ok(Found {
            summary: DeviceSummary {
                kind: known.model.as_ref().map(|model| model.as_str().to_owned()),
                group: Some(group_name.as_str().to_owned()),
                last_seen: latest.iter().map(|value| value.at).max(),
                ..DeviceSummary::new(
                    SystemName::Records,
                    name::record_device(&ids, group, device),
                )
                .named(Some(known.name.as_str()))
            },
            identity,
            state: Item::new().with("journals", journals),
            latest,
        })
    }

    /// The names of a device's journals by number. Journals that share a name also show their ids.
    pub(super) async fn journals(
        &self,
        group: records::GroupId,
        device: records::DeviceId,
    ) -> Result<BTreeMap<u64, String>, FleetError> {
        let records = &self.0.parts.records;
        let ids = self.record_ids().await?.ok_or(FleetError::DeviceMissing)?;
        let page = records
            .list_journals(group, Some(device), records::PAGE_MAX, None)
            .await?;
        let is_shared = |name: &str| {
            let same = page
                .journals
                .iter()
                .filter(|other| other.name.as_str() == name);
            same.count() > 1
        };
        let journals = page.journals.iter().map(|journal| {
            let name = journal.name.as_str();
            let shown = match is_shared(name) {
                true => format!("{name} ({})", ids.journal(journal.id)),
                false => name.to_owned(),
            };
            (journal.id.0, shown)
        });
        Ok(journals.collect())
    }

    /// The push token is left out: it is a credential.
    async fn phone(&self, user: &UserId, device: &PhoneId) -> Result<Found, FleetError> {
        use push::schema;
        let phone = self.0.parts.push.device(user, device).await?;
        let mut state = Item::new()
            .with(schema::IS_ACTIVE, Value::Bool(phone.is_active))
            .with(schema::UPDATED_AT, phone.updated_at.as_str());
        if let Some(expires_at) = phone.expires_at {
            state.insert(schema::EXPIRES_AT, expires_at.0);
        }
        Ok(Found {
            summary: DeviceSummary {
                kind: Some(phone.platform.clone()),
                group: Some(user.as_str().to_owned()),
                last_seen: moment(&phone.updated_at),
                is_active: phone.is_active,
                ..DeviceSummary::new(SystemName::Push, name::join(user.as_str(), device.as_str()))
            },
            identity: Item::new()
                .with(schema::USER_ID, user)
                .with(schema::DEVICE_ID, device)
                .with(schema::PLATFORM, phone.platform.as_str())
                .with(schema::REGISTERED_AT, phone.registered_at.as_str()),
            state,
            latest: Vec::new(),
        })
    }
}
