//! `/v1/ids`: sequential ids by tag, and how they are shown.

use axum::extract::State;
use axum::http::StatusCode;
use homeport_systems::records::{DispensedId, IdTag, NewIdTag};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Added, Answer, Caller, Envelope, Failure, ok};
use crate::auth::Admin;
use crate::body::JsonBody;
use crate::forms::records as forms;
use crate::object;
use crate::problem::Problem;
use crate::state::AppState;
use crate::whole::WholeNumber;

/// A tag to make.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct InitTag {
    #[schema(schema_with = forms::id_tag)]
    idtag: String,
    #[serde(default, deserialize_with = "object::deserialize")]
    config: TagConfig,
}

#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TagConfig {
    /// What makes its encoded ids differ from those of others; at random unless given
    #[schema(schema_with = forms::salt, required = false)]
    salt: Option<String>,
    /// How long an encoded id is at least
    #[schema(value_type = Option<usize>, minimum = 1, maximum = 12, default = 8)]
    min_length: Option<WholeNumber>,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DispenseId {
    #[schema(schema_with = forms::id_tag)]
    idtag: String,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DecodeId {
    #[schema(schema_with = forms::id_tag)]
    idtag: String,
    #[schema(schema_with = forms::encoded_id)]
    encoded: String,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct TagBody {
    idtag: String,
}

/// An id as it is stored and as it is shown.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct IdBody {
    #[schema(example = 68)]
    id: u64,
    #[schema(example = "gid")]
    idtag: String,
    #[schema(example = "OxaYbwKR")]
    encoded: String,
}

impl From<DispensedId> for IdBody {
    fn from(dispensed: DispensedId) -> Self {
        Self {
            id: dispensed.id,
            idtag: dispensed.tag.to_string(),
            encoded: dispensed.encoded,
        }
    }
}

fn parse_tag(text: String) -> Result<IdTag, Problem> {
    Ok(IdTag::try_from(text)?)
}

/// Make an id tag
///
/// Groups, devices and journals count in `gid`, `did` and `jid`, which are made with the first group
/// unless they were made here before.
#[utoipa::path(post, path = "/v1/ids/init", tag = "records", security(("admin_token" = [])),
    request_body = InitTag, responses(
    (status = 201, description = "The tag", body = Envelope<TagBody>), Failure))]
pub(super) async fn init_tag(
    _: Admin,
    State(state): State<AppState>,
    JsonBody(body): JsonBody<InitTag>,
) -> Added<TagBody> {
    let tag = parse_tag(body.idtag)?;
    let new = NewIdTag {
        tag: tag.clone(),
        salt: body.config.salt,
        // What is below zero is as wrong as zero is.
        min_length: body
            .config
            .min_length
            .map(|WholeNumber(length)| usize::try_from(length).unwrap_or(0)),
    };
    state.records.init_tag(new).await?;
    let made = TagBody {
        idtag: tag.to_string(),
    };
    Ok((StatusCode::CREATED, ok(made)))
}

/// The next id of a tag
#[utoipa::path(post, path = "/v1/ids/dispense", tag = "records", security(("admin_token" = [])),
    request_body = DispenseId, responses(
    (status = 200, description = "The id", body = Envelope<IdBody>), Failure))]
pub(super) async fn dispense_id(
    _: Admin,
    State(state): State<AppState>,
    JsonBody(body): JsonBody<DispenseId>,
) -> Answer<IdBody> {
    let tag = parse_tag(body.idtag)?;
    Ok(ok(state.records.dispense(&tag).await?.into()))
}

/// The number behind an encoded id
#[utoipa::path(post, path = "/v1/ids/decode", tag = "records",
    security(("admin_token" = []), ("device_key" = [])), request_body = DecodeId, responses(
    (status = 200, description = "The id", body = Envelope<IdBody>), Failure))]
pub(super) async fn decode_id(
    caller: Caller,
    State(state): State<AppState>,
    JsonBody(body): JsonBody<DecodeId>,
) -> Answer<IdBody> {
    caller.check_system()?;
    let tag = parse_tag(body.idtag)?;
    Ok(ok(state.records.decode(&tag, &body.encoded).await?.into()))
}
