//! API keys: made, listed and revoked by operators.

use std::collections::BTreeSet;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use homeport_systems::api_keys::{ApiKey, ApiKeyPage, KeyId, NewApiKey, PAGE_MAX, RawKey, Revoked};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::auth::Admin;
use crate::body::JsonBody;
use crate::forms::{self, KeyPath};
use crate::problem::{Problem, ProblemBody};
use crate::state::AppState;
use crate::url::{self, PathPart, UrlQuery};

/// What a new key is to be.
#[derive(Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateApiKey {
    /// What it is for, in words
    #[schema(schema_with = forms::key_description, required = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The system whose devices use it; `sensors` unless said otherwise
    #[schema(schema_with = forms::key_system, required = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// What it may write for; any device of its system when empty
    #[serde(default)]
    #[schema(schema_with = forms::key_scopes, required = false)]
    pub scopes: BTreeSet<String>,
}

/// A key, without its secret.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ApiKeyBody {
    #[schema(format = Uuid)]
    pub key_id: String,
    pub created_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_used_at: Option<String>,
    pub is_active: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    pub system: String,
    pub scopes: BTreeSet<String>,
}

/// A key that was just made, with its secret.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct CreatedApiKey {
    /// The secret; it is not shown again
    pub api_key: String,
    #[serde(flatten)]
    pub key: ApiKeyBody,
}

/// A key that was just revoked.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct RevokedApiKey {
    /// Whether it was active until now
    pub was_active: bool,
    #[serde(flatten)]
    pub key: ApiKeyBody,
}

/// A page of keys, the newest first.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ApiKeyList {
    pub keys: Vec<ApiKeyBody>,
    /// Absent on the last page
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct ListQuery {
    /// Items of a page
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: Option<usize>,
    /// Where the page before ended
    cursor: Option<String>,
}

impl std::fmt::Debug for CreatedApiKey {
    /// Leaves the secret out.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("CreatedApiKey")
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

impl From<CreateApiKey> for NewApiKey {
    fn from(body: CreateApiKey) -> Self {
        Self {
            description: body.description,
            system: body.system,
            scopes: body.scopes,
        }
    }
}

impl From<(ApiKey, RawKey)> for CreatedApiKey {
    fn from((key, raw): (ApiKey, RawKey)) -> Self {
        Self {
            api_key: raw.reveal().to_owned(),
            key: ApiKeyBody::from(&key),
        }
    }
}

impl From<&ApiKeyPage> for ApiKeyList {
    fn from(page: &ApiKeyPage) -> Self {
        Self {
            keys: page.keys.iter().map(ApiKeyBody::from).collect(),
            next_cursor: page.next.as_ref().map(|cursor| cursor.encode()),
        }
    }
}

impl From<&Revoked> for RevokedApiKey {
    fn from(revoked: &Revoked) -> Self {
        Self {
            was_active: revoked.was_active,
            key: ApiKeyBody::from(&revoked.key),
        }
    }
}

impl From<&ApiKey> for ApiKeyBody {
    fn from(key: &ApiKey) -> Self {
        Self {
            key_id: key.key_id.to_string(),
            created_at: key.created_at.to_string(),
            last_used_at: key.last_used_at.map(|time| time.to_string()),
            is_active: key.is_active,
            description: key.description.clone(),
            system: key.system.clone(),
            scopes: key.scopes.clone(),
        }
    }
}

/// Make an API key; its secret is shown this once
#[utoipa::path(post, path = "/v1/api-keys", tag = "api keys", security(("admin_token" = [])),
    request_body = CreateApiKey, responses(
    (status = 201, description = "The key", body = CreatedApiKey),
    (status = 400, description = "It cannot be", body = ProblemBody, content_type = "application/problem+json"),
    (status = 401, description = "No operator", body = ProblemBody, content_type = "application/problem+json"),
    (status = 503, description = "The store cannot answer", body = ProblemBody, content_type = "application/problem+json")
))]
pub(super) async fn create_api_key(
    _: Admin,
    State(state): State<AppState>,
    JsonBody(body): JsonBody<CreateApiKey>,
) -> Result<(StatusCode, Json<CreatedApiKey>), Problem> {
    let created = state.api_keys.create(body.into()).await?;
    Ok((StatusCode::CREATED, Json(created.into())))
}

/// List API keys, the newest first
#[utoipa::path(get, path = "/v1/api-keys", tag = "api keys", security(("admin_token" = [])),
    params(ListQuery), responses(
    (status = 200, description = "A page of keys", body = ApiKeyList),
    (status = 400, description = "The limit or the cursor is not right", body = ProblemBody, content_type = "application/problem+json"),
    (status = 401, description = "No operator", body = ProblemBody, content_type = "application/problem+json"),
    (status = 503, description = "The store cannot answer", body = ProblemBody, content_type = "application/problem+json")
))]
pub(super) async fn list_api_keys(
    _: Admin,
    State(state): State<AppState>,
    UrlQuery(query): UrlQuery<ListQuery>,
) -> Result<Json<ApiKeyList>, Problem> {
    let limit = url::limit(query.limit, PAGE_MAX)?;
    let cursor = url::cursor(query.cursor.as_deref())?;
    let page = state.api_keys.list(limit, cursor).await?;
    Ok(Json(ApiKeyList::from(&page)))
}

/// Revoke an API key
#[utoipa::path(delete, path = "/v1/api-keys/{key_id}", tag = "api keys", security(("admin_token" = [])),
    params(KeyPath), responses(
    (status = 200, description = "The key, revoked", body = RevokedApiKey),
    (status = 400, description = "The id is none", body = ProblemBody, content_type = "application/problem+json"),
    (status = 401, description = "No operator", body = ProblemBody, content_type = "application/problem+json"),
    (status = 404, description = "There is no such key", body = ProblemBody, content_type = "application/problem+json"),
    (status = 503, description = "The store cannot answer", body = ProblemBody, content_type = "application/problem+json")
))]
pub(super) async fn revoke_api_key(
    _: Admin,
    State(state): State<AppState>,
    PathPart(key_id): PathPart<KeyId>,
) -> Result<Json<RevokedApiKey>, Problem> {
    let revoked = state.api_keys.revoke(key_id).await?;
    Ok(Json(RevokedApiKey::from(&revoked)))
}
