//! `/v1/session` signs people in and out. `/v1/setup` creates the first administrator.

use axum::Json;
use axum::extract::State;
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use homeport_systems::people::{
    NewSession, Password, PeopleError, PersonName, SessionClient, SignIn,
};
use homeport_systems::time::UtcMillis;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::account::Permissions;
use crate::auth::{Caller, client_address, header_text, is_tls, session_cookie};
use crate::openapi::schemas::people as schemas;
use crate::problem::Problem;
use crate::request::JsonBody;
use crate::state::AppState;

/// The first administrator may have been named by then, so attempts count under this name.
const SETUP_NAME: &str = "setup";

/// Name and password, or the admin token alone.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = SignIn)]
pub(super) struct SignInBody {
    /// Name of the person
    #[schema(max_length = 64)]
    name: Option<String>,
    #[schema(max_length = 1024)]
    password: Option<String>,
    /// Code of the second factor, or a recovery code; required if the person has a second factor
    #[schema(max_length = 64)]
    code: Option<String>,
    /// The admin token
    #[schema(max_length = 1024)]
    token: Option<String>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SetUp {
    /// The token of the link that the server printed
    #[schema(max_length = 128)]
    token: String,
    #[schema(schema_with = schemas::name)]
    name: String,
    /// 12 to 256 characters
    #[schema(schema_with = schemas::password)]
    password: String,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct CurrentSession {
    /// Time at which the session expires, RFC 3339
    expires_at: String,
    /// Name of the person; `admin` for the admin token
    name: String,
    /// Whether the admin token signed in, which has no account
    is_admin_token: bool,
    #[serde(flatten)]
    permissions: Permissions,
}

/// Sign in to the console
///
/// With the name and the password of a person, or with the admin token. The response sets a cookie. Requests with it
/// that change something must come from the console's page and send `X-Homeport-Console: 1`.
#[utoipa::path(post, path = "/v1/session", tag = "console", request_body = SignInBody, security(()), responses(
    (status = 204, description = "Signed in", headers(("Set-Cookie" = String, description = "Session cookie; scripts cannot read it"))),
    (status = 401, description = "Wrong name, password or admin token (`WRONG_PASSWORD`, `TOKEN_INVALID`), or a code is required or wrong (`CODE_REQUIRED`, `WRONG_CODE`)"),
    (status = 403, description = "Sent by a page of another site"),
    (status = 429, description = "Too many wrong passwords, codes or admin tokens"),
    (status = 503, description = "Too many people are signing in, or the store is unavailable; retry later")
))]
pub(super) async fn begin_session(
    State(state): State<AppState>,
    parts: Parts,
    JsonBody(body): JsonBody<SignInBody>,
) -> Result<Response, Problem> {
    check_page(&parts)?;
    let address = client_address(&parts.extensions);
    let client = session_client(&parts);
    let session = match (body.name, body.password, body.token) {
        (None, None, Some(token)) if body.code.is_none() => {
            state.admin_token.check(token.trim(), address)?;
            state.people.begin_admin_session(client).await?
        }
        (Some(name), Some(password), None) => {
            let sign_in = SignIn {
                name: name.clone(),
                password,
                code: body.code,
            };
            let attempt = state.people.sign_in(sign_in, client);
            (state.sign_in_limits)
                .attempt(address, &name, attempt)
                .await?
        }
        _ => {
            return Err(Problem::invalid(
                "send name and password, with code if needed, or the admin token as token",
            ));
        }
    };
    signed_in(&session, &parts)
}

/// Create the first administrator
///
/// The link with the token is printed when the server starts and there are no people. It works once, for an hour.
#[utoipa::path(post, path = "/v1/setup", tag = "people", request_body = SetUp, security(()), responses(
    (status = 204, description = "Created and signed in", headers(("Set-Cookie" = String, description = "Session cookie; scripts cannot read it"))),
    (status = 403, description = "The token is invalid, used or too old, or the request was sent by a page of another site"),
    (status = 429, description = "Too many wrong tokens"),
    (status = 503, description = "Too many people are signing in, or the store is unavailable; retry later")
))]
pub(super) async fn set_up(
    State(state): State<AppState>,
    parts: Parts,
    JsonBody(body): JsonBody<SetUp>,
) -> Result<Response, Problem> {
    check_page(&parts)?;
    let name: PersonName = body.name.parse()?;
    let password = Password::new(body.password)?;
    let client = session_client(&parts);
    let attempt = state
        .people
        .complete_setup(&body.token, name, password, client);
    let address = client_address(&parts.extensions);
    let session = (state.sign_in_limits)
        .attempt(address, SETUP_NAME, attempt)
        .await?;
    signed_in(&session, &parts)
}

/// Get the console session: who is signed in, and with which permissions
#[utoipa::path(get, path = "/v1/session", tag = "console", security(("console_session" = [])), responses(
    (status = 200, description = "The session", body = CurrentSession),
    (status = 401, description = "No session")
))]
pub(super) async fn get_session(
    State(state): State<AppState>,
    parts: Parts,
) -> Result<Json<CurrentSession>, Problem> {
    let access = session_cookie::verify(&parts, &state.people).await?;
    let shown = access.and_then(|access| Some((access.credential?, access)));
    let (shown, access) = shown.ok_or_else(|| {
        Problem::new(StatusCode::UNAUTHORIZED, "SESSION_MISSING", "not signed in")
    })?;
    Ok(Json(CurrentSession {
        expires_at: UtcMillis::new(shown.expires_at).to_string(),
        name: access.name.clone(),
        is_admin_token: access.is_admin_token(),
        permissions: Permissions::of(&Caller::Person(access)),
    }))
}

/// Sign out of the console
#[utoipa::path(delete, path = "/v1/session", tag = "console", security(("console_session" = []), ()), responses(
    (status = 204, description = "Signed out"),
    (status = 403, description = "The console's own page did not send the request")
))]
pub(super) async fn end_session(
    State(state): State<AppState>,
    parts: Parts,
) -> Result<Response, Problem> {
    if session_cookie::session_token(&parts.headers).is_some() {
        session_cookie::check_origin(&parts)?;
    }
    if let Some(access) = session_cookie::verify(&parts, &state.people).await?
        && let Some(shown) = access.credential
    {
        // Ended by another request in the meantime, which is what the caller wants.
        match state.people.revoke(access.person, shown.id).await {
            Ok(()) | Err(PeopleError::CredentialMissing) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let cookie = set_cookie("", 0, &parts)?;
    Ok((StatusCode::NO_CONTENT, [(header::SET_COOKIE, cookie)]).into_response())
}

/// Rejects sign-ins that a page of another site sends.
fn check_page(parts: &Parts) -> Result<(), Problem> {
    let is_from_page = ["sec-fetch-site", "origin"]
        .iter()
        .any(|name| parts.headers.contains_key(*name));
    if is_from_page && !session_cookie::is_from_our_page(parts) {
        return Err(Problem::new(
            StatusCode::FORBIDDEN,
            "CROSS_SITE",
            "people sign in on the console's page",
        ));
    }
    Ok(())
}

fn session_client(parts: &Parts) -> SessionClient {
    SessionClient {
        address: Some(client_address(&parts.extensions).to_string()),
        user_agent: header_text(&parts.headers, header::USER_AGENT.as_str()).map(str::to_owned),
    }
}

fn signed_in(session: &NewSession, parts: &Parts) -> Result<Response, Problem> {
    let cookie = set_cookie(&session.raw.reveal(), session.lifetime_secs, parts)?;
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
