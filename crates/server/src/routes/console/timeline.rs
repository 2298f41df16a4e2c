//! `/v1/devices/{system}/{id}/timeline`: the events of a device in one order.

use axum::Json;
use axum::extract::State;
use homeport_systems::fleet::{Entry, EntryType, TIMELINE_MAX, TimelineRange};
use homeport_systems::time::Order;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::devices::{AnyDevicePath, DevicePathParts, format_time};
use crate::auth::needs::Read;
use crate::auth::{Action, Authenticated, People};
use crate::openapi::enums::TimelineEntryType;
use crate::problem::Problem;
use crate::request::{PageQuery, TimeRange, UrlQuery};
use crate::state::AppState;

type Page = PageQuery<TIMELINE_MAX>;

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct TimelineQuery {
    /// Comma-separated entry types: `telemetry`, `state`, `ota`, `scheduler`, `alert`, `notification`, `command`; all
    /// if absent
    #[param(
        pattern = "^(telemetry|state|ota|scheduler|alert|notification|command)(,(telemetry|state|ota|scheduler|alert|notification|command))*$"
    )]
    types: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TimelineEntry)]
pub(super) struct EntryBody {
    /// Unique and stable
    id: String,
    /// RFC 3339
    at: String,
    r#type: TimelineEntryType,
    /// Short description
    title: String,
    /// Table of the item
    table: String,
    /// The item in DynamoDB JSON
    #[schema(value_type = Object)]
    item: homeport_item::Item,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Timeline)]
pub(super) struct TimelineBody {
    entries: Vec<EntryBody>,
    /// Cursor of the next page; absent on the last page. A page that is not the last can have fewer entries than the
    /// limit, or none
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

impl From<Entry> for EntryBody {
    fn from(entry: Entry) -> Self {
        Self {
            id: entry.id,
            at: format_time(entry.at),
            r#type: entry.kind.into(),
            title: entry.title,
            table: entry.table,
            item: entry.item,
        }
    }
}

/// Parses a comma-separated list of entry types.
pub(super) fn parse_types(text: Option<&str>) -> Result<Vec<EntryType>, Problem> {
    let names = text.into_iter().flat_map(|text| text.split(','));
    Ok(names
        .map(|name| name.trim().parse())
        .collect::<Result<_, _>>()?)
}

/// List the events of a device by time
#[utoipa::path(get, path = "/v1/devices/{system}/{id}/timeline", tag = "console", security(("admin_token" = [])),
    params(AnyDevicePath, TimelineQuery, TimeRange, Page), responses(
    (status = 200, description = "A page of timeline entries", body = TimelineBody),
    (status = 404, description = "Device not found"),
))]
pub(super) async fn get_device_timeline(
    caller: Authenticated<People<Read>>,
    State(state): State<AppState>,
    DevicePathParts(device): DevicePathParts,
    UrlQuery(query): UrlQuery<TimelineQuery>,
    range: TimeRange,
    page: Page,
) -> Result<Json<TimelineBody>, Problem> {
    caller.check_device(Action::Read, &device)?;
    let bounds = TimelineRange {
        from: range.from,
        to: range.to,
        types: parse_types(query.types.as_deref())?.into_iter().collect(),
        order: range.order(Order::OldestFirst, Order::NewestFirst),
    };
    let page = state
        .console
        .fleet
        .timeline(&device, &bounds, page.limit, page.cursor)
        .await?;
    Ok(Json(TimelineBody {
        entries: page.items.into_iter().map(Into::into).collect(),
        next_cursor: range.next_cursor(page.next),
    }))
}
