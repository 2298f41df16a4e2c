//! `GET /v1/chargers/events` and `GET /v1/chargers/{device_id}/events`

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use homeport_systems::chargers::{DeviceName, Event, EventRange, EventType, MountainTime, Order};
use homeport_systems::pages;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Page, SYSTEM, readable};
use crate::auth::needs::{Manage, Read};
use crate::auth::{Action, ApiKeysOrPeople, Authenticated, People, Subject};
use crate::openapi::schemas::chargers::{
    ChargerPath, EventPath, OptionalEventType, RequiredEventType,
};
use crate::problem::Problem;
use crate::request::plain_json::PlainValue;
use crate::request::{MountainTimeRange, PathPart, UrlQuery};
use crate::state::AppState;

/// A stored event.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ChargerEvent)]
pub(in crate::routes) struct EventBody {
    #[schema(example = "SC-C014EA63")]
    device_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    wireless_device_id: Option<String>,
    /// Wall-clock time in America/Denver
    #[schema(example = "2026-02-21 14:30:00.000")]
    timestamp_mt: String,
    /// Milliseconds since 1970
    timestamp_utc_ms: i64,
    event_type: String,
    #[schema(value_type = Object)]
    data: PlainValue,
    /// The uplink that the event was decoded from: its message, and the decoder with its version
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    uplink: Option<PlainValue>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ChargerEventList)]
pub(in crate::routes) struct EventList {
    events: Vec<EventBody>,
    /// Cursor of the next page; absent on the last page
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct EventTypeQuery {
    event_type: Option<String>,
}

impl EventTypeQuery {
    fn parse(&self) -> Result<Option<EventType>, Problem> {
        Ok(self
            .event_type
            .as_ref()
            .map(|text| text.parse())
            .transpose()?)
    }
}

fn event_range(range: &MountainTimeRange) -> EventRange {
    EventRange {
        from: range.from,
        to: range.to,
        order: range.order(Order::OldestFirst, Order::NewestFirst),
    }
}

impl From<Event> for EventBody {
    fn from(event: Event) -> Self {
        Self {
            device_id: event.device_id.to_string(),
            wireless_device_id: event.wireless_device_id,
            timestamp_mt: event.timestamp_mt.to_string(),
            timestamp_utc_ms: event.timestamp_utc.0,
            event_type: event.event_type.to_string(),
            data: PlainValue::members(event.data.members().clone()),
            uplink: event.uplink.map(PlainValue::members),
        }
    }
}

impl EventList {
    fn new(page: pages::Page<Event>, range: &MountainTimeRange) -> Self {
        Self {
            events: page.items.into_iter().map(EventBody::from).collect(),
            next_cursor: range.next_cursor(page.next),
        }
    }
}

/// List the events of a charger by time
#[utoipa::path(get, path = "/v1/chargers/{device_id}/events", tag = "chargers",
    security(("admin_token" = []), ("device_key" = [])),
    params(ChargerPath, OptionalEventType, MountainTimeRange, Page), responses(
    (status = 200, description = "Events in chronological order", body = EventList),
))]
pub(in crate::routes) async fn list_events(
    caller: Authenticated<ApiKeysOrPeople<Read>>,
    State(state): State<AppState>,
    PathPart(device): PathPart<DeviceName>,
    UrlQuery(query): UrlQuery<EventTypeQuery>,
    range: MountainTimeRange,
    page: Page,
) -> Result<Json<EventList>, Problem> {
    let sc_id = readable(&state, &caller, &device).await?;
    let event_type = query.parse()?;
    let page = state
        .chargers
        .events(
            &sc_id,
            event_type.as_ref(),
            event_range(&range),
            page.limit,
            page.cursor,
        )
        .await?;
    Ok(Json(EventList::new(page, &range)))
}

/// List the events of one type across all chargers by time
#[utoipa::path(get, path = "/v1/chargers/events", tag = "chargers",
    security(("admin_token" = []), ("device_key" = [])), 
    params(RequiredEventType, MountainTimeRange, Page), responses(
    (status = 200, description = "Events in chronological order", body = EventList),
))]
pub(in crate::routes) async fn list_fleet_events(
    caller: Authenticated<ApiKeysOrPeople<Read>>,
    State(state): State<AppState>,
    UrlQuery(query): UrlQuery<EventTypeQuery>,
    range: MountainTimeRange,
    page: Page,
) -> Result<Json<EventList>, Problem> {
    caller.check(Action::Read, SYSTEM, Subject::All)?;
    let event_type = query.parse()?;
    let event_type = event_type.ok_or_else(|| Problem::invalid("event_type is missing"))?;
    let page = state
        .chargers
        .fleet_events(&event_type, event_range(&range), page.limit, page.cursor)
        .await?;
    Ok(Json(EventList::new(page, &range)))
}

/// Delete an event. The statistics of its day are recomputed in the background; the state keeps the reported values
#[utoipa::path(delete, path = "/v1/chargers/{device_id}/events/{timestamp_mt}", tag = "chargers",
    security(("admin_token" = [])), params(EventPath), responses(
    (status = 204, description = "The event is deleted"),
    (status = 404, description = "Event not found"),
))]
pub(in crate::routes) async fn delete_event(
    caller: Authenticated<People<Manage>>,
    State(state): State<AppState>,
    Path((device, timestamp_mt)): Path<(String, String)>,
) -> Result<StatusCode, Problem> {
    let device: DeviceName = device.parse()?;
    super::check(&state, &caller, Action::Manage, &device).await?;
    let timestamp_mt: MountainTime = timestamp_mt
        .parse()
        .map_err(|error| Problem::invalid(format!("timestamp_mt: {error}")))?;
    state.chargers.delete_event(&device, timestamp_mt).await?;
    Ok(StatusCode::NO_CONTENT)
}
