//! Reads decoders and their versions.

use axum::Json;
use axum::extract::{Path, State};
use homeport_systems::chargers::decoders::DecoderName;
use serde::Serialize;
use utoipa::ToSchema;

use super::body::{DecoderBody, DecoderWithEtag, with_etag};
use crate::auth::needs::Read;
use crate::auth::{Authenticated, Everywhere};
use crate::openapi::schemas::uplinks::{DecoderPath, DecoderVersionPath};
use crate::problem::Problem;
use crate::request::{PathPart, parse_version};
use crate::routes::chargers::Page;
use crate::state::AppState;

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ChargerDecoderList)]
pub(in crate::routes) struct DecoderList {
    decoders: Vec<DecoderBody>,
    /// Cursor of the next page; absent on the last page
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ChargerDecoderVersionList)]
pub(in crate::routes) struct DecoderVersionList {
    /// Newest first
    versions: Vec<DecoderBody>,
}

/// List payload decoders by name
#[utoipa::path(get, path = "/v1/chargers/decoders", tag = "chargers", security(("admin_token" = [])),
    params(Page), responses(
    (status = 200, description = "A page of decoders", body = DecoderList),
))]
pub(in crate::routes) async fn list_decoders(
    _: Authenticated<Everywhere<Read>>,
    State(state): State<AppState>,
    page: Page,
) -> Result<Json<DecoderList>, Problem> {
    let decoders = state.chargers.decoders();
    let page = decoders.list(page.limit, page.cursor).await?;
    Ok(Json(DecoderList {
        decoders: page.items.into_iter().map(DecoderBody::from).collect(),
        next_cursor: page.next.map(|cursor| cursor.encode()),
    }))
}

/// Get a payload decoder
#[utoipa::path(get, path = "/v1/chargers/decoders/{name}", tag = "chargers", security(("admin_token" = [])),
    params(DecoderPath), responses(
    (status = 200, description = "The decoder", body = DecoderBody),
    (status = 404, description = "Decoder not found"),
))]
pub(in crate::routes) async fn get_decoder(
    _: Authenticated<Everywhere<Read>>,
    State(state): State<AppState>,
    PathPart(name): PathPart<DecoderName>,
) -> Result<DecoderWithEtag, Problem> {
    Ok(with_etag(state.chargers.decoders().get(&name).await?))
}

/// List the versions of a payload decoder, even of a deleted one
#[utoipa::path(get, path = "/v1/chargers/decoders/{name}/versions", tag = "chargers",
    security(("admin_token" = [])), params(DecoderPath), responses(
    (status = 200, description = "The newest 100 versions", body = DecoderVersionList),
    (status = 404, description = "Decoder not found"),
))]
pub(in crate::routes) async fn list_decoder_versions(
    _: Authenticated<Everywhere<Read>>,
    State(state): State<AppState>,
    PathPart(name): PathPart<DecoderName>,
) -> Result<Json<DecoderVersionList>, Problem> {
    let versions = state.chargers.decoders().versions(&name).await?;
    Ok(Json(DecoderVersionList {
        versions: versions.into_iter().map(DecoderBody::from).collect(),
    }))
}

/// Get a version of a payload decoder
#[utoipa::path(get, path = "/v1/chargers/decoders/{name}/versions/{version}", tag = "chargers",
    security(("admin_token" = [])), params(DecoderVersionPath), responses(
    (status = 200, description = "The version", body = DecoderBody),
    (status = 404, description = "Version not found"),
))]
pub(in crate::routes) async fn get_decoder_version(
    _: Authenticated<Everywhere<Read>>,
    State(state): State<AppState>,
    Path((name, version)): Path<(String, String)>,
) -> Result<Json<DecoderBody>, Problem> {
    let name: DecoderName = name.parse()?;
    let version = parse_version(&version)?;
    let stored = state.chargers.decoders().version(&name, version).await?;
    Ok(Json(stored.into()))
}
