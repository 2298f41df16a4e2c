//! Stores readings exactly once, even if they are sent several times or over several connections.

use std::collections::BTreeMap;

use homeport_item::expression::{Condition, Projection};
use homeport_item::{Item, Value};
use homeport_store::{
    CancelReason, Get, InvalidRequest, Put, StoreError, TransactError, Transaction,
};

use super::devices;
use super::reading::Reading;
use super::register::Registration;
use super::types::{BatchId, Capabilities, FriendlyName, HardwareId, NameChange, SensorName};
use super::{MARKER_RETENTION_SECS, Sensors, SensorsError, schema};
use crate::fetch::fetch;
use crate::ids::UuidV4;
use crate::time::{EpochSeconds, UtcSecond};

/// Attempts at a transaction that conflicts with another one.
const ATTEMPTS_MAX: usize = 4;
/// Attributes of a marker.
const MARKER_ATTRIBUTES: usize = 4;

/// The outcome for one reading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IngestOutcome {
    /// It was stored.
    Stored,
    /// It had been stored before.
    Duplicate,
    /// It is accepted but not stored, because its time to live had passed when it arrived.
    Expired,
    Rejected(Rejection),
}

/// Why a reading is rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    #[error("batch_id belongs to a reading of another device")]
    BatchIdConflict,
    #[error("the device is being decommissioned")]
    DeviceBeingDecommissioned,
}

/// The attributes of a device that storing its reading needs. Other attributes are not read, so that a
/// malformed one cannot keep readings out.
pub(super) struct Known {
    friendly_name: Option<FriendlyName>,
    pub(super) last_seen_at: Option<EpochSeconds>,
    pub(super) last_boot_id: Option<UuidV4>,
}

impl Known {
    const ATTRIBUTES: [&str; 4] = [
        schema::HARDWARE_ID,
        schema::FRIENDLY_NAME,
        schema::LAST_SEEN_AT,
        schema::LAST_BOOT_ID,
    ];

    fn from_item(item: &Item) -> Option<(HardwareId, Self)> {
        let text = |name: &str| item.get(name).and_then(Value::as_str);
        let seen: Option<UtcSecond> = text(schema::LAST_SEEN_AT).and_then(|at| at.parse().ok());
        let known = Self {
            friendly_name: text(schema::FRIENDLY_NAME).and_then(|name| name.parse().ok()),
            last_seen_at: seen.map(UtcSecond::seconds),
            last_boot_id: text(schema::LAST_BOOT_ID).and_then(|id| id.parse().ok()),
        };
        Some((text(schema::HARDWARE_ID)?.parse().ok()?, known))
    }
}

/// Arrival times of readings, from their markers.
struct Received {
    at: String,
    marker_expires_at: EpochSeconds,
}

impl Received {
    fn at(now: EpochSeconds) -> Self {
        Self {
            at: UtcSecond::new(now).to_string(),
            marker_expires_at: now.plus_secs(MARKER_RETENTION_SECS),
        }
    }
}

impl Sensors {
    /// Stores independent readings; the outcomes are in the same order.
    ///
    /// # Errors
    /// When the store fails. Readings without an outcome may or may not be stored and can be sent again.
    pub async fn ingest(&self, readings: Vec<Reading>) -> Result<Vec<IngestOutcome>, SensorsError> {
        let devices = self.find_or_register_devices(&readings).await?;
        let named: Vec<Reading> = readings
            .into_iter()
            .map(|reading| {
                let device = devices.get(&reading.hardware_id);
                Reading {
                    friendly_name: device.and_then(|device| device.friendly_name.clone()),
                    ..reading
                }
            })
            .collect();
        let newest_before = self.newest_before_new_boots(&named, &devices).await?;
        let repeats = repeats(&named);
        // Every other device was registered if it was unknown.
        let decommissioned = |reading: &Reading| {
            let is_known = devices.contains_key(&reading.hardware_id);
            let rejection = Rejection::DeviceBeingDecommissioned;
            (!is_known).then_some(IngestOutcome::Rejected(rejection))
        };
        let mut outcomes: Vec<Option<IngestOutcome>> = named.iter().map(decommissioned).collect();
        for _ in 0..ATTEMPTS_MAX {
            let open: Vec<usize> = (0..named.len())
                .filter(|at| outcomes[*at].is_none() && repeats[*at].is_none())
                .collect();
            if open.is_empty() {
                break;
            }
            let received = Received::at(self.now());
            let transactions = open
                .iter()
                .map(|at| self.store_once(&named[*at], &received))
                .collect();
            let answers = self.store.transact_each(transactions).await;
            for (at, answer) in open.into_iter().zip(answers) {
                outcomes[at] = self.outcome_of(&named[at], answer)?;
            }
        }
        for (at, first) in repeats.into_iter().enumerate() {
            // A rejected reading is rejected again the second time.
            outcomes[at] = match first.map(|first| outcomes[first].clone()) {
                Some(Some(IngestOutcome::Rejected(rejection))) => {
                    Some(IngestOutcome::Rejected(rejection))
                }
                Some(Some(_)) => Some(IngestOutcome::Duplicate),
                Some(None) => None,
                None => outcomes[at].take(),
            };
        }
        let outcomes: Option<Vec<_>> = outcomes.into_iter().collect();
        let outcomes = outcomes.ok_or(StoreError::Throttled)?;
        self.update_last_activity(&named, &outcomes, &devices).await;
        self.follow_new_boots(&named, &outcomes, &devices, &newest_before)
            .await;
        Ok(outcomes)
    }

    /// The transaction that stores a reading if its marker is new.
    fn store_once(&self, reading: &Reading, received: &Received) -> Transaction {
        let marker = Item::with_capacity(MARKER_ATTRIBUTES)
            .with(schema::BATCH_ID, &reading.batch_id)
            .with(schema::EXPIRATION_TIME, received.marker_expires_at.0)
            .with(schema::HARDWARE_ID, &reading.hardware_id)
            .with(schema::RECEIVED_AT, received.at.as_str());
        let marker = Put {
            old_on_failure: true,
            ..Put::new(schema::PROCESSED_BATCHES, marker)
                .when(Condition::not_exists(schema::BATCH_ID))
        };
        let item = reading.to_item(self.settings.retention_secs);
        let reading = Put::new(schema::DEVICE_READINGS, item);
        Transaction::new(vec![marker.into(), reading.into()])
    }

    /// The meaning of the store's answer; `None` asks for another attempt.
    fn outcome_of(
        &self,
        reading: &Reading,
        answer: Result<(), TransactError>,
    ) -> Result<Option<IngestOutcome>, SensorsError> {
        let reasons = match answer {
            Ok(()) => return Ok(Some(self.stored(reading))),
            Err(TransactError::Cancelled(reasons)) => reasons,
            Err(TransactError::Store(StoreError::Throttled)) => return Ok(None),
            Err(TransactError::Store(StoreError::Invalid(reason))) => {
                return Err(schema_mismatch(reason));
            }
            Err(TransactError::Store(error)) => return Err(error.into()),
            Err(TransactError::TokenMismatch) => {
                return Err(StoreError::Unavailable("no token was sent".to_owned()).into());
            }
        };
        // Only the marker has a condition, so only its failure means a duplicate.
        Ok(
            match reasons
                .into_iter()
                .find(|reason| *reason != CancelReason::None)
            {
                Some(CancelReason::ConditionFailed { old }) => {
                    let claimed_by = old
                        .as_deref()
                        .and_then(|marker| marker.get(schema::HARDWARE_ID));
                    match claimed_by.and_then(|owner| owner.as_str()) {
                        Some(owner) if owner == reading.hardware_id.as_str() => {
                            Some(IngestOutcome::Duplicate)
                        }
                        Some(_) => Some(IngestOutcome::Rejected(Rejection::BatchIdConflict)),
                        // The marker has disappeared again, so try again.
                        None => None,
                    }
                }
                Some(CancelReason::Invalid(reason)) => return Err(schema_mismatch(reason)),
                _ => None,
            },
        )
    }

    fn stored(&self, reading: &Reading) -> IngestOutcome {
        let expires_at = reading.expires_at(self.settings.retention_secs);
        if expires_at.is_some_and(|at| at <= self.now()) {
            IngestOutcome::Expired
        } else {
            IngestOutcome::Stored
        }
    }

    /// The devices of the readings. A device that never registered is registered from its reading, so that no
    /// reading of a device with a key is lost.
    async fn find_or_register_devices(
        &self,
        readings: &[Reading],
    ) -> Result<BTreeMap<HardwareId, Known>, SensorsError> {
        // The first reading of each device.
        let mut unknown: BTreeMap<&HardwareId, &Reading> = BTreeMap::new();
        for reading in readings {
            unknown.entry(&reading.hardware_id).or_insert(reading);
        }
        let mut known = self.registered_devices(unknown.keys().copied()).await?;
        unknown.retain(|hardware_id, _| !known.contains_key(*hardware_id));
        if unknown.is_empty() {
            return Ok(known);
        }
        for reading in unknown.values() {
            match self.register(registration_from(reading)).await {
                Ok(_) | Err(SensorsError::BeingDecommissioned(_)) => {}
                Err(error) => return Err(error),
            }
        }
        // Another request may have registered and named them in the meantime.
        known.extend(self.registered_devices(unknown.into_keys()).await?);
        Ok(known)
    }

    /// The devices that are registered.
    async fn registered_devices(
        &self,
        hardware_ids: impl ExactSizeIterator<Item = &HardwareId>,
    ) -> Result<BTreeMap<HardwareId, Known>, StoreError> {
        let projection = Projection::new(Known::ATTRIBUTES);
        let mut keys = hardware_ids.map(devices::key);
        let items = if keys.len() == 1
            && let Some(key) = keys.next()
        {
            let mut get = Get::new(schema::DEVICES, key);
            get.projection = Some(projection);
            Vec::from_iter(self.store.get(get).await?)
        } else {
            fetch(&*self.store, schema::DEVICES, keys, Some(projection)).await?
        };
        Ok(items.iter().filter_map(Known::from_item).collect())
    }
}

/// The index of the first identical reading in the request, for each repeated reading.
fn repeats(readings: &[Reading]) -> Vec<Option<usize>> {
    let mut first: BTreeMap<(&BatchId, &HardwareId), usize> = BTreeMap::new();
    let mut repeats = Vec::with_capacity(readings.len());
    for (at, reading) in readings.iter().enumerate() {
        let known = *first
            .entry((&reading.batch_id, &reading.hardware_id))
            .or_insert(at);
        repeats.push((known != at).then_some(known));
    }
    repeats
}

/// A checked reading can always be stored. If the store rejects it, the table has the wrong schema; devices
/// keep their readings until it is repaired.
fn schema_mismatch(reason: InvalidRequest) -> SensorsError {
    let reason = format!("it rejects a reading: {reason}");
    StoreError::Unavailable(reason).into()
}

fn registration_from(reading: &Reading) -> Registration {
    let sensors: Vec<SensorName> = reading.sensor_status.names().cloned().collect();
    let sensors = if sensors.is_empty() {
        reading.sensors.names().cloned().collect()
    } else {
        sensors
    };
    Registration {
        hardware_id: reading.hardware_id.clone(),
        boot_id: reading.boot_id,
        firmware_version: reading.firmware_version.clone(),
        friendly_name: NameChange::Keep,
        capabilities: Capabilities::new(sensors, BTreeMap::new()).unwrap_or_default(),
    }
}
