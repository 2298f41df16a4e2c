//! People who operate the server: accounts with roles, their sessions and personal access tokens, and second factors.
//! App users, who have phones, belong to `push`; devices have API keys.

mod access;
mod account;
mod cache;
mod credential;
mod directory;
mod password;
mod person;
mod roles;
pub mod schema;
mod second_factor;
mod sessions;
mod setup;
mod totp;

use std::sync::Arc;

use homeport_store::{Clock, Store, StoreError, WriteError};
use sha2::{Digest as _, Sha256};
use tokio::sync::watch;

use crate::cursor::CursorError;
use crate::text::InvalidField;
use crate::time::EpochMillis;

pub use access::{Access, ShownCredential};
pub use account::NewToken;
pub use credential::{Credential, CredentialId, CredentialKind, RawCredential, TOKEN_PREFIX};
pub use directory::{NewPerson, PersonChange};
pub use password::{
    HASHES_MAX, HASHES_WAITING_MAX, PASSWORD_CHARS_MAX, PASSWORD_CHARS_MIN, Password,
};
pub use person::{ADMIN_NAME, Person, PersonName};
pub use roles::{Grant, LIMIT_ENTRIES_MAX, Limits, ROLES_MAX, Role};
pub use second_factor::{Enrolment, RECOVERY_CODES, RecoveryCodes};
pub use sessions::{NewSession, SessionClient, SignIn};
pub use setup::SETUP_SECS;

/// People of one page.
pub const PAGE_MAX: usize = 1000;
/// People of one server.
pub const PEOPLE_MAX: usize = 1000;
/// Sessions of one person. Beyond that, the one that expires first ends.
pub const SESSIONS_MAX: usize = 100;
/// Personal access tokens of one person.
pub const TOKENS_MAX: usize = 50;
/// The longest life of a token.
pub const TOKEN_DAYS_MAX: i64 = 366;
/// How long another process may accept a session or token that this process revoked, and use roles that it changed.
pub const CACHE_SECS: i64 = 10;
/// The shortest interval between two writes of the time of last use, and of the last sign-in.
pub const LAST_USED_EVERY_SECS: i64 = 5 * 60;
/// Attempts at a write that conflicts with another one.
const ATTEMPTS_MAX: usize = 5;

/// Settings of people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// How long a session lasts.
    pub session_secs: i64,
    /// A number that changes with the admin token, so that its sessions end with it.
    pub admin_generation: i64,
}

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PeopleError {
    #[error(transparent)]
    Invalid(#[from] InvalidField),
    #[error("{0}")]
    InvalidPassword(&'static str),
    #[error("{0}")]
    InvalidRole(String),
    #[error("{0}")]
    InvalidToken(&'static str),
    #[error("the name admin belongs to the admin token; choose another")]
    ReservedName,
    #[error("there is no person {0}")]
    Missing(String),
    #[error("there is a person {0} already")]
    Exists(String),
    #[error("this is the last administrator who is enabled; make another one first")]
    LastAdministrator,
    #[error("there are 1000 people already; delete one first")]
    TooManyPeople,
    #[error("you have 50 tokens already; revoke one first")]
    TooManyTokens,
    #[error("there is no such session or token")]
    CredentialMissing,
    #[error("wrong name or password")]
    WrongPassword,
    #[error("enter the code of your authenticator app, or a recovery code")]
    CodeRequired,
    #[error("wrong code, or one that was used already")]
    WrongCode,
    #[error("there is no second factor to confirm; begin to set it up first")]
    NoSecondFactor,
    #[error("you have a second factor already; remove it first")]
    HasSecondFactor,
    #[error(
        "the set-up link is invalid, used or older than an hour; restart the server for another one, or use the admin token"
    )]
    InvalidSetup,
    #[error("the admin token has no account; sign in as a person")]
    NoAccount,
    #[error("too many people are signing in; try again later")]
    Busy,
    #[error(transparent)]
    Cursor(#[from] CursorError),
    /// The text names a member or attribute, never its value.
    #[error("a stored person, session or token is malformed: {0}")]
    Malformed(String),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// All people, on a store.
#[derive(Clone)]
pub struct People {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    settings: Settings,
    hasher: Arc<password::Hasher>,
    cache: Arc<cache::Cache>,
    /// Notified when credentials or roles change.
    changed: watch::Sender<()>,
}

impl People {
    #[must_use]
    pub fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>, settings: Settings) -> Self {
        Self {
            store,
            clock,
            settings,
            hasher: Arc::default(),
            cache: Arc::default(),
            changed: watch::Sender::new(()),
        }
    }

    fn now(&self) -> EpochMillis {
        EpochMillis(self.clock.now_ms())
    }

    /// Forgets what is cached of a person and wakes those who wait for a session's end. Called after every change.
    fn forget(&self, person: uuid::Uuid) {
        self.cache.forget(person);
        self.changed.send_replace(());
    }
}

impl std::fmt::Debug for People {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("People").finish_non_exhaustive()
    }
}

/// The error of a write whose condition is not about what the caller sent.
fn conflict(error: WriteError) -> PeopleError {
    match error {
        WriteError::ConditionFailed { .. } => StoreError::Throttled.into(),
        WriteError::Store(error) => error.into(),
    }
}

fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the operating system has randomness");
    bytes
}

/// A digest of a random secret. It needs no salt and no slow hash, because nobody can guess the secret.
fn digest(secret: &[u8]) -> String {
    hex::encode(Sha256::digest(secret))
}
