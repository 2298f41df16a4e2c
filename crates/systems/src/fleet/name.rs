//! Names of systems, references to devices, and ids that consist of two parts.
//!
//! Devices of the record store have the id `group/device` and phones `user/device`. A slash within a part is
//! written `%2F` and a percent sign `%25`, so every id has exactly one reading.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::FleetError;

/// The name of a system with devices. Only the registry knows whether there is such a system.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SystemName(Cow<'static, str>);

/// A device of some system, whether or not it exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceRef {
    pub system: SystemName,
    pub id: String,
}

impl SystemName {
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        Self(Cow::Borrowed(name))
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<String> for SystemName {
    fn from(name: String) -> Self {
        Self(Cow::Owned(name))
    }
}

impl fmt::Display for SystemName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl DeviceRef {
    /// What scopes and roles name instead of the device: the user of a phone, the group of a device of records, or the
    /// device itself.
    #[must_use]
    pub fn subject(&self) -> String {
        subject(&self.id)
    }
}

/// The subject of a device's id, as [`DeviceRef::subject`].
#[must_use]
pub fn subject(id: &str) -> String {
    unescape(id.split('/').next().unwrap_or(id))
}

/// Joins the parts of an id.
pub(crate) fn join(outer: &str, inner: &str) -> String {
    let escape = |part: &str| part.replace('%', "%25").replace('/', "%2F");
    format!("{}/{}", escape(outer), escape(inner))
}

fn unescape(part: &str) -> String {
    part.replace("%2F", "/").replace("%25", "%")
}

/// The parts of an id.
///
/// # Errors
/// When the id does not have two parts: there is no such device.
pub(crate) fn split(id: &str) -> Result<[String; 2], FleetError> {
    match id.split_once('/') {
        Some((outer, inner)) if !inner.contains('/') => Ok([unescape(outer), unescape(inner)]),
        _ => Err(FleetError::DeviceMissing),
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
            assert_eq!(split(&id), Ok([outer.to_owned(), inner.to_owned()]), "{id}");
        }
        for id in ["", "one", "a/b/c"] {
            assert!(split(id).is_err(), "{id}");
        }
    }
}
