//! `GET /v1/chargers/{device_id}/daily` and `POST /v1/chargers/daily/rebuild`

use axum::Json;
use axum::extract::State;
use homeport_systems::chargers::{DeviceName, MountainDay};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{Page, SYSTEM, readable};
use crate::auth::needs::{Manage, Read};
use crate::auth::{Action, ApiKeysOrPeople, Authenticated, People, Subject};
use crate::openapi::schemas::chargers::{self as schemas, ChargerPath};
use crate::problem::Problem;
use crate::request::plain_json::PlainItem;
use crate::request::{JsonBody, PathPart, RequestTimes, UrlQuery, check_order, parse_cursor};
use crate::state::AppState;

/// Approximate number of days that one request recomputes.
const REBUILD_DAYS_PER_REQUEST: usize = 1000;

#[derive(Debug, Serialize, ToSchema)]
pub(in crate::routes) struct DailyList {
    /// One item for each day that has events, the oldest first
    #[schema(value_type = Vec<Object>)]
    days: Vec<PlainItem>,
    /// Cursor of the next page; absent on the last page
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(in crate::routes) struct DailyQuery {
    /// First day, in Mountain Time, or a time on it
    #[param(schema_with = schemas::day_or_time, required = false)]
    from: Option<String>,
    /// Last day, included
    #[param(schema_with = schemas::day_or_time, required = false)]
    to: Option<String>,
}

/// The days to recompute.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::routes) struct Rebuild {
    /// SC-ID or UUID; all chargers if absent
    #[schema(schema_with = schemas::device_name_or_null, required = false)]
    device_id: Option<String>,
    /// First day, in Mountain Time
    #[schema(schema_with = schemas::day_or_time_text)]
    from: String,
    /// Last day; the range has at most 3660 days
    #[schema(schema_with = schemas::day_or_time_text)]
    to: String,
    /// Cursor of the previous response
    cursor: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(in crate::routes) struct RebuildAnswer {
    /// Recomputed days
    days: usize,
    /// Repeat the request with this cursor; absent when all days are recomputed
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// List the daily statistics of a charger
#[utoipa::path(get, path = "/v1/chargers/{device_id}/daily", tag = "chargers",
    security(("admin_token" = []), ("device_key" = [])),
    params(ChargerPath, DailyQuery, Page), responses(
    (status = 200, description = "A page of days", body = DailyList),
))]
pub(in crate::routes) async fn list_daily(
    caller: Authenticated<ApiKeysOrPeople<Read>>,
    State(state): State<AppState>,
    PathPart(device): PathPart<DeviceName>,
    UrlQuery(query): UrlQuery<DailyQuery>,
    page: Page,
) -> Result<Json<DailyList>, Problem> {
    let sc_id = readable(&state, &caller, &device).await?;
    let times = RequestTimes::new(&state, page.cursor.as_ref()).or_mountain_time();
    let bound = |name, text: Option<&String>| text.map(|text| day(times, name, text)).transpose();
    let from = bound("from", query.from.as_ref())?;
    let to = bound("to", query.to.as_ref())?;
    if let (Some(from), Some(to)) = (from, to) {
        check_order(from, to)?;
    }
    let page = state
        .chargers
        .daily(&sc_id, from, to, page.limit, page.cursor)
        .await?;
    Ok(Json(DailyList {
        days: page.items.into_iter().map(PlainItem).collect(),
        next_cursor: times.next_cursor(page.next),
    }))
}

/// Recompute daily statistics from events. Days without events lose their statistics, unless they were migrated
#[utoipa::path(post, path = "/v1/chargers/daily/rebuild", tag = "chargers",
    security(("admin_token" = [])), request_body = Rebuild, responses(
    (status = 200, description = "The number of recomputed days, and a cursor if there are more", body = RebuildAnswer),
))]
pub(in crate::routes) async fn rebuild_daily(
    caller: Authenticated<People<Manage>>,
    State(state): State<AppState>,
    JsonBody(body): JsonBody<Rebuild>,
) -> Result<Json<RebuildAnswer>, Problem> {
    let device = body
        .device_id
        .as_ref()
        .map(|text| text.parse::<DeviceName>());
    let device = match device.transpose()? {
        Some(device) => {
            super::check(&state, &caller, Action::Manage, &device).await?;
            Some(state.chargers.find(&device).await?)
        }
        None => {
            caller.check(Action::Manage, SYSTEM, Subject::All)?;
            None
        }
    };
    let cursor = parse_cursor(body.cursor.as_deref())?;
    let times = RequestTimes::new(&state, cursor.as_ref()).or_mountain_time();
    let (from, to) = (day(times, "from", &body.from)?, day(times, "to", &body.to)?);
    check_order(from, to)?;
    let rebuilt = state
        .chargers
        .rebuild(device.as_ref(), from, to, REBUILD_DAYS_PER_REQUEST, cursor)
        .await?;
    Ok(Json(RebuildAnswer {
        days: rebuilt.days,
        next_cursor: times.next_cursor(rebuilt.next),
    }))
}

/// Parses a day, or the day of a time.
fn day(times: RequestTimes, name: &str, text: &str) -> Result<MountainDay, Problem> {
    if let Some(day) = MountainDay::nearest(text) {
        return Ok(day);
    }
    times.parse(name, text).map(MountainDay::of).map_err(|_| {
        Problem::invalid(format!(
            "{name} must be a day such as 2026-02-21, a time, or an age such as -7d"
        ))
    })
}
