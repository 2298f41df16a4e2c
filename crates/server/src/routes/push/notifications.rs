//! `/v1/push/users/{user_id}/notifications`: operators and API keys send notifications; they and the user read
//! them.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use homeport_systems::outbox::Step;
use homeport_systems::push::{
    Accepted, DeviceDelivery, Message, Notification, NotificationId, PAGE_MAX, UserId,
};
use homeport_systems::time::{EpochMillis, UtcMillis};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::SYSTEM;
use super::message_body::{idempotency_key, message_body};
use crate::auth::needs::{Read, Write};
use crate::auth::{Action, Authenticated, Everyone, Subject};
use crate::openapi::schemas::UserPath;
use crate::problem::Problem;
use crate::request::{JsonBody, PageQuery, PathPart};
use crate::state::AppState;

message_body! {
    /// A notification in Expo's format; at most 4096 bytes of JSON. It has a title, a body, data, a badge or
    /// `_contentAvailable`.
    SendNotification {}
}

/// A notification and its delivery state.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Notification)]
pub(in crate::routes) struct NotificationBody {
    notification_id: String,
    user_id: String,
    /// The broadcast that it is part of
    #[serde(skip_serializing_if = "Option::is_none")]
    broadcast_id: Option<String>,
    created_at: String,
    /// Time at which delivery to all devices finished
    #[serde(skip_serializing_if = "Option::is_none")]
    finished_at: Option<String>,
    /// The message as sent to Expo
    #[schema(value_type = Object)]
    message: Map<String, Value>,
    devices: Vec<DeviceDeliveryBody>,
}

/// Delivery to one device.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = NotificationFate)]
pub(in crate::routes) struct DeviceDeliveryBody {
    device_id: String,
    /// `queued`, `sending`, `sent`, `delivered`, `failed` or `dropped`
    #[schema(example = "delivered")]
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    ticket_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// Number of requests to Expo
    attempts: u32,
    /// Number of requests without a response; each may have been delivered
    unanswered: u32,
    trace: Vec<StepBody>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = NotificationStep)]
pub(super) struct StepBody {
    at: String,
    step: String,
}

impl From<Step> for StepBody {
    fn from(step: Step) -> Self {
        Self {
            at: time(step.at),
            step: step.what,
        }
    }
}

#[derive(Debug, Serialize, ToSchema)]
pub(in crate::routes) struct NotificationList {
    notifications: Vec<NotificationBody>,
    /// Cursor of the next page; absent on the last page
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// Notifications of a page. Each has a trace for every device, so pages are small.
const LIST_MAX: usize = if PAGE_MAX < 100 { PAGE_MAX } else { 100 };

type Page = PageQuery<LIST_MAX>;

pub(super) fn time(at: EpochMillis) -> String {
    UtcMillis::new(at).to_string()
}

impl From<Notification> for NotificationBody {
    fn from(notification: Notification) -> Self {
        Self {
            notification_id: notification.id.to_string(),
            user_id: notification.user_id.to_string(),
            broadcast_id: notification.broadcast_id().map(|id| id.to_string()),
            created_at: time(notification.created_at),
            finished_at: notification.finished_at.map(time),
            message: notification.message.members().clone(),
            devices: notification
                .devices
                .into_iter()
                .map(DeviceDeliveryBody::from)
                .collect(),
        }
    }
}

impl From<DeviceDelivery> for DeviceDeliveryBody {
    fn from(device: DeviceDelivery) -> Self {
        let delivery = device.delivery;
        let trace = delivery.steps.into_iter().map(StepBody::from);
        Self {
            device_id: device.device_id.to_string(),
            state: delivery.state.as_str(),
            ticket_id: device.ticket_id,
            reason: delivery.reason,
            attempts: delivery.attempts,
            unanswered: delivery.unanswered,
            trace: trace.collect(),
        }
    }
}

/// Send a notification to every active device of a user
#[utoipa::path(post, path = "/v1/push/users/{user_id}/notifications", tag = "push",
    security(("admin_token" = []), ("device_key" = [])),
    params(UserPath, ("Idempotency-Key" = Option<String>, Header, min_length = 1, max_length = 128, pattern = "^[!-~]+$", description = "A repeat with the same key within 30 days does not send another notification")),
    request_body = SendNotification, responses(
    (status = 200, description = "Accepted earlier with this idempotency key", body = NotificationBody),
    (status = 202, description = "Queued durably", body = NotificationBody),
    (status = 409, description = "The idempotency key was used for another message, or the user has too many devices"),
    (status = 503, description = "The outbox is full, or the store is unavailable; retry later")
))]
pub(in crate::routes) async fn send_notification(
    caller: Authenticated<Everyone<Write>>,
    State(state): State<AppState>,
    PathPart(user_id): PathPart<UserId>,
    headers: HeaderMap,
    JsonBody(body): JsonBody<SendNotification>,
) -> Result<(StatusCode, Json<NotificationBody>), Problem> {
    caller.check(Action::Write, SYSTEM, Subject::One(user_id.as_str()))?;
    let idempotency_key = idempotency_key(&headers)?;
    let message = Message::new(body.message()?)?;
    Ok(
        match state
            .push
            .notify(&user_id, message, idempotency_key.as_ref())
            .await?
        {
            Accepted::New(notification) => (StatusCode::ACCEPTED, Json(notification.into())),
            Accepted::Before(notification) => (StatusCode::OK, Json(notification.into())),
        },
    )
}

/// Get a notification and its delivery state
#[utoipa::path(get, path = "/v1/push/users/{user_id}/notifications/{notification_id}", tag = "push",
    security(("admin_token" = []), ("device_key" = []), ("user_token" = [])),
    params(UserPath, ("notification_id" = String, Path, description = "Notification id")), responses(
    (status = 200, description = "The notification", body = NotificationBody),
    (status = 404, description = "Notification not found"),
))]
pub(in crate::routes) async fn get_notification(
    caller: Authenticated<Everyone<Read>>,
    State(state): State<AppState>,
    Path((user_id, notification_id)): Path<(String, String)>,
) -> Result<Json<NotificationBody>, Problem> {
    let user_id: UserId = user_id.parse()?;
    caller.check(Action::Read, SYSTEM, Subject::One(user_id.as_str()))?;
    let id: NotificationId = notification_id.parse()?;
    let notification = state.push.notification(&user_id, &id).await?;
    Ok(Json(notification.into()))
}

/// List the notifications of a user, the newest first
#[utoipa::path(get, path = "/v1/push/users/{user_id}/notifications", tag = "push",
    security(("admin_token" = []), ("device_key" = []), ("user_token" = [])),
    params(UserPath, Page), responses(
    (status = 200, description = "A page of notifications", body = NotificationList),
))]
pub(in crate::routes) async fn list_notifications(
    caller: Authenticated<Everyone<Read>>,
    State(state): State<AppState>,
    PathPart(user_id): PathPart<UserId>,
    page: Page,
) -> Result<Json<NotificationList>, Problem> {
    caller.check(Action::Read, SYSTEM, Subject::One(user_id.as_str()))?;
    let page = state
        .push
        .notifications(&user_id, page.limit, page.cursor)
        .await?;
    let notifications = page.items.into_iter();
    Ok(Json(NotificationList {
        notifications: notifications.map(NotificationBody::from).collect(),
        next_cursor: page.next.map(|cursor| cursor.encode()),
    }))
}
