//! `/v1/session`: signing in at the console with the admin token, and out.

use axum::Json;
use axum::extract::State;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use homeport_systems::time::UtcMillis;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::auth::{client, cookie, text};
use crate::body::JsonBody;
use crate::problem::{Problem, ProblemBody};
use crate::state::AppState;

#[derive(Deserialize, ToSchema)]
pub(in crate::routes) struct SignIn {
    /// The admin token
    #[schema(max_length = 1024)]
    token: String,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::routes) struct SessionBody {
    /// When it ends, RFC 3339
    expires_at: String,
}

/// Signs in at the console
///
/// The answer sets a cookie, which is then as good as the admin token. What changes something also
/// has to come from the console's own page, and to carry `X-Homeport-Console: 1`.
#[utoipa::path(post, path = "/v1/session", tag = "console", request_body = SignIn, responses(
    (status = 204, description = "Signed in", headers(("Set-Cookie" = String, description = "The session; no script can read it"))),
    (status = 400, description = "There is no token in the body", body = ProblemBody, content_type = "application/problem+json"),
    (status = 401, description = "Invalid admin token", body = ProblemBody, content_type = "application/problem+json"),
    (status = 403, description = "Sent by a page of another site", body = ProblemBody, content_type = "application/problem+json"),
    (status = 429, description = "Too many wrong admin tokens", body = ProblemBody, content_type = "application/problem+json")
))]
pub(in crate::routes) async fn begin_session(
    State(state): State<AppState>,
    parts: Parts,
    JsonBody(body): JsonBody<SignIn>,
) -> Result<Response, Problem> {
    let is_from_page = ["sec-fetch-site", "origin"]
        .iter()
        .any(|name| parts.headers.contains_key(*name));
    if is_from_page && !cookie::is_ours(&parts.headers, &parts.uri) {
        return Err(Problem::new(
            StatusCode::FORBIDDEN,
            "CROSS_SITE",
            "people sign in on the console's own page",
        ));
    }
    let client = client(&parts.extensions);
    state.admin_token.check(body.token.trim(), client)?;
    let sessions = &state.console.sessions;
    let session = sessions.begin();
    let cookie = set_cookie(&session.token, session.lifetime_secs, &parts.headers)?;
    Ok((StatusCode::NO_CONTENT, [(header::SET_COOKIE, cookie)]).into_response())
}

/// Whether the console's session is open
#[utoipa::path(get, path = "/v1/session", tag = "console", security(("console_session" = [])), responses(
    (status = 200, description = "It is", body = SessionBody),
    (status = 401, description = "It is not", body = ProblemBody, content_type = "application/problem+json")
))]
pub(in crate::routes) async fn get_session(
    State(state): State<AppState>,
    headers: HeaderMap,
) -> Result<Json<SessionBody>, Problem> {
    let expires_at = cookie::sent(&headers)
        .and_then(|token| state.console.sessions.expires_at(token))
        .ok_or_else(|| {
            Problem::new(
                StatusCode::UNAUTHORIZED,
                "SESSION_MISSING",
                "nobody is signed in here",
            )
        })?;
    Ok(Json(SessionBody {
        expires_at: UtcMillis::new(expires_at).to_string(),
    }))
}

/// Signs out: the session ends on the server too
#[utoipa::path(delete, path = "/v1/session", tag = "console", security(("console_session" = []), ()), responses(
    (status = 204, description = "Nobody is signed in here any more"),
    (status = 403, description = "Not sent by the console's own page", body = ProblemBody, content_type = "application/problem+json")
))]
pub(in crate::routes) async fn end_session(
    State(state): State<AppState>,
    parts: Parts,
) -> Result<Response, Problem> {
    if let Some(token) = cookie::sent(&parts.headers) {
        cookie::check_origin(&parts)?;
        state.console.sessions.end(token);
    }
    let cookie = set_cookie("", 0, &parts.headers)?;
    Ok((StatusCode::NO_CONTENT, [(header::SET_COOKIE, cookie)]).into_response())
}

/// No script reads it, no other site sends it, and where the page came over TLS it never goes without.
fn set_cookie(
    token: &str,
    lifetime_secs: i64,
    headers: &HeaderMap,
) -> Result<HeaderValue, Problem> {
    // Only a proxy can have ended TLS: this port speaks HTTP.
    let secure = match text(headers, "x-forwarded-proto") {
        Some(protocol) if protocol.eq_ignore_ascii_case("https") => "; Secure",
        _ => "",
    };
    let name = cookie::NAME;
    let value = format!(
        "{name}={token}; HttpOnly; SameSite=Strict; Path=/; Max-Age={lifetime_secs}{secure}"
    );
    HeaderValue::from_str(&value).map_err(|error| Problem::internal(&error))
}
