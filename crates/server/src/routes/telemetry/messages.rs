//! `GET /v1/telemetry`, `GET /v1/telemetry/{thing}` and `GET /v1/telemetry/{thing}/latest`

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use homeport_item::Item;
use homeport_systems::pages;
use homeport_systems::telemetry::{FleetSelection, HistoryRange, MessageType, Order, ThingName};
use homeport_systems::time::EpochMillis;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Page, SYSTEM};
use crate::auth::needs::{Manage, Read};
use crate::auth::{Action, ApiKeysOrPeople, Authenticated, People, Subject};
use crate::openapi::enums::AlertSeverity;
use crate::openapi::schemas::telemetry::{
    MessagePath, OptionalMessageType, ThingPath, TypeOrSeverity,
};
use crate::problem::Problem;
use crate::request::plain_json::PlainItem;
use crate::request::{PathPart, TimeRange, UrlQuery};
use crate::state::AppState;

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TelemetryMessageList)]
pub(in crate::routes) struct MessageList {
    /// Stored items with `thing_name`, `timestamp` in milliseconds, `message_type`, and the attributes that the
    /// rule selected from the payload
    #[schema(value_type = Vec<Object>)]
    messages: Vec<PlainItem>,
    /// Cursor of the next page; absent on the last page
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(in crate::routes) struct MessageTypeQuery {
    message_type: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(in crate::routes) struct TypeOrSeverityQuery {
    message_type: Option<String>,
    severity: Option<AlertSeverity>,
}

impl MessageTypeQuery {
    fn parse(&self) -> Result<Option<MessageType>, Problem> {
        Ok(self
            .message_type
            .as_ref()
            .map(|text| text.parse())
            .transpose()?)
    }
}

fn history_range(range: &TimeRange) -> HistoryRange {
    HistoryRange {
        from: range.from,
        to: range.to,
        order: range.order(Order::OldestFirst, Order::NewestFirst),
    }
}

impl MessageList {
    fn new(page: pages::Page<Item>, range: &TimeRange) -> Self {
        Self {
            messages: page.items.into_iter().map(PlainItem).collect(),
            next_cursor: range.next_cursor(page.next),
        }
    }
}

/// List the messages of one type or severity across all things by time
#[utoipa::path(get, path = "/v1/telemetry", tag = "telemetry",
    security(("admin_token" = []), ("device_key" = [])),
    params(TypeOrSeverity, TimeRange, Page), responses(
    (status = 200, description = "A page of messages", body = MessageList),
))]
pub(in crate::routes) async fn list_messages_of_type(
    caller: Authenticated<ApiKeysOrPeople<Read>>,
    State(state): State<AppState>,
    UrlQuery(query): UrlQuery<TypeOrSeverityQuery>,
    range: TimeRange,
    page: Page,
) -> Result<Json<MessageList>, Problem> {
    caller.check(Action::Read, SYSTEM, Subject::All)?;
    let message_type = query.message_type.map(|text| text.parse()).transpose()?;
    let selection = match (query.severity, message_type) {
        (Some(severity), message_type) => FleetSelection::Severity(severity.0, message_type),
        (None, Some(message_type)) => FleetSelection::Type(message_type),
        (None, None) => return Err(Problem::invalid("message_type or severity is missing")),
    };
    let page = state
        .telemetry
        .of_fleet(&selection, history_range(&range), page.limit, page.cursor)
        .await?;
    Ok(Json(MessageList::new(page, &range)))
}

/// List the messages of a thing by time
#[utoipa::path(get, path = "/v1/telemetry/{thing}", tag = "telemetry",
    security(("admin_token" = []), ("device_key" = [])),
    params(ThingPath, OptionalMessageType, TimeRange, Page), responses(
    (status = 200, description = "A page of messages", body = MessageList),
))]
pub(in crate::routes) async fn list_messages(
    caller: Authenticated<ApiKeysOrPeople<Read>>,
    State(state): State<AppState>,
    PathPart(thing): PathPart<ThingName>,
    UrlQuery(query): UrlQuery<MessageTypeQuery>,
    range: TimeRange,
    page: Page,
) -> Result<Json<MessageList>, Problem> {
    caller.check(Action::Read, SYSTEM, Subject::One(thing.as_str()))?;
    let message_type = query.parse()?;
    let page = state
        .telemetry
        .history(
            &thing,
            message_type.as_ref(),
            history_range(&range),
            page.limit,
            page.cursor,
        )
        .await?;
    Ok(Json(MessageList::new(page, &range)))
}

/// Get the newest message of a thing, or its newest of one type
#[utoipa::path(get, path = "/v1/telemetry/{thing}/latest", tag = "telemetry",
    security(("admin_token" = []), ("device_key" = [])),
    params(ThingPath, OptionalMessageType), responses(
    (status = 200, description = "The attributes of the message", body = Object),
    (status = 404, description = "No matching message"),
))]
pub(in crate::routes) async fn get_latest_message(
    caller: Authenticated<ApiKeysOrPeople<Read>>,
    State(state): State<AppState>,
    PathPart(thing): PathPart<ThingName>,
    UrlQuery(query): UrlQuery<MessageTypeQuery>,
) -> Result<Json<PlainItem>, Problem> {
    caller.check(Action::Read, SYSTEM, Subject::One(thing.as_str()))?;
    let message_type = query.parse()?;
    let item = state
        .telemetry
        .latest(&thing, message_type.as_ref())
        .await?;
    Ok(Json(PlainItem(item)))
}

/// Delete one message of a thing
///
/// What rules wrote to other tables stays.
#[utoipa::path(delete, path = "/v1/telemetry/{thing}/messages/{timestamp}", tag = "telemetry",
    security(("admin_token" = [])),
    params(MessagePath), responses(
    (status = 204, description = "Deleted"),
    (status = 404, description = "No message of the thing has this timestamp"),
))]
pub(in crate::routes) async fn delete_message(
    caller: Authenticated<People<Manage>>,
    State(state): State<AppState>,
    Path((thing, timestamp)): Path<(String, String)>,
) -> Result<StatusCode, Problem> {
    let thing: ThingName = thing.parse()?;
    caller.check(Action::Manage, SYSTEM, Subject::One(thing.as_str()))?;
    let timestamp = timestamp
        .parse()
        .map_err(|_| Problem::invalid("timestamp must be milliseconds since 1970"))?;
    state
        .telemetry
        .delete_message(&thing, EpochMillis(timestamp))
        .await?;
    Ok(StatusCode::NO_CONTENT)
}
