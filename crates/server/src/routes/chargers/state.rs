//! `/v1/chargers/{device_id}/state`

use std::borrow::Cow;
use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use homeport_systems::chargers::{DATA_DEPTH_MAX, DeviceName, StatePatch, schema};
use homeport_systems::unknown_name::UnknownName;
use serde_json::value::RawValue;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::Schema;
use utoipa::{PartialSchema, ToSchema};

use super::readable;
use crate::auth::needs::{Manage, Read};
use crate::auth::{Action, ApiKeysOrPeople, Authenticated, People};
use crate::openapi::schemas::chargers::{self, ChargerPath};
use crate::problem::Problem;
use crate::request::plain_json::{self, PlainItem};
use crate::request::{Body, PathPart};
use crate::state::AppState;

/// Schema of the attributes that operators set.
#[derive(Debug)]
pub(in crate::routes) struct StatePatchBody;

impl PartialSchema for StatePatchBody {
    fn schema() -> RefOr<Schema> {
        chargers::state_patch()
    }
}

impl ToSchema for StatePatchBody {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed("ChargerStatePatch")
    }
}

/// Get the state of a charger: what it last reported, and what operators set
#[utoipa::path(get, path = "/v1/chargers/{device_id}/state", tag = "chargers",
    security(("admin_token" = []), ("device_key" = [])),
    params(ChargerPath), responses(
    (status = 200, description = "The state", body = Object),
    (status = 404, description = "Device not found"),
))]
pub(in crate::routes) async fn get_state(
    caller: Authenticated<ApiKeysOrPeople<Read>>,
    State(state): State<AppState>,
    PathPart(device): PathPart<DeviceName>,
) -> Result<Json<PlainItem>, Problem> {
    let sc_id = readable(&state, &caller, &device).await?;
    let item = state.chargers.state(&sc_id).await?;
    Ok(Json(PlainItem(item)))
}

/// Set attributes with the prefix `scheduler_`, `ota_`, `time_sync_` or `divergence_`; null removes one
#[utoipa::path(patch, path = "/v1/chargers/{device_id}/state", tag = "chargers",
    security(("admin_token" = [])),
    params(ChargerPath),
    request_body = StatePatchBody, responses(
    (status = 200, description = "The updated state", body = Object),
    (status = 404, description = "Device not found"),
))]
pub(in crate::routes) async fn patch_state(
    caller: Authenticated<People<Manage>>,
    State(state): State<AppState>,
    PathPart(device): PathPart<DeviceName>,
    Body(body): Body,
) -> Result<Json<PlainItem>, Problem> {
    super::check(&state, &caller, Action::Manage, &device).await?;
    let raw: BTreeMap<Cow<'_, str>, &RawValue> = serde_json::from_slice(&body)
        .map_err(|error| Problem::invalid(format!("invalid body: {error}")))?;
    let mut changes = BTreeMap::new();
    for (name, raw) in raw {
        if !StatePatch::may_change(&name) {
            let unknown = UnknownName::new("member", &name, schema::STATE_PREFIXES);
            return Err(Problem::invalid(unknown.to_string()));
        }
        let value = match raw.get() {
            "null" => None,
            _ => Some(plain_json::parse_value(raw, DATA_DEPTH_MAX).map_err(Problem::invalid)?),
        };
        changes.insert(name.into_owned(), value);
    }
    let patch = StatePatch::new(changes)?;
    let item = state.chargers.patch_state(&device, patch).await?;
    Ok(Json(PlainItem(item)))
}
