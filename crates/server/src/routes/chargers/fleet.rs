//! `/v1/chargers` and `/v1/chargers/{device_id}`

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use homeport_systems::chargers::{Charger, DeviceName};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Page, SYSTEM, readable};
use crate::auth::needs::{Manage, Read};
use crate::auth::{Action, ApiKeysOrPeople, Authenticated, People, Subject};
use crate::openapi::schemas::chargers::ChargerPath;
use crate::openapi::schemas::friendly_name_change;
use crate::problem::Problem;
use crate::request::plain_json::PlainItem;
use crate::request::{JsonBody, PathPart, json_object};
use crate::routes::sensors::name_change;
use crate::state::AppState;

/// A charger: its registration and its state.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Charger)]
pub(in crate::routes) struct ChargerBody {
    #[schema(example = "SC-C014EA63")]
    device_id: String,
    /// Attributes of the registration
    #[schema(value_type = Object)]
    registration: PlainItem,
    /// Attributes last reported by the device or set by operators
    #[schema(value_type = Object)]
    state: PlainItem,
}

/// Fields to change.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::routes) struct PatchCharger {
    #[serde(default, deserialize_with = "json_object::present")]
    #[schema(schema_with = friendly_name_change)]
    friendly_name: Option<Option<String>>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(in crate::routes) struct ChargerList {
    chargers: Vec<ChargerBody>,
    /// Cursor of the next page; absent on the last page
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

impl From<Charger> for ChargerBody {
    fn from(charger: Charger) -> Self {
        Self {
            device_id: charger.device_id.to_string(),
            registration: PlainItem(charger.registration),
            state: PlainItem(charger.state),
        }
    }
}

/// List chargers, in no particular order
#[utoipa::path(get, path = "/v1/chargers", tag = "chargers",
    security(("admin_token" = []), ("device_key" = [])), params(Page), responses(
    (status = 200, description = "A page of chargers", body = ChargerList),
))]
pub(in crate::routes) async fn list_chargers(
    caller: Authenticated<ApiKeysOrPeople<Read>>,
    State(state): State<AppState>,
    page: Page,
) -> Result<Json<ChargerList>, Problem> {
    caller.check(Action::Read, SYSTEM, Subject::All)?;
    let page = state.chargers.fleet(page.limit, page.cursor).await?;
    Ok(Json(ChargerList {
        chargers: page.items.into_iter().map(ChargerBody::from).collect(),
        next_cursor: page.next.map(|cursor| cursor.encode()),
    }))
}

/// Get a charger
#[utoipa::path(get, path = "/v1/chargers/{device_id}", tag = "chargers",
    security(("admin_token" = []), ("device_key" = [])),
    params(ChargerPath), responses(
    (status = 200, description = "The charger", body = ChargerBody),
    (status = 404, description = "Device not found"),
))]
pub(in crate::routes) async fn get_charger(
    caller: Authenticated<ApiKeysOrPeople<Read>>,
    State(state): State<AppState>,
    PathPart(device): PathPart<DeviceName>,
) -> Result<Json<ChargerBody>, Problem> {
    let sc_id = readable(&state, &caller, &device).await?;
    let charger = state.chargers.charger(&sc_id).await?;
    Ok(Json(charger.into()))
}

/// Set or remove the friendly name of a charger
#[utoipa::path(patch, path = "/v1/chargers/{device_id}", tag = "chargers",
    security(("admin_token" = [])), request_body = PatchCharger, params(ChargerPath), responses(
    (status = 200, description = "The updated charger", body = ChargerBody),
    (status = 404, description = "Device not found"),
))]
pub(in crate::routes) async fn patch_charger(
    caller: Authenticated<People<Manage>>,
    State(state): State<AppState>,
    PathPart(device): PathPart<DeviceName>,
    JsonBody(body): JsonBody<PatchCharger>,
) -> Result<Json<ChargerBody>, Problem> {
    super::check(&state, &caller, Action::Manage, &device).await?;
    let name = name_change(body.friendly_name)?;
    let charger = state.chargers.rename(&device, name).await?;
    Ok(Json(charger.into()))
}

/// Decommission a charger: remove it with its state, events and statistics. They are invisible at once and deleted in the
/// background; until then the charger cannot register again
#[utoipa::path(delete, path = "/v1/chargers/{device_id}", tag = "chargers",
    security(("admin_token" = [])), params(ChargerPath), responses(
    (status = 202, description = "The charger is being removed"),
    (status = 404, description = "Device not found"),
))]
pub(in crate::routes) async fn decommission_charger(
    caller: Authenticated<People<Manage>>,
    State(state): State<AppState>,
    PathPart(device): PathPart<DeviceName>,
) -> Result<StatusCode, Problem> {
    super::check(&state, &caller, Action::Manage, &device).await?;
    state.chargers.decommission(&device).await?;
    Ok(StatusCode::ACCEPTED)
}
