//! Storing readings, each once, however often and over however many connections it is sent.

use std::collections::{BTreeMap, BTreeSet};

use homeport_item::Item;
use homeport_item::expression::{Condition, Path, Update};
use homeport_store::{
    CancelReason, Put, StoreError, TransactError, Transaction, Update as UpdateRequest, WriteError,
};

use super::devices::{self, Device};
use super::reading::Reading;
use super::register::Registration;
use super::types::{BatchId, Capabilities, HardwareId, NameChange, SensorName};
use super::{MARKER_RETENTION_SECS, Sensors, SensorsError, schema};
use crate::time::{EpochSeconds, UtcSecond};

/// How often a transaction that got in another's way is tried again.
const ATTEMPTS_MAX: usize = 4;
/// Attributes that a marker has.
const MARKER_ATTRIBUTES: usize = 4;

/// What became of one reading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IngestOutcome {
    /// It is stored now.
    Stored,
    /// It was stored before.
    Duplicate,
    /// It is accepted, but was past its time to live when it arrived.
    Expired,
    Rejected(Rejection),
}

/// Why a reading is not stored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    #[error("batch_id belongs to a reading of another device")]
    BatchIdConflict,
    #[error("the store cannot keep it: {0}")]
    Unstorable(String),
}

/// When readings arrived, as their markers tell it.
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
    /// Stores readings that are independent of each other; the outcomes are in their order.
    ///
    /// # Errors
    /// When the store fails; what was not answered may or may not be stored, and can be sent
    /// again.
    pub async fn ingest(&self, readings: Vec<Reading>) -> Result<Vec<IngestOutcome>, SensorsError> {
        let devices = self.devices_of(&readings).await?;
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
        let repeats = repeats(&named);
        let mut outcomes: Vec<Option<IngestOutcome>> = vec![None; named.len()];
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
                outcomes[at] = self.judge(&named[at], answer)?;
            }
        }
        for (at, first) in repeats.into_iter().enumerate() {
            // What was rejected was not stored, the second time no more than the first.
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
        self.note_activity(&named, &outcomes, &devices).await;
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

    /// What the store's answer means; `None` asks for another attempt.
    fn judge(
        &self,
        reading: &Reading,
        answer: Result<(), TransactError>,
    ) -> Result<Option<IngestOutcome>, SensorsError> {
        let reasons = match answer {
            Ok(()) => return Ok(Some(self.stored(reading))),
            Err(TransactError::Cancelled(reasons)) => reasons,
            Err(TransactError::Store(StoreError::Throttled)) => return Ok(None),
            Err(TransactError::Store(StoreError::Invalid(reason))) => {
                return Ok(Some(unstorable(reason)));
            }
            Err(TransactError::Store(error)) => return Err(error.into()),
            Err(TransactError::TokenMismatch) => {
                return Err(StoreError::Unavailable("no token was sent".to_owned()).into());
            }
        };
        // Only the marker carries a condition, and only its failure means a duplicate.
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
                        // A store that cannot show the marker: it is gone again, so try again.
                        None => None,
                    }
                }
                Some(CancelReason::Invalid(reason)) => Some(unstorable(reason)),
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

    /// The devices that the readings are of. One that never registered is registered from its
    /// reading: nothing that a device with a key sends is lost for that.
    async fn devices_of(
        &self,
        readings: &[Reading],
    ) -> Result<BTreeMap<HardwareId, Device>, SensorsError> {
        let mut found = BTreeMap::new();
        for reading in readings {
            if found.contains_key(&reading.hardware_id) {
                continue;
            }
            let device = match self.find_device(&reading.hardware_id).await? {
                Some(device) => device,
                None => {
                    self.register(registration_from(reading)).await?;
                    self.device(&reading.hardware_id).await?
                }
            };
            found.insert(reading.hardware_id.clone(), device);
        }
        Ok(found)
    }

    /// Moves the time of last activity on, at most once in the set interval and never back. A
    /// failure here does not undo what is stored, and the next reading tries again.
    async fn note_activity(
        &self,
        readings: &[Reading],
        outcomes: &[IngestOutcome],
        devices: &BTreeMap<HardwareId, Device>,
    ) {
        let now = self.now();
        let active: BTreeSet<&HardwareId> = readings
            .iter()
            .zip(outcomes)
            .filter(|(_, outcome)| !matches!(outcome, IngestOutcome::Rejected(_)))
            .map(|(reading, _)| &reading.hardware_id)
            .collect();
        for hardware_id in active {
            let Some(device) = devices.get(hardware_id) else {
                continue;
            };
            let due = device
                .last_seen_at
                .seconds()
                .plus_secs(self.settings.last_seen_every_secs);
            if now < due {
                continue;
            }
            if let Err(error) = self.move_last_seen(hardware_id, now).await {
                tracing::warn!(%hardware_id, %error, "cannot note a device's activity");
            }
        }
    }

    async fn move_last_seen(
        &self,
        hardware_id: &HardwareId,
        now: EpochSeconds,
    ) -> Result<(), StoreError> {
        let seen = UtcSecond::new(now).to_string();
        let update = Update::new()
            .set(schema::LAST_SEEN_AT, seen.as_str())
            .set(schema::GSI1SK, seen.as_str());
        let is_later = Path::new(schema::LAST_SEEN_AT).less_than(seen.as_str());
        let request =
            UpdateRequest::new(schema::DEVICES, devices::key(hardware_id), update).when(is_later);
        match self.store.update(request).await {
            Ok(_) | Err(WriteError::ConditionFailed { .. }) => Ok(()),
            Err(WriteError::Store(error)) => Err(error),
        }
    }
}

/// For each reading that stands in the request before, where it first stood.
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

fn unstorable(reason: String) -> IngestOutcome {
    IngestOutcome::Rejected(Rejection::Unstorable(reason))
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
