//! References to devices: the system, and an id that is unique within it.
//!
//! Devices of the record store have the id `group/device` and phones `user/device`. A slash within a part is
//! written `%2F` and a percent sign `%25`, so every id has exactly one reading.

use std::fmt;
use std::str::FromStr;

use super::{Fleet, FleetError};
use crate::chargers::{DeviceName, ScId};
use crate::records::{self, RecordIds};
use crate::sensors::{HardwareId, InvalidField};
use crate::telemetry::ThingName;
use crate::{push, sensors};

/// A system with devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SystemName {
    Sensors,
    Chargers,
    Telemetry,
    Records,
    Push,
}

/// A device of some system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeviceRef {
    Sensor(HardwareId),
    Charger(ScId),
    Thing(ThingName),
    /// A device of the record store.
    Recorder {
        group: records::GroupId,
        device: records::DeviceId,
    },
    /// A phone of an app user.
    Phone {
        user: push::UserId,
        device: push::DeviceId,
    },
}

impl SystemName {
    pub const ALL: [Self; 5] = [
        Self::Sensors,
        Self::Chargers,
        Self::Telemetry,
        Self::Records,
        Self::Push,
    ];

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sensors => "sensors",
            Self::Chargers => "chargers",
            Self::Telemetry => "telemetry",
            Self::Records => "records",
            Self::Push => "push",
        }
    }
}

impl fmt::Display for SystemName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl FromStr for SystemName {
    type Err = InvalidField;

    fn from_str(text: &str) -> Result<Self, InvalidField> {
        let mut all = Self::ALL.into_iter();
        all.find(|system| system.as_str() == text)
            .ok_or(InvalidField {
                field: "system",
                expected: "sensors, chargers, telemetry, records or push",
            })
    }
}

impl DeviceRef {
    #[must_use]
    pub fn system(&self) -> SystemName {
        match self {
            Self::Sensor(_) => SystemName::Sensors,
            Self::Charger(_) => SystemName::Chargers,
            Self::Thing(_) => SystemName::Telemetry,
            Self::Recorder { .. } => SystemName::Records,
            Self::Phone { .. } => SystemName::Push,
        }
    }
}

impl Fleet {
    /// The device that an id of a system names, whether or not it exists.
    ///
    /// # Errors
    /// When the text cannot be an id of the system, or the store fails.
    pub async fn device_ref(&self, system: SystemName, id: &str) -> Result<DeviceRef, FleetError> {
        Ok(match system {
            SystemName::Sensors => {
                let hardware_id = id.parse()?;
                if self.0.parts.sensors.is_removed(&hardware_id).await? {
                    return Err(FleetError::DeviceMissing);
                }
                DeviceRef::Sensor(hardware_id)
            }
            SystemName::Chargers => {
                let name: DeviceName = id.parse().map_err(charger_field)?;
                let device_id = self.0.parts.chargers.find(&name).await?;
                if self.0.parts.chargers.is_removed(&device_id).await? {
                    return Err(FleetError::DeviceMissing);
                }
                DeviceRef::Charger(device_id)
            }
            SystemName::Telemetry => DeviceRef::Thing(id.parse()?),
            SystemName::Records => {
                let [group, device] = parts(id)?;
                let ids = self.record_ids().await?;
                let ids = ids.ok_or(FleetError::DeviceMissing)?;
                DeviceRef::Recorder {
                    group: ids.parse_group(&group)?,
                    device: ids.parse_device(&device)?,
                }
            }
            SystemName::Push => {
                let [user, device] = parts(id)?;
                DeviceRef::Phone {
                    user: user.parse()?,
                    device: device.parse()?,
                }
            }
        })
    }
}

fn charger_field(error: crate::chargers::InvalidField) -> sensors::InvalidField {
    InvalidField {
        field: error.field,
        expected: error.expected,
    }
}

/// The id of a device of the record store.
pub(crate) fn record_device(
    ids: &RecordIds,
    group: records::GroupId,
    device: records::DeviceId,
) -> String {
    join(&ids.group(group), &ids.device(device))
}

pub(crate) fn join(outer: &str, inner: &str) -> String {
    let escape = |part: &str| part.replace('%', "%25").replace('/', "%2F");
    format!("{}/{}", escape(outer), escape(inner))
}

fn parts(id: &str) -> Result<[String; 2], FleetError> {
    let unescape = |part: &str| part.replace("%2F", "/").replace("%25", "%");
    match id.split_once('/') {
        Some((outer, inner)) if !inner.contains('/') => Ok([unescape(outer), unescape(inner)]),
        _ => Err(InvalidField {
            field: "id",
            expected: "two parts separated by a slash, as in the list of devices",
        }
        .into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_two_parts_round_trip() {
        for (outer, inner) in [
            ("user", "phone"),
            ("a/b", "c%2Fd"),
            ("%", "/"),
            ("%252F", "x"),
        ] {
            let id = join(outer, inner);
            assert_eq!(parts(&id), Ok([outer.to_owned(), inner.to_owned()]), "{id}");
        }
        for id in ["", "one", "a/b/c"] {
            assert!(parts(id).is_err(), "{id}");
        }
    }
}
