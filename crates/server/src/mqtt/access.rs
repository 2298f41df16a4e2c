//! Authentication, and the topics that a client may use. Devices may use `van/{thing}/…`: a key with
//! scopes for its things, a key without scopes for every thing. Sending commands and subscribing to all things at
//! once need a permission of their own. Keys of chargers publish uplinks and subscribe to nothing. Operators may use
//! all topics.

use std::net::IpAddr;
use std::sync::Arc;

use homeport_systems::api_keys::{ApiKey, ApiKeyError, ApiKeys, KeyId, KeyPermission};
use homeport_systems::messages::TopicFilter;
use homeport_systems::telemetry::schema::{COMMANDS, TOPIC_ROOT};
use sha2::{Digest as _, Sha256};

use crate::auth::{AdminToken, KeyRejected, KeyVerifier, TokenRejected};
use crate::uplink_topics::may_publish_uplinks;

/// The system whose keys may use the topics of things.
pub(crate) const SYSTEM: &str = "telemetry";
/// The system whose keys may publish uplinks.
const CHARGERS: &str = "chargers";
/// The user name of operators.
const OPERATOR: &str = "admin";
/// Bytes of the digest that identifies an owner.
const OWNER_BYTES: usize = 16;

/// An authenticated client.
#[derive(Debug, Clone)]
pub(crate) enum Access {
    Operator,
    Key(Arc<ApiKey>),
}

/// What credentials are checked against.
#[derive(Debug, Clone)]
pub(crate) struct Credentials {
    pub(crate) api_keys: Arc<ApiKeys>,
    pub(crate) key_verifier: Arc<KeyVerifier>,
    pub(crate) admin_token: AdminToken,
}

/// Why authentication failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum Denied {
    #[error("invalid user name or password")]
    Wrong,
    #[error("too many wrong credentials were sent; try again later")]
    TooMany,
    #[error("the API key belongs to another system; use a key of telemetry or chargers")]
    OtherSystem(KeyId),
    #[error("the store cannot check credentials now; try again later")]
    Unknown(#[source] ApiKeyError),
}

impl Credentials {
    /// With the user name `admin` the password is the admin token, with any other one an API key.
    pub(super) async fn verify(
        &self,
        user_name: Option<&str>,
        password: Option<&[u8]>,
        client: IpAddr,
    ) -> Result<Access, Denied> {
        let password = password.and_then(|bytes| std::str::from_utf8(bytes).ok());
        let Some(password) = password else {
            return Err(Denied::Wrong);
        };
        if user_name == Some(OPERATOR) {
            return match self.admin_token.check(password, client) {
                Ok(()) => Ok(Access::Operator),
                Err(TokenRejected::Wrong) => Err(Denied::Wrong),
                Err(TokenRejected::TooMany { .. }) => Err(Denied::TooMany),
            };
        }
        let key = self.key_verifier.verify(password, client).await;
        let key = key.map_err(|rejected| match rejected {
            KeyRejected::Unknown => Denied::Wrong,
            KeyRejected::TooMany { .. } => Denied::TooMany,
            KeyRejected::NotVerified(error) => Denied::Unknown(error),
        })?;
        if key.system != SYSTEM && key.system != CHARGERS {
            return Err(Denied::OtherSystem(key.key_id));
        }
        Ok(Access::Key(key))
    }
}

impl Access {
    pub(crate) fn may_publish(&self, topic: &str) -> bool {
        if topic.starts_with('$') {
            return false;
        }
        let Self::Key(key) = self else {
            return true;
        };
        if key.system == CHARGERS {
            return may_publish_uplinks(key, topic);
        }
        let mut levels = topic.split('/');
        let is_things = levels.next() == Some(TOPIC_ROOT);
        let thing = levels.next().filter(|thing| !thing.is_empty());
        let is_permitted = match levels.next() {
            None => false,
            Some(COMMANDS) => key.has(KeyPermission::SendCommands),
            Some(_) => true,
        };
        is_things && is_permitted && thing.is_some_and(|thing| key.allows(SYSTEM, thing))
    }

    pub(crate) fn may_subscribe(&self, filter: &TopicFilter) -> bool {
        let Self::Key(key) = self else {
            return true;
        };
        let mut levels = filter.levels();
        if key.system != SYSTEM || levels.next() != Some(TOPIC_ROOT) {
            return false;
        }
        let thing = levels.next();
        // A scope of an old key can be named like a wildcard, which would still match every thing.
        let is_one_thing = thing.is_some_and(|thing| !matches!(thing, "+" | "#"));
        if key.has(KeyPermission::SubscribeFleet) && key.scopes.is_empty() {
            return true;
        }
        is_one_thing
            && levels.next().is_some()
            && thing.is_some_and(|thing| key.allows(SYSTEM, thing))
    }

    /// The owner of a session. Keys with the same scopes share an owner, so that a device keeps its
    /// session when its key is replaced. Other keys cannot reach it.
    pub(super) fn owner(&self) -> String {
        match self {
            Self::Operator => OPERATOR.to_owned(),
            // Keys that may subscribe to less must not receive what a session has subscribed to.
            Self::Key(key) if key.system == SYSTEM && key.scopes.is_empty() => {
                if key.has(KeyPermission::SubscribeFleet) {
                    "any".to_owned()
                } else {
                    "each".to_owned()
                }
            }
            Self::Key(key) => {
                let mut digest = Sha256::new();
                if key.system != SYSTEM {
                    // No scope is empty, so keys of two systems never have the same digest.
                    digest.update([0]);
                    digest.update(&key.system);
                    digest.update([0]);
                }
                for scope in &key.scopes {
                    digest.update(scope);
                    digest.update([0]);
                }
                hex::encode(&digest.finalize()[..OWNER_BYTES])
            }
        }
    }

    /// The publisher, as rules see it.
    pub(crate) fn principal(&self) -> String {
        match self {
            Self::Operator => OPERATOR.to_owned(),
            Self::Key(key) => key.key_id.to_string(),
        }
    }

    pub(super) fn key_id(&self) -> Option<KeyId> {
        match self {
            Self::Operator => None,
            Self::Key(key) => Some(key.key_id),
        }
    }
}

#[cfg(test)]
mod tests {
    use homeport_systems::time::{EpochSeconds, UtcSecond};

    use super::*;

    fn key(scopes: &[&str]) -> Access {
        key_with(scopes, [])
    }

    fn key_with<const N: usize>(scopes: &[&str], permissions: [KeyPermission; N]) -> Access {
        Access::Key(Arc::new(ApiKey {
            key_id: KeyId::random(),
            created_at: UtcSecond::new(EpochSeconds(0)),
            last_used_at: None,
            is_active: true,
            description: None,
            system: SYSTEM.to_owned(),
            scopes: scopes.iter().map(|scope| (*scope).to_owned()).collect(),
            permissions: permissions.into(),
        }))
    }

    #[test]
    fn a_device_publishes_below_its_own_thing() {
        let device = key(&["v1"]);
        for (topic, is_allowed) in [
            ("van/v1/telemetry", true),
            ("van/v1/a/b", true),
            ("van/v1/commands", false),
            ("van/v1/commands/reply", false),
            ("van/v1", false),
            ("van/v10/telemetry", false),
            ("van/v2/telemetry", false),
            ("bus/v1/telemetry", false),
            ("van//telemetry", false),
            ("/van/v1/telemetry", false),
            ("$SYS/van/v1", false),
        ] {
            assert_eq!(device.may_publish(topic), is_allowed, "{topic}");
        }
        let commander = key_with(&["v1"], [KeyPermission::SendCommands]);
        assert!(commander.may_publish("van/v1/commands"));
        assert!(!commander.may_publish("van/v2/commands"));
        assert!(!key(&[]).may_publish("van/v2/commands"));
        assert!(key(&[]).may_publish("van/v2/telemetry"));
        assert!(!key(&[]).may_publish("van//telemetry"));
        assert!(!key(&[]).may_publish("bus/v2/telemetry"));
        assert!(Access::Operator.may_publish("anything"));
        assert!(!Access::Operator.may_publish("$SYS/broker"));
    }

    #[test]
    fn a_device_subscribes_below_its_own_thing() {
        let device = key(&["v1", "+"]);
        for (filter, is_allowed) in [
            ("van/v1/commands", true),
            ("van/v1/#", true),
            ("van/v1/+/x", true),
            ("$share/group/van/v1/#", true),
            ("$share/group/van/v2/#", false),
            ("van/v1", false),
            ("van/+/commands", false),
            ("van/#", false),
            ("+/v1/commands", false),
            ("#", false),
            ("van/v2/commands", false),
        ] {
            let parsed = filter.parse().expect("a filter");
            assert_eq!(device.may_subscribe(&parsed), is_allowed, "{filter}");
        }
        let all = key(&[]);
        for (filter, is_allowed) in [
            ("van/v1/commands", true),
            ("van/v2/#", true),
            ("van/v1", false),
            ("van/+/commands", false),
            ("van/#", false),
            ("#", false),
        ] {
            let parsed = filter.parse().expect("a filter");
            assert_eq!(all.may_subscribe(&parsed), is_allowed, "{filter}");
        }
        let any = key_with(&[], [KeyPermission::SubscribeFleet]);
        for (filter, is_allowed) in [
            ("van/+/telemetry", true),
            ("van/#", true),
            ("#", false),
            ("+/v1/telemetry", false),
        ] {
            let parsed = filter.parse().expect("a filter");
            assert_eq!(any.may_subscribe(&parsed), is_allowed, "{filter}");
            assert!(Access::Operator.may_subscribe(&parsed));
        }
    }

    #[test]
    fn keys_of_the_same_things_own_the_same_sessions() {
        assert_eq!(key(&["a", "b"]).owner(), key(&["b", "a"]).owner());
        assert_ne!(key(&["ab"]).owner(), key(&["a", "b"]).owner());
        assert_ne!(key(&["any"]).owner(), key(&[]).owner());
        assert_ne!(key(&[]).owner(), Access::Operator.owner());
        // The session of the one may have subscribed to what the other may not read.
        let fleet = key_with(&[], [KeyPermission::SubscribeFleet]);
        assert_ne!(key(&[]).owner(), fleet.owner());
    }

    #[test]
    fn keys_of_chargers_own_no_session_of_things() {
        let of_chargers = |scopes: &[&str]| {
            let Access::Key(key) = key(scopes) else {
                unreachable!("it is a key");
            };
            Access::Key(Arc::new(ApiKey {
                system: CHARGERS.to_owned(),
                ..(*key).clone()
            }))
        };
        for scopes in [&[][..], &["a"]] {
            assert_ne!(of_chargers(scopes).owner(), key(scopes).owner());
        }
        assert_ne!(of_chargers(&[]).owner(), of_chargers(&["a"]).owner());
    }
}
