//! `GET /v1/chargers` and `GET /v1/chargers/{device_id}`

use axum::Json;
use axum::extract::State;
use homeport_systems::chargers::{Charger, DeviceName, PAGE_MAX};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::auth::Reader;
use crate::forms::chargers::ChargerPath;
use crate::problem::{Problem, ProblemBody};
use crate::routes::json::PlainItem;
use crate::state::AppState;
use crate::url::{self, PathPart, UrlQuery};

/// A charger: what the registry has about it, and its state.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Charger)]
pub(in crate::routes) struct ChargerBody {
    #[schema(example = "SC-C014EA63")]
    device_id: String,
    /// Attributes of the registry
    #[schema(value_type = Object)]
    registration: PlainItem,
    /// What it reported last, and what operators set
    #[schema(value_type = Object)]
    state: PlainItem,
}

#[derive(Debug, Serialize, ToSchema)]
pub(in crate::routes) struct ChargerList {
    chargers: Vec<ChargerBody>,
    /// Absent on the last page
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(in crate::routes) struct FleetQuery {
    /// Items of a page
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: Option<usize>,
    /// Where the page before ended
    cursor: Option<String>,
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

/// The fleet, in no particular order
#[utoipa::path(get, path = "/v1/chargers", tag = "chargers",
    security(("admin_token" = []), ("device_key" = [])), params(FleetQuery), responses(
    (status = 200, description = "A page of chargers", body = ChargerList),
    (status = 400, description = "The limit or the cursor is not right", body = ProblemBody, content_type = "application/problem+json"),
    (status = 401, description = "Neither operator nor device", body = ProblemBody, content_type = "application/problem+json"),
    (status = 403, description = "The key is of another system", body = ProblemBody, content_type = "application/problem+json"),
    (status = 429, description = "Too many requests with this key", body = ProblemBody, content_type = "application/problem+json"),
    (status = 503, description = "The store cannot answer", body = ProblemBody, content_type = "application/problem+json")
))]
pub(in crate::routes) async fn list_chargers(
    caller: Reader,
    State(state): State<AppState>,
    UrlQuery(query): UrlQuery<FleetQuery>,
) -> Result<Json<ChargerList>, Problem> {
    caller.check_system(super::SYSTEM)?;
    let limit = url::limit(query.limit, PAGE_MAX)?;
    let cursor = url::cursor(query.cursor.as_deref())?;
    let page = state.chargers.fleet(limit, cursor).await?;
    Ok(Json(ChargerList {
        chargers: page.chargers.into_iter().map(ChargerBody::from).collect(),
        next_cursor: page.next.map(|cursor| cursor.encode()),
    }))
}

/// One charger
#[utoipa::path(get, path = "/v1/chargers/{device_id}", tag = "chargers",
    security(("admin_token" = []), ("device_key" = [])),
    params(ChargerPath), responses(
    (status = 200, description = "The charger", body = ChargerBody),
    (status = 400, description = "The id is none", body = ProblemBody, content_type = "application/problem+json"),
    (status = 401, description = "Neither operator nor device", body = ProblemBody, content_type = "application/problem+json"),
    (status = 403, description = "The key is of another system", body = ProblemBody, content_type = "application/problem+json"),
    (status = 404, description = "There is no such device", body = ProblemBody, content_type = "application/problem+json"),
    (status = 429, description = "Too many requests with this key", body = ProblemBody, content_type = "application/problem+json"),
    (status = 503, description = "The store cannot answer", body = ProblemBody, content_type = "application/problem+json")
))]
pub(in crate::routes) async fn get_charger(
    caller: Reader,
    State(state): State<AppState>,
    PathPart(device): PathPart<DeviceName>,
) -> Result<Json<ChargerBody>, Problem> {
    caller.check_system(super::SYSTEM)?;
    let charger = state.chargers.charger(&device.sc_id()).await?;
    Ok(Json(charger.into()))
}
