//! `/v1/session`: signs operators in to the console, and out.

use axum::Json;
use axum::extract::State;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use homeport_systems::time::UtcMillis;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::auth::{client_address, header_text, is_tls, session_cookie};
use crate::problem::Problem;
use crate::request::JsonBody;
use crate::state::AppState;

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::routes) struct SignIn {
    /// The admin token
    #[schema(max_length = 1024)]
    token: String,
}

#[derive(Debug, Serialize, ToSchema)]
pub(in crate::routes) struct SessionBody {
    /// Time at which the session expires, RFC 3339
    expires_at: String,
}

/// Sign in to the console
///
/// The response sets a cookie that replaces the admin token. Requests with it that change something must come from
/// the console's page and send `X-Homeport-Console: 1`.
#[utoipa::path(post, path = "/v1/session", tag = "console", request_body = SignIn, security(()), responses(
    (status = 204, description = "Signed in", headers(("Set-Cookie" = String, description = "Session cookie; scripts cannot read it"))),
    (status = 401, description = "Invalid admin token"),
    (status = 403, description = "Sent by a page of another site"),
    (status = 429, description = "Too many wrong admin tokens")
))]
pub(in crate::routes) async fn begin_session(
    State(state): State<AppState>,
    parts: Parts,
    JsonBody(body): JsonBody<SignIn>,
) -> Result<Response, Problem> {
    let is_from_page = ["sec-fetch-site", "origin"]
        .iter()
        .any(|name| parts.headers.contains_key(*name));
    if is_from_page && !session_cookie::is_from_our_page(&parts) {
        return Err(Problem::new(
            StatusCode::FORBIDDEN,
            "CROSS_SITE",
            "operators sign in on the console's page",
        ));
    }
    let client = client_address(&parts.extensions);
    state.admin_token.check(body.token.trim(), client)?;
    let sessions = &state.console.sessions;
    let session = sessions.begin();
    let cookie = set_cookie(&session.token, session.lifetime_secs, &parts)?;
    Ok((StatusCode::NO_CONTENT, [(header::SET_COOKIE, cookie)]).into_response())
}

/// Get the console session
#[utoipa::path(get, path = "/v1/session", tag = "console", security(("console_session" = [])), responses(
    (status = 200, description = "The session", body = SessionBody),
    (status = 401, description = "No session")
))]
pub(in crate::routes) async fn get_session(
    State(state): State<AppState>,
    headers: HeaderMap,
) -> Result<Json<SessionBody>, Problem> {
    let expires_at = session_cookie::session_token(&headers)
        .and_then(|token| state.console.sessions.expires_at(token))
        .ok_or_else(|| {
            Problem::new(StatusCode::UNAUTHORIZED, "SESSION_MISSING", "not signed in")
        })?;
    Ok(Json(SessionBody {
        expires_at: UtcMillis::new(expires_at).to_string(),
    }))
}

/// Sign out of the console
#[utoipa::path(delete, path = "/v1/session", tag = "console", security(("console_session" = []), ()), responses(
    (status = 204, description = "Signed out"),
    (status = 403, description = "The console's own page did not send the request")
))]
pub(in crate::routes) async fn end_session(
    State(state): State<AppState>,
    parts: Parts,
) -> Result<Response, Problem> {
    if let Some(token) = session_cookie::session_token(&parts.headers) {
        session_cookie::check_origin(&parts)?;
        state.console.sessions.end(token);
    }
    let cookie = set_cookie("", 0, &parts)?;
    Ok((StatusCode::NO_CONTENT, [(header::SET_COOKIE, cookie)]).into_response())
}

/// The cookie is hidden from scripts, not sent by other sites, and limited to TLS if the page was loaded over TLS.
fn set_cookie(token: &str, lifetime_secs: i64, parts: &Parts) -> Result<HeaderValue, Problem> {
    // Any client may send the header: it can only restrict its own cookie.
    let is_forwarded_tls = header_text(&parts.headers, "x-forwarded-proto")
        .is_some_and(|protocol| protocol.eq_ignore_ascii_case("https"));
    let secure = match is_forwarded_tls || is_tls(&parts.extensions) {
        true => "; Secure",
        false => "",
    };
    let name = session_cookie::NAME;
    let value = format!(
        "{name}={token}; HttpOnly; SameSite=Strict; Path=/; Max-Age={lifetime_secs}{secure}"
    );
    HeaderValue::from_str(&value).map_err(|error| Problem::internal(&error))
}
