//! `GET /v1/chargers/{device_id}/daily` and `POST /v1/chargers/daily/rebuild`

use axum::Json;
use axum::extract::State;
use homeport_systems::chargers::{DeviceName, MountainDay, PAGE_MAX};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::auth::{Admin, Reader};
use crate::body::JsonBody;
use crate::forms::chargers::{self, ChargerPath};
use crate::problem::{Problem, ProblemBody};
use crate::routes::json::PlainItem;
use crate::state::AppState;
use crate::url::{self, PathPart, UrlQuery};

/// Days that one request counts again, about.
const REBUILD_DAYS_PER_REQUEST: usize = 1000;
/// Longest range that one request may ask for.
const REBUILD_RANGE_DAYS_MAX: usize = 366;

#[derive(Debug, Serialize, ToSchema)]
pub(in crate::routes) struct DailyList {
    /// One item for each day with events, the oldest first
    #[schema(value_type = Vec<Object>)]
    days: Vec<PlainItem>,
    /// Absent on the last page
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(in crate::routes) struct DailyQuery {
    /// The first day wanted, in Mountain Time, or a time on it
    #[param(schema_with = chargers::day_or_time, required = false)]
    from: Option<String>,
    /// The last day wanted
    #[param(schema_with = chargers::day_or_time, required = false)]
    to: Option<String>,
    /// Items of a page
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: Option<usize>,
    /// Where the page before ended
    cursor: Option<String>,
}

/// What to count again.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::routes) struct Rebuild {
    /// The SC-ID or the UUID; all chargers unless given
    #[schema(schema_with = chargers::device_name_or_null, required = false)]
    device_id: Option<String>,
    /// The first day, in Mountain Time
    #[schema(schema_with = chargers::day_or_time_text)]
    from: String,
    /// The last day; at most 366 days
    #[schema(schema_with = chargers::day_or_time_text)]
    to: String,
    /// Where the request before stopped
    cursor: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(in crate::routes) struct RebuildAnswer {
    /// Days with events that were counted
    days: usize,
    /// Send the request again with it; absent when all is done
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// Daily statistics of a charger, both ends included
#[utoipa::path(get, path = "/v1/chargers/{device_id}/daily", tag = "chargers",
    security(("admin_token" = []), ("device_key" = [])),
    params(ChargerPath, DailyQuery), responses(
    (status = 200, description = "A page of days", body = DailyList),
    (status = 400, description = "The range, the limit or the cursor is not right", body = ProblemBody, content_type = "application/problem+json"),
    (status = 401, description = "Neither operator nor device", body = ProblemBody, content_type = "application/problem+json"),
    (status = 403, description = "The key is of another system", body = ProblemBody, content_type = "application/problem+json"),
    (status = 429, description = "Too many requests with this key", body = ProblemBody, content_type = "application/problem+json"),
    (status = 503, description = "The store cannot answer", body = ProblemBody, content_type = "application/problem+json")
))]
pub(in crate::routes) async fn list_daily(
    caller: Reader,
    State(state): State<AppState>,
    PathPart(device): PathPart<DeviceName>,
    UrlQuery(query): UrlQuery<DailyQuery>,
) -> Result<Json<DailyList>, Problem> {
    caller.check_system(super::SYSTEM)?;
    let bound = |name, text: Option<&String>| text.map(|text| day(name, text)).transpose();
    let from = bound("from", query.from.as_ref())?;
    let to = bound("to", query.to.as_ref())?;
    let limit = url::limit(query.limit, PAGE_MAX)?;
    let cursor = url::cursor(query.cursor.as_deref())?;
    let page = state
        .chargers
        .daily(&device.sc_id(), from, to, limit, cursor)
        .await?;
    Ok(Json(DailyList {
        days: page.days.into_iter().map(PlainItem).collect(),
        next_cursor: page.next.map(|cursor| cursor.encode()),
    }))
}

/// Count days again from their events
#[utoipa::path(post, path = "/v1/chargers/daily/rebuild", tag = "chargers",
    security(("admin_token" = [])), request_body = Rebuild, responses(
    (status = 200, description = "How many days were counted, and whether there is more to do", body = RebuildAnswer),
    (status = 400, description = "The device, the range or the cursor is not right", body = ProblemBody, content_type = "application/problem+json"),
    (status = 401, description = "No operator", body = ProblemBody, content_type = "application/problem+json"),
    (status = 503, description = "The store cannot answer", body = ProblemBody, content_type = "application/problem+json")
))]
pub(in crate::routes) async fn rebuild_daily(
    _: Admin,
    State(state): State<AppState>,
    JsonBody(body): JsonBody<Rebuild>,
) -> Result<Json<RebuildAnswer>, Problem> {
    let device = body
        .device_id
        .as_ref()
        .map(|text| text.parse::<DeviceName>());
    let device = device.transpose()?.map(|device| device.sc_id());
    let (from, to) = (day("from", &body.from)?, day("to", &body.to)?);
    if from.days_to(to) > REBUILD_RANGE_DAYS_MAX {
        return Err(Problem::invalid(format!(
            "the range must be at most {REBUILD_RANGE_DAYS_MAX} days"
        )));
    }
    let cursor = url::cursor(body.cursor.as_deref())?;
    let rebuilt = state
        .chargers
        .rebuild(device.as_ref(), from, to, REBUILD_DAYS_PER_REQUEST, cursor)
        .await?;
    Ok(Json(RebuildAnswer {
        days: rebuilt.days,
        next_cursor: rebuilt.next.map(|cursor| cursor.encode()),
    }))
}

/// A day, or the day of a time.
fn day(name: &str, text: &str) -> Result<MountainDay, Problem> {
    MountainDay::nearest(text)
        .or_else(|| url::parse_time(text).map(MountainDay::of))
        .ok_or_else(|| Problem::invalid(format!("{name} must be a day as 2026-02-21, or a time")))
}
