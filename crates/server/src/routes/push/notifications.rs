//! `/v1/push/users/{user_id}/notifications`: sent by operators and by keys of the system, read back
//! by them and by the user.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use homeport_systems::push::{
    Accepted, DeviceFate, IdempotencyKey, Message, NewMessage, Notification, NotificationId,
    PAGE_MAX, Priority, UserId,
};
use homeport_systems::time::{EpochMillis, UtcMillis};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::{IntoParams, ToSchema};

use super::SYSTEM;
use crate::auth::Sender;
use crate::body::JsonBody;
use crate::forms;
use crate::problem::{Problem, ProblemBody};
use crate::state::AppState;
use crate::url::{self, PathPart, UrlQuery};
use crate::whole::WholeNumber;

const KEY_HEADER: &str = "idempotency-key";

/// What a notification says, in Expo's words; at most 4096 bytes as JSON.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(in crate::routes) struct SendNotification {
    #[schema(min_length = 1)]
    title: String,
    #[schema(min_length = 1)]
    body: String,
    subtitle: Option<String>,
    /// What the app gets with it
    #[schema(value_type = Option<Object>)]
    data: Option<Map<String, Value>>,
    #[schema(example = "default")]
    sound: Option<String>,
    #[schema(value_type = Option<u32>)]
    badge: Option<WholeNumber>,
    /// How long it may wait for its device, in seconds
    #[schema(value_type = Option<u32>, maximum = 2_419_200)]
    ttl: Option<WholeNumber>,
    priority: Option<PriorityWord>,
    #[schema(min_length = 1, max_length = 128)]
    channel_id: Option<String>,
}

#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = PushPriority)]
pub(in crate::routes) enum PriorityWord {
    Default,
    Normal,
    High,
}

/// A notification and what became of it.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Notification)]
pub(in crate::routes) struct NotificationBody {
    notification_id: String,
    user_id: String,
    created_at: String,
    /// Once every device's fate is settled
    #[serde(skip_serializing_if = "Option::is_none")]
    finished_at: Option<String>,
    /// As it goes to Expo
    #[schema(value_type = Object)]
    message: Map<String, Value>,
    devices: Vec<FateBody>,
}

/// What became of it at one device.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = NotificationFate)]
struct FateBody {
    device_id: String,
    /// queued, sending, sent, delivered or failed
    #[schema(example = "delivered")]
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    ticket_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// Requests to Expo that it was in
    attempts: u32,
    /// How many of these Expo never answered: each may have arrived
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
    /// Absent on the last page
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(in crate::routes) struct ListQuery {
    /// Items of a page
    #[param(minimum = 1, maximum = 100, default = 100)]
    limit: Option<usize>,
    /// Where the page before ended
    cursor: Option<String>,
}

/// The part of an address that names a user.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
#[allow(dead_code, reason = "describes the path in the OpenAPI document")]
struct UserPath {
    /// The user
    #[param(schema_with = forms::graphic_id)]
    user_id: String,
}

/// Notifications of a page, each with a trace for every device.
const LIST_MAX: usize = if PAGE_MAX < 100 { PAGE_MAX } else { 100 };

impl TryFrom<SendNotification> for NewMessage {
    type Error = Problem;

    fn try_from(body: SendNotification) -> Result<Self, Problem> {
        let number = |name, number: Option<WholeNumber>, most| {
            number.map(|number| number.up_to(name, most)).transpose()
        };
        Ok(Self {
            title: body.title,
            body: body.body,
            subtitle: body.subtitle,
            data: body.data,
            sound: body.sound,
            badge: number("badge", body.badge, u32::MAX)?,
            ttl_secs: number("ttl", body.ttl, u32::MAX)?,
            priority: body.priority.map(|word| match word {
                PriorityWord::Default => Priority::Default,
                PriorityWord::Normal => Priority::Normal,
                PriorityWord::High => Priority::High,
            }),
            channel_id: body.channel_id,
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
                .map(FateBody::from)
                .collect(),
        }
    }
}

impl From<DeviceFate> for FateBody {
    fn from(fate: DeviceFate) -> Self {
        let trace = fate.steps.into_iter().map(|step| StepBody {
            at: time(step.at),
            step: step.what,
        });
        Self {
            device_id: fate.device_id.to_string(),
            state: fate.state.as_str(),
            ticket_id: fate.ticket_id,
            reason: fate.reason,
            attempts: fate.attempts,
            unanswered: fate.unanswered,
            trace: trace.collect(),
        }
    }
}

/// Send a notification to every active device of a user
#[utoipa::path(post, path = "/v1/push/users/{user_id}/notifications", tag = "push",
    security(("admin_token" = []), ("device_key" = [])),
    params(UserPath, ("Idempotency-Key" = Option<String>, Header, description = "Makes a repeat the same notification, for 30 days")),
    request_body = SendNotification, responses(
    (status = 200, description = "It was accepted before with this key", body = NotificationBody),
    (status = 202, description = "It is in the outbox, durable", body = NotificationBody),
    (status = 400, description = "Something is not as it should be", body = ProblemBody, content_type = "application/problem+json"),
    (status = 401, description = "Neither operator nor key", body = ProblemBody, content_type = "application/problem+json"),
    (status = 403, description = "The key may not send to this user", body = ProblemBody, content_type = "application/problem+json"),
    (status = 409, description = "The key was used for another message, or the user has too many devices", body = ProblemBody, content_type = "application/problem+json"),
    (status = 429, description = "Too many requests with this key", body = ProblemBody, content_type = "application/problem+json"),
    (status = 503, description = "The outbox is full, or the store cannot answer", body = ProblemBody, content_type = "application/problem+json")
))]
pub(in crate::routes) async fn send_notification(
    sender: Sender,
    State(state): State<AppState>,
    PathPart(user_id): PathPart<UserId>,
    headers: HeaderMap,
    JsonBody(body): JsonBody<SendNotification>,
) -> Result<(StatusCode, Json<NotificationBody>), Problem> {
    sender.check_may_send(SYSTEM, &user_id)?;
    let key: Option<IdempotencyKey> = match headers.get(KEY_HEADER) {
        Some(value) => Some(String::from_utf8_lossy(value.as_bytes()).parse()?),
        None => None,
    };
    let message = Message::new(body.try_into()?)?;
    Ok(
        match state.push.notify(&user_id, message, key.as_ref()).await? {
            Accepted::New(notification) => (StatusCode::ACCEPTED, Json(notification.into())),
            Accepted::Before(notification) => (StatusCode::OK, Json(notification.into())),
        },
    )
}

/// What became of a notification
#[utoipa::path(get, path = "/v1/push/users/{user_id}/notifications/{notification_id}", tag = "push",
    security(("admin_token" = []), ("device_key" = []), ("user_token" = [])),
    params(UserPath, ("notification_id" = String, Path, description = "As accepting it answered")), responses(
    (status = 200, description = "The notification", body = NotificationBody),
    (status = 400, description = "The user or the id is none", body = ProblemBody, content_type = "application/problem+json"),
    (status = 401, description = "Not known who asks", body = ProblemBody, content_type = "application/problem+json"),
    (status = 403, description = "Another user's", body = ProblemBody, content_type = "application/problem+json"),
    (status = 404, description = "There is no such notification", body = ProblemBody, content_type = "application/problem+json"),
    (status = 429, description = "Too many requests with this key", body = ProblemBody, content_type = "application/problem+json"),
    (status = 503, description = "The store cannot answer", body = ProblemBody, content_type = "application/problem+json")
))]
pub(in crate::routes) async fn get_notification(
    sender: Sender,
    State(state): State<AppState>,
    Path((user_id, notification_id)): Path<(String, String)>,
) -> Result<Json<NotificationBody>, Problem> {
    let user_id: UserId = user_id.parse()?;
    sender.check_may_read(SYSTEM, &user_id)?;
    let id: NotificationId = notification_id.parse()?;
    let notification = state.push.notification(&user_id, &id).await?;
    Ok(Json(notification.into()))
}

/// A user's notifications, the newest first
#[utoipa::path(get, path = "/v1/push/users/{user_id}/notifications", tag = "push",
    security(("admin_token" = []), ("device_key" = []), ("user_token" = [])),
    params(UserPath, ListQuery), responses(
    (status = 200, description = "A page of notifications", body = NotificationList),
    (status = 400, description = "The user, the limit or the cursor is not right", body = ProblemBody, content_type = "application/problem+json"),
    (status = 401, description = "Not known who asks", body = ProblemBody, content_type = "application/problem+json"),
    (status = 403, description = "Another user's", body = ProblemBody, content_type = "application/problem+json"),
    (status = 429, description = "Too many requests with this key", body = ProblemBody, content_type = "application/problem+json"),
    (status = 503, description = "The store cannot answer", body = ProblemBody, content_type = "application/problem+json")
))]
pub(in crate::routes) async fn list_notifications(
    sender: Sender,
    State(state): State<AppState>,
    PathPart(user_id): PathPart<UserId>,
    UrlQuery(query): UrlQuery<ListQuery>,
) -> Result<Json<NotificationList>, Problem> {
    sender.check_may_read(SYSTEM, &user_id)?;
    let limit = url::limit(query.limit, LIST_MAX)?;
    let cursor = url::cursor(query.cursor.as_deref())?;
    let page = state.push.notifications(&user_id, limit, cursor).await?;
    let notifications = page.notifications.into_iter();
    Ok(Json(NotificationList {
        notifications: notifications.map(NotificationBody::from).collect(),
        next_cursor: page.next.map(|cursor| cursor.encode()),
    }))
}
