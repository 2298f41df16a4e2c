//! The first administrator: a link with a token that is valid once, for an hour, while there are no people.

use homeport_item::expression::Condition;
use homeport_store::{Delete, Get, Put};
use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq as _;

use super::directory::{DirectoryChange, NewPerson, has_version};
use super::roles::{Grant, Role};
use super::{
    NewSession, Password, People, PeopleError, PersonName, SessionClient, conflict, digest, person,
    random, schema,
};

/// How long a link is valid.
pub const SETUP_SECS: i64 = 60 * 60;
const TOKEN_BYTES: usize = 32;

#[derive(Serialize, Deserialize)]
struct Setup {
    digest: String,
    expires_at_ms: i64,
}

impl People {
    /// The token of a new link, if there are no people. Earlier links become invalid.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn begin_setup(&self) -> Result<Option<String>, PeopleError> {
        if !self.list(1, None).await?.items.is_empty() {
            return Ok(None);
        }
        let token = hex::encode(random::<TOKEN_BYTES>());
        let now = self.now();
        let setup = Setup {
            digest: digest(token.as_bytes()),
            expires_at_ms: now.0 + SETUP_SECS * 1000,
        };
        // The version is the moment, so that an earlier link cannot be used with a later one.
        let item = person::item(
            schema::SETUP_PARTITION,
            schema::SETUP_PARTITION,
            now.0,
            &setup,
        )?;
        let put = Put::new(schema::PEOPLE, item);
        self.store.put(put).await.map_err(conflict)?;
        Ok(Some(token))
    }

    /// Creates the first administrator and signs in.
    ///
    /// # Errors
    /// If the link is invalid, used or too old, the name is reserved, or the store fails.
    pub async fn complete_setup(
        &self,
        token: &str,
        name: PersonName,
        password: Password,
        client: SessionClient,
    ) -> Result<NewSession, PeopleError> {
        let version = self.setup_version(token).await?;
        let new = NewPerson {
            name,
            password: Some(password),
            roles: vec![Grant::everywhere(Role::Administrator)],
        };
        let person = self.new_person(new).await?;
        let key = person::key(schema::SETUP_PARTITION, schema::SETUP_PARTITION);
        let used = Delete::new(schema::PEOPLE, key)
            .when(Condition::exists(schema::VERSION).and(has_version(version)));
        let person = self
            .change_directory(vec![used.into()], |people| {
                if people.is_empty() {
                    Ok(DirectoryChange::Create(person.clone()))
                } else {
                    Err(PeopleError::InvalidSetup)
                }
            })
            .await?;
        self.begin(
            person.body.id,
            person.name.as_str(),
            person.body.generation,
            client,
        )
        .await
    }

    async fn setup_version(&self, token: &str) -> Result<i64, PeopleError> {
        let key = person::key(schema::SETUP_PARTITION, schema::SETUP_PARTITION);
        let item = self.store.get(Get::new(schema::PEOPLE, key)).await?;
        let item = item.ok_or(PeopleError::InvalidSetup)?;
        let setup: Setup = person::body(&item)?;
        let sent = digest(token.as_bytes());
        let is_right: bool = sent.as_bytes().ct_eq(setup.digest.as_bytes()).into();
        if !is_right || self.now().0 >= setup.expires_at_ms {
            return Err(PeopleError::InvalidSetup);
        }
        if !self.list(1, None).await?.items.is_empty() {
            return Err(PeopleError::InvalidSetup);
        }
        person::version(&item)
    }
}
