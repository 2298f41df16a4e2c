//! Sensors: registration, readings, devices.

pub(super) mod data;
pub(super) mod devices;
pub(super) mod readings;
pub(super) mod register;

use serde::{Deserialize, Deserializer};

use homeport_systems::sensors::{FriendlyName, InvalidField, NameChange};

/// The system's name in the scopes of keys.
const SYSTEM: &str = "sensors";

/// Tells a field that is null from one that is absent.
fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<Option<T>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

fn name_change(sent: Option<Option<String>>) -> Result<NameChange, InvalidField> {
    Ok(match sent {
        None => NameChange::Keep,
        Some(None) => NameChange::Remove,
        Some(Some(name)) => NameChange::Set(FriendlyName::try_from(name)?),
    })
}
