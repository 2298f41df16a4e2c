//! `GET /v1/telemetry`, `GET /v1/telemetry/{thing}` and `GET /v1/telemetry/{thing}/latest`

use axum::Json;
use axum::extract::State;
use homeport_systems::telemetry::{
    HistoryPage, HistoryRange, MessageType, Order, PAGE_MAX, ThingName,
};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::auth::Reader;
use crate::forms;
use crate::forms::telemetry::{AnyMessageType, ThingPath};
use crate::problem::{Problem, ProblemBody};
use crate::routes::json::PlainItem;
use crate::state::AppState;
use crate::url::{self, PathPart, UrlQuery};

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TelemetryMessageList)]
pub(in crate::routes) struct MessageList {
    /// Each with all attributes of its item: `thing_name`, `timestamp` in milliseconds,
    /// `message_type`, and what its rule kept of the payload
    #[schema(value_type = Vec<Object>)]
    messages: Vec<PlainItem>,
    /// Absent on the last page
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(in crate::routes) struct MessagesQuery {
    /// The oldest time wanted: milliseconds since 1970, or RFC 3339
    #[param(schema_with = forms::time, required = false)]
    from: Option<String>,
    /// The newest time wanted
    #[param(schema_with = forms::time, required = false)]
    to: Option<String>,
    /// The one type wanted; whether it must be there depends on the route
    #[param(ignore)]
    message_type: Option<String>,
    /// `desc`, the newest first, unless `asc` is asked for
    #[param(inline)]
    order: Option<OrderParameter>,
    /// Items of a page
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: Option<usize>,
    /// Where the page before ended
    cursor: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(in crate::routes) struct LatestQuery {
    message_type: Option<String>,
}

#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::routes) enum OrderParameter {
    Asc,
    Desc,
}

impl MessagesQuery {
    fn range(&self) -> Result<HistoryRange, Problem> {
        let bound =
            |name, text: Option<&String>| text.map(|text| url::time(name, text)).transpose();
        Ok(HistoryRange {
            from: bound("from", self.from.as_ref())?,
            to: bound("to", self.to.as_ref())?,
            order: match self.order {
                Some(OrderParameter::Asc) => Order::OldestFirst,
                Some(OrderParameter::Desc) | None => Order::NewestFirst,
            },
        })
    }
}

fn message_type(text: Option<&String>) -> Result<Option<MessageType>, Problem> {
    Ok(text.map(|text| text.parse()).transpose()?)
}

impl From<HistoryPage> for MessageList {
    fn from(page: HistoryPage) -> Self {
        Self {
            messages: page.items.into_iter().map(PlainItem).collect(),
            next_cursor: page.next.map(|cursor| cursor.encode()),
        }
    }
}

/// Messages of one type across all things, both ends of the range included
#[utoipa::path(get, path = "/v1/telemetry", tag = "telemetry",
    security(("admin_token" = []), ("device_key" = [])),
    params(("message_type" = String, Query, description = "The one type wanted", pattern = "^[!-~]+$", min_length = 1, max_length = 128), MessagesQuery), responses(
    (status = 200, description = "A page of messages", body = MessageList),
    (status = 400, description = "The type is missing, or the range, the limit or the cursor is not right", body = ProblemBody, content_type = "application/problem+json"),
    (status = 401, description = "Neither operator nor device", body = ProblemBody, content_type = "application/problem+json"),
    (status = 403, description = "The key is of another system, or for some things only", body = ProblemBody, content_type = "application/problem+json"),
    (status = 429, description = "Too many requests with this key", body = ProblemBody, content_type = "application/problem+json"),
    (status = 503, description = "The store cannot answer", body = ProblemBody, content_type = "application/problem+json")
))]
pub(in crate::routes) async fn list_messages_of_type(
    caller: Reader,
    State(state): State<AppState>,
    UrlQuery(query): UrlQuery<MessagesQuery>,
) -> Result<Json<MessageList>, Problem> {
    super::check(&caller, None)?;
    let range = query.range()?;
    let message_type = message_type(query.message_type.as_ref())?;
    let message_type = message_type.ok_or_else(|| Problem::invalid("message_type is missing"))?;
    let limit = url::limit(query.limit, PAGE_MAX)?;
    let cursor = url::cursor(query.cursor.as_deref())?;
    let page = state
        .telemetry
        .of_type(&message_type, range, limit, cursor)
        .await?;
    Ok(Json(page.into()))
}

/// Messages of one thing in a range of time, both ends included
#[utoipa::path(get, path = "/v1/telemetry/{thing}", tag = "telemetry",
    security(("admin_token" = []), ("device_key" = [])),
    params(ThingPath, AnyMessageType, MessagesQuery), responses(
    (status = 200, description = "A page of messages", body = MessageList),
    (status = 400, description = "The range, the type, the limit or the cursor is not right", body = ProblemBody, content_type = "application/problem+json"),
    (status = 401, description = "Neither operator nor device", body = ProblemBody, content_type = "application/problem+json"),
    (status = 403, description = "The key is of another system or for other things", body = ProblemBody, content_type = "application/problem+json"),
    (status = 429, description = "Too many requests with this key", body = ProblemBody, content_type = "application/problem+json"),
    (status = 503, description = "The store cannot answer", body = ProblemBody, content_type = "application/problem+json")
))]
pub(in crate::routes) async fn list_messages(
    caller: Reader,
    State(state): State<AppState>,
    PathPart(thing): PathPart<ThingName>,
    UrlQuery(query): UrlQuery<MessagesQuery>,
) -> Result<Json<MessageList>, Problem> {
    super::check(&caller, Some(&thing))?;
    let (range, message_type) = (query.range()?, message_type(query.message_type.as_ref())?);
    let limit = url::limit(query.limit, PAGE_MAX)?;
    let cursor = url::cursor(query.cursor.as_deref())?;
    let page = state
        .telemetry
        .history(&thing, message_type.as_ref(), range, limit, cursor)
        .await?;
    Ok(Json(page.into()))
}

/// The newest message of a thing, or its newest of one type
#[utoipa::path(get, path = "/v1/telemetry/{thing}/latest", tag = "telemetry",
    security(("admin_token" = []), ("device_key" = [])),
    params(ThingPath, AnyMessageType), responses(
    (status = 200, description = "All attributes of its item", body = Object),
    (status = 400, description = "The name or the type is none", body = ProblemBody, content_type = "application/problem+json"),
    (status = 401, description = "Neither operator nor device", body = ProblemBody, content_type = "application/problem+json"),
    (status = 403, description = "The key is of another system or for other things", body = ProblemBody, content_type = "application/problem+json"),
    (status = 404, description = "The thing has no such message", body = ProblemBody, content_type = "application/problem+json"),
    (status = 429, description = "Too many requests with this key", body = ProblemBody, content_type = "application/problem+json"),
    (status = 503, description = "The store cannot answer", body = ProblemBody, content_type = "application/problem+json")
))]
pub(in crate::routes) async fn get_latest_message(
    caller: Reader,
    State(state): State<AppState>,
    PathPart(thing): PathPart<ThingName>,
    UrlQuery(query): UrlQuery<LatestQuery>,
) -> Result<Json<PlainItem>, Problem> {
    super::check(&caller, Some(&thing))?;
    let message_type = message_type(query.message_type.as_ref())?;
    let item = state
        .telemetry
        .latest(&thing, message_type.as_ref())
        .await?;
    Ok(Json(PlainItem(item)))
}
