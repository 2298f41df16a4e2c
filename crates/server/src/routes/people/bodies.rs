//! The bodies of requests and responses about people.

use std::collections::BTreeSet;

use homeport_systems::pages;
use homeport_systems::people::{
    Credential, Grant, Limits, NewPerson, Password, PeopleError, Person, PersonChange,
};
use homeport_systems::time::{EpochMillis, UtcMillis};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::openapi::schemas::people as schemas;

/// A role. Without limits it is for the whole server, else for what they list and nothing more.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Role)]
pub struct RoleBody {
    #[schema(schema_with = schemas::role)]
    pub role: String,
    /// Systems that the role is limited to
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    #[schema(schema_with = schemas::systems, required = false)]
    pub systems: BTreeSet<String>,
    /// Groups of records that the role is limited to
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    #[schema(schema_with = schemas::groups, required = false)]
    pub groups: BTreeSet<String>,
    /// Devices that the role is limited to
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    #[schema(schema_with = schemas::devices, required = false)]
    pub devices: BTreeSet<String>,
}

/// A person to create.
#[derive(Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreatePerson {
    #[schema(schema_with = schemas::name)]
    pub name: String,
    /// 12 to 256 characters; one is generated and returned if absent
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = schemas::password_or_null, required = false)]
    pub password: Option<String>,
    #[schema(schema_with = schemas::roles)]
    pub roles: Vec<RoleBody>,
}

/// What to change of a person; absent members stay.
#[derive(Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangePerson {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = schemas::roles_or_null, required = false)]
    pub roles: Option<Vec<RoleBody>>,
    /// People who are not enabled lose their sessions and tokens and cannot sign in
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_enabled: Option<bool>,
}

/// The password to set.
#[derive(Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ResetPassword {
    /// 12 to 256 characters; one is generated and returned if absent
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = schemas::password_or_null, required = false)]
    pub password: Option<String>,
}

/// A person.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = Person)]
pub struct PersonBody {
    pub name: String,
    pub roles: Vec<RoleBody>,
    pub is_enabled: bool,
    pub has_password: bool,
    pub has_second_factor: bool,
    pub created_at: String,
    pub updated_at: String,
    /// Written at most every five minutes
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_sign_in_at: Option<String>,
}

/// A person, with the password if it was generated.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct CreatedPerson {
    /// The generated password; it is shown only once
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password: Option<String>,
    #[serde(flatten)]
    pub person: PersonBody,
}

/// A page of people, by name.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct PersonList {
    pub people: Vec<PersonBody>,
    /// Cursor of the next page; absent on the last page
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// A session.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Session)]
pub(super) struct SessionBody {
    #[schema(schema_with = schemas::credential_id)]
    id: String,
    created_at: String,
    expires_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_used_at: Option<String>,
    /// Address from which the person signed in
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user_agent: Option<String>,
    /// Whether this request belongs to it
    is_current: bool,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SessionList {
    pub(super) sessions: Vec<SessionBody>,
}

/// A personal access token without its text.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = PersonalToken)]
pub(super) struct TokenBody {
    #[schema(schema_with = schemas::credential_id)]
    id: String,
    name: String,
    role: RoleBody,
    created_at: String,
    expires_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_used_at: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct TokenList {
    pub(super) tokens: Vec<TokenBody>,
}

impl From<&Grant> for RoleBody {
    fn from(grant: &Grant) -> Self {
        let limits = grant.limits.clone();
        Self {
            role: grant.role.to_string(),
            systems: limits.systems,
            groups: limits.groups,
            devices: limits.devices,
        }
    }
}

impl TryFrom<RoleBody> for Grant {
    type Error = PeopleError;

    fn try_from(body: RoleBody) -> Result<Self, PeopleError> {
        Ok(Self {
            role: body.role.parse()?,
            limits: Limits {
                systems: body.systems,
                groups: body.groups,
                devices: body.devices,
            },
        })
    }
}

fn grants(roles: Vec<RoleBody>) -> Result<Vec<Grant>, PeopleError> {
    roles.into_iter().map(Grant::try_from).collect()
}

impl CreatePerson {
    /// The person to create, and the password if it was generated.
    ///
    /// # Errors
    /// If a member is invalid.
    pub fn parse(self) -> Result<(NewPerson, Option<String>), PeopleError> {
        let (password, generated) = password(self.password)?;
        let new = NewPerson {
            name: self.name.parse()?,
            password: Some(password),
            roles: grants(self.roles)?,
        };
        Ok((new, generated))
    }
}

impl ResetPassword {
    /// The password to set, and its text if it was generated.
    ///
    /// # Errors
    /// If the password is invalid.
    pub fn parse(self) -> Result<(Password, Option<String>), PeopleError> {
        password(self.password)
    }
}

impl TryFrom<ChangePerson> for PersonChange {
    type Error = PeopleError;

    fn try_from(body: ChangePerson) -> Result<Self, PeopleError> {
        Ok(Self {
            roles: body.roles.map(grants).transpose()?,
            is_enabled: body.is_enabled,
        })
    }
}

/// The given password, or a generated one with its text.
fn password(given: Option<String>) -> Result<(Password, Option<String>), PeopleError> {
    match given {
        Some(given) => Ok((Password::new(given)?, None)),
        None => {
            let (password, text) = Password::generate();
            Ok((password, Some(text)))
        }
    }
}

fn time(at: EpochMillis) -> String {
    UtcMillis::new(at).to_string()
}

impl From<&Person> for PersonBody {
    fn from(person: &Person) -> Self {
        Self {
            name: person.name.as_str().to_owned(),
            roles: person.roles.iter().map(RoleBody::from).collect(),
            is_enabled: person.is_enabled,
            has_password: person.has_password,
            has_second_factor: person.has_second_factor,
            created_at: time(person.created_at),
            updated_at: time(person.updated_at),
            last_sign_in_at: person.last_sign_in_at.map(time),
        }
    }
}

impl CreatedPerson {
    #[must_use]
    pub fn new(person: &Person, password: Option<String>) -> Self {
        Self {
            password,
            person: person.into(),
        }
    }
}

impl From<&pages::Page<Person>> for PersonList {
    fn from(page: &pages::Page<Person>) -> Self {
        Self {
            people: page.items.iter().map(PersonBody::from).collect(),
            next_cursor: page.next.as_ref().map(|cursor| cursor.encode()),
        }
    }
}

impl SessionBody {
    pub(super) fn new(session: Credential, is_current: bool) -> Self {
        Self {
            id: session.id.to_string(),
            created_at: time(session.created_at),
            expires_at: time(session.expires_at),
            last_used_at: session.last_used_at.map(time),
            address: session.address,
            user_agent: session.user_agent,
            is_current,
        }
    }
}

impl TokenBody {
    /// `None` for a session, which has no role.
    pub(super) fn new(token: Credential) -> Option<Self> {
        Some(Self {
            id: token.id.to_string(),
            name: token.label?,
            role: (&token.role?).into(),
            created_at: time(token.created_at),
            expires_at: time(token.expires_at),
            last_used_at: token.last_used_at.map(time),
        })
    }
}

/// Leaves the password out.
macro_rules! debug_without_password {
    ($($name:ident),*) => {$(
        impl std::fmt::Debug for $name {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.debug_struct(stringify!($name)).finish_non_exhaustive()
            }
        }
    )*};
}
debug_without_password!(CreatePerson, ResetPassword, CreatedPerson);
