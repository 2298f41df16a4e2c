//! Sessions and personal access tokens: what a person shows instead of the password. The table has only a digest of
//! their secret.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use homeport_item::{Item, Number, Value};
use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq as _;
use uuid::Uuid;

use super::roles::Grant;
use super::{PeopleError, digest, person, random, schema};
use crate::text::InvalidField;
use crate::time::EpochMillis;

/// With these begin the texts of tokens and sessions, so that a leaked one is recognized.
pub const TOKEN_PREFIX: &str = "hpt_";
const SESSION_PREFIX: &str = "hps_";

const ID_BYTES: usize = 8;
const SECRET_BYTES: usize = 32;
const PERSON_BYTES: usize = 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CredentialKind {
    /// A browser that has signed in.
    Session,
    /// A personal access token, for scripts.
    Token,
}

/// The id of a session or token among those of a person: 16 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CredentialId([u8; ID_BYTES]);

/// A session or a token, without its secret.
#[derive(Debug, Clone, PartialEq)]
pub struct Credential {
    pub id: CredentialId,
    pub kind: CredentialKind,
    pub created_at: EpochMillis,
    pub expires_at: EpochMillis,
    pub last_used_at: Option<EpochMillis>,
    /// The name of a token.
    pub label: Option<String>,
    /// The role of a token, which applies as far as the person's own roles do.
    pub role: Option<Grant>,
    /// From where a session was begun, and with which program.
    pub address: Option<String>,
    pub user_agent: Option<String>,
}

/// The text of a session or token. Its `Debug` form hides it.
#[derive(Clone, PartialEq, Eq)]
pub struct RawCredential {
    pub(super) kind: CredentialKind,
    pub(super) person: Uuid,
    pub(super) id: CredentialId,
    secret: [u8; SECRET_BYTES],
}

/// What the table has of a credential besides its key and its digest.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct CredentialBody {
    pub(super) kind: CredentialKind,
    /// The name of the person.
    pub(super) name: String,
    /// The person's generation when it was made.
    pub(super) generation: i64,
    pub(super) created_at_ms: i64,
    pub(super) expires_at_ms: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) label: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) role: Option<Grant>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) address: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) user_agent: Option<String>,
}

impl CredentialId {
    fn bytes(text: &str) -> Option<[u8; ID_BYTES]> {
        let mut bytes = [0; ID_BYTES];
        hex::decode_to_slice(text, &mut bytes).ok()?;
        Some(bytes)
    }
}

impl FromStr for CredentialId {
    type Err = InvalidField;

    fn from_str(text: &str) -> Result<Self, InvalidField> {
        let bytes = Self::bytes(text);
        bytes.map(Self).ok_or(InvalidField {
            field: "id",
            expected: "16 hexadecimal digits",
        })
    }
}

impl fmt::Display for CredentialId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&hex::encode(self.0))
    }
}

impl RawCredential {
    pub(super) fn new(kind: CredentialKind, person: Uuid) -> Self {
        Self {
            kind,
            person,
            id: CredentialId(random()),
            secret: random(),
        }
    }

    /// The text, to be shown once.
    #[must_use]
    pub fn reveal(&self) -> String {
        let bytes = [self.person.as_bytes(), &self.id.0[..], &self.secret].concat();
        let prefix = match self.kind {
            CredentialKind::Session => SESSION_PREFIX,
            CredentialKind::Token => TOKEN_PREFIX,
        };
        format!("{prefix}{}", URL_SAFE_NO_PAD.encode(bytes))
    }

    pub(super) fn parse(text: &str) -> Option<Self> {
        let kinds = [
            (SESSION_PREFIX, CredentialKind::Session),
            (TOKEN_PREFIX, CredentialKind::Token),
        ];
        let mut kinds = kinds.into_iter();
        let (text, kind) =
            kinds.find_map(|(prefix, kind)| Some((text.strip_prefix(prefix)?, kind)))?;
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let (person, rest) = bytes.split_first_chunk::<PERSON_BYTES>()?;
        let (id, secret) = rest.split_first_chunk()?;
        Some(Self {
            kind,
            person: Uuid::from_bytes(*person),
            id: CredentialId(*id),
            secret: secret.try_into().ok()?,
        })
    }

    pub(super) fn digest(&self) -> String {
        digest(&self.secret)
    }

    pub(super) fn has_digest(&self, stored: &str) -> bool {
        self.digest().as_bytes().ct_eq(stored.as_bytes()).into()
    }

    pub(super) fn key(&self) -> Item {
        key(self.person, self.id)
    }

    pub(super) fn to_item(&self, body: &CredentialBody) -> Result<Item, PeopleError> {
        let text = serde_json::to_string(body);
        let text = text.map_err(|error| PeopleError::Malformed(error.to_string()))?;
        // The table may delete it up to a second late, and the moment itself is compared wherever it is read.
        let expires_at = EpochMillis(body.expires_at_ms).seconds().plus_secs(1);
        Ok(self
            .key()
            .with(schema::DIGEST, self.digest())
            .with(schema::EXPIRES_AT, Number::from(expires_at.0))
            .with(schema::BODY, text))
    }
}

pub(super) fn key(person: Uuid, id: CredentialId) -> Item {
    Item::new()
        .with(schema::PERSON_ID, person.to_string())
        .with(schema::CREDENTIAL_ID, id.to_string())
}

impl Credential {
    pub(super) fn from_item(item: &Item) -> Result<Self, PeopleError> {
        let body: CredentialBody = person::body(item)?;
        let id = item.get(schema::CREDENTIAL_ID).and_then(Value::as_str);
        let id = id.and_then(|id| id.parse().ok());
        Ok(Self {
            id: id.ok_or_else(|| PeopleError::Malformed(schema::CREDENTIAL_ID.to_owned()))?,
            kind: body.kind,
            created_at: EpochMillis(body.created_at_ms),
            expires_at: EpochMillis(body.expires_at_ms),
            last_used_at: last_used(item),
            label: body.label,
            role: body.role,
            address: body.address,
            user_agent: body.user_agent,
        })
    }
}

pub(super) fn last_used(item: &Item) -> Option<EpochMillis> {
    let millis = item
        .get(schema::LAST_USED_AT_MS)
        .and_then(Value::as_number)?;
    millis.to_string().parse().ok().map(EpochMillis)
}

impl fmt::Debug for RawCredential {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("RawCredential(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_round_trip_through_their_text() {
        for kind in [CredentialKind::Session, CredentialKind::Token] {
            let raw = RawCredential::new(kind, Uuid::new_v4());
            assert_eq!(RawCredential::parse(&raw.reveal()), Some(raw.clone()));
            assert!(!format!("{raw:?}").contains(&raw.reveal()[4..]));
            assert_eq!(RawCredential::parse(&raw.reveal()[..70]), None);
        }
        assert_eq!(RawCredential::parse("hpt_"), None);
    }
}
