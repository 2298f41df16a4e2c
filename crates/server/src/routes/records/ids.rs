//! `/v1/ids`: sequential ids by tag, and their encoded form.

use axum::extract::State;
use homeport_systems::records::{DispensedId, IdTag, NewIdTag};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Answer, Created, Envelope, SYSTEM, created, ok};
use crate::auth::needs::{Manage, Read};
use crate::auth::{Action, ApiKeysOrPeople, Authenticated, People, Subject};
use crate::openapi::schemas::records as schemas;
use crate::problem::Problem;
use crate::request::JsonBody;
use crate::request::WholeNumber;
use crate::request::json_object;
use crate::state::AppState;

/// An id tag to create.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct InitTag {
    #[schema(schema_with = schemas::id_tag)]
    idtag: String,
    #[serde(default, deserialize_with = "json_object::deserialize")]
    config: TagConfig,
}

#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TagConfig {
    /// Salt of the tag's encoded ids; random if absent
    #[schema(schema_with = schemas::salt, required = false)]
    salt: Option<String>,
    /// First id of the tag, to continue the ids of another dispenser; 1 if absent
    #[schema(value_type = Option<u64>, minimum = 1, maximum = 9_007_199_254_740_991_u64)]
    next_id: Option<WholeNumber>,
    /// Minimum length of encoded ids
    #[schema(value_type = Option<usize>, minimum = 1, maximum = 12, default = 8)]
    min_length: Option<WholeNumber>,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DispenseId {
    #[schema(schema_with = schemas::id_tag)]
    idtag: String,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DecodeId {
    #[schema(schema_with = schemas::id_tag)]
    idtag: String,
    #[schema(schema_with = schemas::encoded_id)]
    encoded: String,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct TagBody {
    idtag: String,
}

/// An id and its encoded form.
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

/// Create an id tag
///
/// Groups, devices and journals use the tags `gid`, `did` and `jid`. They are created with the first group
/// unless they exist.
#[utoipa::path(post, path = "/v1/ids/init", tag = "records", security(("admin_token" = [])),
    request_body = InitTag, responses(
    (status = 201, description = "The tag", body = Envelope<TagBody>)))]
pub(super) async fn init_tag(
    caller: Authenticated<People<Manage>>,
    State(state): State<AppState>,
    JsonBody(body): JsonBody<InitTag>,
) -> Created<TagBody> {
    caller.check(Action::Manage, SYSTEM, Subject::All)?;
    let tag = parse_tag(body.idtag)?;
    let new = NewIdTag {
        tag: tag.clone(),
        salt: body.config.salt,
        // Negative numbers are rejected like zero.
        min_length: body
            .config
            .min_length
            .map(|WholeNumber(length)| usize::try_from(length).unwrap_or(0)),
        next_id: body
            .config
            .next_id
            .map(|WholeNumber(id)| u64::try_from(id).unwrap_or(0)),
    };
    state.records.init_tag(new).await?;
    Ok(created(TagBody {
        idtag: tag.to_string(),
    }))
}

/// Dispense the next id of a tag
#[utoipa::path(post, path = "/v1/ids/dispense", tag = "records", security(("admin_token" = [])),
    request_body = DispenseId, responses(
    (status = 200, description = "The id", body = Envelope<IdBody>)))]
pub(super) async fn dispense_id(
    caller: Authenticated<People<Manage>>,
    State(state): State<AppState>,
    JsonBody(body): JsonBody<DispenseId>,
) -> Answer<IdBody> {
    caller.check(Action::Manage, SYSTEM, Subject::All)?;
    let tag = parse_tag(body.idtag)?;
    Ok(ok(state.records.dispense(&tag).await?.into()))
}

/// Decode an encoded id
#[utoipa::path(post, path = "/v1/ids/decode", tag = "records",
    security(("admin_token" = []), ("device_key" = [])), request_body = DecodeId, responses(
    (status = 200, description = "The id", body = Envelope<IdBody>)))]
pub(super) async fn decode_id(
    caller: Authenticated<ApiKeysOrPeople<Read>>,
    State(state): State<AppState>,
    JsonBody(body): JsonBody<DecodeId>,
) -> Answer<IdBody> {
    caller.check(Action::Read, SYSTEM, Subject::None)?;
    let tag = parse_tag(body.idtag)?;
    Ok(ok(state.records.decode(&tag, &body.encoded).await?.into()))
}
