//! `/v1/push/broadcasts`: messages to all active devices, or to those of one platform.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use homeport_systems::push::{
    Accepted, Broadcast, BroadcastId, DeviceCounts, Message, PAGE_MAX, Platform,
};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::SYSTEM;
use super::message_body::{idempotency_key, message_body};
use super::notifications::{StepBody, time};
use crate::auth::needs::{self, Read};
use crate::auth::{Action, ApiKeysOrPeople, Authenticated, Subject};
use crate::openapi::enums::{PushAudience, PushBroadcastState};
use crate::openapi::schemas::BroadcastPath;
use crate::problem::Problem;
use crate::request::{JsonBody, PageQuery, PathPart};
use crate::state::AppState;

message_body! {
    /// A message in Expo's format and its audience. The message has a title, a body, data, a badge or
    /// `_contentAvailable`, and at most 4096 bytes of JSON.
    SendBroadcast {
        /// Default `all`
        platform: Option<PushAudience>,
    }
}

/// A broadcast and its progress.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Broadcast)]
pub(in crate::routes) struct BroadcastBody {
    broadcast_id: String,
    state: PushBroadcastState,
    /// `all`, `ios` or `android`
    #[schema(example = "all")]
    platform: &'static str,
    /// The message as sent to Expo
    #[schema(value_type = Object)]
    message: Map<String, Value>,
    created_at: String,
    /// Time at which the first devices were looked up
    #[serde(skip_serializing_if = "Option::is_none")]
    started_at: Option<String>,
    /// Time at which the last delivery finished
    #[serde(skip_serializing_if = "Option::is_none")]
    finished_at: Option<String>,
    devices: BroadcastDevices,
    /// Failed devices by the code of the reason
    #[schema(value_type = BTreeMap<String, i64>, example = json!({"DeviceNotRegistered": 3}))]
    failures: BTreeMap<&'static str, i64>,
    trace: Vec<StepBody>,
}

/// Devices by the state of their delivery.
#[derive(Debug, Serialize, ToSchema)]
struct BroadcastDevices {
    /// Devices that were found so far: the sum of the others
    found: i64,
    /// Not sent yet, or being sent
    queued: i64,
    /// Expo took the message; its receipt is missing
    sent: i64,
    /// Apple or Google took the message
    delivered: i64,
    failed: i64,
    /// Not sent, because the broadcast was cancelled or the user was erased
    dropped: i64,
}

#[derive(Debug, Serialize, ToSchema)]
pub(in crate::routes) struct BroadcastList {
    broadcasts: Vec<BroadcastBody>,
    /// Cursor of the next page; absent on the last page
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// Broadcasts of a page. Each has a trace, so pages are small.
const LIST_MAX: usize = if PAGE_MAX < 100 { PAGE_MAX } else { 100 };

type Page = PageQuery<LIST_MAX>;

impl From<Broadcast> for BroadcastBody {
    fn from(broadcast: Broadcast) -> Self {
        let DeviceCounts {
            found,
            queued,
            sent,
            delivered,
            failed,
            dropped,
        } = broadcast.devices;
        Self {
            broadcast_id: broadcast.id.to_string(),
            state: broadcast.state.into(),
            platform: broadcast.platform.map_or("all", Platform::as_str),
            message: broadcast.message.members().clone(),
            created_at: time(broadcast.created_at),
            started_at: broadcast.started_at.map(time),
            finished_at: broadcast.finished_at.map(time),
            devices: BroadcastDevices {
                found,
                queued,
                sent,
                delivered,
                failed,
                dropped,
            },
            failures: broadcast.failures,
            trace: broadcast.steps.into_iter().map(StepBody::from).collect(),
        }
    }
}

/// Send a message to every active device, or to those of a platform
///
/// The broadcast runs in the background. Devices that register after it was accepted do not get it. API keys need the
/// permission `send_broadcasts`.
#[utoipa::path(post, path = "/v1/push/broadcasts", tag = "push",
    security(("admin_token" = []), ("device_key" = [])),
    params(("Idempotency-Key" = Option<String>, Header, min_length = 1, max_length = 128, pattern = "^[!-~]+$", description = "A repeat with the same key within 30 days does not send another broadcast")),
    request_body = SendBroadcast, responses(
    (status = 200, description = "Accepted earlier with this idempotency key", body = BroadcastBody),
    (status = 202, description = "Accepted durably", body = BroadcastBody),
    (status = 409, description = "The idempotency key was used for another message, or too many broadcasts are unfinished"),
))]
pub(in crate::routes) async fn send_broadcast(
    caller: Authenticated<ApiKeysOrPeople<needs::Broadcast>>,
    State(state): State<AppState>,
    headers: HeaderMap,
    JsonBody(body): JsonBody<SendBroadcast>,
) -> Result<(StatusCode, Json<BroadcastBody>), Problem> {
    caller.check(Action::Broadcast, SYSTEM, Subject::All)?;
    let key = idempotency_key(&headers)?;
    let platform = body.platform.and_then(|PushAudience(platform)| platform);
    let message = Message::new(body.message()?)?;
    let accepted = state.push.broadcast(platform, message, key.as_ref());
    Ok(match accepted.await? {
        Accepted::New(broadcast) => (StatusCode::ACCEPTED, Json(broadcast.into())),
        Accepted::Before(broadcast) => (StatusCode::OK, Json(broadcast.into())),
    })
}

/// List broadcasts, the newest first
#[utoipa::path(get, path = "/v1/push/broadcasts", tag = "push",
    security(("admin_token" = []), ("device_key" = [])), params(Page), responses(
    (status = 200, description = "A page of broadcasts", body = BroadcastList),
))]
pub(in crate::routes) async fn list_broadcasts(
    caller: Authenticated<ApiKeysOrPeople<Read>>,
    State(state): State<AppState>,
    page: Page,
) -> Result<Json<BroadcastList>, Problem> {
    caller.check(Action::Read, SYSTEM, Subject::All)?;
    let page = state.push.broadcasts(page.limit, page.cursor).await?;
    Ok(Json(BroadcastList {
        broadcasts: page.items.into_iter().map(BroadcastBody::from).collect(),
        next_cursor: page.next.map(|cursor| cursor.encode()),
    }))
}

/// Get a broadcast and its progress
#[utoipa::path(get, path = "/v1/push/broadcasts/{broadcast_id}", tag = "push",
    security(("admin_token" = []), ("device_key" = [])), params(BroadcastPath), responses(
    (status = 200, description = "The broadcast", body = BroadcastBody),
    (status = 404, description = "Broadcast not found"),
))]
pub(in crate::routes) async fn get_broadcast(
    caller: Authenticated<ApiKeysOrPeople<Read>>,
    State(state): State<AppState>,
    PathPart(broadcast_id): PathPart<BroadcastId>,
) -> Result<Json<BroadcastBody>, Problem> {
    caller.check(Action::Read, SYSTEM, Subject::All)?;
    let broadcast = state.push.broadcast_with_id(&broadcast_id).await?;
    Ok(Json(broadcast.into()))
}

/// Cancel a broadcast: what is not sent yet is not sent any more
///
/// Cancelling it again changes nothing. API keys need the permission `send_broadcasts`.
#[utoipa::path(post, path = "/v1/push/broadcasts/{broadcast_id}/cancel", tag = "push",
    security(("admin_token" = []), ("device_key" = [])), params(BroadcastPath), responses(
    (status = 200, description = "The cancelled broadcast", body = BroadcastBody),
    (status = 404, description = "Broadcast not found"),
    (status = 409, description = "The broadcast is finished"),
))]
pub(in crate::routes) async fn cancel_broadcast(
    caller: Authenticated<ApiKeysOrPeople<needs::Broadcast>>,
    State(state): State<AppState>,
    PathPart(broadcast_id): PathPart<BroadcastId>,
) -> Result<Json<BroadcastBody>, Problem> {
    caller.check(Action::Broadcast, SYSTEM, Subject::All)?;
    let broadcast = state.push.cancel_broadcast(&broadcast_id).await?;
    Ok(Json(broadcast.into()))
}
