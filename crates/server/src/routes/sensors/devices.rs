//! `/v1/sensors/devices`

use axum::Json;
use axum::extract::State;
use homeport_systems::sensors::{Device, HardwareId, PAGE_MAX};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::register::CapabilitiesBody;
use crate::auth::{Admin, Reader};
use crate::body::JsonBody;
use crate::forms::{self, DevicePath};
use crate::problem::{Problem, ProblemBody};
use crate::state::AppState;
use crate::url::{self, PathPart, UrlQuery};

/// A registered device.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Device)]
pub(in crate::routes) struct DeviceBody {
    #[schema(example = "AA:BB:CC:DD:EE:FF")]
    hardware_id: String,
    #[schema(format = Uuid)]
    confirmation_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    friendly_name: Option<String>,
    firmware_version: String,
    capabilities: CapabilitiesBody,
    #[schema(example = "2024-01-15T10:30:00Z")]
    first_registered_at: String,
    #[schema(example = "2024-01-15T14:22:00Z")]
    last_seen_at: String,
    #[schema(format = Uuid)]
    last_boot_id: String,
}

#[derive(Debug, Serialize, ToSchema)]
pub(in crate::routes) struct DeviceList {
    devices: Vec<DeviceBody>,
    /// Absent on the last page
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(in crate::routes) struct ListQuery {
    /// Items of a page
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: Option<usize>,
    /// Where the page before ended
    cursor: Option<String>,
}

/// What to change.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::routes) struct PatchDevice {
    #[serde(default, deserialize_with = "super::present")]
    #[schema(schema_with = forms::friendly_name_change)]
    friendly_name: Option<Option<String>>,
}

impl From<&Device> for DeviceBody {
    fn from(device: &Device) -> Self {
        Self {
            hardware_id: device.hardware_id.to_string(),
            confirmation_id: device.confirmation_id.to_string(),
            friendly_name: device.friendly_name.as_ref().map(ToString::to_string),
            firmware_version: device.firmware_version.to_string(),
            capabilities: CapabilitiesBody::from(&device.capabilities),
            first_registered_at: device.first_registered_at.to_string(),
            last_seen_at: device.last_seen_at.to_string(),
            last_boot_id: device.last_boot_id.to_string(),
        }
    }
}

/// List devices, the most recently active first
#[utoipa::path(get, path = "/v1/sensors/devices", tag = "sensors",
    security(("admin_token" = []), ("device_key" = [])), params(ListQuery), responses(
    (status = 200, description = "A page of devices", body = DeviceList),
    (status = 400, description = "The limit or the cursor is not right", body = ProblemBody, content_type = "application/problem+json"),
    (status = 401, description = "Neither operator nor device", body = ProblemBody, content_type = "application/problem+json"),
    (status = 403, description = "The key is for another system", body = ProblemBody, content_type = "application/problem+json"),
    (status = 429, description = "Too many requests with this key", body = ProblemBody, content_type = "application/problem+json"),
    (status = 503, description = "The store cannot answer", body = ProblemBody, content_type = "application/problem+json")
))]
pub(in crate::routes) async fn list_devices(
    caller: Reader,
    State(state): State<AppState>,
    UrlQuery(query): UrlQuery<ListQuery>,
) -> Result<Json<DeviceList>, Problem> {
    caller.check_system(super::SYSTEM)?;
    let limit = url::limit(query.limit, PAGE_MAX)?;
    let cursor = url::cursor(query.cursor.as_deref())?;
    let page = state.sensors.list_devices(limit, cursor).await?;
    Ok(Json(DeviceList {
        devices: page.devices.iter().map(DeviceBody::from).collect(),
        next_cursor: page.next.map(|cursor| cursor.encode()),
    }))
}

/// One device
#[utoipa::path(get, path = "/v1/sensors/devices/{hardware_id}", tag = "sensors",
    security(("admin_token" = []), ("device_key" = [])),
    params(DevicePath), responses(
    (status = 200, description = "The device", body = DeviceBody),
    (status = 400, description = "The id is none", body = ProblemBody, content_type = "application/problem+json"),
    (status = 401, description = "Neither operator nor device", body = ProblemBody, content_type = "application/problem+json"),
    (status = 403, description = "The key is for another system", body = ProblemBody, content_type = "application/problem+json"),
    (status = 404, description = "There is no such device", body = ProblemBody, content_type = "application/problem+json"),
    (status = 429, description = "Too many requests with this key", body = ProblemBody, content_type = "application/problem+json"),
    (status = 503, description = "The store cannot answer", body = ProblemBody, content_type = "application/problem+json")
))]
pub(in crate::routes) async fn get_device(
    caller: Reader,
    State(state): State<AppState>,
    PathPart(hardware_id): PathPart<HardwareId>,
) -> Result<Json<DeviceBody>, Problem> {
    caller.check_system(super::SYSTEM)?;
    let device = state.sensors.device(&hardware_id).await?;
    Ok(Json(DeviceBody::from(&device)))
}

/// Rename a device
#[utoipa::path(patch, path = "/v1/sensors/devices/{hardware_id}", tag = "sensors",
    security(("admin_token" = [])), request_body = PatchDevice,
    params(DevicePath), responses(
    (status = 200, description = "The device as it is now", body = DeviceBody),
    (status = 400, description = "Something is not as it should be", body = ProblemBody, content_type = "application/problem+json"),
    (status = 401, description = "No operator", body = ProblemBody, content_type = "application/problem+json"),
    (status = 404, description = "There is no such device", body = ProblemBody, content_type = "application/problem+json"),
    (status = 503, description = "The store cannot answer", body = ProblemBody, content_type = "application/problem+json")
))]
pub(in crate::routes) async fn patch_device(
    _: Admin,
    State(state): State<AppState>,
    PathPart(hardware_id): PathPart<HardwareId>,
    JsonBody(body): JsonBody<PatchDevice>,
) -> Result<Json<DeviceBody>, Problem> {
    let name = super::name_change(body.friendly_name)?;
    let device = state.sensors.rename_device(&hardware_id, name).await?;
    Ok(Json(DeviceBody::from(&device)))
}
