//! `GET /v1/chargers/events` and `GET /v1/chargers/{device_id}/events`

use axum::Json;
use axum::extract::State;
use homeport_systems::chargers::{
    DeviceName, Event, EventPage, EventRange, EventType, Order, PAGE_MAX,
};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::auth::Reader;
use crate::forms;
use crate::forms::chargers::{AnyEventType, ChargerPath};
use crate::problem::{Problem, ProblemBody};
use crate::routes::json::PlainMap;
use crate::state::AppState;
use crate::url::{self, PathPart, UrlQuery};

/// A stored event.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ChargerEvent)]
pub(in crate::routes) struct EventBody {
    #[schema(example = "SC-C014EA63")]
    device_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    wireless_device_id: Option<String>,
    /// The wall clock in America/Denver under which it is kept
    #[schema(example = "2026-02-21 14:30:00.000")]
    timestamp_mt: String,
    /// The instant
    timestamp_utc_ms: i64,
    event_type: String,
    #[schema(value_type = Object)]
    data: PlainMap,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ChargerEventList)]
pub(in crate::routes) struct EventList {
    events: Vec<EventBody>,
    /// Absent on the last page
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(in crate::routes) struct EventsQuery {
    /// The oldest time wanted: milliseconds since 1970, or RFC 3339
    #[param(schema_with = forms::time, required = false)]
    from: Option<String>,
    /// The newest time wanted
    #[param(schema_with = forms::time, required = false)]
    to: Option<String>,
    /// The one type wanted; whether it must be there depends on the route
    #[param(ignore)]
    event_type: Option<String>,
    /// `desc`, the newest first, unless `asc` is asked for
    #[param(inline)]
    order: Option<OrderParameter>,
    /// Items of a page
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: Option<usize>,
    /// Where the page before ended
    cursor: Option<String>,
}

#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::routes) enum OrderParameter {
    Asc,
    Desc,
}

impl EventsQuery {
    fn range(&self) -> Result<EventRange, Problem> {
        let bound =
            |name, text: Option<&String>| text.map(|text| url::time(name, text)).transpose();
        Ok(EventRange {
            from: bound("from", self.from.as_ref())?,
            to: bound("to", self.to.as_ref())?,
            order: match self.order {
                Some(OrderParameter::Asc) => Order::OldestFirst,
                Some(OrderParameter::Desc) | None => Order::NewestFirst,
            },
        })
    }

    fn event_type(&self) -> Result<Option<EventType>, Problem> {
        Ok(self
            .event_type
            .as_ref()
            .map(|text| text.parse())
            .transpose()?)
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
            data: PlainMap(event.data.members().clone()),
        }
    }
}

impl From<EventPage> for EventList {
    fn from(page: EventPage) -> Self {
        Self {
            events: page.events.into_iter().map(EventBody::from).collect(),
            next_cursor: page.next.map(|cursor| cursor.encode()),
        }
    }
}

/// Events of one charger in a range of time, both ends included
#[utoipa::path(get, path = "/v1/chargers/{device_id}/events", tag = "chargers",
    security(("admin_token" = []), ("device_key" = [])),
    params(ChargerPath, AnyEventType, EventsQuery), responses(
    (status = 200, description = "A page of events in true order", body = EventList),
    (status = 400, description = "The range, the type, the limit or the cursor is not right", body = ProblemBody, content_type = "application/problem+json"),
    (status = 401, description = "Neither operator nor device", body = ProblemBody, content_type = "application/problem+json"),
    (status = 403, description = "The key is of another system", body = ProblemBody, content_type = "application/problem+json"),
    (status = 429, description = "Too many requests with this key", body = ProblemBody, content_type = "application/problem+json"),
    (status = 503, description = "The store cannot answer", body = ProblemBody, content_type = "application/problem+json")
))]
pub(in crate::routes) async fn list_events(
    caller: Reader,
    State(state): State<AppState>,
    PathPart(device): PathPart<DeviceName>,
    UrlQuery(query): UrlQuery<EventsQuery>,
) -> Result<Json<EventList>, Problem> {
    caller.check_system(super::SYSTEM)?;
    let (range, event_type) = (query.range()?, query.event_type()?);
    let limit = url::limit(query.limit, PAGE_MAX)?;
    let cursor = url::cursor(query.cursor.as_deref())?;
    let page = state
        .chargers
        .events(&device.sc_id(), event_type.as_ref(), range, limit, cursor)
        .await?;
    Ok(Json(page.into()))
}

/// Events of one type across the fleet, the newest first
#[utoipa::path(get, path = "/v1/chargers/events", tag = "chargers",
    security(("admin_token" = []), ("device_key" = [])), params(("event_type" = String, Query, description = "The one type wanted", pattern = "^[a-zA-Z0-9_.-]+$", min_length = 1, max_length = 64), EventsQuery), responses(
    (status = 200, description = "A page of events in true order", body = EventList),
    (status = 400, description = "The type is missing, or the range, the limit or the cursor is not right", body = ProblemBody, content_type = "application/problem+json"),
    (status = 401, description = "Neither operator nor device", body = ProblemBody, content_type = "application/problem+json"),
    (status = 403, description = "The key is of another system", body = ProblemBody, content_type = "application/problem+json"),
    (status = 429, description = "Too many requests with this key", body = ProblemBody, content_type = "application/problem+json"),
    (status = 503, description = "The store cannot answer", body = ProblemBody, content_type = "application/problem+json")
))]
pub(in crate::routes) async fn list_fleet_events(
    caller: Reader,
    State(state): State<AppState>,
    UrlQuery(query): UrlQuery<EventsQuery>,
) -> Result<Json<EventList>, Problem> {
    caller.check_system(super::SYSTEM)?;
    let range = query.range()?;
    let event_type = query.event_type()?;
    let event_type = event_type.ok_or_else(|| Problem::invalid("event_type is missing"))?;
    let limit = url::limit(query.limit, PAGE_MAX)?;
    let cursor = url::cursor(query.cursor.as_deref())?;
    let page = state
        .chargers
        .fleet_events(&event_type, range, limit, cursor)
        .await?;
    Ok(Json(page.into()))
}
