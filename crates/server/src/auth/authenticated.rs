//! The extractor that authenticates callers. Its type parameter says which credentials a route accepts.

use std::marker::PhantomData;
use std::ops::Deref;

use axum::extract::FromRequestParts;
use axum::http::StatusCode;
use axum::http::request::Parts;

use super::admin_token::TokenRejected;
use super::caller::Caller;
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

/// Which credentials a route accepts.
pub(crate) trait Accepted {
    const API_KEYS: bool = false;
    const OPERATORS: bool = false;
    const USERS: bool = false;
}

/// Routes for operators.
pub(crate) struct Operators;
/// Routes for devices and services.
pub(crate) struct ApiKeys;
/// Routes for devices and services, and for operators.
pub(crate) struct ApiKeysOrOperators;
/// Routes for app users, and for operators who act for them.
pub(crate) struct UsersOrOperators;
/// Routes for all kinds of callers.
pub(crate) struct Everyone;

impl Accepted for Operators {
    const OPERATORS: bool = true;
}

impl Accepted for ApiKeys {
    const API_KEYS: bool = true;
}

impl Accepted for ApiKeysOrOperators {
    const API_KEYS: bool = true;
    const OPERATORS: bool = true;
}

impl Accepted for UsersOrOperators {
    const OPERATORS: bool = true;
    const USERS: bool = true;
}

impl Accepted for Everyone {
    const API_KEYS: bool = true;
    const OPERATORS: bool = true;
    const USERS: bool = true;
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
        let caller = if A::API_KEYS && (has_key || !A::OPERATORS) {
            verify_api_key(parts, state).await?
        } else {
            verify_token(parts, state, A::USERS).await?
        };
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

/// Verifies the admin token, a console session or, where users are accepted, a user's JWT.
async fn verify_token(
    parts: &Parts,
    state: &AppState,
    accepts_users: bool,
) -> Result<Caller, Problem> {
    let Some(sent) = bearer_token(&parts.headers) else {
        if session_cookie::is_operator(parts, &state.console.sessions)? {
            return Ok(Caller::Operator);
        }
        let detail = if accepts_users {
            "send a user's JWT or the admin token as Authorization: Bearer"
        } else {
            "send the admin token as Authorization: Bearer"
        };
        return Err(unauthorized("TOKEN_MISSING", detail));
    };
    let client = client_address(&parts.extensions);
    if !accepts_users {
        state.admin_token.check(sent, client)?;
        return Ok(Caller::Operator);
    }
    if state.admin_token.is(sent) {
        return Ok(Caller::Operator);
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
