//! `/v1/chargers/{device_id}/state`

use std::borrow::Cow;
use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use homeport_systems::chargers::{DATA_DEPTH_MAX, DeviceName, StatePatch};
use serde_json::value::RawValue;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::Schema;
use utoipa::{PartialSchema, ToSchema};

use crate::auth::{Admin, Reader};
use crate::body::Body;
use crate::forms::chargers::{self, ChargerPath};
use crate::problem::{Problem, ProblemBody};
use crate::routes::json::{self, PlainItem};
use crate::state::AppState;
use crate::url::PathPart;

/// What operators set.
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

/// The state of a charger: what it reported last, and what operators set
#[utoipa::path(get, path = "/v1/chargers/{device_id}/state", tag = "chargers",
    security(("admin_token" = []), ("device_key" = [])),
    params(ChargerPath), responses(
    (status = 200, description = "Its attributes", body = Object),
    (status = 400, description = "The id is none", body = ProblemBody, content_type = "application/problem+json"),
    (status = 401, description = "Neither operator nor device", body = ProblemBody, content_type = "application/problem+json"),
    (status = 403, description = "The key is of another system", body = ProblemBody, content_type = "application/problem+json"),
    (status = 404, description = "There is no such device", body = ProblemBody, content_type = "application/problem+json"),
    (status = 429, description = "Too many requests with this key", body = ProblemBody, content_type = "application/problem+json"),
    (status = 503, description = "The store cannot answer", body = ProblemBody, content_type = "application/problem+json")
))]
pub(in crate::routes) async fn get_state(
    caller: Reader,
    State(state): State<AppState>,
    PathPart(device): PathPart<DeviceName>,
) -> Result<Json<PlainItem>, Problem> {
    caller.check_system(super::SYSTEM)?;
    let item = state.chargers.state(&device.sc_id()).await?;
    Ok(Json(PlainItem(item)))
}

/// Set attributes that begin with `scheduler_`, `ota_`, `time_sync_` or `divergence_`; null removes one
#[utoipa::path(patch, path = "/v1/chargers/{device_id}/state", tag = "chargers",
    security(("admin_token" = [])),
    params(ChargerPath),
    request_body = StatePatchBody, responses(
    (status = 200, description = "The state as it is now", body = Object),
    (status = 400, description = "Something is not as it should be", body = ProblemBody, content_type = "application/problem+json"),
    (status = 401, description = "No operator", body = ProblemBody, content_type = "application/problem+json"),
    (status = 404, description = "There is no such device", body = ProblemBody, content_type = "application/problem+json"),
    (status = 503, description = "The store cannot answer", body = ProblemBody, content_type = "application/problem+json")
))]
pub(in crate::routes) async fn patch_state(
    _: Admin,
    State(state): State<AppState>,
    PathPart(device): PathPart<DeviceName>,
    Body(body): Body,
) -> Result<Json<PlainItem>, Problem> {
    let raw: BTreeMap<Cow<'_, str>, &RawValue> = serde_json::from_slice(&body)
        .map_err(|error| Problem::invalid(format!("the body is not as expected: {error}")))?;
    let mut changes = BTreeMap::new();
    for (name, raw) in raw {
        let value = match raw.get() {
            "null" => None,
            _ => Some(json::value(raw, DATA_DEPTH_MAX).map_err(Problem::invalid)?),
        };
        changes.insert(name.into_owned(), value);
    }
    let patch = StatePatch::new(changes)?;
    let item = state.chargers.patch_state(&device.sc_id(), patch).await?;
    Ok(Json(PlainItem(item)))
}
