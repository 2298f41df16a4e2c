//! `/v1/push/devices`: where a user's devices can be reached.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use homeport_systems::push::{Device, DeviceId, NewDevice, PAGE_MAX, Registered};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::auth::UserOrAdmin;
use crate::body::JsonBody;
use crate::forms;
use crate::problem::{Problem, ProblemBody};
use crate::state::AppState;
use crate::url::{self, PathPart, UrlQuery};

/// What an app says about the device that it runs on.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schema(as = RegisterPushDevice)]
pub(in crate::routes) struct RegisterDevice {
    #[schema(schema_with = forms::expo_push_token)]
    expo_push_token: String,
    #[schema(schema_with = forms::platform)]
    platform: String,
}

/// A device as it is stored.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = PushDevice)]
pub(in crate::routes) struct DeviceBody {
    user_id: String,
    device_id: String,
    #[schema(example = "ExponentPushToken[xxxxxxxxxxxxxxxxxxxxxx]")]
    expo_push_token: String,
    #[schema(example = "ios")]
    platform: String,
    #[schema(example = "2027-01-15T08:00:00.000Z")]
    registered_at: String,
    updated_at: String,
    is_active: bool,
    /// Seconds since 1970
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<i64>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = PushDeviceList)]
pub(in crate::routes) struct DeviceList {
    devices: Vec<DeviceBody>,
    /// Absent on the last page
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// For whom an operator acts.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
pub(in crate::routes) struct ForUser {
    /// The user; operators must name one, users can only name themselves
    #[param(schema_with = forms::user_id, required = false)]
    user_id: Option<String>,
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
pub(in crate::routes) struct ListQuery {
    /// The user; operators must name one, users can only name themselves
    #[param(schema_with = forms::user_id, required = false)]
    user_id: Option<String>,
    /// Items of a page
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: Option<usize>,
    /// Where the page before ended
    cursor: Option<String>,
}

/// The part of an address that names a device.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
#[allow(dead_code, reason = "describes the path in the OpenAPI document")]
struct DevicePath {
    /// The device, as Expo names it
    #[param(schema_with = forms::graphic_id)]
    device_id: String,
}

impl From<Device> for DeviceBody {
    fn from(device: Device) -> Self {
        Self {
            user_id: device.user_id.to_string(),
            device_id: device.device_id.to_string(),
            expo_push_token: device.expo_push_token,
            platform: device.platform,
            registered_at: device.registered_at,
            updated_at: device.updated_at,
            is_active: device.is_active,
            expires_at: device.expires_at.map(|at| at.0),
        }
    }
}

/// Register a device, or refresh it; it is active then and lasts 90 days
#[utoipa::path(put, path = "/v1/push/devices/{device_id}", tag = "push",
    security(("user_token" = []), ("admin_token" = [])), params(DevicePath, ForUser),
    request_body = RegisterDevice, responses(
    (status = 200, description = "It was known and is refreshed", body = DeviceBody),
    (status = 201, description = "It is new", body = DeviceBody),
    (status = 400, description = "Something is not as it should be", body = ProblemBody, content_type = "application/problem+json"),
    (status = 401, description = "Neither user nor operator", body = ProblemBody, content_type = "application/problem+json"),
    (status = 403, description = "Another user's", body = ProblemBody, content_type = "application/problem+json"),
    (status = 503, description = "The store cannot answer", body = ProblemBody, content_type = "application/problem+json")
))]
pub(in crate::routes) async fn register_push_device(
    caller: UserOrAdmin,
    State(state): State<AppState>,
    PathPart(device_id): PathPart<DeviceId>,
    UrlQuery(query): UrlQuery<ForUser>,
    JsonBody(body): JsonBody<RegisterDevice>,
) -> Result<(StatusCode, Json<DeviceBody>), Problem> {
    let new = NewDevice {
        user_id: caller.user(query.user_id.as_deref())?,
        device_id,
        expo_push_token: body.expo_push_token.parse()?,
        platform: body.platform.parse()?,
    };
    Ok(match state.push.register(new).await? {
        Registered::New(device) => (StatusCode::CREATED, Json(device.into())),
        Registered::Refreshed(device) => (StatusCode::OK, Json(device.into())),
    })
}

/// The active devices of a user
#[utoipa::path(get, path = "/v1/push/devices", tag = "push",
    security(("user_token" = []), ("admin_token" = [])), params(ListQuery), responses(
    (status = 200, description = "A page of devices", body = DeviceList),
    (status = 400, description = "The user, the limit or the cursor is not right", body = ProblemBody, content_type = "application/problem+json"),
    (status = 401, description = "Neither user nor operator", body = ProblemBody, content_type = "application/problem+json"),
    (status = 403, description = "Another user's", body = ProblemBody, content_type = "application/problem+json"),
    (status = 503, description = "The store cannot answer", body = ProblemBody, content_type = "application/problem+json")
))]
pub(in crate::routes) async fn list_push_devices(
    caller: UserOrAdmin,
    State(state): State<AppState>,
    UrlQuery(query): UrlQuery<ListQuery>,
) -> Result<Json<DeviceList>, Problem> {
    let user = caller.user(query.user_id.as_deref())?;
    let limit = url::limit(query.limit, PAGE_MAX)?;
    let cursor = url::cursor(query.cursor.as_deref())?;
    let page = state.push.active_devices(&user, limit, cursor).await?;
    Ok(Json(DeviceList {
        devices: page.devices.into_iter().map(DeviceBody::from).collect(),
        next_cursor: page.next.map(|cursor| cursor.encode()),
    }))
}

/// One device, active or not
#[utoipa::path(get, path = "/v1/push/devices/{device_id}", tag = "push",
    security(("user_token" = []), ("admin_token" = [])), params(DevicePath, ForUser), responses(
    (status = 200, description = "The device", body = DeviceBody),
    (status = 400, description = "The user or the device is none", body = ProblemBody, content_type = "application/problem+json"),
    (status = 401, description = "Neither user nor operator", body = ProblemBody, content_type = "application/problem+json"),
    (status = 403, description = "Another user's", body = ProblemBody, content_type = "application/problem+json"),
    (status = 404, description = "There is no such device", body = ProblemBody, content_type = "application/problem+json"),
    (status = 503, description = "The store cannot answer", body = ProblemBody, content_type = "application/problem+json")
))]
pub(in crate::routes) async fn get_push_device(
    caller: UserOrAdmin,
    State(state): State<AppState>,
    PathPart(device_id): PathPart<DeviceId>,
    UrlQuery(query): UrlQuery<ForUser>,
) -> Result<Json<DeviceBody>, Problem> {
    let user = caller.user(query.user_id.as_deref())?;
    let device = state.push.device(&user, &device_id).await?;
    Ok(Json(device.into()))
}

/// Send a device nothing any more, until it is registered again
#[utoipa::path(post, path = "/v1/push/devices/{device_id}/deactivate", tag = "push",
    security(("user_token" = []), ("admin_token" = [])), params(DevicePath, ForUser), responses(
    (status = 200, description = "The device as it is now", body = DeviceBody),
    (status = 400, description = "The user or the device is none", body = ProblemBody, content_type = "application/problem+json"),
    (status = 401, description = "Neither user nor operator", body = ProblemBody, content_type = "application/problem+json"),
    (status = 403, description = "Another user's", body = ProblemBody, content_type = "application/problem+json"),
    (status = 404, description = "There is no such device", body = ProblemBody, content_type = "application/problem+json"),
    (status = 503, description = "The store cannot answer", body = ProblemBody, content_type = "application/problem+json")
))]
pub(in crate::routes) async fn deactivate_push_device(
    caller: UserOrAdmin,
    State(state): State<AppState>,
    PathPart(device_id): PathPart<DeviceId>,
    UrlQuery(query): UrlQuery<ForUser>,
) -> Result<Json<DeviceBody>, Problem> {
    let user = caller.user(query.user_id.as_deref())?;
    let device = state.push.deactivate(&user, &device_id).await?;
    Ok(Json(device.into()))
}

/// Forget a device and its token
#[utoipa::path(delete, path = "/v1/push/devices/{device_id}", tag = "push",
    security(("user_token" = []), ("admin_token" = [])), params(DevicePath, ForUser), responses(
    (status = 204, description = "It is gone"),
    (status = 400, description = "The user or the device is none", body = ProblemBody, content_type = "application/problem+json"),
    (status = 401, description = "Neither user nor operator", body = ProblemBody, content_type = "application/problem+json"),
    (status = 403, description = "Another user's", body = ProblemBody, content_type = "application/problem+json"),
    (status = 404, description = "There is no such device", body = ProblemBody, content_type = "application/problem+json"),
    (status = 503, description = "The store cannot answer", body = ProblemBody, content_type = "application/problem+json")
))]
pub(in crate::routes) async fn delete_push_device(
    caller: UserOrAdmin,
    State(state): State<AppState>,
    PathPart(device_id): PathPart<DeviceId>,
    UrlQuery(query): UrlQuery<ForUser>,
) -> Result<StatusCode, Problem> {
    let user = caller.user(query.user_id.as_deref())?;
    state.push.delete(&user, &device_id).await?;
    Ok(StatusCode::NO_CONTENT)
}
