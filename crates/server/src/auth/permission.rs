//! The one place that decides whether a caller may read, write or manage something.

use axum::http::StatusCode;
use homeport_systems::api_keys::{ApiKey, KeyPermission};
use homeport_systems::chargers::ChargerIds;
use homeport_systems::fleet::DeviceRef;
use homeport_systems::people::{Access, Grant, Limits, Role};
use homeport_systems::push::UserId;

use super::caller::Caller;
use super::needs::Action;
use crate::problem::Problem;

/// The system whose subjects are users.
const USER_SYSTEM: &str = "push";

/// What a request concerns within a system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Subject<'a> {
    /// A device, thing, group or user: what the scopes of API keys name.
    One(&'a str),
    /// A charger, which scopes name by its SC-ID or its UUID.
    Charger(&'a ChargerIds),
    /// All of them, as in a list of all devices.
    All,
    /// None of them in particular.
    None,
}

/// Why a caller may not do something.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Forbidden {
    #[error("this API key is for {0}")]
    OtherSystem(String),
    #[error("the scopes of this API key do not include {0}")]
    OutOfScope(String),
    #[error("this API key is limited to its scopes and cannot access all of {0}")]
    ScopedKey(String),
    #[error("this API key needs the permission {0}")]
    PermissionMissing(KeyPermission),
    #[error("only operators may do this")]
    OperatorsOnly,
    #[error("this needs the role {0}")]
    RoleMissing(Role),
    #[error("your role is limited and does not include {0}")]
    OutOfLimits(String),
    #[error("your role is limited and cannot access all of {0}")]
    LimitedRole(String),
    #[error("sign in with your password; a token and the admin token cannot change an account")]
    SessionOnly,
    #[error("this belongs to another user")]
    OtherUser,
}

impl Caller {
    /// Whether the caller may do something to a subject of a system. Scopes of API keys restrict reads and writes
    /// alike.
    pub(crate) fn check(
        &self,
        action: Action,
        system: &str,
        subject: Subject<'_>,
    ) -> Result<(), Forbidden> {
        self.check_role(action)?;
        match self {
            Self::Person(access) => check_person(access, action, Some((system, subject))),
            Self::ApiKey(key) => check_api_key(key, action, system, subject),
            Self::User(user) => check_user(user, system, subject),
        }
    }

    /// Whether a person may do something on the whole server, such as creating a rule for all messages.
    pub(crate) fn check_everywhere(&self, action: Action) -> Result<(), Forbidden> {
        match self {
            Self::Person(access) => check_person(access, action, None),
            Self::ApiKey(_) | Self::User(_) => Err(Forbidden::OperatorsOnly),
        }
    }

    /// Whether a caller may do something at all, wherever it applies. The handler checks to what.
    pub(crate) fn check_role(&self, action: Action) -> Result<(), Forbidden> {
        let is_permitted = match self {
            Self::Person(access) => return check_role(access, action),
            Self::ApiKey(_) => matches!(
                action,
                Action::Read | Action::Write | Action::Command | Action::Broadcast
            ),
            Self::User(_) => matches!(action, Action::Read | Action::Manage),
        };
        is_permitted.then_some(()).ok_or(Forbidden::OperatorsOnly)
    }

    /// Whether the caller may do something to a device of the fleet.
    pub(crate) fn check_device(&self, action: Action, device: &DeviceRef) -> Result<(), Forbidden> {
        let subject = device.subject();
        self.check(action, device.system.as_str(), Subject::One(&subject))
    }
}

fn check_role(access: &Access, action: Action) -> Result<(), Forbidden> {
    let least = action.least_role();
    if access.permits(|grant| grant.role >= least) {
        Ok(())
    } else {
        Err(Forbidden::RoleMissing(least))
    }
}

/// A person may do what one of the roles permits on a subject, or without a subject on the whole server.
fn check_person(
    access: &Access,
    action: Action,
    on: Option<(&str, Subject<'_>)>,
) -> Result<(), Forbidden> {
    check_role(access, action)?;
    let permits = |grant: &Grant| {
        grant.role >= action.least_role()
            && match on {
                Some((system, subject)) => covers(&grant.limits, system, subject),
                None => grant.limits.is_unlimited(),
            }
    };
    if access.permits(permits) {
        return Ok(());
    }
    Err(match on {
        Some((_, Subject::One(subject))) => Forbidden::OutOfLimits(subject.to_owned()),
        Some((_, Subject::Charger(charger))) => {
            Forbidden::OutOfLimits(charger.device_id.to_string())
        }
        Some((system, Subject::All | Subject::None)) => Forbidden::LimitedRole(system.to_owned()),
        None => Forbidden::LimitedRole("the server".to_owned()),
    })
}

/// Whether a role covers a subject of a system.
fn covers(limits: &Limits, system: &str, subject: Subject<'_>) -> bool {
    let lists = |subject: &str| limits.listed(system).any(|listed| listed == subject);
    limits.cover_system(system)
        || match subject {
            Subject::One(subject) => lists(subject),
            Subject::Charger(charger) => lists(charger.device_id.as_str()),
            Subject::All => false,
            Subject::None => limits.listed(system).next().is_some(),
        }
}

fn check_api_key(
    key: &ApiKey,
    action: Action,
    system: &str,
    subject: Subject<'_>,
) -> Result<(), Forbidden> {
    if key.system != system {
        return Err(Forbidden::OtherSystem(key.system.clone()));
    }
    let needed = match action {
        Action::Command => Some(KeyPermission::SendCommands),
        Action::Broadcast => Some(KeyPermission::SendBroadcasts),
        _ => None,
    };
    if let Some(missing) = needed.filter(|permission| !key.has(*permission)) {
        return Err(Forbidden::PermissionMissing(missing));
    }
    if key.scopes.is_empty() {
        return Ok(());
    }
    match subject {
        Subject::None => Ok(()),
        Subject::All => Err(Forbidden::ScopedKey(system.to_owned())),
        Subject::One(subject) => key
            .scopes
            .iter()
            .any(|scope| scope == subject)
            .then_some(())
            .ok_or_else(|| Forbidden::OutOfScope(subject.to_owned())),
        Subject::Charger(charger) => {
            let names = key.scopes.iter().filter_map(|scope| scope.parse().ok());
            let is_included = names.into_iter().any(|name| charger.include(&name));
            is_included
                .then_some(())
                .ok_or_else(|| Forbidden::OutOfScope(charger.device_id.to_string()))
        }
    }
}

/// Users manage their own devices and read their own notifications; they send none.
fn check_user(user: &UserId, system: &str, subject: Subject<'_>) -> Result<(), Forbidden> {
    if system != USER_SYSTEM {
        return Err(Forbidden::OperatorsOnly);
    }
    if subject == Subject::One(user.as_str()) {
        Ok(())
    } else {
        Err(Forbidden::OtherUser)
    }
}

impl Forbidden {
    fn code(&self) -> &'static str {
        match self {
            Self::OtherSystem(_) | Self::OutOfScope(_) | Self::ScopedKey(_) => "OUT_OF_SCOPE",
            Self::PermissionMissing(_) => "PERMISSION_MISSING",
            Self::OperatorsOnly => "OPERATORS_ONLY",
            Self::RoleMissing(_) => "ROLE_MISSING",
            Self::OutOfLimits(_) | Self::LimitedRole(_) => "OUT_OF_LIMITS",
            Self::SessionOnly => "SESSION_ONLY",
            Self::OtherUser => "NOT_YOURS",
        }
    }
}

impl From<Forbidden> for Problem {
    fn from(forbidden: Forbidden) -> Self {
        Self::new(
            StatusCode::FORBIDDEN,
            forbidden.code(),
            forbidden.to_string(),
        )
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use homeport_systems::api_keys::KeyId;
    use homeport_systems::chargers::WirelessDeviceId;
    use homeport_systems::time::{EpochSeconds, UtcSecond};

    use super::*;

    fn person(role: Role, systems: &[&str], devices: &[&str]) -> Caller {
        let set = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        let limits = Limits {
            systems: set(systems),
            devices: set(devices),
            ..Limits::default()
        };
        let roles = vec![Grant { role, limits }];
        Caller::Person(Arc::new(Access::of(
            "anna".to_owned(),
            uuid::Uuid::new_v4(),
            roles,
        )))
    }

    fn key(system: &str, scopes: &[&str]) -> Caller {
        Caller::ApiKey(Arc::new(ApiKey {
            key_id: KeyId::random(),
            created_at: UtcSecond::new(EpochSeconds(0)),
            last_used_at: None,
            is_active: true,
            description: None,
            system: system.to_owned(),
            scopes: scopes.iter().map(|scope| (*scope).to_owned()).collect(),
            permissions: BTreeSet::new(),
        }))
    }

    #[test]
    fn commands_need_a_permission_and_the_scope() {
        let mut key = ApiKey {
            key_id: KeyId::random(),
            created_at: UtcSecond::new(EpochSeconds(0)),
            last_used_at: None,
            is_active: true,
            description: None,
            system: "telemetry".to_owned(),
            scopes: BTreeSet::from(["v1".to_owned()]),
            permissions: BTreeSet::new(),
        };
        let send = |key: &ApiKey, thing: &str| {
            let caller = Caller::ApiKey(Arc::new(key.clone()));
            caller.check(Action::Command, "telemetry", Subject::One(thing))
        };
        let missing = Forbidden::PermissionMissing(KeyPermission::SendCommands);
        assert_eq!(send(&key, "v1"), Err(missing));
        key.permissions.insert(KeyPermission::SendCommands);
        assert_eq!(send(&key, "v1"), Ok(()));
        assert_eq!(
            send(&key, "v2"),
            Err(Forbidden::OutOfScope("v2".to_owned()))
        );
    }

    #[test]
    fn broadcasts_need_a_permission() {
        let send = |permissions: &[KeyPermission]| {
            let Caller::ApiKey(key) = key("push", &[]) else {
                panic!("it is a key");
            };
            let key = ApiKey {
                permissions: permissions.iter().copied().collect(),
                ..ApiKey::clone(&key)
            };
            Caller::ApiKey(Arc::new(key)).check(Action::Broadcast, "push", Subject::All)
        };
        let missing = Forbidden::PermissionMissing(KeyPermission::SendBroadcasts);
        assert_eq!(send(&[]), Err(missing));
        assert_eq!(send(&[KeyPermission::SendBroadcasts]), Ok(()));
        let user = Caller::User("anna".parse().expect("a user id"));
        let refused = user.check(Action::Broadcast, "push", Subject::All);
        assert_eq!(refused, Err(Forbidden::OperatorsOnly));
    }

    #[test]
    fn admin_token_may_do_everything() {
        let admin = Caller::Person(Arc::new(Access::admin(None)));
        for action in Action::ALL {
            assert_eq!(admin.check_everywhere(*action), Ok(()));
            for subject in [Subject::One("a"), Subject::All, Subject::None] {
                assert_eq!(admin.check(*action, "sensors", subject), Ok(()));
            }
        }
    }

    #[test]
    fn roles_permit_what_they_and_lesser_roles_may() {
        for role in Role::ALL {
            let caller = person(role, &[], &[]);
            for action in Action::ALL {
                let expected = role >= action.least_role();
                assert_eq!(caller.check_everywhere(*action).is_ok(), expected);
                let checked = caller.check(*action, "sensors", Subject::One("a"));
                assert_eq!(checked.is_ok(), expected, "{role} {action:?}");
                assert_eq!(caller.check_role(*action).is_ok(), expected);
            }
        }
    }

    #[test]
    fn limited_roles_cover_what_they_list() {
        let caller = person(Role::Operator, &["sensors"], &["telemetry/van-1"]);
        for (system, subject, is_permitted) in [
            ("sensors", Subject::All, true),
            ("sensors", Subject::One("a"), true),
            ("telemetry", Subject::One("van-1"), true),
            ("telemetry", Subject::One("van-2"), false),
            ("telemetry", Subject::None, true),
            ("telemetry", Subject::All, false),
            ("chargers", Subject::None, false),
        ] {
            for action in [Action::Read, Action::Manage] {
                let checked = caller.check(action, system, subject);
                assert_eq!(checked.is_ok(), is_permitted, "{system} {subject:?}");
            }
        }
        assert!(caller.check_role(Action::Read).is_ok());
        assert_eq!(
            caller.check_everywhere(Action::Read),
            Err(Forbidden::LimitedRole("the server".to_owned()))
        );
        let phone = DeviceRef {
            system: "push".to_owned().into(),
            id: "a%2Fb/phone".to_owned(),
        };
        let owner = person(Role::Viewer, &[], &["push/a/b"]);
        assert_eq!(owner.check_device(Action::Read, &phone), Ok(()));
    }

    #[test]
    fn scopes_restrict_reads_and_writes_alike() {
        let (scoped, unscoped) = (key("sensors", &["a"]), key("sensors", &[]));
        for action in [Action::Read, Action::Write] {
            for (subject, is_allowed) in [
                (Subject::One("a"), true),
                (Subject::One("b"), false),
                (Subject::All, false),
                (Subject::None, true),
            ] {
                let checked = scoped.check(action, "sensors", subject);
                assert_eq!(checked.is_ok(), is_allowed, "{action:?} {subject:?}");
                assert_eq!(unscoped.check(action, "sensors", subject), Ok(()));
                assert_eq!(
                    unscoped.check(action, "chargers", subject),
                    Err(Forbidden::OtherSystem("sensors".to_owned()))
                );
            }
        }
    }

    #[test]
    fn api_keys_manage_nothing() {
        for caller in [key("push", &[]), key("push", &["anna"])] {
            let checked = caller.check(Action::Manage, "push", Subject::One("anna"));
            assert_eq!(checked, Err(Forbidden::OperatorsOnly));
        }
    }

    #[test]
    fn charger_scopes_may_be_either_name() {
        let wireless = "b319d001-6b08-4d88-b4ca-4d2d98a6d43c";
        let charger = ChargerIds::from(wireless.parse::<WirelessDeviceId>().expect("a UUID"));
        let unregistered = ChargerIds {
            wireless: None,
            ..charger.clone()
        };
        let sc_id = charger.device_id.to_string();
        for (scope, is_allowed) in [
            (wireless, true),
            (&*wireless.to_uppercase(), true),
            (&*sc_id, true),
            ("SC-00000000", false),
            ("nonsense", false),
        ] {
            let caller = key("chargers", &[scope]);
            for charger in [&charger, &unregistered] {
                let checked = caller.check(Action::Read, "chargers", Subject::Charger(charger));
                assert_eq!(checked.is_ok(), is_allowed, "{scope}");
            }
        }
    }

    #[test]
    fn uuid_scope_excludes_charger_with_same_sc_id() {
        let colliding = [
            "54cdc5dc-66d8-487c-86ec-2d23278927f0",
            "5ccd847d-4605-490f-a990-b15986fd40ec",
        ];
        let of = |uuid: &str| ChargerIds::from(uuid.parse::<WirelessDeviceId>().expect("a UUID"));
        assert_eq!(of(colliding[0]).device_id, of(colliding[1]).device_id);
        let caller = key("chargers", &[colliding[0]]);
        let check = |charger: &ChargerIds| {
            caller.check(Action::Read, "chargers", Subject::Charger(charger))
        };
        assert!(check(&of(colliding[0])).is_ok());
        assert!(check(&of(colliding[1])).is_err());
    }

    #[test]
    fn users_reach_only_their_own() {
        let anna = Caller::User("anna".parse().expect("a user id"));
        for (action, subject, expected) in [
            (Action::Read, "anna", Ok(())),
            (Action::Manage, "anna", Ok(())),
            (Action::Write, "anna", Err(Forbidden::OperatorsOnly)),
            (Action::Read, "bert", Err(Forbidden::OtherUser)),
        ] {
            let checked = anna.check(action, "push", Subject::One(subject));
            assert_eq!(checked, expected, "{action:?} {subject}");
        }
        let other_system = anna.check(Action::Read, "sensors", Subject::One("anna"));
        assert_eq!(other_system, Err(Forbidden::OperatorsOnly));
    }
}
