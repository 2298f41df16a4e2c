//! `GET /v1/chargers` and `GET /v1/chargers/{device_id}`

use axum::Json;
use axum::extract::State;
use homeport_systems::chargers::{Charger, DeviceName};
use serde::Serialize;
use utoipa::ToSchema;

use super::{Page, SYSTEM, readable};
use crate::auth::{Action, ApiKeysOrOperators, Authenticated, Subject};
use crate::openapi::schemas::chargers::ChargerPath;
use crate::problem::Problem;
use crate::request::PathPart;
use crate::request::plain_json::PlainItem;
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
    caller: Authenticated<ApiKeysOrOperators>,
    State(state): State<AppState>,
    page: Page,
) -> Result<Json<ChargerList>, Problem> {
    caller.check(Action::Read, SYSTEM, Subject::All)?;
    let page = state.chargers.fleet(page.limit, page.cursor).await?;
    Ok(Json(ChargerList {
        chargers: page.chargers.into_iter().map(ChargerBody::from).collect(),
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
    caller: Authenticated<ApiKeysOrOperators>,
    State(state): State<AppState>,
    PathPart(device): PathPart<DeviceName>,
) -> Result<Json<ChargerBody>, Problem> {
    let sc_id = readable(&caller, &device)?;
    let charger = state.chargers.charger(&sc_id).await?;
    Ok(Json(charger.into()))
}
