//! What a key reaches: the whole system or the subjects in its scopes, and its permissions. Checked when a key is created,
//! because a misspelled scope would make a key that can never be used.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use super::{ApiKeyError, NewApiKey, SCOPES_MAX, schema};
use crate::chargers::DeviceName;
use crate::push::UserId;
use crate::sensors::HardwareId;
use crate::telemetry::ThingName;

/// Longest encoded id of a group.
const GROUP_ID_LEN_MAX: usize = 12;

/// What a key may do beyond storing and reading data of its subjects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KeyPermission {
    /// Send commands to things.
    SendCommands,
    /// Subscribe to the topics of all things at once, with a wildcard in place of the thing.
    SubscribeFleet,
    /// Send broadcasts to the devices of all users, and cancel them.
    SendBroadcasts,
}

impl KeyPermission {
    pub const ALL: [Self; 3] = [
        Self::SendCommands,
        Self::SubscribeFleet,
        Self::SendBroadcasts,
    ];

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::SendCommands => "send_commands",
            Self::SubscribeFleet => "subscribe_fleet",
            Self::SendBroadcasts => "send_broadcasts",
        }
    }

    /// The system whose keys can have it.
    fn system(self) -> &'static str {
        match self {
            Self::SendCommands | Self::SubscribeFleet => schema::TELEMETRY,
            Self::SendBroadcasts => schema::PUSH,
        }
    }

    /// Whether only keys of the whole system can have it.
    fn is_for_all(self) -> bool {
        matches!(self, Self::SubscribeFleet | Self::SendBroadcasts)
    }
}

impl fmt::Display for KeyPermission {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl FromStr for KeyPermission {
    type Err = ApiKeyError;

    fn from_str(text: &str) -> Result<Self, ApiKeyError> {
        let found = Self::ALL.into_iter().find(|known| known.as_str() == text);
        found.ok_or(ApiKeyError::Invalid(
            "permissions must be send_commands, subscribe_fleet or send_broadcasts",
        ))
    }
}

/// Checks scopes and permissions of a key of `system`.
pub(super) fn check(system: &str, new: &NewApiKey) -> Result<(), ApiKeyError> {
    match (new.scopes.is_empty(), new.all) {
        (true, false) => {
            return Err(ApiKeyError::Invalid(
                "give the key scopes, or ask for a key of the whole system with \"all\": true",
            ));
        }
        (false, true) => {
            return Err(ApiKeyError::Invalid(
                "a key has either scopes or \"all\": true",
            ));
        }
        _ => {}
    }
    if new.scopes.len() > SCOPES_MAX {
        return Err(ApiKeyError::Invalid("a key has at most 100 scopes"));
    }
    for scope in &new.scopes {
        check_scope(system, scope)?;
    }
    check_permissions(system, new.all, &new.permissions)
}

/// Checks that a scope has the form of its system's subjects.
pub(crate) fn check_scope(system: &str, scope: &str) -> Result<(), ApiKeyError> {
    let is_group = || {
        (1..=GROUP_ID_LEN_MAX).contains(&scope.len())
            && scope.bytes().all(|byte| byte.is_ascii_alphanumeric())
    };
    let (is_valid, expected) = match system {
        "sensors" => (
            scope.parse::<HardwareId>().is_ok(),
            "a hardware id as AA:BB:CC:DD:EE:FF, in upper case",
        ),
        "chargers" => (
            scope.parse::<DeviceName>().is_ok(),
            "an SC-ID as SC-A1B2C3D4, in upper case, or the UUID of the charger",
        ),
        "push" => (
            scope.parse::<UserId>().is_ok(),
            "a user id of 1 to 128 graphic ASCII characters",
        ),
        "telemetry" => (
            scope.parse::<ThingName>().is_ok(),
            "a thing name of 1 to 128 graphic ASCII characters without /, + and #",
        ),
        _ => (is_group(), "a group id as 5YXd4XZ0"),
    };
    if is_valid {
        return Ok(());
    }
    Err(ApiKeyError::InvalidScope {
        scope: scope.chars().take(super::SCOPE_LEN_MAX).collect(),
        expected,
    })
}

fn check_permissions(
    system: &str,
    is_for_all: bool,
    permissions: &BTreeSet<KeyPermission>,
) -> Result<(), ApiKeyError> {
    for permission in permissions {
        if system != permission.system() {
            return Err(ApiKeyError::Invalid(match permission.system() {
                schema::PUSH => "send_broadcasts is for keys of push",
                _ => "send_commands and subscribe_fleet are for keys of telemetry",
            }));
        }
        if permission.is_for_all() && !is_for_all {
            return Err(ApiKeyError::Invalid(
                "subscribe_fleet and send_broadcasts are for keys of the whole system; set \"all\": true",
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_have_the_form_of_their_system() {
        for (system, scope, is_valid) in [
            ("sensors", "AA:BB:CC:DD:EE:FF", true),
            ("sensors", "aa:bb:cc:dd:ee:ff", false),
            ("sensors", "greenhouse", false),
            ("chargers", "SC-C014EA63", true),
            ("chargers", "b319d001-6b08-4d88-b4ca-4d2d98a6d43c", true),
            ("chargers", "sc-c014ea63", false),
            ("push", "auth0|5f7c", true),
            ("push", "two words", false),
            ("telemetry", "van-1", true),
            ("telemetry", "van/1", false),
            ("telemetry", "+", false),
            ("telemetry", "van#1", false),
            ("telemetry", "ü b", false),
            ("records", "5YXd4XZ0", true),
            ("records", "5YXd-XZ0", false),
            ("records", "", false),
        ] {
            assert_eq!(
                check_scope(system, scope).is_ok(),
                is_valid,
                "{system} {scope}"
            );
        }
    }

    #[test]
    fn invalid_scope_is_named_with_the_expected_form() {
        let error = check_scope("sensors", "aa:bb:cc:dd:ee:ff").expect_err("a lower-case id");
        assert_eq!(
            error.to_string(),
            "invalid scope aa:bb:cc:dd:ee:ff: expected a hardware id as AA:BB:CC:DD:EE:FF, in upper case"
        );
    }

    #[test]
    fn broadcasts_need_a_key_of_all_push() {
        let permissions = BTreeSet::from([KeyPermission::SendBroadcasts]);
        for (system, is_for_all, is_valid) in [
            ("push", true, true),
            ("push", false, false),
            ("telemetry", true, false),
        ] {
            let checked = check_permissions(system, is_for_all, &permissions);
            assert_eq!(checked.is_ok(), is_valid, "{system} {is_for_all}");
        }
    }

    #[test]
    fn permissions_round_trip() {
        for permission in KeyPermission::ALL {
            assert_eq!(permission.to_string().parse(), Ok(permission));
        }
        assert!("everything".parse::<KeyPermission>().is_err());
    }
}
