//! Roles and their limits. What a role may do is decided by the edges; here is only what it covers.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::PeopleError;
use crate::api_keys::check_scope;
use crate::chargers::ScId;
use crate::fleet::SYSTEMS;
use crate::text::InvalidField;

/// Roles of one person.
pub const ROLES_MAX: usize = 10;
/// Entries of each limit of a role.
pub const LIMIT_ENTRIES_MAX: usize = 100;
/// The system whose devices belong to groups.
const GROUP_SYSTEM: &str = "records";
/// The system whose devices have two names, of which roles name the SC-ID.
const CHARGERS: &str = "chargers";

/// What a person may do, from the least to the most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    Viewer,
    Operator,
    Administrator,
}

/// What a role covers: everything if nothing is listed, else what is listed and nothing more.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Limits {
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub systems: BTreeSet<String>,
    /// Groups of records.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub groups: BTreeSet<String>,
    /// Devices, each as `system/device`.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub devices: BTreeSet<String>,
}

/// A role with its limits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    pub role: Role,
    #[serde(flatten)]
    pub limits: Limits,
}

impl Role {
    pub const ALL: [Self; 3] = [Self::Viewer, Self::Operator, Self::Administrator];

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Operator => "operator",
            Self::Administrator => "administrator",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl FromStr for Role {
    type Err = InvalidField;

    fn from_str(text: &str) -> Result<Self, InvalidField> {
        let found = Self::ALL.into_iter().find(|role| role.as_str() == text);
        found.ok_or(InvalidField {
            field: "role",
            expected: "viewer, operator or administrator",
        })
    }
}

impl Grant {
    /// A role without limits.
    #[must_use]
    pub fn everywhere(role: Role) -> Self {
        Self {
            role,
            limits: Limits::default(),
        }
    }
}

impl Limits {
    /// Whether the role covers everything.
    #[must_use]
    pub fn is_unlimited(&self) -> bool {
        self.systems.is_empty() && self.groups.is_empty() && self.devices.is_empty()
    }

    /// Whether all of a system is covered.
    #[must_use]
    pub fn cover_system(&self, system: &str) -> bool {
        self.is_unlimited() || self.systems.contains(system)
    }

    /// The devices, things, users or groups of a system that are listed one by one.
    pub fn listed<'a>(&'a self, system: &'a str) -> impl Iterator<Item = &'a str> {
        let devices = self.devices.iter().filter_map(move |device| {
            let (of, device) = device.split_once('/')?;
            (of == system).then_some(device)
        });
        let groups = self.groups.iter().map(String::as_str);
        devices.chain(groups.filter(move |_| system == GROUP_SYSTEM))
    }

    fn check(&self) -> Result<(), PeopleError> {
        let known = |system: &str| SYSTEMS.iter().any(|known| known.name.as_str() == system);
        let all = [&self.systems, &self.groups, &self.devices];
        if all.iter().any(|entries| entries.len() > LIMIT_ENTRIES_MAX) {
            return Err(PeopleError::InvalidRole(
                "a role has at most 100 systems, 100 groups and 100 devices".to_owned(),
            ));
        }
        for system in &self.systems {
            if !known(system) {
                return Err(PeopleError::InvalidRole(format!(
                    "there is no system {system}; expected sensors, chargers, push, telemetry or records"
                )));
            }
        }
        for group in &self.groups {
            check_scope(GROUP_SYSTEM, group).map_err(|_| {
                PeopleError::InvalidRole(format!(
                    "invalid group {group}: expected a group id as 5YXd4XZ0"
                ))
            })?;
        }
        for device in &self.devices {
            let parts = device.split_once('/');
            let is_valid = parts.is_some_and(|(system, device)| {
                known(system)
                    && system != GROUP_SYSTEM
                    && check_scope(system, device).is_ok()
                    && (system != CHARGERS || device.parse::<ScId>().is_ok())
            });
            if !is_valid {
                return Err(PeopleError::InvalidRole(format!(
                    "invalid device {device}: expected a system and the id of a device, as sensors/AA:BB:CC:DD:EE:FF; records are limited by groups"
                )));
            }
        }
        Ok(())
    }
}

/// Checks the roles of a person. Limits of an administrator would have no effect on people and tables, so they are refused.
pub(super) fn check(grants: &[Grant]) -> Result<(), PeopleError> {
    if grants.is_empty() || grants.len() > ROLES_MAX {
        return Err(PeopleError::InvalidRole("give 1 to 10 roles".to_owned()));
    }
    for grant in grants {
        grant.limits.check()?;
        if grant.role == Role::Administrator && !grant.limits.is_unlimited() {
            return Err(PeopleError::InvalidRole(
                "an administrator cannot be limited; use the role operator".to_owned(),
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(systems: &[&str], groups: &[&str], devices: &[&str]) -> Limits {
        let set = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        Limits {
            systems: set(systems),
            groups: set(groups),
            devices: set(devices),
        }
    }

    #[test]
    fn limits_cover_what_they_list() {
        let none = limits(&[], &[], &[]);
        assert!(none.is_unlimited() && none.cover_system("sensors"));
        let some = limits(&["sensors"], &["5YXd4XZ0"], &["telemetry/van-1"]);
        assert!(some.cover_system("sensors") && !some.cover_system("telemetry"));
        assert_eq!(some.listed("telemetry").collect::<Vec<_>>(), ["van-1"]);
        assert_eq!(some.listed("records").collect::<Vec<_>>(), ["5YXd4XZ0"]);
        assert_eq!(some.listed("sensors").count(), 0);
    }

    #[test]
    fn misspelled_limits_are_refused() {
        for (limits, is_valid) in [
            (limits(&["sensors"], &[], &[]), true),
            (limits(&["sensor"], &[], &[]), false),
            (limits(&[], &["5YXd4XZ0"], &[]), true),
            (limits(&[], &["5YXd-XZ0"], &[]), false),
            (limits(&[], &[], &["sensors/AA:BB:CC:DD:EE:FF"]), true),
            (limits(&[], &[], &["sensors/aa:bb"]), false),
            (limits(&[], &[], &["AA:BB:CC:DD:EE:FF"]), false),
            (limits(&[], &[], &["records/5YXd4XZ0"]), false),
            (limits(&[], &[], &["chargers/SC-C014EA63"]), true),
            (
                limits(&[], &[], &["chargers/b319d001-6b08-4d88-b4ca-4d2d98a6d43c"]),
                false,
            ),
        ] {
            assert_eq!(limits.check().is_ok(), is_valid, "{limits:?}");
        }
    }

    #[test]
    fn administrators_cannot_be_limited() {
        let of = |role| Grant {
            role,
            limits: limits(&["sensors"], &[], &[]),
        };
        assert!(check(&[of(Role::Operator)]).is_ok());
        assert!(check(&[of(Role::Administrator)]).is_err());
        assert!(check(&[]).is_err());
    }
}
