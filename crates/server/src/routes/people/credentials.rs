//! Sessions and personal access tokens: `/v1/me/sessions` and `/v1/me/tokens` for one's own, and the same below
//! `/v1/people/{name}` for administrators.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use homeport_systems::people::{Access, CredentialId, CredentialKind, NewToken, PersonName};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::account::access;
use super::bodies::{RoleBody, SessionBody, SessionList, TokenBody, TokenList};
use crate::auth::needs::ManagePeople;
use crate::auth::{Authenticated, Everywhere, Myself, OwnSession};
use crate::openapi::schemas::people::{
    self as schemas, CredentialPath, OwnCredentialPath, PersonPath,
};
use crate::problem::Problem;
use crate::request::{JsonBody, PathPart};
use crate::state::AppState;

/// A personal access token to create.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CreateToken {
    /// What the token is for
    #[schema(schema_with = schemas::token_name)]
    name: String,
    role: RoleBody,
    /// Days until it expires
    #[schema(minimum = 1, maximum = 366)]
    days: i64,
}

/// A new personal access token with its text.
#[derive(Serialize, ToSchema)]
pub(super) struct CreatedToken {
    /// The token; it is shown only once
    #[schema(example = "hpt_…")]
    token: String,
    #[serde(flatten)]
    body: TokenBody,
}

/// List your sessions, the newest first
#[utoipa::path(get, path = "/v1/me/sessions", tag = "people", security(("admin_token" = [])), responses(
    (status = 200, description = "The sessions; with the admin token, those of the admin token", body = SessionList),
))]
pub(super) async fn list_sessions(
    caller: Authenticated<Myself>,
    State(state): State<AppState>,
) -> Result<Json<SessionList>, Problem> {
    let access = access(&caller)?;
    sessions(&state, access.person, Some(access)).await
}

/// End one of your sessions
#[utoipa::path(delete, path = "/v1/me/sessions/{id}", tag = "people", security(("admin_token" = [])),
    params(OwnCredentialPath), responses(
    (status = 204, description = "Ended"),
    (status = 404, description = "Session not found"),
))]
pub(super) async fn end_other_session(
    caller: Authenticated<Myself>,
    State(state): State<AppState>,
    PathPart(id): PathPart<CredentialId>,
) -> Result<StatusCode, Problem> {
    state.people.revoke(access(&caller)?.person, id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Create a personal access token for yourself; its text is shown only once
///
/// It may do what its role permits, as far as your own roles permit it too.
#[utoipa::path(post, path = "/v1/me/tokens", tag = "people", security(("console_session" = [])),
    request_body = CreateToken, responses(
    (status = 201, description = "The token", body = CreatedToken),
    (status = 403, description = "This is not the session of a person, or the role is more than the person has"),
    (status = 409, description = "Too many tokens"),
))]
pub(super) async fn create_token(
    caller: Authenticated<OwnSession>,
    State(state): State<AppState>,
    JsonBody(body): JsonBody<CreateToken>,
) -> Result<(StatusCode, Json<CreatedToken>), Problem> {
    let new = NewToken {
        label: body.name,
        role: body.role.try_into()?,
        days: body.days,
    };
    let (token, raw) = state.people.create_token(access(&caller)?, new).await?;
    let body = TokenBody::new(token).ok_or_else(|| Problem::invalid("name is missing"))?;
    let created = CreatedToken {
        token: raw.reveal(),
        body,
    };
    Ok((StatusCode::CREATED, Json(created)))
}

/// List your personal access tokens, the newest first
#[utoipa::path(get, path = "/v1/me/tokens", tag = "people", security(("admin_token" = [])), responses(
    (status = 200, description = "The tokens", body = TokenList),
))]
pub(super) async fn list_tokens(
    caller: Authenticated<Myself>,
    State(state): State<AppState>,
) -> Result<Json<TokenList>, Problem> {
    tokens(&state, access(&caller)?.person).await
}

/// Revoke one of your personal access tokens
#[utoipa::path(delete, path = "/v1/me/tokens/{id}", tag = "people", security(("admin_token" = [])),
    params(OwnCredentialPath), responses(
    (status = 204, description = "Revoked"),
    (status = 404, description = "Token not found"),
))]
pub(super) async fn revoke_token(
    caller: Authenticated<Myself>,
    State(state): State<AppState>,
    PathPart(id): PathPart<CredentialId>,
) -> Result<StatusCode, Problem> {
    state.people.revoke(access(&caller)?.person, id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// List the sessions of a person, the newest first
#[utoipa::path(get, path = "/v1/people/{name}/sessions", tag = "people", security(("admin_token" = [])),
    params(PersonPath), responses(
    (status = 200, description = "The sessions", body = SessionList),
    (status = 404, description = "Person not found"),
))]
pub(super) async fn list_sessions_of_person(
    _: Authenticated<Everywhere<ManagePeople>>,
    State(state): State<AppState>,
    PathPart(name): PathPart<PersonName>,
) -> Result<Json<SessionList>, Problem> {
    let person = state.people.get(&name).await?;
    sessions(&state, person.id, None).await
}

/// End all sessions of a person
#[utoipa::path(delete, path = "/v1/people/{name}/sessions", tag = "people", security(("admin_token" = [])),
    params(PersonPath), responses(
    (status = 204, description = "Ended"),
    (status = 404, description = "Person not found"),
))]
pub(super) async fn end_sessions_of_person(
    _: Authenticated<Everywhere<ManagePeople>>,
    State(state): State<AppState>,
    PathPart(name): PathPart<PersonName>,
) -> Result<StatusCode, Problem> {
    let person = state.people.get(&name).await?;
    state.people.end_sessions(person.id, None).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// End a session of a person
#[utoipa::path(delete, path = "/v1/people/{name}/sessions/{id}", tag = "people", security(("admin_token" = [])),
    params(CredentialPath), responses(
    (status = 204, description = "Ended"),
    (status = 404, description = "Person or session not found"),
))]
pub(super) async fn end_session_of_person(
    _: Authenticated<Everywhere<ManagePeople>>,
    State(state): State<AppState>,
    Path((name, id)): Path<(String, String)>,
) -> Result<StatusCode, Problem> {
    revoke_of_person(&state, &name, &id).await
}

/// List the personal access tokens of a person, the newest first
#[utoipa::path(get, path = "/v1/people/{name}/tokens", tag = "people", security(("admin_token" = [])),
    params(PersonPath), responses(
    (status = 200, description = "The tokens", body = TokenList),
    (status = 404, description = "Person not found"),
))]
pub(super) async fn list_tokens_of_person(
    _: Authenticated<Everywhere<ManagePeople>>,
    State(state): State<AppState>,
    PathPart(name): PathPart<PersonName>,
) -> Result<Json<TokenList>, Problem> {
    let person = state.people.get(&name).await?;
    tokens(&state, person.id).await
}

/// Revoke a personal access token of a person
#[utoipa::path(delete, path = "/v1/people/{name}/tokens/{id}", tag = "people", security(("admin_token" = [])),
    params(CredentialPath), responses(
    (status = 204, description = "Revoked"),
    (status = 404, description = "Person or token not found"),
))]
pub(super) async fn revoke_token_of_person(
    _: Authenticated<Everywhere<ManagePeople>>,
    State(state): State<AppState>,
    Path((name, id)): Path<(String, String)>,
) -> Result<StatusCode, Problem> {
    revoke_of_person(&state, &name, &id).await
}

async fn sessions(
    state: &AppState,
    person: Uuid,
    access: Option<&Access>,
) -> Result<Json<SessionList>, Problem> {
    let current = access.and_then(|access| access.credential);
    let listed = state
        .people
        .credentials(person, CredentialKind::Session)
        .await?;
    let sessions = listed.into_iter().map(|session| {
        let is_current = current.is_some_and(|current| current.id == session.id);
        SessionBody::new(session, is_current)
    });
    Ok(Json(SessionList {
        sessions: sessions.collect(),
    }))
}

async fn tokens(state: &AppState, person: Uuid) -> Result<Json<TokenList>, Problem> {
    let listed = state
        .people
        .credentials(person, CredentialKind::Token)
        .await?;
    Ok(Json(TokenList {
        tokens: listed.into_iter().filter_map(TokenBody::new).collect(),
    }))
}

async fn revoke_of_person(state: &AppState, name: &str, id: &str) -> Result<StatusCode, Problem> {
    let name: PersonName = name.parse()?;
    let id: CredentialId = id.parse()?;
    let person = state.people.get(&name).await?;
    state.people.revoke(person.id, id).await?;
    Ok(StatusCode::NO_CONTENT)
}
