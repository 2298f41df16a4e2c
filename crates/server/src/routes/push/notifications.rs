//! `/v1/push/users/{user_id}/notifications`: operators and API keys send notifications; they and the user read
//! them.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use homeport_systems::push::{
    Accepted, DeviceDelivery, IdempotencyKey, Message, NewMessage, Notification, NotificationId,
    PAGE_MAX, UserId,
};
use homeport_systems::time::{EpochMillis, UtcMillis};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::SYSTEM;
use crate::auth::needs::{Read, Write};
use crate::auth::{Action, Authenticated, Everyone, Subject};
use crate::openapi::enums::{PushInterruptionLevel, PushPriority};
use crate::openapi::schemas::UserPath;
use crate::problem::Problem;
use crate::request::{JsonBody, PageQuery, PathPart, WholeNumber, json_object};
use crate::state::AppState;

const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// A notification in Expo's format; at most 4096 bytes of JSON. It has a title, a body, data, a badge or
/// `_contentAvailable`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(in crate::routes) struct SendNotification {
    #[schema(min_length = 1)]
    title: Option<String>,
    #[schema(min_length = 1)]
    body: Option<String>,
    subtitle: Option<String>,
    /// Data for the app
    #[schema(value_type = Option<Object>)]
    data: Option<Map<String, Value>>,
    #[schema(example = "default")]
    sound: Option<String>,
    #[schema(value_type = Option<u32>)]
    badge: Option<WholeNumber>,
    /// How long Expo may retry delivery, in seconds
    #[schema(value_type = Option<u32>, maximum = 2_419_200)]
    ttl: Option<WholeNumber>,
    /// Time at which the message expires, in seconds since 1970; `ttl` takes precedence
    #[schema(value_type = Option<u32>)]
    expiration: Option<WholeNumber>,
    priority: Option<PushPriority>,
    interruption_level: Option<PushInterruptionLevel>,
    /// Android's notification channel
    #[schema(min_length = 1, max_length = 128)]
    channel_id: Option<String>,
    /// Category of the notification, which defines its buttons
    #[schema(min_length = 1, max_length = 128)]
    category_id: Option<String>,
    /// Android drawable that is shown as the icon
    #[schema(min_length = 1, max_length = 128)]
    icon: Option<String>,
    #[serde(default, deserialize_with = "json_object::optional")]
    rich_content: Option<RichContent>,
    /// Whether an extension of the iOS app may change the notification
    mutable_content: Option<bool>,
    /// Wake the iOS app in the background
    #[serde(rename = "_contentAvailable")]
    content_available: Option<bool>,
}

/// Content beside the text of a notification.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = PushRichContent)]
struct RichContent {
    /// URL of an image
    #[schema(example = "https://example.com/photo.jpg")]
    image: String,
}

/// A notification and its delivery state.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Notification)]
pub(in crate::routes) struct NotificationBody {
    notification_id: String,
    user_id: String,
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
struct DeviceDeliveryBody {
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
struct StepBody {
    at: String,
    step: String,
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

impl TryFrom<SendNotification> for NewMessage {
    type Error = Problem;

    fn try_from(body: SendNotification) -> Result<Self, Problem> {
        let number = |name, number: Option<WholeNumber>| {
            number
                .map(|number| number.up_to(name, u32::MAX))
                .transpose()
        };
        Ok(Self {
            title: body.title,
            body: body.body,
            subtitle: body.subtitle,
            data: body.data,
            sound: body.sound,
            badge: number("badge", body.badge)?,
            ttl_secs: number("ttl", body.ttl)?,
            expiration: number("expiration", body.expiration)?,
            priority: body.priority.map(|PushPriority(priority)| priority),
            interruption_level: (body.interruption_level).map(|PushInterruptionLevel(level)| level),
            channel_id: body.channel_id,
            category_id: body.category_id,
            icon: body.icon,
            image: body.rich_content.map(|content| content.image),
            is_mutable: body.mutable_content,
            is_content_available: body.content_available,
        })
    }
}

fn time(at: EpochMillis) -> String {
    UtcMillis::new(at).to_string()
}

impl From<Notification> for NotificationBody {
    fn from(notification: Notification) -> Self {
        Self {
            notification_id: notification.id.to_string(),
            user_id: notification.user_id.to_string(),
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
        let trace = delivery.steps.into_iter().map(|step| StepBody {
            at: time(step.at),
            step: step.what,
        });
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
    let idempotency_key: Option<IdempotencyKey> = match headers.get(IDEMPOTENCY_KEY) {
        Some(value) => Some(String::from_utf8_lossy(value.as_bytes()).parse()?),
        None => None,
    };
    let message = Message::new(body.try_into()?)?;
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
