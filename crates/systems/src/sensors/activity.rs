//! What a device's registration takes from its data: the time of last activity, and the boot with its firmware.
//! A failure here does not undo stored readings; the next reading tries again.

use std::collections::{BTreeMap, BTreeSet};

use homeport_item::expression::{Condition, Path, Update};
use homeport_store::{TransactError, Transaction, Update as UpdateRequest, WriteError};

use super::ingest::{IngestOutcome, Known};
use super::reading::Reading;
use super::types::HardwareId;
use super::{Sensors, SensorsError, devices, schema};
use crate::ids::UuidV4;
use crate::time::{EpochMillis, EpochSeconds, UtcSecond};

/// The boot and the time of a reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BootAt {
    boot_id: UuidV4,
    at: EpochMillis,
}

impl BootAt {
    fn of(reading: &Reading) -> Self {
        Self {
            boot_id: reading.boot_id,
            at: reading.timestamp,
        }
    }
}

impl Sensors {
    /// Updates the time of last activity, at most once in the set interval and never backwards. A failure does
    /// not undo stored readings; the next reading tries again.
    pub(super) async fn update_last_activity(
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
            // A cancelled write means that the device was seen later, or that another request updates it.
            if let Err(TransactError::Store(error)) = answer {
                tracing::warn!(%hardware_id, %error, "updating a device's last activity failed");
            }
        }
    }

    fn seen_at(&self, now: EpochSeconds, hardware_id: &HardwareId) -> UpdateRequest {
        let seen = UtcSecond::new(now).to_string();
        let update = Update::new()
            .set(schema::LAST_SEEN_AT, seen.as_str())
            .set(schema::GSI1SK, seen);
        // Other requests may also have found the update due.
        let due_since = UtcSecond::new(now.plus_secs(-self.settings.last_seen_every_secs));
        let is_due = Path::new(schema::LAST_SEEN_AT).at_most(due_since.to_string());
        UpdateRequest::new(schema::DEVICES, devices::key(hardware_id), update).when(is_due)
    }

    /// The newest stored reading of each device with a reading of another boot than its last one.
    pub(super) async fn newest_before_new_boots(
        &self,
        readings: &[Reading],
        devices: &BTreeMap<HardwareId, Known>,
    ) -> Result<BTreeMap<HardwareId, BootAt>, SensorsError> {
        let booted: BTreeSet<&HardwareId> = readings
            .iter()
            .filter(|reading| {
                let device = devices.get(&reading.hardware_id);
                device.is_some_and(|device| device.last_boot_id != Some(reading.boot_id))
            })
            .map(|reading| &reading.hardware_id)
            .collect();
        let mut newest = BTreeMap::new();
        for hardware_id in booted {
            match self.latest_reading(hardware_id).await {
                Ok(reading) => drop(newest.insert(hardware_id.clone(), BootAt::of(&reading))),
                Err(SensorsError::NoReadings(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(newest)
    }

    /// Updates the boot and the firmware version of devices whose newest reading is from a newer boot.
    pub(super) async fn follow_new_boots(
        &self,
        readings: &[Reading],
        outcomes: &[IngestOutcome],
        devices: &BTreeMap<HardwareId, Known>,
        newest_before: &BTreeMap<HardwareId, BootAt>,
    ) {
        let mut newest: BTreeMap<&HardwareId, &Reading> = BTreeMap::new();
        for (reading, outcome) in readings.iter().zip(outcomes) {
            if *outcome == IngestOutcome::Stored {
                let known = newest.entry(&reading.hardware_id).or_insert(reading);
                if known.timestamp < reading.timestamp {
                    *known = reading;
                }
            }
        }
        for (hardware_id, reading) in newest {
            let Some(device) = devices.get(hardware_id) else {
                continue;
            };
            let before = newest_before.get(hardware_id);
            if !is_newer_boot(BootAt::of(reading), device, before) {
                continue;
            }
            // A cancelled write means that another request has changed the boot.
            if let Err(WriteError::Store(error)) = self.store.update(boot(reading, device)).await {
                tracing::warn!(%hardware_id, %error, "updating a device's last boot failed");
            }
        }
    }
}

/// Whether a reading is from a newer boot than the one that the device last registered or sent data of. Boot ids have
/// no order, and devices send readings of an earlier boot late. So the reading must be newer than all stored ones.
/// If these end with the same boot, the device may have registered a newer boot since; then only a reading that was
/// taken after the device was last seen counts.
fn is_newer_boot(reading: BootAt, device: &Known, newest_before: Option<&BootAt>) -> bool {
    if device.last_boot_id == Some(reading.boot_id) {
        return false;
    }
    newest_before.is_none_or(|before| {
        let is_known = before.boot_id == reading.boot_id;
        let is_after_last_seen = || {
            device
                .last_seen_at
                .is_none_or(|at| at < reading.at.seconds())
        };
        before.at < reading.at && (!is_known || is_after_last_seen())
    })
}

/// The update of the boot, unless it has changed since it was read.
fn boot(reading: &Reading, device: &Known) -> UpdateRequest {
    let update = Update::new()
        .set(schema::LAST_BOOT_ID, reading.boot_id.to_string())
        .set(schema::FIRMWARE_VERSION, &reading.firmware_version);
    let last = Path::new(schema::LAST_BOOT_ID);
    let is_as_read = match device.last_boot_id {
        Some(boot_id) => last.equals(boot_id.to_string()),
        None => Condition::exists(schema::HARDWARE_ID),
    };
    UpdateRequest::new(schema::DEVICES, devices::key(&reading.hardware_id), update).when(is_as_read)
}
