//! Decoders in responses.

use axum::Json;
use axum::http::{HeaderName, HeaderValue};
use homeport_systems::chargers::decoders::{DecoderDocument, StoredDecoder};
use homeport_systems::time::UtcMillis;
use serde::Serialize;
use utoipa::ToSchema;

use crate::openapi::schemas::uplinks::DecoderSchema;
use crate::request::entity_tag;

/// A payload decoder, or one of its versions.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ChargerDecoder)]
pub(in crate::routes) struct DecoderBody {
    #[schema(example = "evse-v1")]
    name: String,
    #[schema(value_type = DecoderSchema)]
    decoder: DecoderDocument,
    /// Increases with every change
    version: i64,
    created_at: String,
    updated_at: String,
    /// Whether this version is the deletion of the decoder
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    deleted: bool,
}

/// A decoder, with its version as the `ETag` of the response.
pub(super) type DecoderWithEtag = ([(HeaderName, HeaderValue); 1], Json<DecoderBody>);

pub(super) fn with_etag(stored: StoredDecoder) -> DecoderWithEtag {
    let tag = entity_tag(stored.version);
    (tag, Json(stored.into()))
}

impl From<StoredDecoder> for DecoderBody {
    fn from(stored: StoredDecoder) -> Self {
        Self {
            name: stored.name.to_string(),
            decoder: stored.document,
            version: stored.version,
            created_at: UtcMillis::new(stored.created_at).to_string(),
            updated_at: UtcMillis::new(stored.updated_at).to_string(),
            deleted: stored.is_deletion,
        }
    }
}
