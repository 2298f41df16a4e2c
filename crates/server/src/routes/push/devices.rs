//! `/v1/push/devices`: devices of users and their push tokens.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use homeport_systems::push::{Device, DeviceId, NewDevice, PAGE_MAX, Registered};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::SYSTEM;
use crate::auth::needs::{Manage, Read};
use crate::auth::{Action, Authenticated, UsersOrPeople};
use crate::openapi::schemas::{self, PushDevicePath};
use crate::problem::Problem;
use crate::request::{JsonBody, PageQuery, PathPart, UrlQuery};
use crate::state::AppState;

/// The device on which an app runs.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schema(as = RegisterPushDevice)]
pub(in crate::routes) struct RegisterDevice {
    #[schema(schema_with = schemas::expo_push_token)]
    expo_push_token: String,
    #[schema(schema_with = schemas::platform)]
    platform: String,
}

/// A registered device.
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
    /// Cursor of the next page; absent on the last page
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// The user whose devices the request concerns.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
pub(in crate::routes) struct ForUser {
    /// User id; required for operators, and users can only send their own
    #[param(schema_with = schemas::graphic_id, required = false)]
    user_id: Option<String>,
}

type Page = PageQuery<PAGE_MAX>;

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

/// Register or refresh a device; it is active for 90 days
#[utoipa::path(put, path = "/v1/push/devices/{device_id}", tag = "push",
    security(("user_token" = []), ("admin_token" = [])), params(PushDevicePath, ForUser),
    request_body = RegisterDevice, responses(
    (status = 200, description = "The refreshed device", body = DeviceBody),
    (status = 201, description = "The new device", body = DeviceBody),
))]
pub(in crate::routes) async fn register_push_device(
    caller: Authenticated<UsersOrPeople<Manage>>,
    State(state): State<AppState>,
    PathPart(device_id): PathPart<DeviceId>,
    UrlQuery(query): UrlQuery<ForUser>,
    JsonBody(body): JsonBody<RegisterDevice>,
) -> Result<(StatusCode, Json<DeviceBody>), Problem> {
    let new = NewDevice {
        user_id: caller.resolve_user(Action::Manage, SYSTEM, query.user_id.as_deref())?,
        device_id,
        expo_push_token: body.expo_push_token.parse()?,
        platform: body.platform.parse()?,
    };
    Ok(match state.push.register(new).await? {
        Registered::New(device) => (StatusCode::CREATED, Json(device.into())),
        Registered::Refreshed(device) => (StatusCode::OK, Json(device.into())),
    })
}

/// List the active devices of a user
#[utoipa::path(get, path = "/v1/push/devices", tag = "push",
    security(("user_token" = []), ("admin_token" = [])), params(ForUser, Page), responses(
    (status = 200, description = "A page of devices", body = DeviceList),
))]
pub(in crate::routes) async fn list_push_devices(
    caller: Authenticated<UsersOrPeople<Read>>,
    State(state): State<AppState>,
    UrlQuery(query): UrlQuery<ForUser>,
    page: Page,
) -> Result<Json<DeviceList>, Problem> {
    let user = caller.resolve_user(Action::Read, SYSTEM, query.user_id.as_deref())?;
    let page = state
        .push
        .active_devices(&user, page.limit, page.cursor)
        .await?;
    Ok(Json(DeviceList {
        devices: page.items.into_iter().map(DeviceBody::from).collect(),
        next_cursor: page.next.map(|cursor| cursor.encode()),
    }))
}

/// Get a device, active or not
#[utoipa::path(get, path = "/v1/push/devices/{device_id}", tag = "push",
    security(("user_token" = []), ("admin_token" = [])), params(PushDevicePath, ForUser), responses(
    (status = 200, description = "The device", body = DeviceBody),
    (status = 404, description = "Device not found"),
))]
pub(in crate::routes) async fn get_push_device(
    caller: Authenticated<UsersOrPeople<Read>>,
    State(state): State<AppState>,
    PathPart(device_id): PathPart<DeviceId>,
    UrlQuery(query): UrlQuery<ForUser>,
) -> Result<Json<DeviceBody>, Problem> {
    let user = caller.resolve_user(Action::Read, SYSTEM, query.user_id.as_deref())?;
    let device = state.push.device(&user, &device_id).await?;
    Ok(Json(device.into()))
}

/// Deactivate a device until it is registered again
#[utoipa::path(post, path = "/v1/push/devices/{device_id}/deactivate", tag = "push",
    security(("user_token" = []), ("admin_token" = [])), params(PushDevicePath, ForUser), responses(
    (status = 200, description = "The updated device", body = DeviceBody),
    (status = 404, description = "Device not found"),
))]
pub(in crate::routes) async fn deactivate_push_device(
    caller: Authenticated<UsersOrPeople<Manage>>,
    State(state): State<AppState>,
    PathPart(device_id): PathPart<DeviceId>,
    UrlQuery(query): UrlQuery<ForUser>,
) -> Result<Json<DeviceBody>, Problem> {
    let user = caller.resolve_user(Action::Manage, SYSTEM, query.user_id.as_deref())?;
    let device = state.push.deactivate(&user, &device_id).await?;
    Ok(Json(device.into()))
}

/// Delete a device and its token
#[utoipa::path(delete, path = "/v1/push/devices/{device_id}", tag = "push",
    security(("user_token" = []), ("admin_token" = [])), params(PushDevicePath, ForUser), responses(
    (status = 204, description = "Deleted"),
    (status = 404, description = "Device not found"),
))]
pub(in crate::routes) async fn delete_push_device(
    caller: Authenticated<UsersOrPeople<Manage>>,
    State(state): State<AppState>,
    PathPart(device_id): PathPart<DeviceId>,
    UrlQuery(query): UrlQuery<ForUser>,
) -> Result<StatusCode, Problem> {
    let user = caller.resolve_user(Action::Manage, SYSTEM, query.user_id.as_deref())?;
    state.push.delete(&user, &device_id).await?;
    Ok(StatusCode::NO_CONTENT)
}
