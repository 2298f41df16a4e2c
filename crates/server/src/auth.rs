//! Who is asking: a device with its key, or an operator with the admin token.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use homeport_systems::api_keys::ApiKey;

use crate::problem::Problem;
use crate::state::AppState;

const KEY_HEADER: &str = "x-api-key";

/// A device that proved itself with a key that is active and within its rate.
pub(crate) struct Device(pub(crate) Arc<ApiKey>);

/// An operator.
pub(crate) struct Admin;

/// Either: reading is for devices and for operators.
pub(crate) struct Reader;

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
        let sent = text(&parts.headers, header::AUTHORIZATION.as_str())
            .and_then(|value| value.strip_prefix("Bearer "))
            .ok_or_else(|| {
                unauthorized(
                    "TOKEN_MISSING",
                    "send the admin token as Authorization: Bearer",
                )
            })?;
        if state.admin_token.is(sent.trim()) {
            Ok(Self)
        } else {
            Err(unauthorized(
                "TOKEN_INVALID",
                "the admin token is not right",
            ))
        }
    }
}

impl FromRequestParts<AppState> for Reader {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Problem> {
        if parts.headers.contains_key(KEY_HEADER) {
            Device::from_request_parts(parts, state).await?;
        } else {
            Admin::from_request_parts(parts, state).await?;
        }
        Ok(Self)
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

fn unauthorized(code: &'static str, detail: &str) -> Problem {
    Problem::new(StatusCode::UNAUTHORIZED, code, detail)
}
