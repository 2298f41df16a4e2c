//! Signing in, and verifying and ending sessions and tokens.

use std::sync::Arc;
use std::time::Duration;

use homeport_item::Number;
use homeport_item::expression::{Condition, KeyCondition, Update as UpdateExpression};
use homeport_item::{Item, Value};
use homeport_store::{Delete, Get, Put, Query, ReturnValues, Update, WriteError};
use uuid::Uuid;

use super::access::{Access, ShownCredential};
use super::credential::{
    self, Credential, CredentialBody, CredentialId, CredentialKind, RawCredential,
};
use super::person::{self, ADMIN_NAME};
use super::{LAST_USED_EVERY_SECS, People, PeopleError, SESSIONS_MAX, conflict, schema};
use crate::time::EpochMillis;

/// Interval at which a request without an end checks whether its session still lasts.
const SESSION_CHECK_EVERY: Duration = Duration::from_secs(15);
/// Longest name of a program that is kept with a session, in characters.
const USER_AGENT_CHARS_MAX: usize = 200;

/// What someone signs in with.
#[derive(Clone)]
pub struct SignIn {
    pub name: String,
    pub password: String,
    /// A code of the second factor, or a recovery code.
    pub code: Option<String>,
}

/// Where a session is begun.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SessionClient {
    pub address: Option<String>,
    pub user_agent: Option<String>,
}

/// A new session.
#[derive(Debug)]
pub struct NewSession {
    /// The value of the cookie.
    pub raw: RawCredential,
    pub lifetime_secs: i64,
}

impl People {
    /// Begins a session of a person. Unknown and disabled people take as long as known ones.
    ///
    /// # Errors
    /// If the password or the code is wrong, a code is required, too many sign in at once, or the store fails.
    pub async fn sign_in(
        &self,
        sign_in: SignIn,
        client: SessionClient,
    ) -> Result<NewSession, PeopleError> {
        // A name that nobody can have is looked up too, under one that is as long as a name may be.
        let name: String = sign_in.name.chars().take(64).collect();
        let key = if name.is_empty() {
            "-".to_owned()
        } else {
            name
        };
        let found = self.find_stored(&key).await?;
        let hash = found.filter(|person| person.body.is_enabled);
        let hash = hash.and_then(|person| person.body.password_hash);
        if !self.hasher.verify(sign_in.password, hash.clone()).await? {
            return Err(PeopleError::WrongPassword);
        }
        let now = self.now();
        let (person, ()) = self
            .edit(&key, |body| {
                // Changed in the meantime.
                if body.password_hash != hash || !body.is_enabled {
                    return Err(PeopleError::WrongPassword);
                }
                if let Some(factor) = body
                    .second_factor
                    .as_mut()
                    .filter(|factor| factor.is_confirmed)
                {
                    let code = sign_in.code.as_deref().ok_or(PeopleError::CodeRequired)?;
                    factor.use_code(code, now.seconds().0)?;
                }
                let last = body.last_sign_in_at_ms.unwrap_or(i64::MIN);
                if now.0.saturating_sub(last) >= LAST_USED_EVERY_SECS * 1000 {
                    body.last_sign_in_at_ms = Some(now.0);
                }
                Ok(())
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

    /// Begins a session of the admin token.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn begin_admin_session(
        &self,
        client: SessionClient,
    ) -> Result<NewSession, PeopleError> {
        self.begin(
            Uuid::nil(),
            ADMIN_NAME,
            self.settings.admin_generation,
            client,
        )
        .await
    }

    pub(super) async fn begin(
        &self,
        person: Uuid,
        name: &str,
        generation: i64,
        client: SessionClient,
    ) -> Result<NewSession, PeopleError> {
        let mut sessions = self.credentials(person, CredentialKind::Session).await?;
        while sessions.len() >= SESSIONS_MAX {
            let (at, _) = sessions
                .iter()
                .enumerate()
                .min_by_key(|(_, session)| session.expires_at)
                .expect("there is a session");
            let first = sessions.remove(at);
            self.delete_credential(person, first.id).await?;
        }
        let now = self.now();
        let lifetime_secs = self.settings.session_secs;
        let user_agent = client
            .user_agent
            .map(|name| name.chars().take(USER_AGENT_CHARS_MAX).collect());
        let body = CredentialBody {
            kind: CredentialKind::Session,
            name: name.to_owned(),
            generation,
            created_at_ms: now.0,
            expires_at_ms: now.0.saturating_add(lifetime_secs.saturating_mul(1000)),
            label: None,
            role: None,
            address: client.address,
            user_agent,
        };
        let raw = self.issue(person, &body).await?;
        Ok(NewSession { raw, lifetime_secs })
    }

    /// Stores a new credential.
    pub(super) async fn issue(
        &self,
        person: Uuid,
        body: &CredentialBody,
    ) -> Result<RawCredential, PeopleError> {
        let raw = RawCredential::new(body.kind, person);
        let put = Put::new(schema::CREDENTIALS, raw.to_item(body)?)
            .when(Condition::not_exists(schema::PERSON_ID));
        self.store.put(put).await.map_err(conflict)?;
        Ok(raw)
    }

    /// The person to whom a session or token belongs; `None` if it is unknown, expired or revoked, or the person is
    /// disabled.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn verify(
        &self,
        text: &str,
        kind: CredentialKind,
    ) -> Result<Option<Arc<Access>>, PeopleError> {
        let Some(raw) = RawCredential::parse(text).filter(|raw| raw.kind == kind) else {
            return Ok(None);
        };
        let now = self.now();
        let access = match self.cache.get(&raw, now) {
            Some(access) => access,
            None => {
                let changes = self.cache.changes();
                let Some(access) = self.look_up(&raw).await? else {
                    return Ok(None);
                };
                let access = Arc::new(access);
                self.cache.put(&raw, &access, now, changes);
                access
            }
        };
        let is_over = access
            .credential
            .is_some_and(|shown| shown.expires_at <= now);
        if is_over {
            return Ok(None);
        }
        self.note_use(&raw, now).await;
        Ok(Some(access))
    }

    async fn look_up(&self, raw: &RawCredential) -> Result<Option<Access>, PeopleError> {
        let item = self
            .store
            .get(Get::new(schema::CREDENTIALS, raw.key()))
            .await?;
        let digest = item
            .as_ref()
            .and_then(|item| item.get(schema::DIGEST)?.as_str());
        let (Some(item), true) = (&item, digest.is_some_and(|digest| raw.has_digest(digest)))
        else {
            return Ok(None);
        };
        let body: CredentialBody = person::body(item)?;
        if body.kind != raw.kind {
            return Ok(None);
        }
        let shown = ShownCredential {
            id: raw.id,
            kind: body.kind,
            expires_at: EpochMillis(body.expires_at_ms),
        };
        if raw.person.is_nil() {
            let is_current = body.generation == self.settings.admin_generation;
            return Ok(is_current.then(|| Access::admin(Some(shown))));
        }
        let person = self.find_stored(&body.name).await?;
        let person = person.filter(|person| {
            let stored = &person.body;
            stored.id == raw.person && stored.is_enabled && stored.generation == body.generation
        });
        Ok(person.map(|person| {
            Access::of(person.name.into(), person.body.id, person.body.roles).by(shown, body.role)
        }))
    }

    /// Writes the time of last use at intervals. It does not matter for security, so a failure is only logged.
    async fn note_use(&self, raw: &RawCredential, now: EpochMillis) {
        if !self.cache.is_use_due(raw, now) {
            return;
        }
        let update = UpdateExpression::new().set(schema::LAST_USED_AT_MS, Number::from(now.0));
        let request = Update::new(schema::CREDENTIALS, raw.key(), update)
            .when(Condition::exists(schema::DIGEST));
        match self.store.update(request).await {
            Ok(_) | Err(WriteError::ConditionFailed { .. }) => {}
            Err(error) => {
                tracing::warn!(id = %raw.id, %error, "writing the last use of a credential failed")
            }
        }
    }

    /// The sessions or tokens of a person that have not expired, the newest first.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn credentials(
        &self,
        person: Uuid,
        kind: CredentialKind,
    ) -> Result<Vec<Credential>, PeopleError> {
        let items = self.credential_items(person).await?;
        let now = self.now();
        let mut found: Vec<Credential> = items
            .iter()
            .filter_map(|item| Credential::from_item(item).ok())
            .filter(|credential| credential.kind == kind && credential.expires_at > now)
            .collect();
        found.sort_by_key(|credential| std::cmp::Reverse(credential.created_at));
        Ok(found)
    }

    /// All stored credentials of a person; their number is bounded.
    async fn credential_items(&self, person: Uuid) -> Result<Vec<Item>, PeopleError> {
        let condition = KeyCondition::new(schema::PERSON_ID, person.to_string());
        let mut query = Query::new(schema::CREDENTIALS, condition);
        query.consistent = true;
        let mut items = Vec::new();
        loop {
            let page = self.store.query(query.clone()).await?;
            items.extend(page.items);
            query.start = page.next;
            if query.start.is_none() {
                return Ok(items);
            }
        }
    }

    /// Ends a session or revokes a token.
    ///
    /// # Errors
    /// If the person has no credential with this id, or the store fails.
    pub async fn revoke(&self, person: Uuid, id: CredentialId) -> Result<(), PeopleError> {
        let existed = self.delete_credential(person, id).await?;
        existed.then_some(()).ok_or(PeopleError::CredentialMissing)
    }

    /// Ends all sessions of a person but one.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn end_sessions(
        &self,
        person: Uuid,
        but: Option<CredentialId>,
    ) -> Result<(), PeopleError> {
        for session in self.credentials(person, CredentialKind::Session).await? {
            if Some(session.id) != but {
                self.delete_credential(person, session.id).await?;
            }
        }
        Ok(())
    }

    /// Deletes all sessions and tokens of a person. They are invalid already by their generation.
    pub(super) async fn delete_credentials(&self, person: Uuid) -> Result<(), PeopleError> {
        for item in self.credential_items(person).await? {
            let id = item.get(schema::CREDENTIAL_ID).and_then(Value::as_str);
            if let Some(Ok(id)) = id.map(str::parse) {
                self.delete_credential(person, id).await?;
            }
        }
        Ok(())
    }

    async fn delete_credential(&self, person: Uuid, id: CredentialId) -> Result<bool, PeopleError> {
        let delete = Delete::new(schema::CREDENTIALS, credential::key(person, id))
            .returning(ReturnValues::AllOld);
        let old = self.store.delete(delete).await.map_err(conflict)?;
        // IMPORTANT: only after the store has deleted it, or a verification under way could bring it back.
        self.forget(person);
        Ok(old.is_some())
    }

    /// Waits until a session or token is no longer valid. Changes by other processes take effect within
    /// [`SESSION_CHECK_EVERY`] and the life of the cache.
    pub async fn until_over(&self, text: &str, kind: CredentialKind) {
        let mut changed = self.changed.subscribe();
        loop {
            changed.mark_unchanged();
            // While the store is unavailable, nothing is known about it; the request itself fails then.
            let left = match self.verify(text, kind).await {
                Ok(None) => return,
                Ok(Some(access)) => access.credential.map(|shown| {
                    let left_ms = shown.expires_at.0.saturating_sub(self.clock.now_ms());
                    Duration::from_millis(left_ms.try_into().unwrap_or_default())
                }),
                Err(_) => None,
            };
            let check =
                tokio::time::sleep(left.unwrap_or(SESSION_CHECK_EVERY).min(SESSION_CHECK_EVERY));
            tokio::select! {
                () = check => {}
                // The sender lives as long as `self`.
                _ = changed.changed() => {}
            }
        }
    }
}

impl std::fmt::Debug for SignIn {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("SignIn").finish_non_exhaustive()
    }
}
