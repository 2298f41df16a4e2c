//! What a person may do now, by the credential that was shown.

use uuid::Uuid;

use super::credential::{CredentialId, CredentialKind};
use super::person::ADMIN_NAME;
use super::roles::{Grant, Role};
use crate::time::EpochMillis;

/// An authenticated person, or the admin token.
#[derive(Debug, Clone, PartialEq)]
pub struct Access {
    pub name: String,
    /// Zeros for the admin token.
    pub person: Uuid,
    roles: Vec<Grant>,
    /// What a token is limited to.
    token_role: Option<Grant>,
    /// Absent if the admin token itself was shown.
    pub credential: Option<ShownCredential>,
}

/// The session or token of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShownCredential {
    pub id: CredentialId,
    pub kind: CredentialKind,
    pub expires_at: EpochMillis,
}

impl Access {
    /// The admin token: an administrator.
    #[must_use]
    pub fn admin(session: Option<ShownCredential>) -> Self {
        let roles = vec![Grant::everywhere(Role::Administrator)];
        Self {
            credential: session,
            ..Self::of(ADMIN_NAME.to_owned(), Uuid::nil(), roles)
        }
    }

    #[must_use]
    pub fn of(name: String, person: Uuid, roles: Vec<Grant>) -> Self {
        Self {
            name,
            person,
            roles,
            token_role: None,
            credential: None,
        }
    }

    #[must_use]
    pub(super) fn by(mut self, credential: ShownCredential, token_role: Option<Grant>) -> Self {
        self.credential = Some(credential);
        self.token_role = token_role;
        self
    }

    #[must_use]
    pub fn is_admin_token(&self) -> bool {
        self.person.is_nil()
    }

    /// Whether a person signed in with a password, rather than a token or the admin token.
    #[must_use]
    pub fn has_own_session(&self) -> bool {
        let is_session = |shown: ShownCredential| shown.kind == CredentialKind::Session;
        !self.is_admin_token() && self.credential.is_some_and(is_session)
    }

    #[must_use]
    pub fn roles(&self) -> &[Grant] {
        &self.roles
    }

    #[must_use]
    pub fn token_role(&self) -> Option<&Grant> {
        self.token_role.as_ref()
    }

    /// Whether one of the roles permits something, and the token too if one was shown.
    pub fn permits(&self, permits: impl Fn(&Grant) -> bool) -> bool {
        self.roles.iter().any(&permits) && self.token_role.iter().all(permits)
    }
}
