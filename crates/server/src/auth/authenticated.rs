//! The extractor that authenticates callers. Its type parameter says which credentials a route accepts.

use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::StatusCode;
use axum::http::request::Parts;
use homeport_systems::people::{Access, CredentialKind, TOKEN_PREFIX};

use super::admin_token::TokenRejected;
use super::caller::Caller;
use super::needs::{Action, Needed};
use super::permission::Forbidden;
use super::unknown_keys::KeyRejected;
use super::user_tokens::is_jwt;
use super::{bearer_token, client_address, header_text, session_cookie};
use crate::problem::Problem;
use crate::state::AppState;

const KEY_HEADER: &str = "x-api-key";

/// The caller of a route that accepts the credentials `A`.
pub(crate) struct Authenticated<A>(Caller, PhantomData<A>);

/// The system of a group of routes. API keys of other systems are refused on all of them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RouteSystem(pub(crate) &'static str);

/// Which credentials a route accepts, and what people need for it.
pub(crate) trait Accepted {
    const API_KEYS: bool = false;
    const USERS: bool = false;
    const PEOPLE: PeopleNeed = PeopleNeed::Refused;
}

/// What people need for a route.
#[derive(Debug, Clone, Copy)]
pub(crate) enum PeopleNeed {
    Refused,
    /// A role for the action. The handler checks to what it is limited.
    Role(Action),
    /// A role for the action on the whole server.
    Everywhere(Action),
    /// To be signed in.
    SignedIn,
    /// To be signed in with a password, not with a token.
    Session,
}

/// Routes for people with a role for the action. The handler checks to what the role is limited.
pub(crate) struct People<N>(PhantomData<N>);
/// Routes for people with a role for the action on the whole server.
pub(crate) struct Everywhere<N>(PhantomData<N>);
/// Routes for all people, about themselves.
pub(crate) struct Myself;
/// Routes that change a person's own account.
pub(crate) struct OwnSession;
/// Routes for devices and services.
pub(crate) struct ApiKeys;
/// Routes for devices and services, and for people.
pub(crate) struct ApiKeysOrPeople<N>(PhantomData<N>);
/// Routes for app users, and for people who act for them.
pub(crate) struct UsersOrPeople<N>(PhantomData<N>);
/// Routes for all kinds of callers.
pub(crate) struct Everyone<N>(PhantomData<N>);

impl<N: Needed> Accepted for People<N> {
    const PEOPLE: PeopleNeed = PeopleNeed::Role(N::ACTION);
}

impl<N: Needed> Accepted for Everywhere<N> {
    const PEOPLE: PeopleNeed = PeopleNeed::Everywhere(N::ACTION);
}

impl Accepted for Myself {
    const PEOPLE: PeopleNeed = PeopleNeed::SignedIn;
}

impl Accepted for OwnSession {
    const PEOPLE: PeopleNeed = PeopleNeed::Session;
}

impl Accepted for ApiKeys {
    const API_KEYS: bool = true;
}

impl<N: Needed> Accepted for ApiKeysOrPeople<N> {
    const API_KEYS: bool = true;
    const PEOPLE: PeopleNeed = PeopleNeed::Role(N::ACTION);
}

impl<N: Needed> Accepted for UsersOrPeople<N> {
    const USERS: bool = true;
    const PEOPLE: PeopleNeed = PeopleNeed::Role(N::ACTION);
}

impl<N: Needed> Accepted for Everyone<N> {
    const API_KEYS: bool = true;
    const USERS: bool = true;
    const PEOPLE: PeopleNeed = PeopleNeed::Role(N::ACTION);
}

impl PeopleNeed {
    fn check(self, caller: &Caller) -> Result<(), Forbidden> {
        match self {
            // Their credentials were not looked at.
            Self::Refused => Ok(()),
            Self::Role(action) => caller.check_role(action),
            Self::Everywhere(action) => caller.check_everywhere(action),
            Self::SignedIn => Ok(()),
            Self::Session => match caller {
                Caller::Person(access) if access.has_own_session() => Ok(()),
                _ => Err(Forbidden::SessionOnly),
            },
        }
    }
}

impl<A> Deref for Authenticated<A> {
    type Target = Caller;

    fn deref(&self) -> &Caller {
        &self.0
    }
}

impl<A: Accepted> FromRequestParts<AppState> for Authenticated<A> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Problem> {
        let has_key = parts.headers.contains_key(KEY_HEADER);
        let accepts_people = !matches!(A::PEOPLE, PeopleNeed::Refused);
        let caller = if A::API_KEYS && (has_key || !accepts_people) {
            verify_api_key(parts, state).await?
        } else {
            verify_token(parts, state, A::USERS).await?
        };
        A::PEOPLE.check(&caller)?;
        Ok(Self(caller, PhantomData))
    }
}

/// Verifies an API key of the route's system and takes one request from its rate limit.
async fn verify_api_key(parts: &Parts, state: &AppState) -> Result<Caller, Problem> {
    let sent = header_text(&parts.headers, KEY_HEADER)
        .ok_or_else(|| unauthorized("KEY_MISSING", "send an API key in the header X-API-Key"))?;
    let client = client_address(&parts.extensions);
    let key = state.key_verifier.verify(sent, client).await?;
    state.rate_limiter.take(key.key_id).map_err(|wait_secs| {
        Problem::new(
            StatusCode::TOO_MANY_REQUESTS,
            "RATE_LIMITED",
            "too many requests with this API key; try again later",
        )
        .retry_after(wait_secs)
    })?;
    let system = parts.extensions.get::<RouteSystem>();
    if system.is_none_or(|RouteSystem(system)| key.system != *system) {
        return Err(Forbidden::OtherSystem(key.system.clone()).into());
    }
    Ok(Caller::ApiKey(key))
}

/// Verifies a session, a personal access token, the admin token or, where users are accepted, a user's JWT.
async fn verify_token(
    parts: &Parts,
    state: &AppState,
    accepts_users: bool,
) -> Result<Caller, Problem> {
    let Some(sent) = bearer_token(&parts.headers) else {
        if let Some(access) = session_cookie::verify(parts, &state.people).await? {
            return Ok(Caller::Person(access));
        }
        let detail = if accepts_users {
            "send a user's JWT, a personal access token or the admin token as Authorization: Bearer"
        } else {
            "send a personal access token or the admin token as Authorization: Bearer"
        };
        return Err(unauthorized("TOKEN_MISSING", detail));
    };
    let client = client_address(&parts.extensions);
    if sent.starts_with(TOKEN_PREFIX) {
        let access = state.people.verify(sent, CredentialKind::Token).await?;
        return match access {
            Some(access) => Ok(Caller::Person(access)),
            None => Err(match state.admin_token.reject(client) {
                TokenRejected::Wrong => unauthorized(
                    "TOKEN_INVALID",
                    "unknown, expired or revoked personal access token",
                ),
                too_many @ TokenRejected::TooMany { .. } => too_many.into(),
            }),
        };
    }
    let admin = || Caller::Person(Arc::new(Access::admin(None)));
    if !accepts_users {
        state.admin_token.check(sent, client)?;
        return Ok(admin());
    }
    if state.admin_token.is(sent) {
        return Ok(admin());
    }
    let invalid = match state.user_tokens.verify(sent).await {
        Ok(user) => return Ok(Caller::User(user)),
        Err(invalid) => invalid,
    };
    // A rejected JWT, such as an expired one, does not count as a wrong admin token.
    if !is_jwt(sent)
        && let rejected @ TokenRejected::TooMany { .. } = state.admin_token.reject(client)
    {
        return Err(rejected.into());
    }
    Err(invalid.into())
}

impl From<KeyRejected> for Problem {
    fn from(rejected: KeyRejected) -> Self {
        let detail = rejected.to_string();
        match rejected {
            KeyRejected::Unknown => unauthorized("KEY_INVALID", &detail),
            KeyRejected::TooMany { wait_secs } => {
                Self::new(StatusCode::TOO_MANY_REQUESTS, "RATE_LIMITED", detail)
                    .retry_after(wait_secs)
            }
            KeyRejected::NotVerified(error) => error.into(),
        }
    }
}

fn unauthorized(code: &'static str, detail: &str) -> Problem {
    Problem::new(StatusCode::UNAUTHORIZED, code, detail)
}
