//! `/v1/api-keys`: operators create, list and revoke API keys.

use std::collections::BTreeSet;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use homeport_systems::api_keys::{
    ApiKey, ApiKeyError, KeyId, NewApiKey, PAGE_MAX, RawKey, Revoked,
};
use homeport_systems::pages;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::auth::needs::ManageApiKeys;
use crate::auth::{Authenticated, Everywhere};
use crate::openapi::schemas::{self, KeyPath};
use crate::problem::Problem;
use crate::request::{JsonBody, PageQuery, PathPart};
use crate::state::AppState;

/// An API key to create.
#[derive(Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateApiKey {
    /// Description
    #[schema(schema_with = schemas::key_description, required = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The system that the key is for; default `sensors`
    #[schema(schema_with = schemas::key_system, required = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// Devices, things, groups or users that the key may read and write
    #[serde(default)]
    #[schema(schema_with = schemas::key_scopes, required = false)]
    pub scopes: BTreeSet<String>,
    /// Whether the key is for the whole system; required if there are no scopes
    #[serde(default)]
    #[schema(required = false)]
    pub all: bool,
    /// What the key may do beyond storing and reading data; only for telemetry
    #[serde(default)]
    #[schema(schema_with = schemas::key_permissions, required = false)]
    pub permissions: BTreeSet<String>,
}

/// An API key without its secret.
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
    /// All of the system if empty
    pub scopes: BTreeSet<String>,
    pub permissions: BTreeSet<String>,
}

/// A new API key with its secret.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct CreatedApiKey {
    /// The secret; it is shown only once
    pub api_key: String,
    #[serde(flatten)]
    pub key: ApiKeyBody,
}

/// A revoked API key.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct RevokedApiKey {
    /// Whether the key was active before
    pub was_active: bool,
    #[serde(flatten)]
    pub key: ApiKeyBody,
}

/// A page of API keys, the newest first.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ApiKeyList {
    pub keys: Vec<ApiKeyBody>,
    /// Cursor of the next page; absent on the last page
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

type Page = PageQuery<PAGE_MAX>;

impl std::fmt::Debug for CreatedApiKey {
    /// Leaves the secret out.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("CreatedApiKey")
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

impl TryFrom<CreateApiKey> for NewApiKey {
    type Error = ApiKeyError;

    fn try_from(body: CreateApiKey) -> Result<Self, ApiKeyError> {
        let permissions = body.permissions.iter().map(|name| name.parse());
        Ok(Self {
            description: body.description,
            system: body.system,
            scopes: body.scopes,
            all: body.all,
            permissions: permissions.collect::<Result<_, _>>()?,
        })
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

impl From<&pages::Page<ApiKey>> for ApiKeyList {
    fn from(page: &pages::Page<ApiKey>) -> Self {
        Self {
            keys: page.items.iter().map(ApiKeyBody::from).collect(),
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
            permissions: key.permissions.iter().map(ToString::to_string).collect(),
        }
    }
}

/// Create an API key; its secret is shown only once
#[utoipa::path(post, path = "/v1/api-keys", tag = "api keys", security(("admin_token" = [])),
    request_body = CreateApiKey, responses(
    (status = 201, description = "The key and its secret", body = CreatedApiKey),
))]
pub(super) async fn create_api_key(
    _: Authenticated<Everywhere<ManageApiKeys>>,
    State(state): State<AppState>,
    JsonBody(body): JsonBody<CreateApiKey>,
) -> Result<(StatusCode, Json<CreatedApiKey>), Problem> {
    let created = state.api_keys.create(body.try_into()?).await?;
    Ok((StatusCode::CREATED, Json(created.into())))
}

/// List API keys, the newest first
#[utoipa::path(get, path = "/v1/api-keys", tag = "api keys", security(("admin_token" = [])),
    params(Page), responses(
    (status = 200, description = "A page of keys", body = ApiKeyList),
))]
pub(super) async fn list_api_keys(
    _: Authenticated<Everywhere<ManageApiKeys>>,
    State(state): State<AppState>,
    page: Page,
) -> Result<Json<ApiKeyList>, Problem> {
    let page = state.api_keys.list(page.limit, page.cursor).await?;
    Ok(Json(ApiKeyList::from(&page)))
}

/// Revoke an API key
#[utoipa::path(delete, path = "/v1/api-keys/{key_id}", tag = "api keys", security(("admin_token" = [])),
    params(KeyPath), responses(
    (status = 200, description = "The revoked key", body = RevokedApiKey),
    (status = 404, description = "API key not found"),
))]
pub(super) async fn revoke_api_key(
    _: Authenticated<Everywhere<ManageApiKeys>>,
    State(state): State<AppState>,
    PathPart(key_id): PathPart<KeyId>,
) -> Result<Json<RevokedApiKey>, Problem> {
    let revoked = state.api_keys.revoke(key_id).await?;
    Ok(Json(RevokedApiKey::from(&revoked)))
}
