//! People as they are stored.

use homeport_item::{Item, Number, Value};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::roles::{Grant, Role};
use super::second_factor::SecondFactor;
use super::{PeopleError, schema};
use crate::text::{Form, text_type};
use crate::time::EpochMillis;

/// The name under which the admin token acts. No person can have it.
pub const ADMIN_NAME: &str = "admin";

/// Lower case only, so that no two names look alike. E-mail addresses are names.
const SIGN_IN_NAME: Form = Form {
    pattern: "^[a-z0-9][a-z0-9._@+-]*$",
    accepts: |text| {
        let is_word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        text.bytes().next().is_some_and(is_word)
            && (text.bytes()).all(|byte| is_word(byte) || b"._@+-".contains(&byte))
    },
};

text_type! {
    /// The name with which a person signs in. It never changes.
    PersonName(String) {
        field: "name",
        chars: 1..=64,
        form: SIGN_IN_NAME,
        expected: "1 to 64 lower-case letters, digits and . _ @ + -, beginning with a letter or digit",
        example: "anna@example.com",
    }
}

/// A person.
#[derive(Debug, Clone, PartialEq)]
pub struct Person {
    pub name: PersonName,
    pub id: Uuid,
    pub roles: Vec<Grant>,
    pub is_enabled: bool,
    pub has_password: bool,
    pub has_second_factor: bool,
    /// Recovery codes that were not used.
    pub recovery_codes_left: usize,
    pub created_at: EpochMillis,
    pub updated_at: EpochMillis,
    pub last_sign_in_at: Option<EpochMillis>,
}

/// A person as the table has it.
#[derive(Clone)]
pub(super) struct StoredPerson {
    pub(super) name: PersonName,
    pub(super) version: i64,
    pub(super) body: PersonBody,
}

/// What the table has of a person besides the key.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct PersonBody {
    #[serde(with = "uuid_text")]
    pub(super) id: Uuid,
    pub(super) roles: Vec<Grant>,
    pub(super) is_enabled: bool,
    /// An argon2id hash; absent if the person cannot sign in with a password.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) password_hash: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) second_factor: Option<SecondFactor>,
    /// Credentials with another generation are invalid. Changing it ends all of them at once.
    pub(super) generation: i64,
    pub(super) created_at_ms: i64,
    pub(super) updated_at_ms: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) last_sign_in_at_ms: Option<i64>,
}

impl StoredPerson {
    /// Whether the person can administer everything.
    pub(super) fn is_active_administrator(&self) -> bool {
        let is_administrator = |grant: &Grant| grant.role == Role::Administrator;
        self.body.is_enabled && self.body.roles.iter().any(is_administrator)
    }

    pub(super) fn key(name: &str) -> Item {
        key(schema::PERSON_PARTITION, name)
    }

    pub(super) fn to_item(&self) -> Result<Item, PeopleError> {
        item(
            schema::PERSON_PARTITION,
            self.name.as_str(),
            self.version,
            &self.body,
        )
    }

    pub(super) fn from_item(item: &Item) -> Result<Self, PeopleError> {
        let name = item.get(schema::NAME).and_then(Value::as_str);
        let name = name.and_then(|name| name.parse().ok());
        Ok(Self {
            name: name.ok_or_else(|| PeopleError::Malformed("name".to_owned()))?,
            version: version(item)?,
            body: body(item)?,
        })
    }

    pub(super) fn shown(&self) -> Person {
        let body = &self.body;
        let factor = body
            .second_factor
            .as_ref()
            .filter(|factor| factor.is_confirmed);
        Person {
            name: self.name.clone(),
            id: body.id,
            roles: body.roles.clone(),
            is_enabled: body.is_enabled,
            has_password: body.password_hash.is_some(),
            has_second_factor: factor.is_some(),
            recovery_codes_left: factor.map_or(0, |factor| factor.recovery_digests.len()),
            created_at: EpochMillis(body.created_at_ms),
            updated_at: EpochMillis(body.updated_at_ms),
            last_sign_in_at: body.last_sign_in_at_ms.map(EpochMillis),
        }
    }
}

pub(super) fn key(partition: &str, name: &str) -> Item {
    Item::new()
        .with(schema::PARTITION, partition)
        .with(schema::NAME, name)
}

pub(super) fn item(
    partition: &str,
    name: &str,
    version: i64,
    body: &impl Serialize,
) -> Result<Item, PeopleError> {
    let body = serde_json::to_string(body);
    let body = body.map_err(|error| PeopleError::Malformed(error.to_string()))?;
    Ok(key(partition, name)
        .with(schema::VERSION, Number::from(version))
        .with(schema::BODY, body))
}

pub(super) fn version(item: &Item) -> Result<i64, PeopleError> {
    let version = item.get(schema::VERSION).and_then(Value::as_number);
    version
        .and_then(|version| version.to_string().parse().ok())
        .ok_or_else(|| PeopleError::Malformed(schema::VERSION.to_owned()))
}

pub(super) fn body<'a, T: Deserialize<'a>>(item: &'a Item) -> Result<T, PeopleError> {
    let text = item.get(schema::BODY).and_then(Value::as_str);
    let text = text.ok_or_else(|| PeopleError::Malformed(schema::BODY.to_owned()))?;
    // Errors of serde name members and positions, and no values of text members.
    serde_json::from_str(text).map_err(|error| PeopleError::Malformed(error.to_string()))
}

/// A UUID as text.
mod uuid_text {
    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serializer};
    use uuid::Uuid;

    pub(super) fn serialize<S: Serializer>(id: &Uuid, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(id)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Uuid, D::Error> {
        let text = String::deserialize(deserializer)?;
        Uuid::try_parse(&text).map_err(D::Error::custom)
    }
}
