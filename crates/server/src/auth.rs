//! Authentication: a device with its key, an operator with the admin token or in a session of the
//! console, or an app's user with a JWT.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{Extensions, HeaderMap, StatusCode, header};
use homeport_systems::api_keys::ApiKey;
use homeport_systems::push::UserId;
use homeport_wire::listen::Connection;

use crate::jwt;
use crate::problem::Problem;
use crate::state::AppState;

mod admin_token;
pub(crate) mod cookie;

pub use admin_token::AdminToken;
pub(crate) use admin_token::TokenRejected;

const KEY_HEADER: &str = "x-api-key";

/// A device that proved itself with a key that is active and within its rate.
pub(crate) struct Device(pub(crate) Arc<ApiKey>);

/// An operator.
pub(crate) struct Admin;

/// Either: reading is for devices and for operators. A device shows its key.
pub(crate) struct Reader(pub(crate) Option<Arc<ApiKey>>);

/// An app's user, or an operator, who may act for any user.
pub(crate) enum UserOrAdmin {
    User(UserId),
    Admin,
}

/// Whoever may look at notifications: operators, keys, and users at their own.
pub(crate) enum Sender {
    Key(Device),
    Other(UserOrAdmin),
}

impl UserOrAdmin {
    /// The user that is meant. There is no anonymous one.
    pub(crate) fn user(&self, asked: Option<&str>) -> Result<UserId, Problem> {
        let asked: Option<UserId> = asked.map(str::parse).transpose()?;
        match (self, asked) {
            (Self::User(user), None) => Ok(user.clone()),
            (Self::User(user), Some(asked)) if *user == asked => Ok(asked),
            (Self::User(_), Some(_)) => Err(not_yours()),
            (Self::Admin, Some(asked)) => Ok(asked),
            (Self::Admin, None) => Err(Problem::invalid("operators name the user in ?userId=")),
        }
    }
}

impl Sender {
    /// Refuses those who may not send to a user: users themselves, and keys of other scopes.
    pub(crate) fn check_may_send(&self, system: &str, user: &UserId) -> Result<(), Problem> {
        match self {
            Self::Key(key) => key.check_scope(system, user.as_str()),
            Self::Other(UserOrAdmin::Admin) => Ok(()),
            Self::Other(UserOrAdmin::User(_)) => Err(Problem::new(
                StatusCode::FORBIDDEN,
                "OPERATORS_ONLY",
                "notifications are sent by operators",
            )),
        }
    }

    /// Refuses those who may not see what a user was sent.
    pub(crate) fn check_may_read(&self, system: &str, user: &UserId) -> Result<(), Problem> {
        match self {
            Self::Key(key) => key.check_scope(system, user.as_str()),
            Self::Other(caller) => caller.user(Some(user.as_str())).map(|_| ()),
        }
    }
}

fn not_yours() -> Problem {
    Problem::new(
        StatusCode::FORBIDDEN,
        "NOT_YOURS",
        "this belongs to another user",
    )
}

impl FromRequestParts<AppState> for UserOrAdmin {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Problem> {
        let Some(sent) = bearer(&parts.headers) else {
            if cookie::is_operator(parts, &state.console.sessions)? {
                return Ok(Self::Admin);
            }
            return Err(unauthorized(
                "TOKEN_MISSING",
                "send a user's JWT or the admin token as Authorization: Bearer",
            ));
        };
        if state.admin_token.is(sent) {
            return Ok(Self::Admin);
        }
        let refused = match state.user_tokens.verify(sent).await {
            Ok(user) => return Ok(Self::User(user)),
            Err(refused) => refused,
        };
        // A JWT that is refused, such as one that has expired, is no wrong admin token.
        if !jwt::is_jwt(sent)
            && let rejected @ TokenRejected::TooMany { .. } =
                state.admin_token.reject(client(&parts.extensions))
        {
            return Err(rejected.into());
        }
        Err(refused.into())
    }
}

impl FromRequestParts<AppState> for Sender {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Problem> {
        if has_key(parts) {
            let device = Device::from_request_parts(parts, state).await?;
            return Ok(Self::Key(device));
        }
        let caller = UserOrAdmin::from_request_parts(parts, state).await?;
        Ok(Self::Other(caller))
    }
}

impl Device {
    /// Refuses what the key may not write for.
    pub(crate) fn check_scope(&self, system: &str, subject: &str) -> Result<(), Problem> {
        if self.0.allows(system, subject) {
            return Ok(());
        }
        Err(Problem::new(
            StatusCode::FORBIDDEN,
            "OUT_OF_SCOPE",
            format!("the key may not write for {subject}"),
        ))
    }
}

impl Reader {
    /// Refuses the key of another system's device.
    pub(crate) fn check_system(&self, system: &str) -> Result<(), Problem> {
        match &self.0 {
            Some(key) if key.system != system => Err(Problem::new(
                StatusCode::FORBIDDEN,
                "OUT_OF_SCOPE",
                format!("the key is for {}", key.system),
            )),
            _ => Ok(()),
        }
    }
}

impl FromRequestParts<AppState> for Device {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Problem> {
        let sent = text(&parts.headers, KEY_HEADER).ok_or_else(|| {
            unauthorized("KEY_MISSING", "send an API key in the header X-API-Key")
        })?;
        let key =
            state.api_keys.verify(sent).await?.ok_or_else(|| {
                unauthorized("KEY_INVALID", "the API key is unknown or was revoked")
            })?;
        state.rate_limiter.take(key.key_id).map_err(|wait_secs| {
            Problem::new(
                StatusCode::TOO_MANY_REQUESTS,
                "RATE_LIMITED",
                "this key makes too many requests",
            )
            .retry_after(wait_secs)
        })?;
        Ok(Self(key))
    }
}

impl FromRequestParts<AppState> for Admin {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Problem> {
        let Some(sent) = bearer(&parts.headers) else {
            if cookie::is_operator(parts, &state.console.sessions)? {
                return Ok(Self);
            }
            return Err(unauthorized(
                "TOKEN_MISSING",
                "send the admin token as Authorization: Bearer",
            ));
        };
        let client = client(&parts.extensions);
        state.admin_token.check(sent, client)?;
        Ok(Self)
    }
}

impl FromRequestParts<AppState> for Reader {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Problem> {
        if has_key(parts) {
            let Device(key) = Device::from_request_parts(parts, state).await?;
            return Ok(Self(Some(key)));
        }
        Admin::from_request_parts(parts, state).await?;
        Ok(Self(None))
    }
}

/// The address of the client. Requests without a known connection count as those of one client.
pub(crate) fn client(extensions: &Extensions) -> IpAddr {
    extensions
        .get::<Connection>()
        .map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), Connection::client)
}

/// Whether the caller comes as a device.
pub(crate) fn has_key(parts: &Parts) -> bool {
    parts.headers.contains_key(KEY_HEADER)
}

pub(crate) fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// The token that a caller bears; the scheme's name may be in upper or lower case.
pub(crate) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = text(headers, header::AUTHORIZATION.as_str())?.split_once(' ')?;
    scheme
        .eq_ignore_ascii_case("Bearer")
        .then_some(token.trim())
}

fn unauthorized(code: &'static str, detail: &str) -> Problem {
    Problem::new(StatusCode::UNAUTHORIZED, code, detail)
}
