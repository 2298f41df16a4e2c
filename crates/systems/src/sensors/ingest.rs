//! Storing readings, each once, however often and over however many connections it is sent.

use std::collections::{BTreeMap, BTreeSet};

use homeport_item::expression::{Condition, Path, Projection, Update};
use homeport_item::{Item, Value};
use homeport_store::{
    CancelReason, Get, Put, StoreError, TransactError, Transaction, Update as UpdateRequest,
};

use super::devices;
use super::reading::Reading;
use super::register::Registration;
use super::types::{BatchId, Capabilities, FriendlyName, HardwareId, NameChange, SensorName};
use super::{MARKER_RETENTION_SECS, Sensors, SensorsError, schema};
use crate::fetch::fetch;
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
}

/// What storing a reading takes of its device. What else its item says does not matter here, so that
/// nothing in it can keep readings out.
struct Known {
    friendly_name: Option<FriendlyName>,
    last_seen_at: Option<EpochSeconds>,
}

impl Known {
    const ATTRIBUTES: [&str; 3] = [
        schema::HARDWARE_ID,
        schema::FRIENDLY_NAME,
        schema::LAST_SEEN_AT,
    ];

    fn from_item(item: &Item) -> Option<(HardwareId, Self)> {
        let text = |name: &str| item.get(name).and_then(Value::as_str);
        let seen: Option<UtcSecond> = text(schema::LAST_SEEN_AT).and_then(|at| at.parse().ok());
        let known = Self {
            friendly_name: text(schema::FRIENDLY_NAME).and_then(|name| name.parse().ok()),
            last_seen_at: seen.map(UtcSecond::seconds),
        };
        Some((text(schema::HARDWARE_ID)?.parse().ok()?, known))
    }
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
            Err(TransactError::Store(StoreError::Invalid(reason))) => return Err(refused(reason)),
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
                Some(CancelReason::Invalid(reason)) => return Err(refused(reason)),
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
    ) -> Result<BTreeMap<HardwareId, Known>, SensorsError> {
        // The first reading of each.
        let mut unknown: BTreeMap<&HardwareId, &Reading> = BTreeMap::new();
        for reading in readings {
            unknown.entry(&reading.hardware_id).or_insert(reading);
        }
        let mut known = self.known(unknown.keys().copied()).await?;
        unknown.retain(|hardware_id, _| !known.contains_key(*hardware_id));
        if unknown.is_empty() {
            return Ok(known);
        }
        for reading in unknown.values() {
            self.register(registration_from(reading)).await?;
        }
        // Whoever else registered them meanwhile may have named them.
        known.extend(self.known(unknown.into_keys()).await?);
        Ok(known)
    }

    /// Those devices that are registered.
    async fn known(
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

    /// Moves the time of last activity on, at most once in the set interval and never back. A
    /// failure here does not undo what is stored, and the next reading tries again.
    async fn note_activity(
        &self,
        readings: &[Reading],
        outcomes: &[IngestOutcome],
        devices: &BTreeMap<HardwareId, Known>,
    ) {
        let now = self.now();
        let is_due = |device: &Known| {
            let every_secs = self.settings.last_seen_every_secs;
            let due = device.last_seen_at.map(|seen| seen.plus_secs(every_secs));
            due.is_none_or(|due| now >= due)
        };
        let active: BTreeSet<&HardwareId> = readings
            .iter()
            .zip(outcomes)
            .filter(|(_, outcome)| !matches!(outcome, IngestOutcome::Rejected(_)))
            .map(|(reading, _)| &reading.hardware_id)
            .filter(|hardware_id| devices.get(*hardware_id).is_some_and(is_due))
            .collect();
        if active.is_empty() {
            return;
        }
        let moves = active
            .iter()
            .map(|hardware_id| Transaction::new(vec![self.seen_at(now, hardware_id).into()]));
        let answers = self.store.transact_each(moves.collect()).await;
        for (hardware_id, answer) in active.into_iter().zip(answers) {
            // One that is cancelled was seen later, or is being moved on by another request.
            if let Err(TransactError::Store(error)) = answer {
                tracing::warn!(%hardware_id, %error, "cannot note a device's activity");
            }
        }
    }

    fn seen_at(&self, now: EpochSeconds, hardware_id: &HardwareId) -> UpdateRequest {
        let seen = UtcSecond::new(now).to_string();
        let update = Update::new()
            .set(schema::LAST_SEEN_AT, seen.as_str())
            .set(schema::GSI1SK, seen);
        // Other requests may have found it due as well.
        let due_since = UtcSecond::new(now.plus_secs(-self.settings.last_seen_every_secs));
        let is_due = Path::new(schema::LAST_SEEN_AT).at_most(due_since.to_string());
        UpdateRequest::new(schema::DEVICES, devices::key(hardware_id), update).when(is_due)
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

/// A reading that has been checked can be stored. Where the store says otherwise, its table is not as it
/// should be: devices keep their readings until it is.
fn refused(reason: String) -> SensorsError {
    let reason = format!("it refuses a reading: {reason}");
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
