//! Creates, replaces and deletes decoders.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use homeport_systems::chargers::decoders::{DecoderDocument, DecoderName};

use super::body::{DecoderBody, DecoderWithEtag, with_etag};
use crate::auth::needs::ManageRules;
use crate::auth::{Authenticated, Everywhere};
use crate::openapi::schemas::rules::IfMatch;
use crate::openapi::schemas::uplinks::{DecoderPath, DecoderSchema};
use crate::problem::Problem;
use crate::request::{JsonBody, PathPart, expected_version};
use crate::state::AppState;

/// Create or replace a payload decoder
#[utoipa::path(put, path = "/v1/chargers/decoders/{name}", tag = "chargers", security(("admin_token" = [])),
    params(DecoderPath, IfMatch), request_body = DecoderSchema, responses(
    (status = 200, description = "The decoder", body = DecoderBody),
    (status = 201, description = "The new decoder", body = DecoderBody),
    (status = 400, description = "Invalid decoder; the detail names the place"),
    (status = 404, description = "Decoder not found; only with `If-Match`"),
    (status = 409, description = "There are too many decoders"),
    (status = 412, description = "The decoder has another version"),
))]
pub(in crate::routes) async fn put_decoder(
    _: Authenticated<Everywhere<ManageRules>>,
    State(state): State<AppState>,
    PathPart(name): PathPart<DecoderName>,
    headers: HeaderMap,
    JsonBody(document): JsonBody<DecoderDocument>,
) -> Result<(StatusCode, DecoderWithEtag), Problem> {
    let expected = expected_version(&headers)?;
    let decoders = state.chargers.decoders();
    let (stored, is_new) = decoders.put(&name, document, expected).await?;
    let status = match is_new {
        true => StatusCode::CREATED,
        false => StatusCode::OK,
    };
    Ok((status, with_etag(stored)))
}

/// Delete a payload decoder; its versions stay readable
#[utoipa::path(delete, path = "/v1/chargers/decoders/{name}", tag = "chargers", security(("admin_token" = [])),
    params(DecoderPath, IfMatch), responses(
    (status = 204, description = "Deleted"),
    (status = 404, description = "Decoder not found"),
    (status = 412, description = "The decoder has another version"),
))]
pub(in crate::routes) async fn delete_decoder(
    _: Authenticated<Everywhere<ManageRules>>,
    State(state): State<AppState>,
    PathPart(name): PathPart<DecoderName>,
    headers: HeaderMap,
) -> Result<StatusCode, Problem> {
    let expected = expected_version(&headers)?;
    state.chargers.decoders().delete(&name, expected).await?;
    Ok(StatusCode::NO_CONTENT)
}
